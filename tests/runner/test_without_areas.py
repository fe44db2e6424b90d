"""A database with only some areas of the queue: what reads a queue says in one line what is not installed."""

import asyncio
import logging
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
import rowqueue
from rowqueue import requests
from rowqueue.databases import Database, SchemaMissing, how_to_add, open_database
from rowqueue.databases.url import shown
from rowqueue.extras.monitor import Watched, incidents
from rowqueue.extras.monitor.collector import QueueCollector
from rowqueue.extras.monitor.figures import METRICS, PARTS, area_of
from rowqueue.extras.top.app import PROGRAM
from rowqueue.extras.top.frame import Top
from rowqueue.extras.top.queues import QueuesScreen
from rowqueue.extras.web.pages import LISTINGS
from rowqueue.install import apply as install
from rowqueue.install import contract
from servers import Server
from support.pages import Serve, serve
from support.processes import Log
from test_top import Driver

__all__ = ["serve"]

pytestmark = pytest.mark.level(3)

ADDED = [name for name in contract.load().areas if name not in contract.CORE]
CORE_ONLY = "core only"
# The areas that pages read; all others are of the core.
PAGES = {"bindings": "topics", **{name: name for name in LISTINGS if name in ADDED}}
# For each area, commands that list, and one that changes something.
LISTS = {
    "consumers": ["consumers", "throughput"],
    "feeds": ["feed list"],
    "schedules": ["schedule list"],
    "subscriptions": ["subscription list"],
    "tables": ["table list"],
    "topics": ["topic list"],
}
CHANGES = {
    "fair": "queue set here --fair",
    "feeds": "feed publish f --once",
    "ring": "queue set here --ring",
    "results": "send x --type q --wait 1",
    "schedules": "schedule run s",
    "subscriptions": "subscription unwatch t",
    "tables": "table consume t --exec true --once",
    "topics": "topic publish t body",
}

Runner = Callable[..., subprocess.CompletedProcess[str]]


@dataclass(frozen=True)
class Part:
    """A database with only some areas; `absent`: those that it has not."""

    database: Database
    absent: frozenset[str]

    @property
    def url(self) -> str:
        return self.database.url


@pytest.fixture(scope="module", params=[CORE_ONLY, *(pytest.param(name, marks=pytest.mark.level(4)) for name in ADDED)])
def part(request: pytest.FixtureRequest, server: Server) -> Iterator[Part]:
    """The core only; or all areas except for one and those that need it."""
    there = [name for name in ADDED if request.param not in (CORE_ONLY, *contract.load().with_needs([name]))]
    if request.param == CORE_ONLY:
        there = []
    url = server.create_database()
    database = open_database(url)
    install.apply(database, areas=there)
    with closing(database.connect("test")) as session:
        session.call("send_batch", "here", "a\nb\nc")
        yield Part(database, frozenset(ADDED) - frozenset(there))
    server.drop_database(url)


@pytest.fixture
def core(server: Server) -> Iterator[Database]:
    """A database with the core only, for one test."""
    url = server.create_database()
    database = open_database(url)
    install.apply(database, areas=[])
    yield database
    server.drop_database(url)


def test_each_page_says_what_is_not_installed(serve: Serve, part: Part) -> None:
    with closing(part.database.connect("test")) as session:
        [message] = session.call("peek", "here", "N", 1)
    site = serve("--allow-changes", url=part.url)
    reads = {
        "/": {"consumers", "schedules"},
        "/incidents": {"consumers", "schedules"},
        "/queue?type=here": {"consumers", "schedules", "topics"},
        f"/message?id={message['id']}": {"results", "steps"},
        "/search?by=id&q=1": set(),
        **({"/table?name=t": {"tables"}} if "tables" in part.absent else {}),
        **{f"/{name}": {PAGES[name]} if name in PAGES else set() for name in LISTINGS},
    }
    for path, areas in reads.items():
        answer = site.ask(path)
        assert answer.status == 200, (path, answer.text)
        said = re.findall(r"the areas? [\w, ]+ not installed here: `runner apply --areas [\w,]+` adds \w+", answer.text)
        assert said == ([how_to_add(areas & part.absent)] if areas & part.absent else []), path
        assert "cannot be read" not in answer.text and "Away." not in answer.text, path
        assert "no consumer</" not in answer.text, path
    log = site.running.stderr
    assert "WARNING" not in log and "ERROR" not in log and "Traceback" not in log, log


