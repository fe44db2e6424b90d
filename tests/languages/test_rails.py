"""examples/rails: Active Job's adapter in a real Rails application, and its worker under `runner consume --worker`."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from languages import EXAMPLES, RAILS
from rowqueue.databases import Database, open_database
from rowqueue.install import apply as install
from servers import Server, engine, product
from suite import Start
from support.outcomes import hostile_errors
from support.waiting import until

pytestmark = [pytest.mark.level(1), pytest.mark.product(*RAILS.drivers)]
# For tests of the worker, which meets the database only through the runner.
of_the_worker = pytest.mark.product("postgresql")

ROOT = EXAMPLES.parent
ODD = Path(__file__).parent / "rails"
WORKER = "ruby lib/rowqueue_adapter.rb"
RETRY_AT_ONCE = '{"max_attempts": 3, "backoff_seconds": 0, "on_complete": "archive"}'


# What the application's migration creates, without a start of Rails.
_CREATE_ORDERS = {
    "postgresql": "CREATE TABLE orders (id serial PRIMARY KEY, customer text NOT NULL, mailed int NOT NULL DEFAULT 0)",
    "mysql": "CREATE TABLE orders (id bigint AUTO_INCREMENT PRIMARY KEY, customer varchar(250) NOT NULL,"
    " mailed int NOT NULL DEFAULT 0)",
}


class Shop:
    """A copy of the application, with jobs that the tests need, on one database."""

    def __init__(self, server: Server, database: Database, folder: Path) -> None:
        self.server, self.database, self.folder = server, database, folder / "shop"
        shutil.copytree(EXAMPLES / "rails", self.folder)
        shutil.copy(ODD / "odd_job.rb", self.folder / "app" / "jobs")
        (self.folder / "app" / "mailers").mkdir()
        shutil.copy(ODD / "odd_mailer.rb", self.folder / "app" / "mailers")
        self._handled = folder / "handled.jsonl"
        scheme, rest = database.url.split("://")
        self.url = "postgresql://" + rest if scheme == "postgresql" else f"mysql2://{rest}?encoding=utf8mb4"
        self.environment = os.environ | {
            "DATABASE_URL": self.url,
            "RUNNER_DATABASE": database.url,
            "HANDLED": str(self._handled),
            "TZ": "Asia/Kolkata",
            "LC_ALL": "C",
        }
        server.query(database.url, _CREATE_ORDERS[engine(server.name)])

    def rails(self, *arguments: str) -> str:
        """What a command of Rails prints."""
        done = subprocess.run(
            ["ruby", "bin/rails", *arguments],
            cwd=self.folder,
            env=self.environment | {"LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def ruby(self, program: str) -> Any:
        """The last value of a program in the application."""
        value = self.rails("runner", f"value = begin\n{program}\nend\nputs JSON.generate([value])")
        return json.loads(value.splitlines()[-1])[0]

    def send(self, *jobs: str) -> list[int]:
        """The ids of messages: a line of Ruby makes each job's arguments."""
        program = "\n".join(f"ids << OddJob.perform_later({job}).provider_job_id" for job in jobs)
        ids: list[int] = self.ruby(f"ids = []\n{program}\nids")
        return ids

    def _consume(self, *options: object) -> list[str]:
        command = (sys.executable, "-m", "rowqueue.cli", "consume", "--worker", WORKER, *options)
        return [str(word) for word in command]

    def drain(self, *types: str, options: tuple[object, ...] = ()) -> str:
        """Handle all that is due; returns the log."""
        queues = [word for type in types or ("default",) for word in ("--type", type)]
        done = subprocess.run(
            self._consume(*queues, "--drain", *options),
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    @contextmanager
    def consumer(self, *options: object) -> Iterator[subprocess.Popen[bytes]]:
        log = self.folder / f"consumer-{time.monotonic_ns()}.log"
        with log.open("wb") as file:
            command = self._consume("--type", "default", *options)
            process = subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdout=file, stderr=file, start_new_session=True
            )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def handled(self, *words: str) -> list[dict[str, Any]]:
        """What the jobs have noted, in order; only lines with one of the words."""
        lines = self._handled.read_text("utf-8").split("\n")[:-1] if self._handled.exists() else []
        notes = [json.loads(line) for line in lines]
        return [note for note in notes if not words or note["what"] in words]

    def messages(self, type: str = "default") -> list[dict[str, Any]]:
        view = self.server.table("message_state")
        return self.server.query(self.database.url, f"SELECT * FROM {view} WHERE type = %s ORDER BY id", type)

    def stored(self, type: str = "default") -> list[dict[str, Any]]:
        """The messages as they were sent, without the archive."""
        table = self.server.table("message")
        return self.server.query(self.database.url, f"SELECT * FROM {table} WHERE type = %s ORDER BY id", type)

    def replace(self, path: str, old: str, new: str) -> None:
        """Change a file of the application."""
        file = self.folder / path
        text = file.read_text("utf-8")
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")

    def set_queue(self, options: str = RETRY_AT_ONCE, type: str = "default") -> None:
        with closing(self.database.connect("test")) as session:
            session.call("set_queue", type, options)

    def unfinished(self) -> int:
        return sum(row["state"] in "NA" for row in self.messages())


