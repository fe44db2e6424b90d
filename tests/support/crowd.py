"""A crowd: many processes, each with its own session, that call procedures as programs do."""

import contextlib
import multiprocessing
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from pkgutil import iter_modules
from typing import Any

from rowqueue import databases
from rowqueue.databases import Disconnected, QueueError, Row, Session, open_database
from rowqueue.install import contract

# Not fork: children must not inherit the test's connections.
_context = multiprocessing.get_context("forkserver")
_modules = [module.name for module in iter_modules(databases.__path__, f"{databases.__name__}.")]
_context.set_forkserver_preload([*_modules, "support.crowd"])

# How long a crowd may take to start or to end, in seconds.
_PATIENCE = 180


class _Active(Exception):
    """A cancel is rolled back."""


class Member:
    """The arguments of one process: its session, its number, and the messages of its parent."""

    def __init__(self, url: str, number: int, parent: Connection) -> None:
        self._database = open_database(url)
        self._parent = parent
        self.is_mariadb = url.startswith("mariadb:")
        self.number = number
        self.session: Session = self._database.connect(f"member-{number}")

    def stopped(self) -> bool:
        """Whether the parent has asked the process to end."""
        return self._parent.poll()

    def finish(self, key: Any, outcomes: str | None = None, next_size: int = 0) -> list[Row] | None:
        """finish_batch; None when the lease was lost."""
        return self.settle("finish_batch", key, outcomes, next_size)

    def settle(self, procedure: str, *values: Any) -> list[Row] | None:
        """A call that records an outcome; None when the lease was lost."""
        try:
            return self.session.call(procedure, *values)
        except QueueError as error:
            if error.number != contract.load().errors["lease_lost"].number:
                raise
            return None

    def cancel(self, id: int) -> int:
        """Cancel a message unless it is active; 1 if it was deleted."""
        try:
            with self.session.transaction():
                [row] = self.session.call("cancel", id)
                if row["state"] == "A":
                    raise _Active
        except _Active:
            return 0
        affected: int = row["affected"]
        return affected

    def reconnect(self) -> None:
        """A new session, as soon as the server answers again."""
        self.session.close()
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                self.session = self._database.connect(f"member-{self.number}")
                return
            except Disconnected:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)


Work = Callable[..., Any]


def _live(url: str, number: int, parent: Connection, work: Work, arguments: Sequence[Any]) -> None:
    try:
        member = Member(url, number, parent)
        parent.send("here")
        parent.recv()
        result = work(member, *arguments)
        parent.send((None, result))
        member.session.close()
    except BaseException:
        parent.send((traceback.format_exc(), None))


class Crowd:
    """Starts processes and collects what their work returns; an exception in any of them fails the test."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._members: dict[int, tuple[Any, Connection]] = {}
        self._count = 0

    def start(self, work: Work, *arguments: Any, count: int = 1) -> list[int]:
        """Start `count` processes that call work(member, *arguments) at the same moment; returns their numbers."""
        numbers = []
        for _ in range(count):
            self._count += 1
            ours, theirs = _context.Pipe()
            process = _context.Process(
                target=_live, args=(self._url, self._count, theirs, work, arguments), daemon=True
            )
            process.start()
            theirs.close()
            self._members[self._count] = process, ours
            numbers.append(self._count)
        for number in numbers:
            said = self._hear(number)
            assert said == "here", said
        for number in numbers:
            self._members[number][1].send("go")
        return numbers

    def _hear(self, number: int) -> Any:
        process, connection = self._members[number]
        assert connection.poll(_PATIENCE), f"process {number} says nothing"
        try:
            return connection.recv()
        except EOFError:
            raise AssertionError(f"process {number} ended with status {process.exitcode}") from None

    def stop(self, numbers: Sequence[int] | None = None) -> None:
        """Ask processes to end; None: all. `results` waits for them."""
        for number in self._members if numbers is None else numbers:
            with contextlib.suppress(BrokenPipeError):  # it has failed; `results` raises its error
                self._members[number][1].send("stop")

    def kill(self, number: int) -> None:
        """SIGKILL."""
        process, connection = self._members.pop(number)
        process.kill()
        process.join()
        connection.close()

    def results(self, numbers: Sequence[int] | None = None) -> list[Any]:
        """Wait for processes (None: all) to end by themselves and return what their work returned."""
        found = []
        for number in list(self._members) if numbers is None else numbers:
            error, result = self._hear(number)
            assert error is None, f"process {number}:\n{error}"
            process, connection = self._members.pop(number)
            process.join()
            connection.close()
            found.append(result)
        return found

    def close(self) -> None:
        for number in list(self._members):
            self.kill(number)


def mailbox() -> Any:
    """A queue in memory between the members of a crowd: put(thing) and get(), which waits for one."""
    return _context.SimpleQueue()


def insert(connection: Any, table: str, columns: str, rows: Sequence[str]) -> None:
    """Insert rows of literals in the transaction of the driver's connection, in one statement if possible."""
    into = f"INSERT INTO {table} ({columns})"
    if "firebird" in type(connection).__module__:
        statements = [f"{into} VALUES ({row});" for row in rows]
        connection.cursor().execute(f"EXECUTE BLOCK AS BEGIN {' '.join(statements)} END")
    else:
        connection.cursor().execute(f"{into} VALUES {', '.join(f'({row})' for row in rows)}")


LEDGER = "id BIGINT NOT NULL, n BIGINT NOT NULL, consumer INTEGER NOT NULL, attempt INTEGER NOT NULL"


class Ledger:
    """The test's table of handled messages: the consumer, the attempt, and `n`, the number in the body."""

    def __init__(self, name: str) -> None:
        self.name = name

    def note(self, connection: Any, rows: Sequence[Row], consumer: int) -> None:
        """Write one row per message, in the transaction of the driver's connection, if any."""
        values = [f"{row['id']}, {int(row['body'])}, {consumer}, {row['attempt']}" for row in rows]
        insert(connection, self.name, "id, n, consumer, attempt", values)


def end_lease(session: Session, batches: str, key: Any) -> None:
    """As if the second of the shortest lease were over."""
    with session.transaction() as connection:
        connection.cursor().execute(f"UPDATE {batches} SET lease_until = claimed_at WHERE batch_key = '{key}'")


def numbers(first: int, count: int) -> str:
    """A list of bodies for send_batch: the numbers from `first` on."""
    return "\n".join(str(n) for n in range(first, first + count))


@contextlib.contextmanager
def crowd_of(url: str) -> Iterator[Crowd]:
    """A crowd whose processes are all ended after the test."""
    crowd = Crowd(url)
    try:
        yield crowd
    finally:
        crowd.close()
