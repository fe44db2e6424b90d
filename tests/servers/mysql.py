"""MariaDB 10.11 and 11.8 and MySQL 9, as fetch.py has unpacked them, and servers that the user names."""

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit
from zoneinfo import ZoneInfo

import pymysql
from pymysql.constants import FIELD_TYPE
from pymysql.converters import conversions, convert_datetime
from pymysql.cursors import DictCursor
from rowqueue.install import contract

from . import base, fetch

_READY_SECONDS = 60
_GREETING_SECONDS = 10
_TIME_ZONES = ("Europe/Paris", "America/New_York", "Australia/Sydney", "Asia/Kolkata")
USER = "tester"
PASSWORD = "p@ss:w/rd %+"  # what a URL must quote

# All that the queue must not depend on is set to something that it would not choose itself: character set, time zone
# and isolation level. Durable, with a binary log, as a replicated server has it.
_SETTINGS = {
    "bind-address": "127.0.0.1",
    "skip-name-resolve": "ON",
    "character-set-server": "latin1",
    "default-time-zone": "+05:30",
    "transaction-isolation": "REPEATABLE-READ",
    "server-id": "1",
    "log-bin": "binlog",
    "binlog-format": "ROW",
    "sync-binlog": "1",
    "innodb-flush-log-at-trx-commit": "1",
    "innodb-buffer-pool-size": "128M",
    "performance-schema": "OFF",
    "max-connections": "300",
    "max-allowed-packet": "64M",  # bodies of 16 MiB
    "secure-file-priv": "",
}
_MORE_SETTINGS: dict[str, dict[str, str]] = {
    "mariadb-10.11": {},
    "mariadb-11.8": {"innodb-snapshot-isolation": "ON"},
    "mysql-9": {"mysqlx": "OFF", "gtid-mode": "ON", "enforce-gtid-consistency": "ON"},
}


@cache
def programs(name: str) -> fetch.Home:
    """A server's programs. Raises Unavailable when they have not been fetched."""
    home = fetch.home(name)
    if home is None:
        raise base.Unavailable(f"{name} is not there: make servers")
    who = base.identity()
    if not who or subprocess.run([*home.server(), "--version"], capture_output=True, cwd="/", **who).returncode == 0:
        return home
    # Where the server's user cannot reach the folder, a copy of it.
    copies = base.folder("programs")
    atexit.register(base.remove, copies)
    shutil.copytree(home.path, copies / name, symlinks=True)
    return fetch.Home(copies / name)


@cache
def _time_zones() -> str:
    """Statements that load some time zones as mysql_tzinfo_to_sql does, which the packages do not hold."""
    lines = ["USE mysql;"]
    for number, name in enumerate(_TIME_ZONES, 1):
        zone = ZoneInfo(name)
        begin, end = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (1970, 2038))

        def offset(second: int, zone: ZoneInfo = zone) -> int:
            moved = datetime.fromtimestamp(second, zone).utcoffset()
            assert moved is not None
            return int(moved.total_seconds())

        changes = [(begin, offset(begin))]
        for day in range(begin + 86_400, end, 86_400):
            if offset(day) != changes[-1][1]:
                low, high = day - 86_400, day
                while high - low > 1:
                    middle = (low + high) // 2
                    low, high = (low, middle) if offset(middle) == offset(day) else (middle, high)
                changes.append((high, offset(high)))
        kinds = sorted({moved for _, moved in changes})
        lines.append(f"INSERT IGNORE INTO time_zone VALUES ({number}, 'N');")
        lines.append(f"INSERT IGNORE INTO time_zone_name VALUES ('{name}', {number});")
        rows = (f"({number}, {kind}, {moved}, 0, '')" for kind, moved in enumerate(kinds))
        lines.append(f"INSERT IGNORE INTO time_zone_transition_type VALUES {', '.join(rows)};")
        rows = (f"({number}, {second}, {kinds.index(moved)})" for second, moved in changes)
        lines.append(f"INSERT IGNORE INTO time_zone_transition VALUES {', '.join(rows)};")
    return "\n".join(lines) + "\n"


