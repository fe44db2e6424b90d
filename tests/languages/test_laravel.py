"""examples/laravel: the queue driver in an application of the real framework, with its own worker."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from languages import EXAMPLES, LANGUAGES, LARAVEL
from rowqueue.databases import Database, open_database
from rowqueue.install import apply as install
from servers import Server, engine
from support.waiting import until

APPLICATION = EXAMPLES / "laravel"
TESTS = Path(__file__).parent / "laravel"
TYPE = "default"
# The autoloader of another release: vendor/autoload.php of an application.
AUTOLOAD = os.environ.get("LARAVEL_AUTOLOAD")
_AUTOLOADER = """<?php
require_once '{autoload}';
spl_autoload_register(function ($class) {{
    $path = __DIR__ . '/../app/' . strtr(substr($class, 4), '\\\\', '/') . '.php';
    if (str_starts_with($class, 'App\\\\') && is_file($path)) {{
        require $path;
    }}
}});
"""
_CREATE_ORDERS = {
    "postgresql": "CREATE TABLE orders (id serial PRIMARY KEY, customer text NOT NULL, mailed integer DEFAULT 0)",
    "mysql": "CREATE TABLE orders (id serial PRIMARY KEY, customer varchar(99) NOT NULL, mailed integer DEFAULT 0)",
}

pytestmark = [pytest.mark.level(1), pytest.mark.product("postgresql", "mysql", "mariadb")]


class Shop:
    """The application on one database."""

    def __init__(self, folder: Path, server: Server, database: Database) -> None:
        self.folder, self.server, self.database = folder, server, database
        server.query(database.url, _CREATE_ORDERS[engine(server.name)])

    def environment(self, **more: object) -> dict[str, str]:
        variables = {"DATABASE_URL": self.database.url, "HANDLED": str(self.folder / "handled"), **more}
        return os.environ | {name: str(value) for name, value in variables.items()}

    def run(self, code: str) -> Any:
        """The value that PHP code in the application returns."""
        done = subprocess.run(
            _php("run.php", code), cwd=self.folder, env=self.environment(), capture_output=True, text=True, timeout=60
        )
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return json.loads(done.stdout)

    def dispatch(self, *texts: str, **options: object) -> None:
        jobs = json.dumps([[text, options] for text in texts])
        self.run(f"foreach (json_decode('{jobs}', true) as $job) {{ Work::dispatch(...$job); }} return 0;")

    @contextmanager
    def worker(self, *options: str, **more: object) -> Iterator[subprocess.Popen[bytes]]:
        command = _php("artisan", "queue:work", *options)
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(command, cwd=self.folder, env=self.environment(**more), stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def work(self, *options: str, **more: object) -> None:
        """A worker until the queue is empty."""
        with self.worker("--stop-when-empty", *options, **more) as process:
            assert process.wait(60) == 0, self.log

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text("utf-8", "replace")

    def handled(self, event: str = "end") -> list[tuple[str, Any]]:
        path = self.folder / "handled"
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []
        return [(text, value) for name, text, value in lines if name == event]

    def states(self, type: str = TYPE) -> list[tuple[str, str, int, str | None]]:
        view = self.server.table("message_state")
        rows = self.server.query(self.database.url, f"SELECT * FROM {view} WHERE type = %s ORDER BY id", type)
        return [(_text(row["body"]), row["state"], row["attempts"], row["error"]) for row in rows]

    def orders(self) -> list[tuple[str, int]]:
        rows = self.server.query(self.database.url, "SELECT customer, mailed FROM orders ORDER BY id")
        return [(row["customer"], row["mailed"]) for row in rows]

    @contextmanager
    def calling(self) -> Iterator[Any]:
        with closing(self.database.connect("test")) as session:
            yield session.call


def _text(body: str) -> str:
    """The text of a job, from PHP's serialization."""
    command: str = json.loads(body)["data"]["command"]
    return command.partition('"text";s:')[2].partition('"')[2].partition('"')[0]


