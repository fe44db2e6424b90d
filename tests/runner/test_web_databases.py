"""`runner web` with several databases: of several engines on one page, one that hangs, two with the same name."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import servers
from rowqueue.databases import Database, Session, open_database
from rowqueue.install import apply as install
from support.pages import Serve, database, serve

__all__ = ["database", "serve"]

pytestmark = pytest.mark.product("postgresql")

KINDS = [name for name in servers.newest(servers.engine) if servers.engine(name) != "postgresql"]


@pytest.fixture
def others(pytestconfig: pytest.Config) -> Iterator[dict[str, str]]:
    """A URL of a database of each other kind that is there, by kind; the queue is installed."""
    urls = {}
    with ExitStack() as stack:
        for name in KINDS:
            try:
                server = servers.make(name)
            except servers.Unavailable as error:
                if pytestconfig.getoption("--require-databases"):
                    pytest.fail(str(error), pytrace=False)
                continue
            server.start()
            stack.callback(server.close)
            url = server.create_database()
            install.apply(open_database(url))
            urls[servers.engine(name)] = url
        if not urls:
            pytest.skip("no other kind of database is there")
        yield urls


@pytest.mark.level(3)
def test_databases_of_several_kinds_are_on_one_page(
    serve: Serve, database: Database, session: Session, queue: str, others: dict[str, str]
) -> None:
    session.call("send", queue, "x")
    named = {"postgresql": database.url, **others}
    sessions = {kind: open_database(url).connect("test") for kind, url in named.items()}
    for kind, one in sessions.items():
        one.call("send_batch", f"queue of {kind}", "a\nb\nc")
        one.call("send_message", f"queue of {kind}", "d", None, None, None, "the same key")
        [row] = one.call("claim_batch", f"queue of {kind}", 1)
        one.call("dead_letter", row["id"], row["batch_key"], f"broken on {kind} 17")
        one.call(
            "report_consumer",
            f"consumer of {kind}",
            f"queue of {kind}",
            json.dumps(
                {
                    "completed": 5,
                    "failed": 1,
                    "dead": 1,
                    "busy_ms": 50,
                    "waited_ms": 50,
                    "sent": 5,
                    "sent_at": str(one.now()),
                    "next_seconds": 60,
                }
            ),
        )
    options = [word for kind, url in named.items() for word in ("--database", f"my {kind}={url}")]
    site = serve("--allow-changes", *options)
    overview, consumers = site.ask("/?queue=queue+of").text, site.ask("/consumers").text
    found = site.ask("/search?by=dedup_key&q=the+same+key").text
    assert "Away." not in overview
    for kind, one in sessions.items():
        assert f"my {kind}" in overview
        assert f"queue of {kind}" in overview
        assert f"consumer of {kind}" in consumers
        assert f"queue of {kind}" in found
        dead = site.ask(f"/queue?db=my+{kind}&type=queue+of+{kind}&state=E").text
        assert f"broken on {kind} #" in dead
        for path in ("schedules", "bindings", "feeds", "subscriptions", "tables", "limits", "health"):
            assert "Away." not in site.ask(f"/{path}").text, path
        form = {"db": f"my {kind}", "type": f"queue of {kind}", "sure": "1"}
        assert site.post({"do": "pause", **form}).status == 303
        assert one.call("queue_stats", f"queue of {kind}")[0]["paused"]
        answer = site.post({"do": "redrive_all", "error": f"broken on {kind} #", **form})
        assert "1 redriven" in site.ask(answer.headers["location"]).text
        one.close()


@pytest.fixture
def hanging() -> Iterator[int]:
    """The port of a server that takes connections and never answers."""
    listener = socket.create_server(("127.0.0.1", 0))
    kept: list[Any] = []

    def accept() -> None:
        while True:
            try:
                kept.append(listener.accept())
            except OSError:
                return

    threading.Thread(target=accept, daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()


@pytest.mark.level(3)
def test_a_database_that_hangs_keeps_no_other_waiting(
    serve: Serve, database: Database, session: Session, queue: str, hanging: int
) -> None:
    session.call("send", queue, "x")
    hung = f"hung=postgresql://127.0.0.1:{hanging}/x?connect_timeout=30"
    site = serve("--database", f"here={database.url}", "--database", hung)
    seconds = []
    for _ in range(5):
        began = time.monotonic()
        text = site.ask("/").text
        seconds.append(time.monotonic() - began)
        assert queue in text
        assert "it has not answered for" in text
    assert seconds[0] < 6
    time.sleep(5)
    began = time.monotonic()
    assert queue in site.ask("/").text
    assert time.monotonic() - began < 1.5
    began = time.monotonic()
    assert site.ask(f"/queue?db=here&type={queue}").status == 200
    assert time.monotonic() - began < 1.5


def test_two_databases_of_one_name_are_refused(runner: Callable[..., Any], database: Database) -> None:
    refused = runner("web", "--database", f"a={database.url}", "--database", f"a={database.url}")
    assert refused.returncode == 2
    assert "two databases have the name 'a'" in refused.stderr