class Client(pymysql.connections.Connection):
    """A connection with `execute`, whose DATETIMEs are the UTC that the queue keeps in them."""

    def execute(self, text: str, parameters: Sequence[Any] | None = None) -> DictCursor:
        cursor = self.cursor()
        cursor.execute(text, parameters or None)
        return cursor

    @property
    def is_mariadb(self) -> bool:
        return "MariaDB" in self.get_server_info()


def _utc(text: str) -> datetime:
    value: datetime = convert_datetime(text)
    return value.replace(tzinfo=UTC)


def _database(url: str) -> str:
    return unquote(urlsplit(url).path[1:])


# Without the names of the database and of the grantor, times, counts and statistics. Rights on objects only: the
# accounts and roles belong to the server.
_CATALOG = {
    "table": "SELECT table_name, table_type, engine, table_collation, row_format, create_options, table_comment"
    " FROM information_schema.tables WHERE table_schema = %s",
    "column": "SELECT table_name, ordinal_position, column_name, column_type, is_nullable, column_default, extra,"
    " collation_name, column_key, column_comment FROM information_schema.columns WHERE table_schema = %s",
    "index": "SELECT table_name, index_name, seq_in_index, column_name, collation, sub_part, non_unique, index_type"
    " FROM information_schema.statistics WHERE table_schema = %s",
    "constraint": "SELECT table_name, constraint_name, constraint_type FROM information_schema.table_constraints"
    " WHERE constraint_schema = %s",
    "check": "SELECT constraint_name, check_clause FROM information_schema.check_constraints"
    " WHERE constraint_schema = %s",
    "reference": "SELECT table_name, constraint_name, referenced_table_name, update_rule, delete_rule"
    " FROM information_schema.referential_constraints WHERE constraint_schema = %s",
    "view": "SELECT table_name, view_definition, check_option, definer, security_type, character_set_client,"
    " collation_connection FROM information_schema.views WHERE table_schema = %s",
    "routine": "SELECT routine_name, routine_type, routine_definition, definer, security_type, sql_mode,"
    " sql_data_access, is_deterministic, routine_comment, character_set_client, collation_connection"
    " FROM information_schema.routines WHERE routine_schema = %s",
    "parameter": "SELECT specific_name, ordinal_position, parameter_mode, parameter_name, dtd_identifier"
    " FROM information_schema.parameters WHERE specific_schema = %s",
    "trigger": "SELECT trigger_name, event_object_table, action_timing, event_manipulation, action_statement, definer"
    " FROM information_schema.triggers WHERE trigger_schema = %s",
    "event": "SELECT event_name, event_definition, definer FROM information_schema.events WHERE event_schema = %s",
    "right on the database": "SELECT * FROM mysql.db WHERE db = %s",
    "right on a table": "SELECT user, host, table_name, table_priv, column_priv FROM mysql.tables_priv WHERE db = %s",
    "right on a column": "SELECT user, host, table_name, column_name, column_priv FROM mysql.columns_priv"
    " WHERE db = %s",
    "right on a routine": "SELECT user, host, routine_name, routine_type, proc_priv FROM mysql.procs_priv"
    " WHERE db = %s",
}