@pytest.fixture
def shop(start: Start, server: Server, installed_database: Database, tmp_path: Path) -> Shop:
    start(RAILS, product(server.name))
    return Shop(server, installed_database, tmp_path)


def utc(time: datetime) -> datetime:
    """A time that a driver returned, some of them without a zone."""
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)


def test_a_job_belongs_to_the_transaction(shop: Shop) -> None:
    """Also to an inner one."""
    placed = shop.ruby(
        """
        kept = Order.place("ada@example.org")
        Order.transaction { Order.place("alan@example.org"); raise ActiveRecord::Rollback }
        Order.transaction do
          Order.place("barbara@example.org")
          Order.transaction(requires_new: true) { Order.place("grace@example.org"); raise ActiveRecord::Rollback }
        end
        begin
          Order.transaction { Order.place("edsger@example.org"); Order.create!(customer: nil) }
        rescue ActiveRecord::NotNullViolation
        end
        kept.id
        """
    )
    assert [json.loads(row["body"])["arguments"] for row in shop.messages()] == [
        [{"_aj_globalid": f"gid://shop/Order/{id}"}] for id in (placed, placed + 2)
    ]
    assert "2 completed" in shop.drain()
    orders = shop.ruby("Order.order(:id).pluck(:customer, :mailed)")
    assert orders == [["ada@example.org", 1], ["barbara@example.org", 1]]


def test_the_queue_is_no_part_of_schema_rb(shop: Shop) -> None:
    shop.server.query(shop.database.url, "DROP TABLE orders")
    shop.rails("db:migrate")
    schema = (shop.folder / "db" / "schema.rb").read_text("utf-8")
    assert re.findall(r'create_table "(\w+)"', schema) == ["orders"]


def test_equal_jobs_are_sent_as_often_as_they_are_enqueued(shop: Shop) -> None:
    """Rails caches the answers of equal SELECTs during a request."""
    ids = shop.ruby(
        """
        job = OddJob.new("nothing")
        job.define_singleton_method(:serialize) { { "job_class" => "OddJob", "arguments" => ["nothing"] } }
        ActiveRecord::Base.cache { Array.new(2) { job.enqueue.provider_job_id } }
        """
    )
    assert [row["id"] for row in shop.messages()] == ids and len({*ids}) == 2


def test_arguments_arrive_as_they_were_sent(shop: Shop) -> None:
    shop.ruby("""Order.create!(customer: "ada@example.org") """)
    sent = [
        '"é😀\\u{10ffff} \\u2028 \\u202e"',
        """"it's \\"quoted\\" \\\\ \\\\\\\\ %s ? $1 :x --" """,
        '"a NUL \\0 and \\e\\a\\r\\n\\t"',
        "nil, true, 1, -2**70, 1.5, :symbol",
        '{ a: 1, "b" => [{ c: nil }] }',
        "{ a: 1 }.with_indifferent_access",
        "Date.new(2026, 11, 27), Time.utc(2026, 11, 27, 1, 2, 3.000004r), 90.minutes",
        "Order.first",
        '"\\"", "\\\\n", "", "\\n"',
        '"x" * 1_000_000',
    ]
    shop.send(*(f'"nothing", {arguments}' for arguments in sent))
    expected = [shop.ruby(f"[{arguments}].map(&:inspect)") if len(arguments) < 90 else [] for arguments in sent]
    shop.drain()
    handled = [note["arguments"] for note in shop.handled("nothing")]
    assert len(handled) == len(sent) and shop.messages() == []
    for number, arguments in enumerate(expected):
        assert arguments == [] or handled[number] == arguments, sent[number]


