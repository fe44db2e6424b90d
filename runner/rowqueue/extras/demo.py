"""`runner demo`: sends the mails of examples/outgoing_mail and delivers them to an SMTP server in this process.

The demo runs `runner send` and `runner consume` as a user would and prints these commands. It watches the queue and
compares the Maildir with the mails that were sent. It leaves messages in every state for the reader to explore.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

from ..databases import Database, Row, Session
from ..install import apply as install
from ..install import contract
from ..messages import Failure

# The demo deletes the messages of these queues, so they have names that no user's queue has.
TYPE, WEBHOOKS, REMINDERS, REPORTS = QUEUES = ("demo.email", "demo.webhook", "demo.reminder", "demo.report")
MAILS = 1_000
STALL_SECONDS = 30
_MARK = ".made-by-runner-demo"
_CONSUME = f"--type {TYPE} --handler mail:send --batch 20 --concurrency 4 --lease 10 --idle-timeout 15"

# The webhooks that the demo leaves for the reader: an error or none for each, and a retry in a quarter of an hour or
# none.
_DEAD, _LATER = -1, 900
_WEBHOOKS = [
    *[(f"HTTP 410 Gone from https://hooks.example/shop/{n}", _DEAD) for n in range(101, 107)],
    *[(f"no answer from 192.0.2.{n} after 30 s", _DEAD) for n in range(7, 11)],
    *[("the certificate of hooks.example has expired", _DEAD)] * 2,
    *[("HTTP 503 from https://hooks.example/shop/1: come back later", _LATER)] * 3,
    *[("", 0)] * 5,
]
_WAITING = 4


class DemoError(Exception):
    """The demo cannot run, or its result is wrong."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def run(database: Database, maildir: Path, option: str, table: Callable[[Row], None]) -> int:
    """Run the demo and return its exit code. `maildir`: the folder for the mails: new, empty or an earlier demo's.

    `option`: the --database option for the commands that are printed at the end; "" if they need none.
    `table`: prints a row.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    try:
        _run(database, maildir, option, table)
    except DemoError as error:
        print(f"runner: demo: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def _leave(number: int, _frame: object) -> None:
    print("runner: demo: stopped; the next run deletes what this one left", file=sys.stderr)
    sys.exit(128 + number)


def _run(database: Database, maildir: Path, option: str, table: Callable[[Row], None]) -> None:
    if find_spec("aiosmtpd") is None:
        raise DemoError("aiosmtpd is not installed: pip install '.[demo]' in the checkout of rowqueue")
    _prepare(maildir)
    install.apply(database)
    folder = contract.sql_root() / "examples" / "outgoing_mail"
    sys.path.insert(0, str(folder))
    smtp_server = import_module("smtp_server")
    mailbox = smtp_server.Mailbox(maildir)
    session = database.connect("runner demo")
    try:
        with TemporaryDirectory(prefix="rowqueue-demo-") as temporary, smtp_server.serving(mailbox) as port:
            _clear(session)
            mails = Path(temporary) / "mails.ndjson"
            _say(f"writing {MAILS:,} mails from {folder / 'make_mails.py'}")
            mails.write_text("".join(f"{line}\n" for line in import_module("make_mails").lines(MAILS)))
            environment = os.environ | {
                "RUNNER_DATABASE": database.url,
                "SMTP_SERVER": f"127.0.0.1:{port}",
                "MAIL_RETRY_SECONDS": "1",
            }
            _send(folder, environment, mails)
            sent = [json.loads(line) for line in mails.open()]
            seconds = _deliver(session, folder, environment, Path(temporary) / "log", len(sent))
        dead = session.call("peek", TYPE, "E", 10_000)
        _leave_something_to_see(session)
    finally:
        session.close()
    _report(sent, dead, maildir, mailbox.answers, seconds, option, table)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _prepare(maildir: Path) -> None:
    """Empty an earlier demo's Maildir; refuse any other folder that is not empty."""
    mark = maildir / _MARK
    if maildir.exists() and not maildir.is_dir():
        raise DemoError(f"--maildir: {maildir} is not a folder", 2)
    if maildir.exists() and not mark.exists() and any(maildir.iterdir()):
        raise DemoError(f"--maildir: {maildir} is not empty and was not made by a demo", 2)
    maildir.mkdir(parents=True, exist_ok=True)
    mark.touch()
    for part in ("tmp", "new", "cur"):
        shutil.rmtree(maildir / part, ignore_errors=True)


def _clear(session: Session) -> None:
    """Delete the messages of an earlier demo, after releasing those that a killed one still holds."""
    session.call("drop_schedule", REPORTS)
    deleted = 0
    for type in QUEUES:
        for key in {row["batch_key"] for row in session.call("peek", type, "A", 10_000)}:
            session.call("release_batch", key)
        for state in "NEC":
            while count := session.call("purge", type, state, None, 10_000)[0]["affected"]:
                deleted += count
    if deleted:
        _say(f"deleted {deleted:,} messages of an earlier demo from the queues {', '.join(QUEUES)}")
    session.call("set_queue", TYPE, '{"on_complete": "archive"}')