def _php(*command: str) -> list[str]:
    return ["php", "-d", "error_reporting=E_ALL & ~E_DEPRECATED", *command]


@pytest.fixture
def folder(tmp_path: Path, pytestconfig: pytest.Config) -> Path:
    """The application, with a job of the tests."""
    autoload = Path(AUTOLOAD) if AUTOLOAD else LARAVEL
    if not shutil.which("php") or not autoload.exists():
        if pytestconfig.getoption("--require-databases"):
            pytest.fail("Laravel is not installed", pytrace=False)
        pytest.skip("Laravel is not installed: Debian's php-laravel-framework, or LARAVEL_AUTOLOAD")
    folder = tmp_path / "shop"
    shutil.copytree(APPLICATION, folder)
    for name in ("bootstrap/cache", "storage/framework/views", "storage/logs", "vendor", "resources/views"):
        (folder / name).mkdir(parents=True)
    (folder / "vendor" / "autoload.php").write_text(_AUTOLOADER.format(autoload=autoload))
    shutil.copy(TESTS / "Work.php", folder / "app" / "Jobs")
    shutil.copy(TESTS / "run.php", folder)
    return folder


@pytest.fixture
def shop(folder: Path, server: Server, installed_database: Database) -> Shop:
    return Shop(folder, server, installed_database)


def test_an_order_and_its_job_are_one_transaction_and_the_mail_is_sent_once(shop: Shop) -> None:
    assert shop.run("return Orders::place('ada@example.org');") == 1
    with pytest.raises(RuntimeError, match="null"):
        shop.run("Orders::place(null);")
    with pytest.raises(RuntimeError, match="taken back"):
        shop.run("DB::transaction(function () { Orders::place('x'); throw new Exception('taken back'); });")
    assert shop.orders() == [("ada@example.org", 0)]
    assert len(shop.states()) == 1
    shop.work()
    assert shop.orders() == [("ada@example.org", 1)]
    assert shop.states() == []


def test_a_delayed_job_waits_and_the_sizes_are_known(shop: Shop) -> None:
    shop.dispatch("later", delay=3600)
    shop.dispatch("soon", delay=15)
    shop.dispatch("now")
    names = ["size", "pendingSize", "delayedSize", "reservedSize"]
    sizes = f"return array_map(fn ($name) => Queue::$name(), {json.dumps(names)});"
    assert shop.run(sizes) == [3, 1, 2, 0]
    oldest = shop.run(
        "return [Queue::creationTimeOfOldestPendingJob(), Queue::creationTimeOfOldestPendingJob('none')];"
    )
    assert abs(oldest[0] - time.time()) < 30 and oldest[1] is None
    shop.work()
    assert shop.handled() == [("now", 1)]
    with shop.worker():
        until(lambda: len(shop.handled()) == 2, "it is due", 60)
        assert shop.handled() == [("now", 1), ("soon", 1)]
        until(lambda: len(shop.states()) == 1, "it is deleted")
    assert shop.run(sizes) == [1, 0, 1, 0]
    assert shop.run("return Queue::size('none');") == 0


def test_a_job_is_retried_after_its_backoff_and_is_dead_after_its_tries(shop: Shop) -> None:
    shop.dispatch("fail now", tries=3, backoff=0)
    shop.dispatch("fail later", tries=3, backoff=[3600, 7200])
    shop.dispatch("odd", tries=1)
    shop.dispatch("give up", tries=5)
    shop.dispatch("release 3", tries=5)
    shop.dispatch("good")
    shop.work()
    shop.work("--tries=9")
    assert shop.states() == [
        ("fail now", "E", 3, "RuntimeException: now"),
        ("fail later", "N", 1, "RuntimeException: later"),
        ("odd", "E", 1, "RuntimeException: ab?"),
        ("give up", "E", 1, "RuntimeException: no such address"),
    ]
    assert Counter(shop.handled("begin")) == Counter(
        [("fail now", n) for n in (1, 2, 3)]
        + [("release 3", n) for n in (1, 2, 3)]
        + [("fail later", 1), ("odd", 1), ("give up", 1), ("good", 1)]
    )
    failed = [(text, "RuntimeException") for text in ("fail now", "give up", "odd")]
    assert sorted(shop.handled("failed")) == failed
    with shop.calling() as call:
        [row] = [row for row in call("peek", TYPE, "E", 9) if _text(row["body"]) == "fail now"]
        call("redrive", row["id"])
    shop.work()
    assert shop.handled("begin").count(("fail now", 1)) == 2, "a redriven job has all its tries again"
    with shop.calling() as call:
        [row] = call("peek", TYPE, None, 9)
        assert 3000 < row["run_at"].timestamp() - time.time() < 3700, "the backoff is that of the first attempt"