class _MySQL(base.Server):
    def database_url(self, name: str) -> str:
        return urlunsplit(urlsplit(self.url)._replace(path=f"/{name}"))

    def create_database(self) -> str:
        name = base.new_name()
        self.query(self.url, f"CREATE DATABASE {name}")
        return self.database_url(name)

    def drop_database(self, url: str) -> None:
        name = _database(url)
        # DROP DATABASE would wait for their transactions; and it leaves the rights on what it drops.
        for row in self.query(self.url, "SELECT id FROM information_schema.processlist WHERE db = %s", name):
            try:
                self.query(self.url, f"KILL {row['id']}")
            except pymysql.OperationalError as error:  # 1094: gone in the meantime
                if error.args[0] != 1094:
                    raise
        self.query(self.url, f"DROP DATABASE IF EXISTS {name}")
        for table in ("db", "tables_priv", "columns_priv", "procs_priv"):
            self.query(self.url, f"DELETE FROM mysql.{table} WHERE db = %s", name)
        self.query(self.url, "FLUSH PRIVILEGES")

    def client(self, url: str, read_timeout: float | None = None) -> Client:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query))
        return Client(
            host=parts.hostname,
            port=parts.port or 3306,
            user=unquote(parts.username or ""),
            password=unquote(parts.password or ""),
            database=_database(url) or None,
            unix_socket=options.get("unix_socket"),
            ssl_ca=options.get("ssl_ca"),
            ssl_disabled=not options.get("ssl_ca"),
            charset="utf8mb4",
            autocommit=True,
            cursorclass=DictCursor,
            conv=conversions | {FIELD_TYPE.DATETIME: _utc},
            init_command="SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
            connect_timeout=30,
            read_timeout=read_timeout,
        )

    def catalog(self, url: str) -> list[str]:
        name = _database(url)
        with self.client(url) as connection:
            rows = [
                [kind, *map(str, row.values())]
                for kind, query in _CATALOG.items()
                for row in connection.execute(query, [name]).fetchall()
            ]
        return sorted(" | ".join(row).replace(name, "DATABASE") for row in rows)

    def drop_procedure(self, url: str, name: str) -> None:
        self.query(url, f"DROP PROCEDURE {contract.load().prefixed(name)}")

    @contextmanager
    def forbid_changes(self, url: str) -> Iterator[None]:
        # The tester's rights are above it on MariaDB; a consumer's are not.
        self.query(self.url, "SET GLOBAL read_only = ON")
        try:
            yield
        finally:
            self.query(self.url, "SET GLOBAL read_only = OFF")

    @contextmanager
    def login(self, url: str, role: str, *granted: str) -> Iterator[str]:
        with self.client(url) as connection:
            connection.execute(f"CREATE USER {role}@'%' IDENTIFIED BY '{role}'")
            self._give(connection, role, granted)
        host = urlsplit(url).netloc.rpartition("@")[2]
        try:
            yield urlunsplit(urlsplit(url)._replace(netloc=f"{role}:{role}@{host}"))
        finally:
            self.query(url, f"DROP USER {role}@'%'")
            self.query(url, f"DROP ROLE IF EXISTS {role}_all")

    def _give(self, connection: Client, role: str, granted: Sequence[str]) -> None:
        """Roles that are active from the login on."""
        if not granted:
            return
        if not connection.is_mariadb:
            connection.execute(f"GRANT {', '.join(granted)} TO {role}@'%'")
            connection.execute(f"SET DEFAULT ROLE ALL TO {role}@'%'")
            return
        # One role at a time is active there: one that holds them all.
        connection.execute(f"CREATE ROLE {role}_all")
        for name in granted:
            connection.execute(f"GRANT {name} TO {role}_all")
        connection.execute(f"GRANT {role}_all TO {role}@'%'")
        connection.execute(f"SET DEFAULT ROLE {role}_all FOR {role}@'%'")

    def plant_faults(self, url: str, stems: Sequence[str]) -> None:
        with self.client(url) as connection:
            for stem, event in product(stems, ("insert", "update", "delete")):
                connection.execute(
                    f"CREATE TRIGGER fault_{stem}_{event} AFTER {event} ON mq_{stem} FOR EACH ROW"
                    f" IF @fault = '{stem} {event}' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'a fault'; END IF"
                )

    def fault(self, where: str) -> str:
        return f"SET @fault = '{where}'"

    def undoes(self, where: str) -> bool:
        # MariaDB 11 calls no handler when a joined DELETE fails while it deletes.
        return not (where.endswith(" delete") and "MariaDB" in self._version and int(self._version.split(".")[0]) >= 11)

    @cached_property
    def _version(self) -> str:
        version: str = self.query(self.url, "SELECT VERSION() AS version")[0]["version"]
        return version

    @contextmanager
    def watching(self) -> Iterator[None]:
        lines = self.query(self.url, "SHOW GRANTS FOR 'mq_owner'@'localhost'")
        granted = any("GRANT PROCESS ON *.*" in str(line) for line in lines)
        self.query(self.url, "GRANT PROCESS ON *.* TO 'mq_owner'@'localhost'")
        try:
            yield
        finally:
            if not granted:
                self.query(self.url, "REVOKE PROCESS ON *.* FROM 'mq_owner'@'localhost'")

    def run_script(self, url: str, text: str, *options: str) -> str:
        """By the client in PATH for a server that the user named."""
        parts = urlsplit(url)
        name = "mariadb" if parts.scheme == "mariadb" else "mysql"
        program = programs(self.name).program(name) if isinstance(self, LocalMySQL) else [name]
        with tempfile.NamedTemporaryFile("w", suffix=".cnf") as settings:
            # Not MYSQL_PWD: MariaDB's newer clients warn of a login without a password then.
            settings.write(
                f"[client]\nprotocol=tcp\nhost={parts.hostname}\nport={parts.port}\nuser={parts.username}\n"
                f'password="{unquote(parts.password or "")}"\n'
            )
            settings.flush()
            command = [*program, f"--defaults-file={settings.name}", "--comments", *options, _database(url)]
            return base.silent(command, text)

    def table(self, stem: str) -> str:
        return f"mq_{stem}"