def _leave_something_to_see(session: Session) -> None:
    """Create dead letters with several errors, retries, delayed and ready messages, and a schedule."""
    orders = range(1001, 1001 + len(_WEBHOOKS) + _WAITING)
    bodies = [json.dumps({"order": order, "event": "paid"}) for order in orders]
    session.call("send_batch", WEBHOOKS, "\n".join(bodies))
    claimed = session.call("claim_batch", WEBHOOKS, len(_WEBHOOKS), "runner demo")
    failed = [Failure(row["id"], after, error) for row, (error, after) in zip(claimed, _WEBHOOKS, strict=True) if error]
    session.call("finish_batch", claimed[0]["batch_key"], "\n".join(failure.line() for failure in failed))
    for day in range(1, 6):
        body = json.dumps({"reminder": "invoice", "day": day})
        session.call("send_message", REMINDERS, body, *[None] * 7, day * 86_400)
    session.call("set_schedule", REPORTS, REPORTS, "0 6 * * MON-FRI", '{"report": "orders of the day"}')
    session.call("run_schedule", REPORTS)


def _runner(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "rowqueue.cli", *arguments]


def _send(folder: Path, environment: dict[str, str], mails: Path) -> None:
    _say(f"$ runner send --type {TYPE} --file {mails.name}")
    command = _runner("send", "--type", TYPE, "--file", str(mails))
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, start_new_session=True)
    if done.returncode != 0:
        raise DemoError(f"runner send failed: {done.stderr.strip()}")
    _say(done.stdout.strip())


def _deliver(session: Session, folder: Path, environment: dict[str, str], log: Path, total: int) -> float:
    """Consume until no mail is left to deliver or retry; returns the seconds it took."""
    _say(f"$ runner consume {_CONSUME}")
    started = time.monotonic()
    console = Console(stderr=True)
    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeElapsedColumn())
    with (
        _consuming(folder, environment, log) as consumer,
        Progress(*columns, console=console, disable=not console.is_terminal) as progress,
    ):
        task = progress.add_task("delivering", total=total)
        left, changed_at = total, started
        while left:
            time.sleep(0.05)
            now = _left(session)
            changed_at = time.monotonic() if now != left else changed_at
            left = now
            progress.update(task, completed=total - left)
            if consumer.poll() is not None or time.monotonic() - changed_at > STALL_SECONDS:
                last = (log.read_text().strip().splitlines() or ["no output"])[-1]
                raise DemoError(f"runner consume stopped with {left:,} mails left: {last}")
        return time.monotonic() - started


@contextmanager
def _consuming(folder: Path, environment: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`runner consume` in its own session: Ctrl-C reaches only the demo, which then stops it and waits."""
    with log.open("wb") as stderr:
        consumer = subprocess.Popen(
            _runner("consume", *_CONSUME.split()), cwd=folder, env=environment, stderr=stderr, start_new_session=True
        )
    try:
        yield consumer
    finally:
        consumer.terminate()
        consumer.wait()


def _left(session: Session) -> int:
    """How many messages are neither delivered nor dead."""
    rows = session.call("queue_stats", TYPE)
    return sum(row[column] for row in rows for column in ("ready", "delayed", "active", "expired"))


def _report(
    sent: list[dict[str, str]],
    dead: list[Row],
    maildir: Path,
    answers: Counter[str],
    seconds: float,
    option: str,
    table: Callable[[Row], None],
) -> None:
    """Print the table, the comparison with the Maildir, and commands to try next. Raises DemoError."""
    files = sum(1 for part in ("new", "cur") for _ in (maildir / part).iterdir())
    row = {
        "sent": len(sent),
        "delivered": files,
        "retried": answers["deferred"],
        "dead": len(dead),
        "seconds": round(seconds, 1),
        "messages_per_second": round(len(sent) / seconds),
    }
    table(row)
    print()
    check(sent, dead, maildir)
    print(f"{maildir} holds each of the {files:,} mails once, byte for byte.")
    print(f"{answers['deferred']:,} were deferred and retried; {len(dead):,} were refused for good:")
    print(f"  {_command()} dead list {TYPE}{option}")
    print(
        f"The queues {WEBHOOKS}, {REMINDERS} and {REPORTS} hold dead letters, retries, delayed messages and a schedule."
    )
    print("See all of it in a browser:")
    print(f"  {_command()} web{option}")


def check(sent: list[dict[str, str]], dead: list[Row], maildir: Path) -> None:
    """Raise DemoError unless each mail sent is either in the Maildir, once and unchanged, or dead by a 550."""
    refused = (json.loads(letter["body"]) for letter in dead)
    expected = Counter(map(_identity, sent)) - Counter(map(_identity, refused))
    delivered = Counter(_delivered(path) for part in ("new", "cur") for path in (maildir / part).iterdir())
    if delivered != expected:
        missing, extra = (expected - delivered).total(), (delivered - expected).total()
        raise DemoError(f"{maildir}: {missing} mails are missing and {extra} are unexpected")
    if strange := [letter["error"] for letter in dead if not letter["error"].startswith("550 ")]:
        raise DemoError(f"{len(strange)} dead letters were not refused by the server: {strange[0]}")


def _command() -> str:
    """How this program was started, for a user whose PATH does not include it."""
    own, found = Path(sys.argv[0]), shutil.which("runner")
    return "runner" if own.stem != "runner" or (found and own.samefile(found)) else str(own)


def _identity(mail: dict[str, str]) -> tuple[str, str, bytes]:
    return mail["sender"], mail["recipient"], mail["message"].encode().replace(b"\r\n", b"\n")


def _delivered(path: Path) -> tuple[str, str, bytes]:
    """The _identity of the mail in a file of the Maildir."""
    sender, recipient, message = path.read_bytes().split(b"\n", 2)
    return sender.decode()[len("Return-Path: <") : -1], recipient.decode()[len("Delivered-To: ") :], message
