"""A client in any language, for the tests: a program that sends and consumes, and its traces."""

import json
import os
import subprocess
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from languages import Language
from rowqueue.databases import Database
from servers import Server, engine

LEASE_SECONDS = 2
SIZE = 10
CONCURRENCY = 2  # of a client that finishes each message when it is handled
FAILURE = 'first line, with "quotes"\n17,-1,a line that looks like a list of old\nlast line'
FAIL = f"raise {FAILURE}"  # the body of a message that fails with this error
_CREATE_ORDERS = {
    "postgresql": "CREATE TABLE orders (body varchar(250))",
    "mysql": "CREATE TABLE orders (body varchar(250) CHARACTER SET utf8mb4)",
    "firebird": "CREATE TABLE orders (body varchar(250) CHARACTER SET utf8)",
}


def create_orders(server: Server, database: Database) -> None:
    """The table of the application's that `send` writes into."""
    server.query(database.url, _CREATE_ORDERS[engine(server.name)])


class Client:
    """A program with `send TYPE BODY…` and `consume TYPE`, on one database."""

    def __init__(
        self,
        command: Sequence[str],
        server: Server,
        database: Database,
        folder: Path,
        batches: bool = True,
        lease_seconds: int = LEASE_SECONDS,
    ) -> None:
        self.batches, self.size = batches, SIZE if batches else CONCURRENCY
        self.command, self.server, self.database, self.folder = list(command), server, database, folder
        self.lease_seconds = lease_seconds

    def send(self, type: str, *bodies: str) -> subprocess.CompletedProcess[str]:
        command = [*self.command, "send", type, *bodies]
        return subprocess.run(command, env=self._environment("sent"), capture_output=True, text=True, timeout=60)

    @contextmanager
    def consumer(self, type: str, name: str) -> Iterator[subprocess.Popen[bytes]]:
        """One that runs; what it has handled is read with `handled(name)`."""
        with (self.folder / f"{name}.log").open("wb") as log:
            command = [*self.command, "consume", type]
            # In its own process group, to signal the whole group.
            process = subprocess.Popen(
                command, env=self._environment(name), stdout=log, stderr=log, start_new_session=True
            )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def handled(self, name: str) -> list[tuple[int, str]]:
        path = self.folder / f"{name}.jsonl"
        lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
        return [(int(id), body) for id, body in map(json.loads, lines)]

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    def messages(self, type: str) -> list[dict[str, Any]]:
        view = self.server.table("message_state")
        return self.server.query(self.database.url, f"SELECT * FROM {view} WHERE type = %s ORDER BY id", type)

    def held(self, type: str) -> dict[int, dict[str, Any]]:
        """The messages that are claimed."""
        return {row["id"]: row for row in self.messages(type) if row["state"] == "A"}

    def is_slow(self, type: str) -> bool:
        """Whether the only consumer finishes nothing more before a slow message."""
        held = [row["body"] for row in self.held(type).values()]
        return "slow" in held if self.batches else held == ["slow"] * self.size

    def unfinished(self, type: str) -> int:
        """The messages that are neither completed nor dead."""
        view = self.server.table("message_state")
        query = f"SELECT COUNT(*) AS n FROM {view} WHERE type = %s AND state NOT IN ('C', 'E')"
        return int(self.server.query(self.database.url, query, type)[0]["n"])

    def orders(self) -> int:
        return int(self.server.query(self.database.url, "SELECT COUNT(*) AS n FROM orders")[0]["n"])

    def _environment(self, name: str) -> dict[str, str]:
        return os.environ | {
            "DATABASE_URL": self.database.url,
            "HANDLED": str(self.folder / f"{name}.jsonl"),
            "BATCH_SIZE": str(SIZE),
            "CONCURRENCY": str(CONCURRENCY),
            "LEASE_SECONDS": str(self.lease_seconds),
            "TZ": "Asia/Kolkata",  # clients must not depend on the process's time zone
        }


Start = Callable[[Language, str], Sequence[str]]  # starts a client of a language; its command
MakeClient = Callable[..., Client]


def bodies(count: int) -> list[str]:
    """Texts that are all different: every character below 256 but NUL, which no argument can hold, and every script.

    1,000 and more of them hold every character that Unicode assigns.
    """
    characters = [chr(code) for code in range(1, 0x110000) if unicodedata.category(chr(code)) not in ("Cs", "Cn", "Co")]
    low, high = characters[:255], characters[255:]
    samples = [high[n * len(high) // count : (n + 1) * len(high) // count] for n in range(count)]
    texts = ["".join(sample[:: 1 + len(sample) // 200]) for sample in samples]
    return [f"{n} {low[n % 255]}|{texts[n]}|\r\n\t\\\"'{low[n % 255]}." for n in range(count)]
