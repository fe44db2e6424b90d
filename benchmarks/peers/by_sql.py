"""Contenders in plain SQL: wide tables, rowqueue's procedures, pgmq's functions.

python by_sql.py CONTENDER URL install | send PER_CALL COUNT | work BATCH | cycles COUNT | pace COUNT
"""

import statistics
import sys
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
        quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in bodies)
        array = "{" + ",".join(f'"{text}"' for text in quoted) + "}"  # one parameter: no conversion of a list
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


POSTGRESQL: dict[str, type[Contender]] = {
    "raw": Raw,
    "take": Take,
    "finish": Finish,
    "pgmq": Pgmq,
    "pgmq-pop": PgmqPop,
}
MYSQL: dict[str, type[Contender]] = {"raw": RawMySQL, "take": Take, "finish": Finish}

CYCLE = 20
_CYCLES = 100


def send(contender: Contender, per_call: int, count: int) -> None:
    calls = [contender.sender(tally.bodies(per_call))]
    if per_call == 1:
        calls = [contender.sender([text]) for text in tally.bodies(1000)]
    tally.ready()
    tally.begin()
    for number in range(count // per_call):
        calls[number % len(calls)]()
    tally.add(count)
    tally.finish()


def work(contender: Contender, size: int) -> None:
    tally.ready()
    tally.begin()
    while True:
        if some := contender.receive(size):
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
    else:
        modes: dict[str, Callable[..., None]] = {"send": send, "work": work, "cycles": cycles}
        modes[mode](contender, *map(int, numbers))


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