def test_a_job_that_cannot_be_written_as_json_is_refused_and_the_transaction_continues(shop: Shop) -> None:
    refused = shop.ruby(
        """
        Order.transaction do
          [-> { "\\xff" }, -> { Float::NAN }, -> { Object.new }, -> { Order.new }].map do |argument|
            OddJob.perform_later("nothing", argument.call)
          rescue StandardError => e
            e.class.name
          ensure
            Order.create!(customer: "ada@example.org")
          end
        end
        """
    )
    assert refused == ["JSON::GeneratorError"] * 2 + ["ActiveJob::SerializationError"] * 2
    assert shop.messages() == [] and shop.ruby("Order.count") == 4


def test_a_queue_name_that_the_queue_refuses_raises(shop: Shop) -> None:
    error = shop.ruby(
        """
        begin
          OddJob.set(queue: "x" * 201).perform_later("nothing")
        rescue ActiveRecord::StatementInvalid => e
          e.message
        end
        """
    )
    assert "invalid_argument: type: must be" in error


def test_delays_priorities_and_queues(shop: Shop) -> None:
    before = datetime.now(UTC)
    shop.ruby(
        """
        OddJob.set(wait: 1.hour).perform_later("nothing", "in an hour")
        OddJob.set(wait_until: Time.utc(2030, 1, 2, 3, 4, 5.678901r)).perform_later("nothing", "then")
        OddJob.set(wait_until: 1.day.ago).perform_later("nothing", "late")
        OddJob.set(priority: 5).perform_later("nothing", "idle")
        OddJob.perform_later("nothing", "usual")
        OddJob.set(priority: -5).perform_later("nothing", "urgent")
        OddJob.set(queue: :low).perform_later("nothing", "elsewhere")
        """
    )
    due = {json.loads(row["body"])["arguments"][1]: utc(row["run_at"]) for row in shop.messages()}
    assert timedelta(minutes=59) < due["in an hour"] - before < timedelta(minutes=61)
    assert abs(due["then"] - datetime(2030, 1, 2, 3, 4, 5, 678901, UTC)) < timedelta(microseconds=2)
    shop.drain()
    assert [note["arguments"] for note in shop.handled()] == [['"urgent"'], ['"late"'], ['"usual"'], ['"idle"']]
    assert [row["state"] for row in shop.messages()] == ["N", "N"]
    assert [json.loads(row["body"])["queue_name"] for row in shop.messages("low")] == ["low"]


def test_options_of_the_queue(shop: Shop) -> None:
    """More options than Active Job has, of single jobs and of many at once."""
    sent = shop.ruby(
        """
        key = { dedup_key: "d" }
        more = { max_attempts: 7, headers: '{"trace": "x"}' }
        jobs = [{}, { group_key: "g" }, key, {}, { **key, on_conflict: "replace" }, more].map do |options|
          OddJob.new("nothing").tap { |job| job.rowqueue_options = options }
        end
        jobs[3].scheduled_at = 1.hour.from_now.to_f
        first = RowqueueAdapter.new.enqueue_all(jobs)
        again = jobs[2].tap(&:enqueue).provider_job_id == jobs[4].provider_job_id
        [first, again, jobs.map(&:successfully_enqueued)]
        """
    )
    assert sent == [6, True, [True] * 6]
    stored = Counter((row["group_key"], row["dedup_key"], row["max_attempts"], row["headers"]) for row in shop.stored())
    assert stored == {
        (None, None, None, None): 2,
        ("g", None, None, None): 1,
        (None, "d", None, None): 1,
        (None, None, 7, '{"trace": "x"}'): 1,
    }
    assert max(row["run_at"] - row["created_at"] for row in shop.messages()) > timedelta(minutes=59)


def test_a_job_with_a_key_is_sent_once_and_retried(shop: Shop) -> None:
    """Its message is still active when retry_on sends it again."""
    ids = shop.ruby(
        """
        jobs = Array.new(2) { OddJob.new("again", "no") }
        jobs.each { |job| job.rowqueue_options = { dedup_key: "d" } }.each(&:enqueue).map(&:provider_job_id)
        """
    )
    assert len({*ids}) == 1
    shop.replace("app/jobs/odd_job.rb", "rowqueue_options = {}", 'rowqueue_options = { dedup_key: "d" }')
    shop.drain()
    assert [note["executions"] for note in shop.handled("again")] == [1, 2, 3]
    assert [row["error"] for row in shop.messages()] == ["OddJob::Again: no"]


