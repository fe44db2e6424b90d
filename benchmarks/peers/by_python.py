"""PgQueuer, procrastinate and absurd with their own workers. Runs with the Python of the peers' folder.

python by_python.py CONTENDER URL install | send PER_CALL COUNT | work SETTING | pace COUNT
"""

import asyncio
import json
import logging
import sys
from abc import ABC, abstractmethod

import tally


class Peer(ABC):
    def __init__(self, url: str) -> None:
        self.url = url

    @abstractmethod
    async def open(self) -> None:
        """Connect as a sender."""

    @abstractmethod
    async def install(self) -> None:
        """Make the tables."""

    @abstractmethod
    async def send(self, bodies: list[str]) -> None:
        """Send in one call."""

    @abstractmethod
    async def work(self, setting: int) -> None:
        """Run the peer's worker until this process ends."""


class PgQueuer(Peer):
    """asyncpg and uvloop, as its own benchmark has them; setting: batch_size."""

    async def open(self) -> None:
        import asyncpg
        from pgqueuer.db import AsyncpgDriver
        from pgqueuer.queries import Queries

        self.queries = Queries(AsyncpgDriver(await asyncpg.connect(self.url)))

    async def install(self) -> None:
        await self.open()
        await self.queries.install()
        await self.queries.optimize_autovacuum()

    async def send(self, bodies: list[str]) -> None:
        if len(bodies) == 1:
            await self.queries.enqueue("bench", bodies[0].encode())
        else:
            await self.queries.enqueue(["bench"] * len(bodies), [text.encode() for text in bodies], [0] * len(bodies))

    async def work(self, setting: int) -> None:
        from pgqueuer import PgQueuer as Application

        await self.open()
        application = Application(self.queries.driver)

        if tally.WATCHING:

            @application.entrypoint("bench")
            async def watched(job) -> None:  # type: ignore[no-untyped-def]
                tally.handled([job.payload.decode()])
        else:

            @application.entrypoint("bench")
            async def empty(job) -> None:  # type: ignore[no-untyped-def]
                tally.add(1)

        await application.run(batch_size=setting)


class Procrastinate(Peer):
    """The asynchronous connector on a pool; setting: concurrency. Finished jobs are deleted."""

    async def open(self) -> None:
        import procrastinate

        pool = 100 if len(sys.argv) < 5 else min(int(sys.argv[4]) + 2, 20)
        connector = procrastinate.PsycopgConnector(conninfo=self.url, min_size=1, max_size=pool)
        self.app = procrastinate.App(connector=connector)

        if tally.WATCHING:

            @self.app.task(name="bench")
            async def watched(body: str) -> None:
                tally.handled([body])
        else:

            @self.app.task(name="bench")
            async def empty(body: str) -> None:
                tally.add(1)

        await self.app.open_async()

    async def install(self) -> None:
        await self.open()
        await self.app.schema_manager.apply_schema_async()

    async def send(self, bodies: list[str]) -> None:
        task = self.app.configure_task("bench")
        if len(bodies) == 1:
            await task.defer_async(body=bodies[0])
        else:
            await task.batch_defer_async(*({"body": text} for text in bodies))

    async def work(self, setting: int) -> None:
        await self.open()
        await self.app.run_worker_async(concurrency=setting, delete_jobs="always")


class Absurd(Peer):
    """The asynchronous client on one connection, one task at a time; setting: batch_size."""

    async def open(self) -> None:
        from absurd_sdk import AsyncAbsurd

        self.app = AsyncAbsurd(self.url, queue_name="bench")

        if tally.WATCHING:

            @self.app.register_task("bench")
            async def watched(params, context) -> None:  # type: ignore[no-untyped-def]
                tally.handled([json.dumps(params)])
        else:

            @self.app.register_task("bench")
            async def empty(params, context) -> None:  # type: ignore[no-untyped-def]
                tally.add(1)

    async def install(self) -> None:
        import absurdctl
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(absurdctl.BUNDLED_SCHEMA_SQL)
            connection.execute("SELECT absurd.create_queue('bench')")

    async def send(self, bodies: list[str]) -> None:
        for text in bodies:
            await self.app.spawn("bench", json.loads(text))

    async def work(self, setting: int) -> None:
        await self.open()
        await self.app.start_worker(batch_size=setting)


async def main() -> None:
    name, url, mode, *numbers = sys.argv[1:]
    peer: Peer = {"pgqueuer": PgQueuer, "procrastinate": Procrastinate, "absurd": Absurd}[name](url)
    if mode == "install":
        await peer.install()
        return
    if mode == "work":
        tally.ready()
        await peer.work(int(numbers[0]))
        return
    await peer.open()
    if mode == "pace":
        tally.ready()
        await tally.pace_async(lambda text: peer.send([text]), int(numbers[0]), asyncio.sleep)
        return
    per_call, count = map(int, numbers)
    some = tally.bodies(1000)
    tally.ready()
    tally.begin()
    for start in range(0, count, per_call):
        await peer.send(some[start % 1000 : start % 1000 + per_call])
    tally.add(count)
    tally.finish()


if __name__ == "__main__":
    import uvloop

    logging.basicConfig(level=logging.ERROR)
    uvloop.run(main())