def test_the_live_screen_says_what_is_not_installed(part: Part) -> None:
    async def show() -> None:
        watched = Watched("top", part.database, PROGRAM)
        try:
            top = Top(watched, QueuesScreen, shown(part.url), 0.5)
            async with top.run_test(size=(160, 30)) as pilot:
                driver = Driver(pilot)
                await driver.sees("here", "3 ready")
                if read := {"consumers", "schedules"} & part.absent:
                    await driver.sees(how_to_add(read))
                await pilot.pause(1)
                assert "cannot be read" not in driver.text()
                assert ("consumers running" in driver.text()) == ("consumers" not in part.absent)
                assert ("not installed" in driver.text()) == bool(read)
                await driver.press("enter")
                await driver.sees("1 New", "here")
                assert "cannot be read" not in driver.text()
                await driver.press("enter")
                await driver.sees("queue  here")
                if lacks := {"results", "steps"} & part.absent:
                    await driver.sees(how_to_add(lacks))
        finally:
            watched.close()

    asyncio.run(show())


def test_the_exporter_leaves_out_what_is_not_installed(part: Part, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "rowqueue")
    with closing(part.database.connect("test")) as session:
        if "consumers" not in part.absent:
            session.call(
                "report_consumer",
                "one",
                "here",
                '{"completed": 1, "failed": 0, "dead": 0, "busy_ms": 0, "waited_ms": 0, "sent": 0, "next_seconds": 60}',
            )
    collector = QueueCollector([("main", part.database)], cache_seconds=0, timeout_seconds=60)
    try:
        for _ in range(2):
            samples = [sample for family in collector.collect() for sample in family.samples]
    finally:
        collector.close()
    parts = {sample.labels["part"]: sample.value for sample in samples if sample.name == "rowqueue_part_up"}
    assert parts == {name: 1.0 for name in PARTS if area_of(name) not in part.absent}
    kinds = {sample.labels["kind"] for sample in samples if sample.name == "rowqueue_incidents"}
    assert kinds == {kind for kind in incidents.KINDS if incidents.NEEDS.get(kind) not in part.absent}
    left_out = {sample.labels["kind"] for sample in samples if sample.name == "rowqueue_left_out"}
    of_areas = {"feed": "feeds", "feed consumer": "feeds", "table": "tables"}
    of_areas |= {"consumer": "consumers", "throughput": "consumers"}
    assert left_out == {"queue", *(kind for kind, area in of_areas.items() if area not in part.absent)}
    names = {sample.name for sample in samples}
    assert names <= {metric.name for metric in METRICS}
    assert ("rowqueue_consumers" in names) == ("consumers" not in part.absent)
    assert ("rowqueue_messages_completed_total" in names) == ("consumers" not in part.absent)
    assert {"rowqueue_up", "rowqueue_ready_messages", "rowqueue_health_verdict"} <= names
    said = [record.getMessage() for record in caplog.records]
    read = {area_of(name) for name in PARTS} & part.absent
    assert said == ([f"main: {how_to_add(read)}"] if read else [])


def test_doctor_says_which_incidents_it_does_not_look_for(runner: Runner, part: Part) -> None:
    done = runner("doctor", url=part.url)
    assert done.stderr == ""
    assert done.returncode in (0, 1), done.stdout  # 1: a check of this machine's server is bad
    [*lines] = [line for line in done.stdout.splitlines() if line.startswith("incidents\t")]
    if read := {"consumers", "schedules"} & part.absent:
        kinds = [kind for kind, area in incidents.NEEDS.items() if area in read]
        assert lines == [f"incidents\tok\t\t\tnot looked for: {', '.join(kinds)}; {how_to_add(read)}"]
    else:
        assert lines == []
    assert "no_consumer" not in done.stdout.replace(lines[0] if lines else "", "")