class ExternalMySQL(base.External, _MySQL):
    """A server that the user named."""


class LocalMySQL(_MySQL):
    """A server of our own; durable settings stay on. `more` goes before all other settings."""

    def __init__(self, name: str, more: Mapping[str, object] | None = None) -> None:
        self.name = name
        self.more = dict(more or {})
        self.environment: Mapping[str, str] = {}
        self._home = programs(name)
        self._folder = base.folder(name)
        self._port = base.free_port()
        self._process: subprocess.Popen[bytes] | None = None
        scheme = name.partition("-")[0]
        self.url = f"{scheme}://{USER}:{quote(PASSWORD, safe='')}@127.0.0.1:{self._port}/mysql"
        shutil.copytree(self._home.data, self._folder / "data")
        (self._folder / "init.sql").write_text(
            f"CREATE USER IF NOT EXISTS {USER}@'%' IDENTIFIED BY '{PASSWORD}';\n"
            f"GRANT ALL ON *.* TO {USER}@'%' WITH GRANT OPTION;\n" + _time_zones()
        )
        if who := base.identity():
            for path in (self._folder, *self._folder.rglob("*")):
                os.chown(path, who["user"], who["group"])

    @property
    def socket(self) -> Path:
        """The local way in, for URLs with ?unix_socket=."""
        return self._folder / "socket"

    @property
    def log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")

    def start(self) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        if self._process is None:
            self._launch()
        while not self._accepts():
            assert self._process
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise TimeoutError(f"{self.name} does not start: {self.log[-2000:]}")
            time.sleep(0.03)

    def _launch(self) -> None:
        folders = {
            "datadir": self._folder / "data",
            "tmpdir": self._folder,
            "socket": self.socket,
            "pid-file": self._folder / "pid",
            "init-file": self._folder / "init.sql",
            "port": self._port,
        }
        settings = _SETTINGS | _MORE_SETTINGS[self.name] | folders | self.more
        command = [*self._home.server(), *(f"--{key}={value}" for key, value in settings.items())]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd="/", env=os.environ | self.environment, **base.identity()
            )

    def _accepts(self) -> bool:
        try:
            # One that accepts a connection and dies would keep us waiting for its greeting.
            self.client(self.url, read_timeout=_GREETING_SECONDS).close()
        except pymysql.OperationalError:
            return False
        return True

    def stop(self, mode: str = "fast") -> None:
        self._end({"fast": signal.SIGTERM, "immediate": signal.SIGKILL}[mode])

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    def close(self) -> None:
        self.kill()
        base.remove(self._folder)