def test_a_killed_worker_costs_an_attempt_and_no_job(shop: Shop) -> None:
    shop.dispatch("sleep 1500", tries=2)
    shop.dispatch("sleep 1501", tries=1)
    with shop.worker(RETRY_AFTER=2) as first:
        until(lambda: shop.handled("begin"), "it works")
        first.send_signal(signal.SIGKILL)
    with shop.worker("--queue=default", RETRY_AFTER=2) as second:
        until(lambda: ("sleep 1501", 1) in shop.handled("begin"), "the second job", 20)
        second.send_signal(signal.SIGKILL)
    time.sleep(2.5)
    shop.work(RETRY_AFTER=5)
    assert shop.handled() == [("sleep 1500", 2)]
    [(text, state, attempts, error)] = shop.states()
    assert (text, state, attempts) == ("sleep 1501", "E", 2) and "MaxAttemptsExceededException" in str(error)
    assert [text for text, _ in shop.handled("failed")] == ["sleep 1501"]


def test_a_job_that_takes_longer_than_its_lease_is_not_deleted_by_its_first_worker(shop: Shop) -> None:
    shop.dispatch("sleep 2000", tries=3)
    with shop.worker(RETRY_AFTER=60) as worker, shop.calling() as call:
        until(lambda: shop.handled("begin"), "it works")
        view = shop.server.table("message_state")
        [row] = shop.server.query(shop.database.url, f"SELECT batch_key FROM {view}")
        call("pause", TYPE)
        call("release_batch", row["batch_key"])
        until(lambda: "lease_lost" in shop.log, "the worker learns it")
        assert [state for _, state, _, _ in shop.states()] == ["N"]
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(20) == 0


def test_an_effect_and_the_deletion_of_its_job_are_one_transaction(shop: Shop) -> None:
    shop.dispatch("takenback", tries=3)
    shop.work("--max-jobs=1", RETRY_AFTER=3)
    assert shop.orders() == []
    until(lambda: shop.work() or shop.orders(), "it comes back after its lease")
    assert shop.orders() == [("takenback", 0)]
    assert (shop.handled(), shop.states()) == ([("takenback", 2)], [])


def test_an_idle_worker_is_woken_and_ends_in_order(shop: Shop) -> None:
    with shop.worker("--sleep=0") as worker:
        shop.dispatch("first")
        until(lambda: shop.handled(), "it works", 20)
        time.sleep(1)
        with shop.calling() as call:
            body = shop.server.query(shop.database.url, "SELECT 1 AS n")  # connected
            assert body
            shop.run("config(['queue.connections.rowqueue.queue' => 'other']); Work::dispatch('kept'); return 0;")
            [row] = call("claim_batch", "other", 1)
            waits = []
            for n in range(1, 4):
                time.sleep(0.3)
                begin = time.monotonic()
                call("send", TYPE, row["body"])
                until(lambda n=n: len(shop.handled()) == n + 1, "it is woken", 10)
                waits.append(time.monotonic() - begin)
        assert sorted(waits)[1] < 0.5, waits
        shop.dispatch("sleep 1000")
        until(lambda: ("sleep 1000", 1) in shop.handled("begin"), "it works", 10)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(20) == 0
    assert ("sleep 1000", 1) in shop.handled()
    assert shop.states() == []


