"""`runner demo` as a user runs it: what is in the Maildir and in the database afterwards."""

import json
import mailbox
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from email import message_from_string
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from rowqueue.databases import Database, Session
from rowqueue.extras.demo import DemoError, check
from support.waiting import until

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "outgoing_mail"
RUNNER = [sys.executable, "-m", "rowqueue.cli"]

Run = subprocess.CompletedProcess[str]


def run(*arguments: str, cwd: Path, **environment: str) -> Run:
    """Run a command with no setting of the user's but those given."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("RUNNER_")}
    return subprocess.run(
        arguments, cwd=cwd, env=kept | environment, capture_output=True, text=True, errors="replace", timeout=180
    )


def parts(message: Message) -> tuple[str, str, tuple[bytes | None, ...]]:
    """What a reader sees: identity, subject, and all contents decoded."""
    contents = (part.get_payload(decode=True) for part in message.walk() if not part.is_multipart())
    subject = " ".join(str(message["Subject"]).split())  # folded with the line ends of where it is kept
    return str(message["Message-ID"]), subject, tuple(unix(c) for c in contents)


def unix(content: Any) -> bytes | None:
    return content.replace(b"\r\n", b"\n") if isinstance(content, bytes) else None


def received(maildir: Path) -> Counter[Any]:
    """The contents of the Maildir, as Python's own library reads it: recipient and contents."""
    return Counter((mail["Delivered-To"], *parts(mail)) for mail in mailbox.Maildir(maildir, create=False))


@pytest.fixture(scope="module")
def sent() -> list[dict[str, str]]:
    """The mails as their generator writes them."""
    done = run(sys.executable, "make_mails.py", cwd=EXAMPLE)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def to(sent: list[dict[str, str]], domain: str) -> set[str]:
    found = {mail["recipient"] for mail in sent if mail["recipient"].endswith(f"@{domain}")}
    assert len(found) > 10
    return found


def expected(sent: list[dict[str, str]]) -> Counter[Any]:
    return Counter(
        (mail["recipient"], *parts(message_from_string(mail["message"])))
        for mail in sent
        if not mail["recipient"].endswith("@gone.example")
    )


def table(done: Run) -> dict[str, float]:
    names, values = done.stdout.splitlines()[:2]
    return dict(zip(names.split("\t"), map(float, values.split("\t")), strict=True))


