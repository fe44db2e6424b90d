"""What every client has to do, whatever its language: the tests give the command that starts it."""

import json
import os
import signal
import subprocess
import time
import unicodedata
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from rowqueue.databases import Database
from servers import Server

LEASE_SECONDS = 2
SIZE = 10
FAILURE = 'first line, with "quotes"\n17,,a line that looks like a failure\nlast line'
_CREATE_ORDERS = {
    "postgresql": "CREATE TABLE orders (body varchar(250))",
    "mysql": "CREATE TABLE orders (body varchar(250) CHARACTER SET utf8mb4)",
}


class Client:
    """A program with `send TYPE BODY…` and `consume TYPE`, on one database."""

    def __init__(self, command: Sequence[str], server: Server, database: Database, folder: Path) -> None:
        self.command, self.server, self.database, self.folder = list(command), server, database, folder
        engine = "postgresql" if database.url.startswith("postgresql") else "mysql"
        server.query(database.url, _CREATE_ORDERS[engine])

    def send(self, type: str, *bodies: str) -> subprocess.CompletedProcess[str]:
        command = [*self.command, "send", type, *bodies]
        return subprocess.run(command, env=self._environment("sent"), capture_output=True, text=True, timeout=60)

    @contextmanager
    def consumer(self, type: str, name: str) -> Iterator[subprocess.Popen[bytes]]:
        """One that runs; what it has handled is read with `handled(name)`."""
        with (self.folder / f"{name}.log").open("wb") as log:
            command = [*self.command, "consume", type]
            process = subprocess.Popen(command, env=self._environment(name), stdout=log, stderr=log)
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

    def orders(self) -> int:
        return int(self.server.query(self.database.url, "SELECT COUNT(*) AS n FROM orders")[0]["n"])

    def _environment(self, name: str) -> dict[str, str]:
        return os.environ | {
            "DATABASE_URL": self.database.url,
            "HANDLED": str(self.folder / f"{name}.jsonl"),
            "BATCH_SIZE": str(SIZE),
            "LEASE_SECONDS": str(LEASE_SECONDS),
            "TZ": "Asia/Kolkata",  # no client may depend on the zone of its process
        }


def bodies(count: int) -> list[str]:
    """Texts that are all different: every character below 256 but NUL, which no argument can hold, and every script."""
    characters = [chr(code) for code in range(1, 0x110000) if unicodedata.category(chr(code)) not in ("Cs", "Cn", "Co")]
    low, high = characters[:255], characters[255:]
    step = len(high) // count
    samples = ["".join(high[n * step : (n + 1) * step : 40]) for n in range(count)]
    return [f"{n} {low[n % 255]}|{samples[n][:200]}|\r\n\t\\\"'{low[n % 255]}." for n in range(count)]


def until(condition: Callable[[], Any], what: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.05)


def check_work(client: Client) -> None:
    """200 messages with failures, retries and dead ones; two consumers, and a third that is killed in mid-batch."""
    type = f"test.{uuid.uuid4().hex[:16]}"
    with closing(client.database.connect("test")) as session:
        session.call("set_queue", type, None, 3, 0, None, "archive")
    good = bodies(174)
    # A slow one in the first batch, whose consumer is killed, and one in the second: both others have work to do.
    sent = [*good[:4], "slow", *good[4:12], "slow", *good[12:], *["fail", "dead"] * 12]
    done = client.send(type, *sent)
    assert done.returncode == 0, done.stderr
    assert len(sent) == 200 and client.orders() == 200
    of = {row["id"]: row["body"] for row in client.messages(type)}
    assert list(of.values()) == sent

    def held() -> Any:
        return next(row["batch_key"] for row in client.messages(type) if of[row["id"]] == "slow")

    with client.consumer(type, "killed") as killed:
        until(lambda: len(client.handled("killed")) >= 4, f"the first messages: {client.log('killed')}")
        key = held()
        assert key is not None
        of_killed = {row["id"] for row in client.messages(type) if row["batch_key"] == key}
        assert len(of_killed) == SIZE
        with client.consumer(type, "first") as first, client.consumer(type, "second") as second:
            time.sleep(LEASE_SECONDS + 0.5)
            assert held() == key, f"the lease of a batch was not extended: {client.log('killed')}"
            killed.send_signal(signal.SIGKILL)
            until(lambda: all(row["state"] in "CE" for row in client.messages(type)), "all messages done", 90)
            _woken_quickly(client, type)
            for process, name, how in ((first, "first", signal.SIGTERM), (second, "second", signal.SIGINT)):
                process.send_signal(how)
                assert process.wait(10) == 0, client.log(name)

    survivors = Counter(client.handled("first") + client.handled("second"))
    survivors = Counter({line: n for line, n in survivors.items() if line[1] != "wake up"})
    assert survivors == Counter({(id, body): 1 for id, body in of.items() if body not in ("fail", "dead")})
    assert {id for id, _ in client.handled("killed")} < of_killed
    assert min(len(client.handled("first")), len(client.handled("second"))) >= SIZE
    rows = {row["id"]: row for row in client.messages(type) if row["id"] in of}
    assert {id: row["state"] for id, row in rows.items()} == {
        id: "E" if body in ("fail", "dead") else "C" for id, body in of.items()
    }
    for id, row in rows.items():
        if of[id] == "fail":
            assert (row["attempts"], row["error"]) == (3, FAILURE)
        elif of[id] == "dead":
            assert (row["attempts"], row["error"]) == (1, "no such address")
        else:
            assert row["attempts"] == (2 if id in of_killed else 1), of[id]


def _woken_quickly(client: Client, type: str) -> None:
    """An idle consumer has a new message well before its poll of two seconds is sure to find it."""
    time.sleep(0.5)
    start = time.monotonic()
    with closing(client.database.connect("test")) as session:
        session.call("send", type, "wake up")
    until(lambda: any(b == "wake up" for n in ("first", "second") for _, b in client.handled(n)), "a wake-up", 1)
    assert time.monotonic() - start < 1


def check_refusals(client: Client) -> None:
    """A send that fails leaves nothing, and the contract's error numbers are read as they are documented."""
    type = f"test.{uuid.uuid4().hex[:16]}"
    done = client.send(type, "one", "two", "too long for the table" * 20)
    assert done.returncode == 1 and done.stderr.strip(), done
    assert (client.orders(), client.messages(type)) == (0, [])
    done = client.send("x" * 201, "one")
    assert done.returncode == 1 and "50002 invalid_argument: type: must be" in done.stderr, done
    assert client.orders() == 0
    done = client.send(type, "one")
    assert (done.returncode, done.stderr, client.orders(), len(client.messages(type))) == (0, "", 1, 1)