def test_exports_of_a_customer_are_done_in_order(shop: Shop) -> None:
    shop.set_queue('{"ordered": 1, "on_complete": "archive"}', "export")
    shop.ruby("3.times { ExportJob.perform_later('ada@example.org') }")
    assert {(row["group_key"], row["max_attempts"]) for row in shop.stored("export")} == {("ada@example.org", 3)}
    shop.drain("export", options=("--concurrency", 3))
    times = [row["changed_at"] for row in shop.messages("export")]
    assert times == sorted(times) and {row["state"] for row in shop.messages("export")} == {"C"}


def test_enqueue_all_sends_many_jobs_or_none(shop: Shop) -> None:
    sent = shop.ruby(
        """
        count = RowqueueAdapter.new.enqueue_all(Array.new(2_500) { |n| OddJob.new("nothing", "é\\n#{n}") })
        refused = Array.new(2) { OddJob.new("nothing") }
        refused.last.queue_name = "x" * 201
        begin
          RowqueueAdapter.new.enqueue_all(refused)
        rescue ActiveRecord::StatementInvalid
          count
        end
        """
    )
    rows = shop.messages()
    assert sent == len(rows) == 2_500
    assert [json.loads(row["body"])["arguments"][1] for row in rows] == [f"é\n{n}" for n in range(2_500)]


def test_retries_of_active_job_and_of_the_queue(shop: Shop) -> None:
    """Attempts that Active Job has used up end a message at once; an error that it does not know has the queue's."""
    shop.set_queue()
    shop.send(
        '"again", "used up"', '"fails", "unknown"', '"dropped", "unwanted"', '"stopped", "handled"', '"nested", "inner"'
    )
    shop.drain()
    rows = shop.messages()
    ended = Counter(
        (json.loads(row["body"])["arguments"][0], row["state"], row["attempts"], row["error"]) for row in rows
    )
    assert ended == {
        ("again", "C", 1, None): 2,  # each sends the next one
        ("again", "E", 1, "OddJob::Again: used up"): 1,
        ("fails", "E", 3, "RuntimeError: unknown"): 1,
        ("dropped", "C", 1, None): 1,
        ("stopped", "C", 1, None): 2,
        ("nested", "E", 3, "ArgumentError: inner"): 1,  # it is the inner job whose attempts are used up
    }
    words = ("again", "fails", "dropped", "stopped")
    executions = {word: [note["executions"] for note in shop.handled(word)] for word in words}
    assert executions == {"again": [1, 2, 3], "fails": [1, 2, 3], "dropped": [1, 1], "stopped": [1, 2, 2]}
    jobs = {json.loads(row["body"])["job_id"] for row in rows if '"again"' in row["body"]}
    assert len(jobs) == 1, "a retry is the same job"

    with closing(shop.database.connect("test")) as session:
        session.call("redrive_all", "default")
    shop.drain()
    assert [note["executions"] for note in shop.handled("again")][-1] == 3, "a redriven job has one more try"


@of_the_worker
def test_a_retry_that_is_delayed_waits_in_the_queue(shop: Shop) -> None:
    (shop.folder / "app" / "jobs" / "patient_job.rb").write_text(
        "class PatientJob < ApplicationJob\n"
        '  retry_on RuntimeError, wait: 1.hour, queue: :slow\n  def perform = raise("not now")\nend\n'
    )
    shop.ruby("PatientJob.perform_later.job_id")
    shop.drain()
    [row] = shop.messages("slow")
    assert shop.messages() == [] and row["run_at"] - row["created_at"] > timedelta(minutes=50)


