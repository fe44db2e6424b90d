"""`runner exporter` with several databases, some of them unreachable, slow or without rights."""

import json
import logging
import random
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from rowqueue.databases import Database, Session, open_database, registry
from rowqueue.databases import url as urls
from rowqueue.extras.monitor import figures as figures_module
from rowqueue.extras.monitor.collector import QueueCollector
from rowqueue.extras.monitor.exporter import named
from rowqueue.extras.monitor.figures import PARTS
from rowqueue.install import apply as install
from servers import Server
from servers.base import free_port
from support.processes import COMMAND, Running, environment
from support.waiting import until

pytestmark = pytest.mark.level(1)

Runner = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., Running]
Figures = dict[tuple[str, ...], float]


def labelled(name: str, labels: dict[str, str]) -> tuple[str, ...]:
    return (name, *labels.values())


def figures(collector: Collector) -> Figures:
    """Name, database and further labels in their order, and the value."""
    return {
        labelled(sample.name, sample.labels): sample.value
        for family in collector.collect()
        for sample in family.samples
    }


def count_calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts how often each procedure is asked from now on."""
    asked: Counter[str] = Counter()

    def counting(name: str) -> Any:
        def part(*arguments: Any) -> Any:
            asked[name] += 1
            return PARTS[name](*arguments)

        return part

    monkeypatch.setattr("rowqueue.extras.monitor.collector.PARTS", {name: counting(name) for name in PARTS})
    return asked


@pytest.fixture
def collect() -> Iterator[Callable[..., QueueCollector]]:
    made: list[QueueCollector] = []

    def make(*databases: tuple[str, Database], **options: Any) -> QueueCollector:
        made.append(QueueCollector(databases, **{"cache_seconds": 0, "timeout_seconds": 60} | options))
        return made[-1]

    yield make
    for collector in made:
        collector.close()


Collect = Callable[..., QueueCollector]


@pytest.mark.level(2)
def test_figures_are_those_of_the_procedures(
    collect: Collect, database: Database, session: Session, queue: str
) -> None:
    session.call("send_batch", queue, "a\nb\nc\nd\ne")
    session.call("send_message", queue, "later", None, None, None, None, None, None, None, 3600)
    [first] = session.call("claim_batch", queue, 1, "one", 60)
    session.call("dead_letter", first["id"], first["batch_key"], "broken")
    session.call("claim_batch", queue, 1, "two", 60)
    session.call("claim_batch", queue, 1, "three", 1)
    time.sleep(1.1)  # until the lease ends
    session.call("pause", queue)
    found = figures(collect(("main", database)))
    assert found["rowqueue_up", "main"] == 1
    assert found["rowqueue_collect_duration_seconds", "main"] > 0
    expected = {"ready": 2, "delayed": 1, "active": 1, "expired": 1, "dead": 1}
    assert {state: found[f"rowqueue_{state}_messages", "main", queue] for state in expected} == expected
    assert found["rowqueue_paused", "main", queue] == 1
    assert found["rowqueue_counts_estimated", "main", queue] == 0
    assert ("rowqueue_drain_seconds", "main", queue) not in found, "it is paused"
    assert 0 <= found["rowqueue_oldest_ready_seconds", "main", queue] < 300
    health = {row["name"]: row for row in session.call("queue_health")}
    verdicts = {key[2]: value for key, value in found.items() if key[0] == "rowqueue_health_verdict"}
    assert verdicts.keys() == health.keys()
    assert verdicts["changed_objects"] == 0
    units = {key[2:] for key in found if key[0] == "rowqueue_health_value"}
    assert units == {(name, row["unit"]) for name, row in health.items() if row["measured"] is not None}


def test_a_queue_without_ready_messages_has_no_age(
    collect: Collect, database: Database, session: Session, queue: str
) -> None:
    session.call("set_queue", queue)
    assert figures(collect(("main", database)))["rowqueue_oldest_ready_seconds", "main", queue] == 0


@pytest.mark.level(2)
def test_counters_grow_by_what_consumers_report_and_begin_at_zero(
    collect: Collect, database: Database, session: Session, queue: str
) -> None:
    def report(completed: int, failed: int, dead: int, busy: int, waited: int, sent: int) -> None:
        session.call(
            "report_consumer",
            "one",
            queue,
            json.dumps(
                {
                    "completed": completed,
                    "failed": failed,
                    "dead": dead,
                    "busy_ms": busy,
                    "waited_ms": waited,
                    "sent": sent,
                    "next_seconds": 60,
                }
            ),
        )

    def counted() -> dict[str, float]:
        found = figures(collector)
        return {key[0]: value for key, value in found.items() if key[0].endswith("_total") and key[2] == queue}

    collector = collect(("main", database))
    report(100, 10, 1, 5_000, 7_000, 90)
    assert set(counted().values()) == {0}, "what was there before is not ours to count"
    report(5, 3, 2, 1_500, 2_500, 4)
    expected = {
        "rowqueue_messages_completed_total": 5,
        "rowqueue_attempts_failed_total": 3,
        "rowqueue_messages_dead_lettered_total": 2,
        "rowqueue_busy_seconds_total": 1.5,
        "rowqueue_waited_seconds_total": 2.5,
        "rowqueue_messages_sent_total": 4,
    }
    assert counted() == expected
    assert counted() == expected
    report(1, 0, 0, 0, 0, 0)
    assert counted() == expected | {"rowqueue_messages_completed_total": 6}


@pytest.mark.level(2)
def test_consumers_are_counted_by_status(collect: Collect, database: Database, session: Session, queue: str) -> None:
    for consumer, seconds in (("one", 60), ("two", 60), ("gone", 0), ("hung", 1)):
        session.call(
            "report_consumer",
            consumer,
            queue,
            json.dumps(
                {
                    "completed": 1,
                    "failed": 0,
                    "dead": 0,
                    "busy_ms": 0,
                    "waited_ms": 0,
                    "sent": 0,
                    "next_seconds": seconds,
                }
            ),
        )
    collector = collect(("main", database))

    def counted() -> dict[str, float]:
        return {
            key[3]: n for key, n in figures(collector).items() if key[0] == "rowqueue_consumers" and key[2] == queue
        }

    def listed() -> dict[str, float]:
        # The procedure decides how long a report may be overdue.
        statuses = [row["status"] for row in session.call("list_consumers", queue)]
        return {status: statuses.count(status) for status in ("working", "silent", "stopped")}

    until(lambda: counted() == listed())
    until(lambda: counted() == {"working": 2, "silent": 1, "stopped": 1})


def test_a_real_consumer_is_seen_at_work_and_after_it(
    start: Start, collect: Collect, database: Database, session: Session, queue: str
) -> None:
    collector = collect(("main", database))
    assert not any(key[2:3] == (queue,) for key in figures(collector))
    running = start("consume", "--type", queue, "--exec", "true", "--report", 1)
    key = ("rowqueue_consumers", "main", queue)
    until(lambda: figures(collector).get((*key, "working")) == 1)
    session.call("send_batch", queue, "a\nb\nc")
    until(lambda: figures(collector).get(("rowqueue_messages_completed_total", "main", queue)) == 3)
    found = figures(collector)
    assert found["rowqueue_messages_sent_total", "main", queue] == 3
    assert found["rowqueue_busy_seconds_total", "main", queue] > 0
    assert found["rowqueue_waited_seconds_total", "main", queue] > 0
    assert running.stop() == 0
    found = figures(collector)
    assert (found[*key, "working"], found[*key, "stopped"]) == (0, 1)


@pytest.mark.product("postgresql")
def test_feeds_and_polling_tables_are_named(collect: Collect, installed_database: Database, server: Server) -> None:
    with closing(server.client(installed_database.url)) as client:
        client.execute("CREATE TABLE item (id bigint PRIMARY KEY, sync bigint UNIQUE)")
        client.execute("CREATE TABLE task (id bigint PRIMARY KEY, status text)")
        client.execute("CREATE INDEX ON task (status, id)")
        client.execute("INSERT INTO item SELECT n, NULL FROM generate_series(1, 5) AS n")
        client.execute("INSERT INTO task SELECT n, 'new' FROM generate_series(1, 3) AS n")
    with closing(installed_database.connect("test")) as session:
        session.call("create_feed", "items", "item", "id", "sync")
        session.call("publish_feed", "items", 3)
        session.call("fetch_feed", "items", "consumer", 2)
        session.call("advance_feed", "items", "consumer", 1)
        session.call(
            "adopt_table",
            "tasks",
            "task",
            json.dumps(
                {
                    "key_columns": "id",
                    "status_column": "status",
                    "ready_value": "new",
                    "active_value": "busy",
                    "done_value": "done",
                    "error_value": "bad",
                }
            ),
        )
        session.call("claim_rows", "tasks", 2, "one", 60)
    before = time.time()
    found = figures(collect(("main", installed_database)))
    assert found["rowqueue_feed_last_position", "main", "items"] == 3
    assert found["rowqueue_feed_behind_positions", "main", "items", "consumer"] == 2
    assert found["rowqueue_feed_moved_timestamp_seconds", "main", "items", "consumer"] == pytest.approx(before, abs=60)
    assert found["rowqueue_table_active_rows", "main", "tasks"] == 2
    assert found["rowqueue_table_dead_rows", "main", "tasks"] == 0


def test_within_the_cache_the_database_is_not_asked_again(
    collect: Collect, database: Database, session: Session, queue: str
) -> None:
    kept, fresh = collect(("main", database), cache_seconds=3600), collect(("main", database))
    key = ("rowqueue_ready_messages", "main", queue)
    session.call("send", queue, "a")
    assert figures(kept)[key] == figures(fresh)[key] == 1
    session.call("send", queue, "b")
    assert figures(kept)[key] == 1
    assert figures(fresh)[key] == 2


def test_health_is_asked_for_once_a_minute(
    collect: Collect, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = count_calls(monkeypatch)
    collector = collect(("main", database))
    first, second = figures(collector), figures(collector)
    assert asked["queue_stats"] == 2
    assert asked["queue_health"] == 1
    checks = {key: value for key, value in first.items() if key[0].startswith("rowqueue_health")}
    assert checks
    assert checks == {key: value for key, value in second.items() if key[0].startswith("rowqueue_health")}
    monkeypatch.setattr("rowqueue.extras.monitor.collector.KEEP_SECONDS", {})
    collector = collect(("main", database))
    figures(collector)
    figures(collector)
    assert asked["queue_health"] == 3


@pytest.mark.product("postgresql")
def test_one_connection_is_kept_and_opened_again_when_lost(
    collect: Collect, installed_database: Database, server: Server
) -> None:
    collector = collect(("main", installed_database))
    with closing(server.client(installed_database.url)) as client:

        def backends() -> list[int]:
            text = "SELECT pid FROM pg_stat_activity WHERE application_name = 'runner exporter'"
            rows = client.execute(f"{text} AND datname = current_database()").fetchall()
            return [row["pid"] for row in rows]

        threads = [threading.Thread(target=figures, args=[collector]) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        [first] = backends()
        assert figures(collector)["rowqueue_up", "main"] == 1
        assert backends() == [first]
        client.execute("SELECT pg_terminate_backend(%s, 10000)", [first])
        assert figures(collector)["rowqueue_up", "main"] == 1, "the server is there: no scrape need be lost"
        assert len(backends()) == 1


def test_a_database_that_is_away_has_no_figures_and_keeps_no_others_back(
    collect: Collect, database: Database, session: Session, queue: str, private_server: Server, caplog: Any
) -> None:
    url = private_server.create_database()
    install.apply(open_database(url))
    session.call("send", queue, "a")
    collector = collect(("main", database), ("other", open_database(url)))
    assert figures(collector)["rowqueue_up", "other"] == 1
    private_server.stop("immediate")
    for _ in range(2):
        found = figures(collector)
        assert found["rowqueue_up", "other"] == 0
        assert {key[0] for key in found if key[1] == "other"} == {"rowqueue_up", "rowqueue_collect_duration_seconds"}
        assert found["rowqueue_up", "main"] == 1
        assert found["rowqueue_ready_messages", "main", queue] == 1
    assert collector.is_ready()
    private_server.start()
    until(lambda: figures(collector)["rowqueue_up", "other"] == 1)
    lines = [record.getMessage() for record in caplog.records if "database other" in record.getMessage()]
    assert [line.split(" (")[0].split(" after")[0] for line in lines] == [
        "database other is unreachable",
        "database other is reachable again",
    ]


@pytest.mark.product("postgresql")
def test_a_slow_database_is_down_and_takes_no_others_figures_away(
    collect: Collect, database: Database, installed_database: Database, server: Server, caplog: Any
) -> None:
    collector = collect(("slow", installed_database), ("main", database), timeout_seconds=2)
    assert figures(collector)["rowqueue_up", "slow"] == 1
    with closing(server.client(installed_database.url)) as client:
        client.execute("BEGIN; LOCK TABLE mq.ready IN ACCESS EXCLUSIVE MODE")
        for _ in range(2):
            began = time.monotonic()
            found = figures(collector)
            assert time.monotonic() - began < 10
            assert (found["rowqueue_up", "slow"], found["rowqueue_up", "main"]) == (0, 1)
            assert not any(key[1] == "slow" and key[0] == "rowqueue_ready_messages" for key in found)
        waiting = "SELECT FROM pg_stat_activity WHERE application_name = 'runner exporter' AND wait_event_type = 'Lock'"
        assert len(client.execute(waiting).fetchall()) == 1
        assert collector._targets[0].watched._jobs.empty(), "scrapes that got no answer do not pile up"
        client.execute("ROLLBACK")
    until(lambda: figures(collector)["rowqueue_up", "slow"] == 1)
    assert sum("no answer in time" in record.getMessage() for record in caplog.records) == 1


def test_names_above_the_limit_are_not_reported(collect: Collect, installed_database: Database, caplog: Any) -> None:
    collector = collect(("main", installed_database), max_names=2)

    def told() -> set[str]:
        return {key[2] for key in figures(collector) if key[0] == "rowqueue_ready_messages"}

    with closing(installed_database.connect("test")) as session:
        session.call("send", "c", "")
        session.call("send", "d", "")
        assert told() == {"c", "d"}
        session.call("send", "a", "")
        session.call("send", "b", "")
        assert told() == {"c", "d"}, "who was there first stays"
        assert figures(collector)["rowqueue_left_out", "main", "queue"] == 2
    assert sum("more than 2 names" in record.getMessage() for record in caplog.records) == 1


@pytest.mark.product("postgresql")
def test_feed_consumers_above_the_limit_are_not_reported(
    collect: Collect, installed_database: Database, server: Server
) -> None:
    with closing(server.client(installed_database.url)) as client:
        client.execute("CREATE TABLE item (id bigint PRIMARY KEY, sync bigint UNIQUE)")
    with closing(installed_database.connect("test")) as session:
        session.call("create_feed", "items", "item", "id", "sync")
        for consumer in "abc":
            session.call("fetch_feed", "items", consumer, 1)
            session.call("advance_feed", "items", consumer, 0)
    found = figures(collect(("main", installed_database), max_names=2))
    assert [key[3] for key in found if key[0] == "rowqueue_feed_behind_positions"] == ["a", "b"]
    assert found["rowqueue_left_out", "main", "feed consumer"] == 1


@pytest.mark.level(2)
def test_a_role_sees_what_it_may_and_one_line_says_what_is_left_out(
    collect: Collect,
    database: Database,
    server: Server,
    session: Session,
    queue: str,
    caplog: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = count_calls(monkeypatch)
    session.call("send", queue, "a")
    with server.login(database.url, f"login_{queue[-12:]}", "mq_producer") as url:
        collector = collect(("main", open_database(url)))
        for _ in range(3):
            found = figures(collector)
            assert found["rowqueue_up", "main"] == 1
            assert found["rowqueue_ready_messages", "main", queue] == 1
            assert not any(
                key[0].startswith(("rowqueue_health", "rowqueue_feed", "rowqueue_consumers")) for key in found
            )
        collector.close()
        until(lambda: not any(thread.name == "looking at main" for thread in threading.enumerate()))
    [line] = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "queue_health, list_feeds, list_polling_tables, list_consumers, throughput" in line
    # Otherwise each request would write an error to the server's log.
    assert asked == {name: 3 if name == "queue_stats" else 1 for name in PARTS}


@pytest.mark.product("postgresql")
def test_a_user_who_gets_rights_again_sees_everything_at_once(
    collect: Collect, database: Database, server: Server, queue: str
) -> None:
    login = f"login_{queue[-12:]}"
    with server.login(database.url, login, "mq_producer") as url, closing(server.client(database.url)) as client:
        collector = collect(("main", open_database(url)))
        assert figures(collector)["rowqueue_up", "main"] == 1
        client.execute(f"REVOKE mq_producer FROM {login}")
        assert figures(collector)["rowqueue_up", "main"] == 0
        client.execute(f"GRANT mq_operator TO {login}")
        found = figures(collector)
        assert found["rowqueue_up", "main"] == 1
        assert any(key[0] == "rowqueue_health_verdict" for key in found)
        client.execute(f"REVOKE mq_operator FROM {login}")
        collector.close()
        until(lambda: not any(thread.name == "looking at main" for thread in threading.enumerate()))


def test_a_database_without_the_queue_is_down_until_it_is_installed(
    collect: Collect, empty_database: Database, caplog: Any
) -> None:
    collector = collect(("main", empty_database))
    for _ in range(2):
        assert figures(collector)["rowqueue_up", "main"] == 0
    assert not collector.is_ready()
    assert sum("runner apply" in record.getMessage() for record in caplog.records) == 1
    install.apply(empty_database)
    assert figures(collector)["rowqueue_up", "main"] == 1


def test_a_registry_refuses_a_second_one_without_asking_a_database(collect: Collect, database: Database) -> None:
    away = open_database(f"{database.name}://127.0.0.1:1/nowhere")
    registry = CollectorRegistry(auto_describe=True)
    registry.register(collect(("never", away)))
    with pytest.raises(ValueError, match="rowqueue_ready_messages"):
        registry.register(collect(("never", away)))
    assert not any(thread.name == "looking at never" for thread in threading.enumerate())


def test_names_of_databases_contain_no_password() -> None:
    urls = [
        "postgresql://user:secret@localhost:5432/shop",
        "mail=mysql://user:secret@localhost/shop",
        "firebird://user:secret@localhost//data/shop.fdb?charset=UTF8",
    ]
    assert [name for name, _ in named(urls)] == ["shop", "mail", "data/shop.fdb"]
    with pytest.raises(ValueError, match="two databases have the name 'shop'") as caught:
        named([urls[0], "postgresql://other:secret@localhost/shop"])
    assert "secret" not in str(caught.value)


# What a person may type for a URL; SECRET is part of the password.
MALFORMED = (
    *(
        "{scheme}://u:p/SECRET@h/db",
        "{scheme}://u:5432/SECRET@h/db",
        "{scheme}://u:p@SECRET@h",
        "{scheme}://u:p#SECRET@h/d",
    ),
    *("{scheme}://u:p?SECRET@h/d", "{scheme}://u:SECRET x@h", "{scheme}://u:SECRET\t@h/d", "{scheme}://u:SECRET\n@h/d"),
    *(
        "{scheme}:u:SECRET@h",
        "{scheme}:/u:SECRET@h/d",
        "host=h password=SECRET",
        "u:SECRET@h/db",
        " {scheme}://u:SECRET@h/d",
    ),
    *("{scheme}://u:SECRET", "{scheme}://u:SECRET@h:x/d", "{scheme}://u:SECRET@h:1:2/d", "{scheme}://u:[SECRET@h/d"),
    *(
        "x={scheme}://u:p/SECRET@h/d",
        "SECRET@h={scheme}://u:p@h/d",
        "{scheme}://u:SECRET@h,g:x/d",
        "{scheme}://u:SECRET@[::1/d",
    ),
)


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "mysql", "mariadb", "firebird", "sqlserver", "oracle"])
def test_a_malformed_url_is_never_printed(scheme: str) -> None:
    for form in MALFORMED:
        text = form.format(scheme=scheme)
        with pytest.raises(ValueError, match="database") as caught:
            named([text])
        assert "SECRET" not in str(caught.value), text
        assert "SECRET" not in urls.shown(text.removeprefix("x=")), text
        said = registry.without_logins(f"Got unexpected extra argument ({text})")
        assert "SECRET" not in said or scheme not in text or scheme == "oracle" or text.startswith("SECRET"), text


def test_random_passwords_are_never_printed() -> None:
    signs = "@/:?#[]%&=,; \t\n\\'\"é\x1b"
    random.seed(28)
    for _ in range(2_000):
        password = "".join(random.choices(signs, k=4)) + "SECRET" + "".join(random.choices(signs, k=4))
        text = f"{random.choice(['postgresql', 'mysql', 'firebird', 'sqlserver'])}://u:{password}@h/db"
        said = urls.shown(text)
        try:
            [(name, _)] = named([text])
            said += name
        except ValueError as error:
            said += str(error)
        assert "SECRET" not in said, text


@pytest.mark.parametrize("given", ["postgresql://u:SEC RET@h/db", "host=h password=SECRET", "postgresql:u:SECRET@h"])
def test_the_commands_print_no_malformed_url(given: str, tmp_path: Path) -> None:
    for arguments in (["exporter"], ["stats"]):
        done = subprocess.run(
            [*COMMAND, *arguments], capture_output=True, text=True, timeout=60, env=environment(given), cwd=tmp_path
        )
        assert done.returncode == 2 and "RET" not in done.stdout + done.stderr, arguments
    (tmp_path / "rowqueue.toml").write_text(f"database = {json.dumps(given)}\n", "utf-8")
    done = subprocess.run(
        [*COMMAND, "stats"], capture_output=True, text=True, timeout=60, env=environment(None), cwd=tmp_path
    )
    assert done.returncode == 2 and "RET" not in done.stdout + done.stderr


# ---- parts ---------------------------------------------------------------------------------------


@pytest.mark.level(2)
def test_a_part_that_fails_is_reported_and_the_others_too(
    collect: Collect, installed_database: Database, server: Server, caplog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(installed_database.connect("test")) as session:
        session.call("send", "mails", "x")

    def broken(*_: Any) -> Any:
        yield figures_module.Sample("rowqueue_feed_last_position", ("x",), float(None))  # type: ignore[arg-type]

    monkeypatch.setitem(PARTS, "list_feeds", broken)
    server.drop_procedure(installed_database.url, "list_polling_tables")
    collector = collect(("main", installed_database))
    for _ in range(2):
        found = figures(collector)
        assert found["rowqueue_up", "main"] == found["rowqueue_ready_messages", "main", "mails"] == 1
        up = {key[2]: value for key, value in found.items() if key[0] == "rowqueue_part_up"}
        assert up == {name: float(name not in ("list_feeds", "list_polling_tables")) for name in PARTS}
    assert any("TypeError" in record.getMessage() for record in caplog.records)


@pytest.mark.product("postgresql")
def test_a_broken_feed_takes_no_other_along(collect: Collect, installed_database: Database, server: Server) -> None:
    with closing(server.client(installed_database.url)) as client:
        for table in ("good", "gone", "other"):
            client.execute(f"CREATE TABLE {table} (id bigint PRIMARY KEY, sync bigint UNIQUE)")
            with closing(installed_database.connect("test")) as session:
                session.call("create_feed", table, table, "id", "sync")
                session.call("send", table, "x")
        client.execute("DROP TABLE gone")
        client.execute("ALTER TABLE other DROP COLUMN sync")
        client.execute(
            "CREATE FUNCTION boom() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION $$boom$$; END'"
        )
        client.execute("CREATE VIEW gone AS SELECT boom() AS id, boom() AS sync")
    found = figures(collect(("main", installed_database)))
    assert found["rowqueue_part_up", "main", "list_feeds"] == 1
    assert found["rowqueue_feed_last_position", "main", "good"] == 0
    assert found["rowqueue_ready_messages", "main", "gone"] == 1


@pytest.mark.level(2)
def test_hostile_names_are_labels_that_prometheus_reads(collect: Collect, installed_database: Database) -> None:
    names = ["plain", "esc\x1b[2J", "esc\\u001b[2J", 'quo"te\\', "line\r\nrowqueue_up 0", "turn\u202e", "\u009b1m"]
    with closing(installed_database.connect("test")) as session:
        for name in names:
            session.call("send", name, "x")
    registry = CollectorRegistry()
    registry.register(collect(("main", installed_database)))
    text = generate_latest(registry).decode()
    assert "\r" not in text and "\x1b" not in text and "\u202e" not in text and "\u009b" not in text
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    keys = [(sample.name, *sample.labels.values()) for sample in samples]
    assert len(keys) == len({*keys}), "Prometheus refuses an answer with a sample twice"
    ready = {sample.labels["type"] for sample in samples if sample.name == "rowqueue_ready_messages"}
    assert {"plain", "esc\\u001b[2J", "turn\\u202e", "\\u009b1m"} <= ready


# ---- the command ---------------------------------------------------------------------------------


def get(running: Running, path: str) -> tuple[int, str, str]:
    line = until(lambda: re.search(r"http://\S+(?=/metrics)", running.stderr))[0]
    try:
        with urllib.request.urlopen(line + path, timeout=30) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Content-Type"], error.read().decode()


def test_the_command_serves_several_databases_until_a_signal(
    start: Start, database: Database, session: Session, queue: str
) -> None:
    session.call("send", queue, "a")
    nowhere = f"away={database.name}://127.0.0.1:1/nowhere"
    running = start("exporter", "--database", f"shop={database.url}", "--database", nowhere, "--port", 0)
    status, content_type, page = get(running, "/metrics")
    assert status == 200
    assert content_type.startswith("text/plain; version=0.0.4")
    found = {
        labelled(sample.name, sample.labels): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }
    assert found["rowqueue_up", "shop"] == 1
    assert found["rowqueue_up", "away"] == 0
    assert found["rowqueue_ready_messages", "shop", queue] == 1
    assert get(running, "/live")[0] == get(running, "/ready")[0] == 200
    assert get(running, "/nothing")[0] == 404
    assert "http://127.0.0.1:" in running.stderr
    assert running.stop() == 0


def test_connections_that_send_nothing_keep_nobody_out(start: Start, database: Database) -> None:
    running = start("exporter", "--database", database.url, "--port", "0", url="")
    assert get(running, "/live")[0] == 200
    port = int(re.search(r":(\d+)/metrics", running.stderr)[1])  # type: ignore[index]
    opened = [socket.create_connection(("127.0.0.1", port)) for _ in range(300)]
    assert get(running, "/live")[0] == get(running, "/metrics")[0] == 200
    assert opened[0].recv(1) == b""
    for one in opened:
        one.close()


def test_the_command_is_not_ready_while_no_database_answers(start: Start, database: Database) -> None:
    nowhere = f"{database.name}://user:secret@127.0.0.1:1/nowhere"
    running = start("exporter", "--port", 0, url=nowhere)
    assert get(running, "/ready")[0] == 503
    assert get(running, "/live")[0] == 200
    assert "secret" not in running.stderr + get(running, "/metrics")[2]
    assert running.stop() == 0


@pytest.mark.level(3, one=True)
def test_the_command_takes_databases_from_a_file(start: Start, database: Database, tmp_path: Path) -> None:
    for text in (
        f'database = "{database.url}"\n',
        f'[exporter]\ndatabase = ["a={database.url}", "b={database.url}"]\n',
    ):
        (tmp_path / "rowqueue.toml").write_text(text)
        running = start("exporter", "--port", 0, cwd=tmp_path, url=None)
        page = get(running, "/metrics")[2]
        assert page.count("rowqueue_up{") == text.count(database.url), running.stderr
        assert running.stop() == 0


def test_the_variable_may_name_several_databases(start: Start, database: Database) -> None:
    running = start("exporter", "--port", 0, url=f"a={database.url} b={database.url}")
    assert get(running, "/metrics")[2].count("rowqueue_up{") == 2
    assert running.stop() == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--database", "nothing://x/y"], ["--database", "nothing"]),
        (["--database", "a=postgresql:///x", "--database", "a=postgresql:///y"], ["two databases", "'a'"]),
        (["--database", f"{'n' * 101}=postgresql:///x"], ["100"]),
        (["--port", "65536"], ["--port", "65535"]),
        (["--timeout", "0"], ["--timeout", "0.1"]),
        (["--max-names", "0"], ["--max-names", "1"]),
    ],
)
def test_bad_options_are_refused(runner: Runner, arguments: list[str], words: list[str]) -> None:
    done = runner("exporter", *arguments)
    assert done.returncode == 2, done.stderr
    assert all(word in done.stderr for word in words)


def test_a_port_that_is_taken_is_an_error(runner: Runner) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        done = runner("exporter", "--port", port)
    assert done.returncode == 1
    assert "in use" in done.stderr


def test_the_help_loads_no_heavy_library() -> None:
    code = "import sys; from rowqueue.cli import main\ntry: main()\nfinally: print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, timeout=60)
    assert "exporter" in done.stdout
    assert not {"prometheus_client", "opentelemetry", "textual", "starlette"} & {*done.stderr.split()}