def test_each_command_says_what_is_not_installed(runner: Runner, part: Part) -> None:
    for area in sorted(part.absent):
        for words in LISTS.get(area, []):
            done = runner(*words.split(), url=part.url)
            assert (done.returncode, done.stderr) == (0, f"runner: {how_to_add([area])}\n"), words
            assert len(done.stdout.splitlines()) <= 1, done.stdout  # the head of a table without rows
        if words := CHANGES.get(area):
            done = runner(*words.split(), url=part.url)
            assert (done.returncode, done.stdout) == (3, ""), words
            assert done.stderr.count("\n") == 1 and how_to_add([area]) in done.stderr, done.stderr
    if "consumers" in part.absent:
        done = runner("stats", url=part.url)
        assert (done.returncode, done.stderr) == (0, "")
        assert "here\t3" in done.stdout
        assert "unknown queue" in runner("stats", "nowhere", url=part.url).stderr
    with closing(part.database.connect("test")) as session:
        assert not session.call("queue_stats", "q")[0]["ready"], "sent, although nobody can wait for it"


def test_functions_of_applications_say_what_is_not_installed(server: Server, part: Part) -> None:
    called: dict[str, Callable[[Any], Any]] = {
        "topics": lambda connection: rowqueue.publish(connection, "t", "body"),
        "results": lambda connection: rowqueue.get_result(connection, 1),
    }
    for area in called.keys() & part.absent:
        with (
            closing(part.database.connect("test")) as session,
            pytest.raises(SchemaMissing, match=re.escape(how_to_add([area]))),
            session.transaction() as connection,
        ):
            called[area](connection)
    with closing(part.database.connect("test")) as session, session.transaction() as connection:
        assert rowqueue.send(connection, "sent", "body").created


def test_an_error_for_a_user_with_a_role_says_what_is_not_installed(server: Server, core: Database) -> None:
    asked = requests.publish("t", "body")
    with (
        server.login(core.url, f"sender_{server.name[0]}", "mq_producer") as url,
        closing(open_database(url).connect("test")) as session,
    ):
        with pytest.raises(rowqueue.DatabaseError, match=re.escape(how_to_add(["topics"]))):
            session.call(asked.procedure, *asked.arguments)
        assert session.call("send", "sent", "body")


def test_lists_are_empty_for_a_user_with_a_role(server: Server, core: Database, runner: Runner) -> None:
    with server.login(core.url, f"viewer_{server.name[0]}", "mq_viewer") as url:
        for area, lists in LISTS.items():
            done = runner(*lists[0].split(), url=url)
            assert (done.returncode, done.stderr) == (0, f"runner: {how_to_add([area])}\n"), area


def test_a_consumer_handles_messages_without_reports_until_they_can_be_sent(
    server: Server, core: Database, runner: Runner, joblog: Log
) -> None:
    def consume(*more: str) -> subprocess.CompletedProcess[str]:
        words = ["consume", "--type", "q", "--handler", "jobs:record", "--drain", "--lease", "30", *more]
        return runner(*words, url=core.url)

    with closing(core.connect("test")) as session:
        session.call("set_queue", "q", '{"max_attempts": 2, "backoff_seconds": 0, "on_complete": "archive"}')
        session.call("send_batch", "q", "a\nb\nc")
        done = consume()
        assert done.returncode == 0, done.stderr
        assert [row["state"] for row in session.call("peek", "q", "C", 10)] == ["C"] * 3
        assert done.stderr.count(f"this consumer does not report: {how_to_add(['consumers'])}") == 1
        assert "WARNING" not in done.stderr and "ERROR" not in done.stderr
        session.call("send", "q", "d")
        refused = consume("--keep-results")
        assert refused.returncode == 2
        assert how_to_add(["results"]) in refused.stderr
        assert session.call("queue_stats", "q")[0]["ready"] == 1
        install.apply(core, areas=["consumers", "results"])
        again = consume("--keep-results")
        assert again.returncode == 0, again.stderr
        assert "does not report" not in again.stderr
        # A report counts a message when it was sent and when it was finished, perhaps in two minutes.
        assert sum(row["completed"] for row in session.call("throughput", "q")) == 1
