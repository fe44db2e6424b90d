"""Contenders in plain SQL: wide tables, rowqueue's procedures, the functions of pgmq, PgQue and absurd.

python by_sql.py CONTENDER URL install | send PER_CALL COUNT | ticks PER_CALL COUNT | work BATCH | cycles COUNT
    | pace COUNT | offer RATE SECONDS
"""

import os
import statistics
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import tally

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import lines
from lines import KEY, TYPE
from rowqueue.databases import open_database
from rowqueue.install import apply as install


def connect(url: str) -> lines.Client:
    """The connection of our own benchmarks, with its driver and settings."""
    if url.startswith("postgresql"):
        import postgresql

        return postgresql.Client.connect(url)
    import mysql

    return mysql.Client.connect(url)


def _array(bodies: list[str]) -> str:
    """The literal of an array: one parameter, and no conversion of a list by the driver."""
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in bodies)
    return "{" + ",".join(f'"{text}"' for text in quoted) + "}"


class Contender(ABC):
    """One connection. The messages of `receive` are finished by the next `receive` at the latest."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client = connect(url)

    def execute(self, text: str, *values: Any) -> Sequence[Sequence[Any]]:
        """One statement on PostgreSQL, prepared, in a transaction of its own."""
        connection: Any = self.client._connection  # type: ignore[attr-defined]
        cursor = connection.execute(text, values)
        return cursor.fetchall() if cursor.description else []

    @abstractmethod
    def install(self) -> None:
        """Make the tables."""

    @abstractmethod
    def sender(self, bodies: list[str]) -> Callable[[], object]:
        """A prepared call that sends these bodies."""

    @abstractmethod
    def receive(self, size: int) -> list[str]:
        """The bodies of the next messages."""

    def wait(self) -> None:
        """Wait after nothing was ready."""
        time.sleep(0.05)

    def join(self) -> None:  # noqa: B027 (only PgQue counts its consumers)
        """Become one of the consumers."""

    def tick(self) -> None:  # noqa: B027 (only PgQue has ticks)
        """End a batch after a call that sent messages."""


class Raw(Contender):
    """One wide table; receive and finish are one DELETE."""

    def install(self) -> None:
        import postgresql

        self.client._connection.execute(postgresql.WIDE, prepare=False)  # type: ignore[attr-defined]

    def sender(self, bodies: list[str]) -> Callable[[], object]:
        head = "INSERT INTO wide (type, body, source)"
        if len(bodies) == 1:
            return lambda: self.execute(f"{head} VALUES (%s, %s, 'bench')", TYPE, bodies[0])
        text = "\n".join(bodies)  # one parameter: faster than an array
        statement = f"{head} SELECT %s, b, 'bench' FROM string_to_table(%s, E'\\n') AS b"
        return lambda: self.execute(statement, TYPE, text)

    def receive(self, size: int) -> list[str]:
        import postgresql

        text = f"DELETE FROM wide WHERE id = ANY (ARRAY({postgresql.FIRST})) RETURNING {postgresql.COLUMNS}"
        return [row[2] for row in self.execute(text, TYPE, size)]


class RawMySQL(Contender):
    """One wide table; SELECT … FOR UPDATE SKIP LOCKED and DELETE in one transaction."""

    def install(self) -> None:
        import mysql

        self.client._run(mysql.WIDE[0])  # type: ignore[attr-defined]

    def sender(self, bodies: list[str]) -> Callable[[], object]:
        text = self.client._insert("wide", bodies)  # type: ignore[attr-defined]
        return lambda: self.client._run(text)  # type: ignore[attr-defined]

    def receive(self, size: int) -> list[str]:
        return [row[2] for row in self.client.baseline_take(size)]


class Take(Contender):
    """take_batch: receive and finish in one call."""

    def install(self) -> None:
        install.apply(open_database(self.url))

    def sender(self, bodies: list[str]) -> Callable[[], object]:
        if len(bodies) == 1:
            return lambda: self.client.call("send", TYPE, bodies[0])
        text = "\n".join(bodies)
        return lambda: self.client.call("send_batch", TYPE, text)

    def receive(self, size: int) -> list[str]:
        return [row[2] for row in self.client.call("take_batch", TYPE, size)]


class Finish(Take):
    """finish_batch: complete a batch and claim the next one, with a lease, in one call."""

    _held: Any = None

    def receive(self, size: int) -> list[str]:
        if self._held is None:
            rows = self.client.call("claim_batch", TYPE, size, "bench")
        else:
            rows = self.client.call("finish_batch", self._held, None, size)
        self._held = rows[0][KEY] if rows else None
        return [row[2] for row in rows]


class PgmqPop(Contender):
    """pgmq.pop: receive and finish in one call."""

    def install(self) -> None:
        from contenders import pgmq_sql

        connection: Any = self.client._connection  # type: ignore[attr-defined]
        connection.execute(pgmq_sql(), prepare=False)
        connection.execute("SELECT pgmq.create('bench')", prepare=False)

    def sender(self, bodies: list[str]) -> Callable[[], object]:
        if len(bodies) == 1:
            return lambda: self.execute("SELECT pgmq.send('bench', %s::jsonb)", bodies[0])
        array = _array(bodies)
        return lambda: self.execute("SELECT pgmq.send_batch('bench', %s::jsonb[])", array)

    def receive(self, size: int) -> list[str]:
        return [row[1] for row in self.execute("SELECT msg_id, message::text FROM pgmq.pop('bench', %s)", size)]


class Pgmq(PgmqPop):
    """pgmq.read, then pgmq.delete of the batch; to be woken, pgmq.read_with_poll."""

    def receive(self, size: int) -> list[str]:
        function = "read_with_poll('bench', 60, %s)" if tally.WATCHING else "read('bench', 60, %s)"
        rows = self.execute(f"SELECT msg_id, message::text FROM pgmq.{function}", size)
        if rows:
            if tally.WATCHING:
                tally.handled([row[1] for row in rows])
            self.execute("SELECT pgmq.delete('bench', %s)", [row[0] for row in rows])
        return [row[1] for row in rows]

    def wait(self) -> None:
        """Nothing: the read has already waited."""


class Pgque(Contender):
    """pgque.receive, then pgque.ack. A batch is what was sent between two ticks; acknowledging ends all of it.

    In a watched process a thread does what pg_cron would do: ticks, and the rotation of the tables.
    """

    _tick_seconds = 0.1  # the default of pgque.start()
    _step_seconds = 10.0  # of pgque.maint_rotate_tables_step2; pgque.maint runs at every third

    def __init__(self, url: str) -> None:
        super().__init__(url)
        if tally.WATCHING:
            self.execute("LISTEN pgque_bench")
            threading.Thread(target=self._keep, daemon=True).start()

    def install(self) -> None:
        from contenders import pgque_sql

        connection: Any = self.client._connection  # type: ignore[attr-defined]
        connection.execute(pgque_sql(), prepare=False)
        settings = {"ticker_max_count": "1", "rotation_period": f"{30 / tally.SCALE:g} seconds"}
        connection.execute("SELECT pgque.create_queue('bench')", prepare=False)
        for name, value in settings.items():
            self.execute("SELECT pgque.set_queue_config('bench', %s, %s)", name, value)
        self.execute("SELECT pgque.subscribe('bench', 'bench')")

    def sender(self, bodies: list[str]) -> Callable[[], object]:
        if len(bodies) == 1:
            return lambda: self.execute("SELECT pgque.send('bench', %s::text)", bodies[0])
        array = _array(bodies)
        return lambda: self.execute("SELECT pgque.send_batch('bench', %s::text[])", array)

    def tick(self) -> None:
        [[made]] = self.execute("SELECT pgque.ticker('bench')")
        assert made, "PgQue made no tick"

    def receive(self, size: int) -> list[str]:
        rows = self._receive(size)
        if rows:
            if tally.WATCHING:
                tally.handled([row[1] for row in rows])
            self.execute("SELECT pgque.ack(%s)", rows[0][0])
        return [row[1] for row in rows]

    def _receive(self, size: int) -> Sequence[Sequence[Any]]:
        return self.execute("SELECT batch_id, payload FROM pgque.receive('bench', 'bench', %s)", size)

    def wait(self) -> None:
        """Wait for the NOTIFY of a tick."""
        connection: Any = self.client._connection  # type: ignore[attr-defined]
        for _ in connection.notifies(timeout=1, stop_after=1):
            pass

    def _keep(self) -> None:
        ticker, at, steps = type(self.client).connect(self.url), time.monotonic(), 0
        while True:
            ticker.run("SELECT pgque.ticker()")
            if time.monotonic() >= at:
                at, steps = time.monotonic() + self._step_seconds / tally.SCALE, steps + 1
                if steps % 3 == 0:
                    ticker.run("SELECT pgque.maint()")
                ticker.run("SELECT pgque.maint_rotate_tables_step2()")
            time.sleep(self._tick_seconds)


class PgqueCoop(Pgque):
    """Several consumers of one subscription: pgque.receive_coop, experimental in PgQue."""

    def _receive(self, size: int) -> Sequence[Sequence[Any]]:
        text = "SELECT batch_id, payload FROM pgque.receive_coop('bench', 'bench', %s, %s)"
        return self.execute(text, str(os.getpid()), size)

    def join(self) -> None:
        self.execute("SELECT pgque.subscribe_subconsumer('bench', 'bench', %s, true)", str(os.getpid()))


class Absurd(Contender):
    """absurd.claim_task, then absurd.complete_run of each task of the batch in one statement."""

    def install(self) -> None:
        from contenders import ABSURD, program

        subprocess.run([*program(ABSURD), self.url, "install"], check=True)

    def sender(self, bodies: list[str]) -> Callable[[], object]:
        if len(bodies) == 1:
            return lambda: self.execute("SELECT absurd.spawn_task('bench', 'bench', %s::jsonb)", bodies[0])
        text = "SELECT absurd.spawn_task('bench', 'bench', body) FROM unnest(%s::jsonb[]) AS body"
        array = _array(bodies)
        return lambda: self.execute(text, array)

    def receive(self, size: int) -> list[str]:
        rows = self.execute("SELECT run_id, params::text FROM absurd.claim_task('bench', 'bench', 60, %s)", size)
        if rows:
            runs = [row[0] for row in rows]
            self.execute("SELECT absurd.complete_run('bench', run) FROM unnest(%s) AS run", runs)
        return [row[1] for row in rows]


POSTGRESQL: dict[str, type[Contender]] = {
    "raw": Raw,
    "take": Take,
    "finish": Finish,
    "pgmq": Pgmq,
    "pgmq-pop": PgmqPop,
    "pgque": Pgque,
    "pgque-coop": PgqueCoop,
    "absurd": Absurd,
}
MYSQL: dict[str, type[Contender]] = {"raw": RawMySQL, "take": Take, "finish": Finish}

CYCLE = 20
_CYCLES = 100


def send(contender: Contender, per_call: int, count: int, ticks: bool = False) -> None:
    calls = [contender.sender(tally.bodies(per_call))]
    if per_call == 1:
        calls = [contender.sender([text]) for text in tally.bodies(1000)]
    tally.ready()
    tally.begin()
    for number in range(count // per_call):
        calls[number % len(calls)]()
        if ticks:
            contender.tick()
    tally.add(count)
    tally.finish()


def ticks(contender: Contender, per_call: int, count: int) -> None:
    """Send with a tick after each call."""
    send(contender, per_call, count, ticks=True)


def work(contender: Contender, size: int) -> None:
    contender.join()
    tally.ready()
    tally.begin()
    while True:
        if some := contender.receive(size):
            if not tally.WATCHING:  # then the contender has counted them before it finished them
                tally.add(len(some))
        elif tally.WATCHING:
            contender.wait()
        else:
            break
    tally.finish()


def cycles(contender: Contender, count: int) -> None:
    """The median milliseconds of the first and the last cycles of 20, with larger cycles between them."""

    def some() -> float:
        times = []
        for _ in range(_CYCLES):
            started = time.perf_counter()
            assert len(contender.receive(CYCLE)) == CYCLE
            times.append(time.perf_counter() - started)
        return statistics.median(times) * 1000

    tally.ready()
    for _ in range(10):
        contender.receive(CYCLE)
    first = some()
    left = count - (2 * _CYCLES + 10) * CYCLE
    while left > 0:
        left -= len(contender.receive(min(1000, left)))
    tally.say("cycles", first, some())


def main() -> None:
    name, url, mode, *numbers = sys.argv[1:]
    contender = (POSTGRESQL if url.startswith("postgresql") else MYSQL)[name](url)
    if mode == "install":
        contender.install()
    elif mode == "pace":
        tally.ready()
        tally.pace(lambda text: contender.sender([text])(), int(numbers[0]))
    elif mode == "offer":
        tally.ready()
        tally.offer(lambda some: contender.sender(some)(), int(numbers[0]), float(numbers[1]))
    else:
        modes: dict[str, Callable[..., None]] = {"send": send, "ticks": ticks, "work": work, "cycles": cycles}
        modes[mode](contender, *map(int, numbers))


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