@of_the_worker
def test_the_errors_of_one_job_touch_no_other(shop: Shop) -> None:
    shop.set_queue('{"max_attempts": 1, "on_complete": "archive"}')
    [neighbour] = shop.send('"nothing"')
    texts = [*hostile_errors(neighbour), "é😀\U0010ffff" * 1_500, "x" * 2_000_000, "a NUL \0 here"]
    (shop.folder / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    shop.ruby(
        """
        JSON.parse(File.read("texts.json", encoding: "UTF-8")).each { |text| OddJob.perform_later("fails", text) }
        OddJob.perform_later("binary", "\\u00e9")
        [["leaves", 0], ["leaves", 3], ["missing"], ["endless"]].each { |job| OddJob.perform_later(*job) }
        %w[chatters takes_back nothing].each { |job| OddJob.perform_later(job) }
        nil
        """
    )
    log = shop.drain()
    rows = shop.messages()
    errors = [row["error"] for row in rows if row["state"] == "E"]
    stored = [f"RuntimeError: {text}"[:4_000].replace("\0", "") for text in texts]
    assert [error.replace("\0", "").replace("\ufffd", "") for error in errors[: len(texts)]] == stored
    assert errors[len(texts) : len(texts) + 4] == [
        "RuntimeError: é",
        "SystemExit: exit",
        "SystemExit: exit",
        "NotImplementedError: not written yet",
    ]
    assert errors[len(texts) + 4].startswith("SystemStackError: ") and errors[-1] == "RuntimeError: taken back"
    done = [json.loads(row["body"])["arguments"] for row in rows if row["state"] == "C"]
    assert done == [["nothing"], ["chatters"], ["nothing"]]
    assert [note["arguments"] for note in shop.handled("read")] == [['""']], "a job cannot read the messages of others"
    assert "from the job" in log and "from its child" in log
    assert shop.ruby("Order.count") == 0
    assert len({note["pid"] for note in shop.handled()}) == 1, "no worker had to be started again"


@of_the_worker
def test_messages_that_are_no_jobs_and_jobs_that_cannot_be_read(shop: Shop) -> None:
    shop.set_queue('{"max_attempts": 2, "backoff_seconds": 0}')
    with closing(shop.database.connect("test")) as session:
        for body in ("no JSON", "[]", "{}", '{"job_class": 7}'):
            session.call("send", "default", body)
        session.call("send", "default", '{"job_class": "GoneJob", "arguments": []}')
    shop.ruby(
        """
        order = Order.create!(customer: "ada@example.org")
        MailJob.perform_later(order)
        undecided = Class.new(ActiveJob::Base) { def self.name = "UndecidedJob" }
        undecided.perform_later(order)
        order.destroy!
        nil
        """
    )
    (shop.folder / "app" / "jobs" / "undecided_job.rb").write_text(
        "class UndecidedJob < ActiveJob::Base\n  def perform(_) = raise\nend\n"
    )
    shop.drain()
    dead = [(row["attempts"], row["error"]) for row in shop.messages()]
    assert dead[:4] == [(1, "not a job of Active Job")] * 4
    assert dead[4][0] == 2 and "GoneJob" in dead[4][1], "it is retried: the class may come with the next release"
    assert dead[5][0] == 2 and dead[5][1].startswith("ActiveJob::DeserializationError: ")
    assert len(dead) == 6, "discard_on ended the other one"


@of_the_worker
def test_mails_are_delivered_later(shop: Shop) -> None:
    shop.ruby(
        """
        OddMailer.confirmation(Order.create!(customer: "ada@example.org")).deliver_later(wait: 0.seconds)
        nil
        """
    )
    [type] = {row["type"] for row in shop.messages("default") + shop.messages("mailers")}
    shop.replace(
        "config/application.rb",
        "    config.load_defaults",
        "    config.action_mailer.delivery_method = :file\n"
        '    config.action_mailer.file_settings = { location: "mails" }\n    config.load_defaults',
    )
    assert "1 completed" in shop.drain(type)
    assert "Thank you" in (shop.folder / "mails" / "ada@example.org").read_text("utf-8")


def test_two_consumers_share_the_jobs_and_what_is_killed_is_done_again(shop: Shop) -> None:
    shop.set_queue('{"max_attempts": 3, "backoff_seconds": 0, "lease_seconds": 2, "on_complete": "archive"}')
    first = shop.send('"sleeps", 30', *(f'"nothing", {n}' for n in range(10)))
    with shop.consumer("--concurrency", 2, "--lease", 2) as killed:
        until(lambda: shop.handled("sleeps"), "the slow job is at work")
        until(lambda: len(shop.handled("nothing")) == 10, "the others are done")
        worker = shop.handled("sleeps")[0]["pid"]
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        os.kill(worker, signal.SIGKILL)  # otherwise it ends after its job
    shop.replace("app/jobs/odd_job.rb", "sleep(seconds)", "sleep(0.5)")
    sent = shop.send('"dies"', *(f'"sleeps", {n}' for n in range(20)))
    with shop.consumer("--concurrency", 2) as one, shop.consumer("--concurrency", 2) as other:
        until(lambda: shop.unfinished() == 0, "all jobs done")
        for process in (one, other):
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
    rows = {row["id"]: row for row in shop.messages()}
    assert (rows[first[0]]["state"], rows[first[0]]["attempts"]) == ("C", 2)
    assert (rows[sent[0]]["state"], rows[sent[0]]["attempts"]) == ("E", 3)
    assert "the worker ended" in rows[sent[0]]["error"]
    others = [rows[id] for id in (*first[1:], *sent[1:])]
    assert {(row["state"], row["attempts"]) for row in others} == {("C", 1)}
    assert Counter(note["id"] for note in shop.handled("slept")) == Counter([first[0], *sent[1:]])
    assert len({note["pid"] for note in shop.handled("slept")}) >= 3


@of_the_worker
def test_a_signal_to_every_process_lets_jobs_finish(shop: Shop) -> None:
    """As systemd and some platforms send it."""
    shop.set_queue()
    [id] = shop.send('"sleeps", 3')
    with shop.consumer() as consumer:
        until(lambda: shop.handled("sleeps"), "the job is at work")
        os.kill(shop.handled("sleeps")[0]["pid"], signal.SIGTERM)
        consumer.send_signal(signal.SIGTERM)
        assert consumer.wait(30) == 0
    [row] = shop.messages()
    assert (row["id"], row["state"], row["attempts"]) == (id, "C", 1)
    assert [note["id"] for note in shop.handled("slept")] == [id]


@of_the_worker
def test_an_idle_worker_ends_at_a_signal_and_is_started_again(shop: Shop) -> None:
    shop.send('"nothing"')
    with shop.consumer() as consumer:
        until(lambda: len(shop.handled()) == 1, "the first job")
        time.sleep(0.5)
        first = shop.handled()[0]["pid"]
        os.kill(first, signal.SIGTERM)
        until(lambda: not _runs(first), "it has ended")
        shop.send('"nothing"')
        until(lambda: len(shop.handled()) == 2 and not shop.messages(), "the second job")
        consumer.send_signal(signal.SIGTERM)
        assert consumer.wait(30) == 0
    assert shop.handled()[1]["pid"] != first


def _runs(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


@of_the_worker
def test_in_development_a_worker_reads_code_that_has_changed(shop: Shop) -> None:
    job = shop.folder / "app" / "jobs" / "changing_job.rb"
    text = 'class ChangingJob < ApplicationJob\n  def perform = OddJob.new.note("%s")\nend\n'
    job.write_text(text % "old")
    shop.ruby("ChangingJob.perform_later.job_id")
    with shop.consumer():
        until(lambda: shop.handled("old"), "the old code")
        time.sleep(1.1)  # a file's time of change may have whole seconds
        job.write_text(text % "new")
        shop.ruby("ChangingJob.perform_later.job_id")
        until(lambda: shop.handled("new"), "the new code")
    assert len({note["pid"] for note in shop.handled()}) == 1


@of_the_worker
def test_connections_are_returned_after_each_job(shop: Shop) -> None:
    shop.send(*['"counts"'] * 6)
    shop.drain()
    assert [note["arguments"] for note in shop.handled("busy")] == [["0"]] * 6


def test_a_restart_of_the_database_costs_no_message(start: Start, private_server: Server, tmp_path: Path) -> None:
    start(RAILS, product(private_server.name))
    database = open_database(private_server.create_database())
    install.apply(database)
    shop = Shop(private_server, database, tmp_path)
    shop.set_queue('{"backoff_seconds": 0, "backoff_max_seconds": 1, "on_complete": "archive"}')
    with shop.consumer() as consumer:
        shop.ruby('Order.place("ada@example.org").id')
        until(lambda: shop.unfinished() == 0, "the first job")
        private_server.stop("immediate")
        private_server.start()
        shop.ruby('5.times { |n| Order.place("#{n}@example.org") }')
        until(lambda: shop.unfinished() == 0, "the jobs after the restart")
        consumer.send_signal(signal.SIGTERM)
        assert consumer.wait(30) == 0
    assert {row["state"] for row in shop.messages()} == {"C"}
    assert shop.ruby("Order.pluck(:mailed)") == [1] * 6


def test_the_page_shows_the_application() -> None:
    """Each block of Ruby is in one of the application's files."""
    page = (ROOT / "docs" / "start" / "rails.md").read_text("utf-8")
    files = [unindented(path.read_text("utf-8")) for path in (EXAMPLES / "rails").rglob("*.rb")]
    blocks = re.findall(r"^ *```ruby\n(.*?)^ *```$", page, re.M | re.S)
    assert len(blocks) >= 4
    for block in blocks:
        for part in re.split(r"^ *(?:\.\.\.)?\n", block, flags=re.M):
            assert any(unindented(part) in file for file in files), part


def unindented(text: str) -> str:
    return "\n".join(map(str.strip, text.strip().splitlines()))
