"""The example for Prometheus and Grafana, loaded by a real Prometheus that scrapes a real exporter."""

import json
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import generate_latest
from rowqueue.cli.commands import Commands
from rowqueue.databases import Database
from rowqueue.extras.health import Metrics
from rowqueue.extras.monitor.exporter import named
from rowqueue.extras.monitor.figures import METRICS
from servers import Server
from servers.base import free_port
from support.processes import Running
from support.waiting import until

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "monitoring"
RULES = yaml.safe_load((EXAMPLE / "rules.yml").read_text("utf-8"))["groups"][0]["rules"]
DASHBOARD = json.loads((EXAMPLE / "dashboard.json").read_text("utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS = [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]]
NAMES = {metric.name for metric in METRICS}

Start = Callable[..., Running]


def program(name: str, config: pytest.Config) -> str:
    path = shutil.which(name)
    if path is None:
        reason = f"{name} is not installed: apt-get install prometheus"
        if config.getoption("--require-databases"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    return path


@pytest.fixture
def promtool(pytestconfig: pytest.Config) -> Callable[..., None]:
    path = program("promtool", pytestconfig)

    def run(*arguments: str, stdin: str = "") -> None:
        done = subprocess.run([path, *arguments], input=stdin, cwd=EXAMPLE, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        # `check metrics` reports names that break the conventions.
        assert not done.stderr.strip(), done.stderr

    return run


class Prometheus:
    """A running Prometheus, queried through its HTTP API."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=5):
                return True
        except OSError:
            return False

    def get(self, path: str, **parameters: str) -> Any:
        with urllib.request.urlopen(
            f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=30
        ) as page:
            return json.load(page)["data"]

    def query(self, expression: str) -> list[Any]:
        result: list[Any] = self.get("query", query=expression)["result"]
        return result


@pytest.fixture
def prometheus(tmp_path: Path, pytestconfig: pytest.Config) -> Iterator[Callable[[int], Prometheus]]:
    """Starts it with the example's configuration, quicker, on an exporter's port. No alert waits before it fires."""
    path = program("prometheus", pytestconfig)
    processes: list[subprocess.Popen[bytes]] = []

    def run(exporter_port: int) -> Prometheus:
        text = (EXAMPLE / "prometheus.yml").read_text("utf-8").replace("15s", "1s")
        (tmp_path / "prometheus.yml").write_text(text.replace("9075", str(exporter_port)))
        rules = re.sub(r"^        for: .*$", "", (EXAMPLE / "rules.yml").read_text("utf-8"), flags=re.M)
        (tmp_path / "rules.yml").write_text(rules)
        port = free_port()
        arguments = (
            f"--config.file={tmp_path / 'prometheus.yml'}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        )
        with (tmp_path / "log").open("wb") as log:
            processes.append(subprocess.Popen([path, *arguments], stdout=log, stderr=log))
        server = Prometheus(port)
        until(lambda: server.is_ready() or processes[-1].poll() is not None)
        assert processes[-1].poll() is None, (tmp_path / "log").read_text()
        return server

    yield run
    for process in processes:
        process.terminate()
        process.wait(30)


def names_in(expression: str) -> set[str]:
    return set(re.findall(r"\browqueue_\w+", expression))


# ---- the files -------------------------------------------------------------------------------------------------------


def test_promtool_takes_configuration_and_rules(promtool: Callable[..., None]) -> None:
    promtool("check", "config", "prometheus.yml")
    promtool("check", "rules", "rules.yml")


def test_promtool_takes_the_metrics_of_a_consumer(promtool: Callable[..., None]) -> None:
    metrics = Metrics(0)
    metrics.messages.labels("email", "completed").inc()
    metrics.seconds.labels("email").observe(1)
    metrics.sizes.labels("email").observe(1)
    promtool("check", "metrics", stdin=generate_latest(metrics.registry).decode())


def test_each_alert_fires_when_it_should_and_only_then(promtool: Callable[..., None]) -> None:
    promtool("test", "rules", "rules.test.yml")
    tests = yaml.safe_load((EXAMPLE / "rules.test.yml").read_text("utf-8"))["tests"]
    cases = [case for test in tests for case in test["alert_rule_test"]]
    for rule in RULES:
        fires = {bool(case.get("exp_alerts")) for case in cases if case["alertname"] == rule["alert"]}
        assert fires == {True, False}, f"{rule['alert']} is to be tested both ways"


def test_rules_and_dashboard_use_metrics_that_are_there() -> None:
    used = {name for rule in RULES for name in names_in(rule["expr"])}
    shown = {name for _, expression in EXPRESSIONS for name in names_in(expression)}
    assert used | shown <= NAMES
    assert shown == NAMES, "the dashboard shows all there is"


def test_commands_that_alerts_name_are_there() -> None:
    group = Commands()
    for rule in RULES:
        for text in re.findall(r"`runner ([^`]+)`", rule["annotations"]["description"]):
            name, *more = text.split()
            command = group.get_command(None, name)
            assert command is not None, text
            if hasattr(command, "commands"):
                assert more[0] in command.commands, text


def test_the_readme_of_the_example_lists_every_alert() -> None:
    page = (EXAMPLE / "README.md").read_text("utf-8")
    assert set(re.findall(r"`(Rowqueue\w+)`", page)) == {rule["alert"] for rule in RULES}


@pytest.mark.parametrize("page", ["examples/monitoring/README.md", "docs/operate/metrics.md"])
def test_the_pages_name_databases_as_the_command_takes_them(page: str) -> None:
    [block] = re.findall(r"^```sh\n(.*?)^```", (ROOT / page).read_text("utf-8"), re.M | re.S)
    command, *options = block.splitlines()[0].split(" --database ")
    assert command == "runner exporter"
    assert [name for name, _ in named(options)] == ["shop", "mail"]


def test_ids_of_the_dashboard_are_unique_and_panels_do_not_overlap() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    titles = [panel["title"] for panel in DASHBOARD["panels"]]
    assert len(titles) == len(set(titles))
    for panel in PANELS:
        references = [target["refId"] for target in panel["targets"]]
        assert len(references) == len(set(references)), panel["title"]
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        grid = panel["gridPos"]
        cells = {
            (x, y) for x in range(grid["x"], grid["x"] + grid["w"]) for y in range(grid["y"], grid["y"] + grid["h"])
        }
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, panel["title"]
        taken |= cells


# ---- all of it together ----------------------------------------------------------------------------------------------


def fill(url: str, database: Database, server: Server) -> None:
    """Some data for every metric."""
    with closing(server.client(url)) as client:
        client.execute("CREATE TABLE item (id bigint PRIMARY KEY, sync bigint UNIQUE)")
        client.execute("CREATE TABLE task (id bigint PRIMARY KEY, status text)")
        client.execute("CREATE INDEX ON task (status, id)")
        client.execute("INSERT INTO item SELECT n, NULL FROM generate_series(1, 5) AS n")
        client.execute("INSERT INTO task SELECT n, 'new' FROM generate_series(1, 3) AS n")
    with closing(database.connect("test")) as session:
        session.call("send_batch", "email", "a\nb\nc")
        session.call("claim_batch", "email", 1, "gone", 1)
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
        session.call(
            "report_consumer",
            "worker",
            "email",
            '{"completed": 5, "failed": 1, "dead": 1, "busy_ms": 900, "waited_ms": 400, "sent": 5, "next_seconds": 60}',
        )
    with closing(server.client(url)) as client:  # the time to drain is known after a whole minute
        client.execute("UPDATE mq.report SET minute = minute - interval '1 minute'")


@pytest.mark.level(3)
@pytest.mark.product("postgresql")
def test_prometheus_reads_the_exporter_shows_the_dashboard_and_fires_alerts(
    start: Start,
    prometheus: Callable[[int], Prometheus],
    promtool: Callable[..., None],
    installed_database: Database,
    server: Server,
) -> None:
    url = installed_database.url
    fill(url, installed_database, server)
    port = free_port()
    nowhere = "away=postgresql://127.0.0.1:1/nowhere"
    exporter = start(
        "exporter", "--database", f"shop={url}", "--database", nowhere, "--port", port, "--cache", 0, url=None
    )
    until(lambda: "/metrics" in exporter.stderr)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as page:
        promtool("check", "metrics", stdin=page.read().decode())
    asked = prometheus(port)
    with closing(installed_database.connect("test")) as session:

        def report() -> None:
            """What a consumer does every few seconds: rates need figures that move."""
            session.call(
                "report_consumer",
                "worker",
                "email",
                json.dumps(
                    {
                        "completed": 5,
                        "failed": 1,
                        "dead": 1,
                        "busy_ms": 900,
                        "waited_ms": 400,
                        "sent": 5,
                        "next_seconds": 60,
                    }
                ),
            )

        for title, expression in EXPRESSIONS:
            for variable, value in (("$database", ".*"), ("$type", ".*"), ("$__rate_interval", "30s")):
                expression = expression.replace(variable, value)
            assert "$" not in expression, title
            until(lambda e=expression: (report(), asked.query(e))[1], seconds=40)
    target = until(lambda: [target for target in asked.get("targets")["activeTargets"] if target["health"] == "up"])[0]
    assert target["labels"]["job"] == "rowqueue"

    def firing() -> set[tuple[str, str]]:
        alerts = [alert["labels"] for alert in asked.get("alerts")["alerts"] if alert["state"] == "firing"]
        return {(labels["alertname"], labels.get("database", "")) for labels in alerts}

    expected = {("RowqueueDatabaseAway", "away"), ("RowqueueLeasesExpire", "shop"), ("RowqueueDeadLettersGrow", "shop")}
    until(lambda: expected <= firing())
    assert ("RowqueueDatabaseAway", "shop") not in firing()
    assert exporter.stop() == 0
    until(lambda: ("RowqueueExporterAway", "") in firing())