def test_many_jobs_are_sent_at_once_with_the_options_of_their_messages(shop: Shop) -> None:
    jobs = [["a", {}], ["b", {}], ["c", {"delay": 60}]]
    jobs += [[name, {"rowqueue": {"group_key": "customer-7", "priority": -5}}] for name in ("d", "e")]
    jobs += [[name, {"rowqueue": {"dedup_key": "once"}}] for name in ("f", "g")]
    make = f"$jobs = array_map(fn ($job) => new Work(...$job), json_decode('{json.dumps(jobs)}', true));"
    with pytest.raises(RuntimeError, match="dedup_key"):
        wrong = "new Work('x', ['rowqueue' => ['dedup_key' => str_repeat('x', 999)]])"
        shop.run(f"{make} Queue::bulk([...$jobs, {wrong}]); return 0;")
    assert shop.states() == [], "all or none"
    shop.run(f"{make} Queue::bulk($jobs); return 0;")
    assert sorted(text for text, *_ in shop.states()) == ["a", "b", "c", "d", "e", "f"]
    shop.run("Work::dispatch('h', ['rowqueue' => ['dedup_key' => 'once']]); return 0;")
    with shop.calling() as call:
        rows = {_text(row["body"]): row for row in call("peek", TYPE, None, 9)}
    assert (rows["d"]["group_key"], rows["d"]["priority"]) == ("customer-7", -5)
    assert rows["f"]["dedup_key"] == "once" and len(rows) == 6
    assert shop.run("return Queue::clear('default');") == 6
    assert shop.states() == []


def test_queues_are_worked_in_the_order_of_the_worker(shop: Shop) -> None:
    shop.run("foreach (['low', 'high', 'low'] as $queue) { Work::dispatch($queue)->onQueue($queue); } return 0;")
    shop.work("--queue=high,low")
    assert [text for text, _ in shop.handled()] == ["high", "low", "low"]


def test_a_restart_of_the_database_loses_no_job(folder: Path, private_server: Server) -> None:
    database = open_database(private_server.create_database())
    install.apply(database)
    shop = Shop(folder, private_server, database)
    texts = [f"sleep {n % 9} {n}" for n in range(150)]
    shop.dispatch(*texts, tries=5)
    with shop.worker("--sleep=0.1", RETRY_AFTER=3) as first:
        until(lambda: len(shop.handled()) > 20, "the first ones", 30)
        private_server.stop("immediate")
        time.sleep(1)
        private_server.start()
        # As a process manager does it: the worker may end when it has lost its database.
        until(lambda: first.poll() is not None or len(shop.handled()) > 60, "it continues or ends", 30)
    for _ in range(9):
        shop.work("--sleep=0.1", RETRY_AFTER=3)
        if not shop.states():
            break
        time.sleep(1)
    assert shop.states() == []
    handled = Counter(text for text, _ in shop.handled())
    assert set(handled) == set(texts)
    assert sum(handled.values()) <= len(texts) + 2


def test_errors_of_the_queue_have_their_number(shop: Shop) -> None:
    with pytest.raises(RuntimeError, match="invalid_argument: type: must be 1 to 200 characters"):
        shop.run("Work::dispatch('x')->onQueue(str_repeat('x', 201)); return 0;")


def test_the_page_shows_the_program() -> None:
    files = [*APPLICATION.rglob("*.php")]
    lines = {line.strip() for path in files for line in path.read_text("utf-8").splitlines()}
    page = (EXAMPLES.parent / "docs" / "start" / "laravel.md").read_text("utf-8")
    blocks = page.split("```php\n")[1:]
    assert len(blocks) > 2
    for block in blocks:
        shown = [line.strip() for line in block.partition("```")[0].splitlines() if line.strip()]
        assert [line for line in shown if line not in lines] == []


def test_the_driver_has_the_usual_style(pytestconfig: pytest.Config) -> None:
    style = next(language.style for language in LANGUAGES if language.name == "php")
    if not shutil.which(style.program):
        pytest.skip(f"{style.program} is not installed")
    done = subprocess.run(["sh", "-c", style.check], cwd=APPLICATION, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