@pytest.fixture
def home() -> Iterator[Path]:
    """A data directory that the embedded server's user can enter, which pytest's temporary folders are not for root."""
    with tempfile.TemporaryDirectory(prefix="rowqueue-demo-test-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
        until(lambda: not list(Path(folder).glob("rowqueue/data/postmaster.pid")))


@pytest.mark.level(3)
def test_the_demo_delivers_each_mail_once_and_can_be_run_again(
    home: Path, tmp_path: Path, sent: list[dict[str, str]]
) -> None:
    place = {"XDG_DATA_HOME": str(home), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    run(*RUNNER, "apply", cwd=tmp_path, **place)
    assert run(*RUNNER, "send", "--type", "email", "a user's own", cwd=tmp_path, **place).returncode == 0
    for _ in range(2):
        done = run(*RUNNER, "demo", cwd=tmp_path, **place)
        assert done.returncode == 0, done.stderr
        assert received(tmp_path / "demo-mail") == expected(sent)
    assert "deleted" in done.stderr and "demo.email" in done.stderr
    numbers = table(done)
    assert numbers["sent"] == len(sent) >= 1000
    assert numbers["delivered"] == expected(sent).total()
    assert numbers["retried"] == len(to(sent, "greylist.example"))
    assert numbers["dead"] == len(to(sent, "gone.example"))

    told = [line.strip() for line in done.stdout.splitlines()]
    assert told[-1] == "runner web"
    command = next(line for line in told if line.startswith("runner "))
    assert command == "runner dead list demo.email"
    listed = run("sh", "-c", f"{command} --size 1000 --json", cwd=tmp_path, **place)
    letters = [json.loads(line) for line in listed.stdout.splitlines()]
    assert {json.loads(letter["body"])["recipient"] for letter in letters} == to(sent, "gone.example")
    assert all(letter["error"].startswith("550 5.1.1 <") and letter["attempts"] == 1 for letter in letters)
    assert is_left_to_see(tmp_path, place)
    own = run(*RUNNER, "queue", "peek", "email", "--json", cwd=tmp_path, **place)
    assert [json.loads(line)["body"] for line in own.stdout.splitlines()] == ["a user's own"]


def is_left_to_see(folder: Path, place: dict[str, str]) -> bool:
    """Messages in every state, the same after each run: the data for a page that shows them."""

    def listed(*command: str) -> list[Any]:
        done = run(*RUNNER, *command, "--json", cwd=folder, **place)
        return [json.loads(line) for line in done.stdout.splitlines()]

    states = {row["type"]: (row["ready"], row["delayed"], row["dead"]) for row in listed("stats")}
    errors = {row["error"].split()[0] for row in listed("dead", "list", "demo.webhook")}
    archived = listed("queue", "peek", "demo.email", "--state", "C", "--size", "10000")
    [schedule] = listed("schedule", "list")
    assert states["demo.webhook"] == (4, 3, 12) and len(errors) == 3
    assert states["demo.reminder"] == (0, 5, 0) and states["demo.report"] == (1, 0, 0)
    assert len(archived) == len(list((folder / "demo-mail" / "new").iterdir()))
    return str(schedule["type"]) == "demo.report"


@pytest.mark.level(4)
def test_a_demo_stopped_in_the_middle_leaves_nothing_claimed_and_the_next_one_works(
    installed_database: Database, tmp_path: Path, sent: list[dict[str, str]]
) -> None:
    session = installed_database.connect("test")
    try:
        session.call("set_queue", "demo.email", '{"on_complete": "archive"}')
        stop_in_the_middle(installed_database, tmp_path)
        stats = session.call("queue_stats", "demo.email")[0]
        assert stats["active"] == 0 and stats["ready"] > 0
        done = run(*RUNNER, "demo", "--database", installed_database.url, "--maildir", "box", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert received(tmp_path / "box") == expected(sent)
        assert done.stdout.splitlines()[-1].strip().startswith("runner web --database ")
        attempts = attempts_of_completed(session)
    finally:
        session.close()
    delayed = to(sent, "greylist.example")
    assert len(attempts) == expected(sent).total()
    assert {recipient for recipient, count in attempts if count == 2} == delayed
    assert {recipient for recipient, count in attempts if count != 2} & delayed == set()
    assert {count for _, count in attempts} == {1, 2}


def attempts_of_completed(session: Session) -> list[tuple[str, int]]:
    rows = session.call("peek", "demo.email", "C", 10_000)
    return [(json.loads(row["body"])["recipient"], row["attempts"]) for row in rows]


def stop_in_the_middle(database: Database, folder: Path) -> None:
    process = subprocess.Popen(
        [*RUNNER, "demo", "--maildir", "box"],
        cwd=folder,
        env=os.environ | {"RUNNER_DATABASE": database.url},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        until(lambda: len(list(folder.glob("box/new/*"))) > 50)
        process.send_signal(signal.SIGINT)
        text, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, text
    assert "Traceback" not in text
    assert 50 < len(list(folder.glob("box/new/*"))) < 1000


@pytest.mark.level(1)
@pytest.mark.parametrize("make", [Path.touch, lambda path: (path.mkdir(), (path / "letter").write_text("mine"))])
def test_the_demo_leaves_a_folder_alone_that_is_not_its_own(
    database: Database, tmp_path: Path, make: Callable[[Path], Any]
) -> None:
    make(tmp_path / "box")
    before = sorted(tmp_path.rglob("*"))
    done = run(*RUNNER, "demo", "--database", database.url, "--maildir", "box", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("runner: demo: --maildir: box is not ")
    assert len(done.stderr.splitlines()) == 1
    assert sorted(tmp_path.rglob("*")) == before


MAIL = {"sender": "a@x.example", "recipient": "b@x.example", "message": "Subject: hello\r\n\r\nyou\r\n"}
FILE = b"Return-Path: <a@x.example>\nDelivered-To: b@x.example\nSubject: hello\n\nyou\n"


@pytest.mark.parametrize(
    ("files", "error", "complaint"),
    [
        ([FILE], None, None),
        ([], "550 5.1.1 no such mailbox", None),
        ([], None, "1 mails are missing and 0"),
        ([FILE, FILE], None, "0 mails are missing and 1"),
        ([FILE.replace(b"you", b"me")], None, "1 mails are missing and 1"),
        ([FILE.replace(b"b@", b"c@")], None, "1 mails are missing and 1"),
        ([FILE], "550 5.1.1 no such mailbox", "0 mails are missing and 1"),
        ([], "[Errno 111] Connection refused", "1 dead letters were not refused by the server"),
    ],
)
def test_the_demo_notices_what_is_wrong(
    tmp_path: Path, files: list[bytes], error: str | None, complaint: str | None
) -> None:
    for part in ("new", "cur"):
        (tmp_path / part).mkdir()
    for number, content in enumerate(files):
        (tmp_path / "new" / str(number)).write_bytes(content)
    dead = [{"body": json.dumps(MAIL), "error": error}] if error else []
    if complaint is None:
        check([MAIL], dead, tmp_path)
        return
    with pytest.raises(DemoError, match=complaint):
        check([MAIL], dead, tmp_path)
