"""Firebird 3.0 and 5.0, as fetch.py has unpacked them, and servers that the user names."""

import atexit
import ctypes
import importlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

from rowqueue.install import contract

from . import base, fetch

_READY_SECONDS = 60
_STOP_SECONDS = 5
NEWEST = "firebird-5.0"
USER = "SYSDBA"
PASSWORD = "p@ss:w/rd %+"  # what a URL must quote
# Names the client library, to these tests and to the runner that they start.
CLIENT_LIBRARY = "FIREBIRD_CLIENT_LIBRARY"

# At once, not when the first server is made: a server of forks may be started before, and keeps its environment.
if _newest := fetch.firebird(NEWEST):
    os.environ.setdefault(CLIENT_LIBRARY, str(_newest.client_library))

# One process with one cache for all sessions, as a server is by default. Events come through a second port, which is
# any free one unless it is set. Writes are forced: that is a property of the databases, and on by default.
_SETTINGS = {
    "ServerMode": "Super",
    "RemoteBindAddress": "127.0.0.1",
    "SecurityDatabase": "$(root)/security.fdb",
}
# Far from UTC, and not by whole hours; 3.0 knows no time zones, and is to be run in UTC.
_TIME_ZONES = {"firebird-3.0": "UTC"}
_TIME_ZONE = "Asia/Kolkata"


@cache
def programs(name: str) -> fetch.Firebird:
    """A server's programs. Raises Unavailable when they have not been fetched."""
    home = fetch.firebird(name)
    if home is None:
        raise base.Unavailable(f"{name} is not there: make servers")
    if base.reaches(home.client_library):
        return home
    # Where the server's user cannot reach the folder, a copy of it.
    copies = base.folder("programs")
    atexit.register(base.remove, copies)
    shutil.copytree(home.path, copies / name, symlinks=True)
    return fetch.Firebird(copies / name)


@cache
def driver() -> Any:
    """The driver, with the one client library of a process: that of 5.0 talks to 3.0 too. Raises Unavailable."""
    try:
        found = importlib.import_module("firebird.driver")
    except ImportError as error:
        raise base.Unavailable("firebird-driver is not installed: pip install firebird-driver") from error
    if home := fetch.firebird(NEWEST) or fetch.firebird("firebird-3.0"):
        os.environ.setdefault(CLIENT_LIBRARY, str(home.client_library))
    if library := os.environ.get(CLIENT_LIBRARY):
        for path in map(Path(library).with_name, fetch.NEEDED):
            if path.exists():
                ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
        found.driver_config.fb_client_library.value = library
    found.driver_config.db_defaults.db_charset.value = "UTF8"  # of databases that we create
    return found


def embedded(locks: Path) -> dict[str, str]:
    """The environment of processes that share databases without a server. Raises Unavailable."""
    home = programs(NEWEST)
    return fetch.environment(home.root, locks) | {CLIENT_LIBRARY: str(home.client_library)}


def dsn(url: str) -> str:
    """The database of a URL, as Firebird's own clients name it."""
    parts = urlsplit(url)
    return f"{parts.hostname}/{parts.port or 3050}:{unquote(parts.path[1:])}"


@dataclass
class Result:
    """The result of a statement."""

    rows: list[dict[str, Any]]
    description: Any

    def fetchall(self) -> list[dict[str, Any]]:
        return self.rows

    def fetchone(self) -> dict[str, Any] | None:
        return self.rows.pop(0) if self.rows else None


class Client:
    """A connection with `execute`, in autocommit, whose TIMESTAMPs are the UTC that the queue keeps in them."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        isolation = driver().Isolation.READ_COMMITTED_RECORD_VERSION
        self._transaction = connection.transaction_manager(driver().tpb(isolation))

    def execute(self, text: str, parameters: Sequence[Any] | None = None) -> Result:
        if parameters:
            text = text.replace("%s", "?")
        try:
            with self._transaction.cursor() as cursor:
                cursor.stream_blob_threshold = -1  # no streams: all values come whole
                cursor.execute(text, parameters or None)
                description = cursor.description
                names = [column[0].lower() for column in description or ()]
                rows = [dict(zip(names, map(_utc, row), strict=True)) for row in cursor.fetchall()] if names else []
            self._transaction.commit()
        except Exception:
            with suppress(driver().DatabaseError):  # the connection may be gone
                if self._transaction.is_active():
                    self._transaction.rollback()
            raise
        return Result(rows, description)

    def close(self) -> None:
        with suppress(driver().DatabaseError):  # it may be gone
            self.connection.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _utc(value: Any) -> Any:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


# The catalog tables that describe a database.
_CATALOG = (
    "database fields relations relation_fields view_relations indices index_segments relation_constraints"
    " ref_constraints check_constraints triggers procedures procedure_parameters functions function_arguments packages"
    " generators exceptions roles user_privileges dependencies"
)
# Numbers in the order of creation, versions of a table, compiled code, statistics.
_PASSING = re.compile(
    r"rdb\$((relation|field|index|procedure|function|generator)_id|exception_number|format|runtime|debug_info|statistics"
    r"|default_value|\w+_blr|\w+_class)"
)
# Names that the server makes, with such a number.
_NUMBERED = re.compile(r"(RDB\$|RDB\$PRIMARY|RDB\$FOREIGN|INTEG_|CHECK_)\d+")


def _told(row: dict[str, Any]) -> str:
    """A row of the catalog without what differs between equal databases."""
    kept = {column: str(value).rstrip() for column, value in row.items() if not _PASSING.fullmatch(column)}
    return str([_NUMBERED.match(value)[1] if _NUMBERED.fullmatch(value) else value for value in kept.values()])


class _Firebird(base.Server):
    def client(self, url: str) -> Client:
        parts = urlsplit(url)
        connection = driver().connect(
            dsn(url),
            user=unquote(parts.username or ""),
            password=unquote(parts.password or ""),
            role=dict(parse_qsl(parts.query)).get("role"),
            charset="UTF8",
        )
        return Client(connection)

    def database_url(self, path: str) -> str:
        """The URL of a database of this server, which is a file's whole path or an alias."""
        return urlunsplit(urlsplit(self.url)._replace(path=f"/{quote(path)}"))

    def create_database(self) -> str:
        folder = Path(unquote(urlsplit(self.url).path[1:])).parent
        url = self.database_url(str(folder / f"{base.new_name()}.fdb"))
        login = urlsplit(url)
        user, password = unquote(login.username or ""), unquote(login.password or "")
        driver().create_database(dsn(url), user=user, password=password).close()
        return url

    def drop_database(self, url: str) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while True:
            with self.client(url) as connection:
                try:
                    return connection.connection.drop_database()
                except driver().DatabaseError:
                    if time.monotonic() > deadline:
                        raise
            # Others are ended only if there are any, and seldom: a server of 5.0 may die when it ends a connection
            # that is still being made. A connection that has tried to drop its database is of no more use.
            with self.client(url) as connection:
                connection.execute("DELETE FROM mon$attachments WHERE mon$attachment_id <> CURRENT_CONNECTION")
            time.sleep(0.1)

    def catalog(self, url: str) -> list[str]:
        with self.client(url) as connection:
            tables = {name: connection.execute(f"SELECT * FROM rdb${name}").fetchall() for name in _CATALOG.split()}
        types = {row["rdb$field_name"]: _told(row) for row in tables["fields"]}
        lines = {
            f"{name} {_told(row)} {types.get(row.get('rdb$field_source'), '')}"
            for name, rows in tables.items()
            for row in rows
            if row.get("rdb$system_flag") != 1
            # Of a type without a name 3.0 may keep the owner's right when what it was made for is dropped.
            and not (name == "user_privileges" and str(row["rdb$relation_name"]).startswith("RDB$"))
        }
        return sorted(lines)

    def drop_procedure(self, url: str, name: str) -> None:
        self.query(url, f"DROP PROCEDURE {contract.load().prefixed(name)}")

    @contextmanager
    def login(self, url: str, role: str, *granted: str) -> Iterator[str]:
        self.query(url, f"CREATE USER {role} PASSWORD '{role}'")
        for name in granted:
            self.query(url, f"GRANT {name} TO USER {role}")
        host = urlsplit(url).netloc.rpartition("@")[2]
        # A session has the one role that it asks for.
        query = f"role={granted[0]}" if granted else ""
        try:
            yield urlunsplit(urlsplit(url)._replace(netloc=f"{role}:{role}@{host}", query=query))
        finally:
            for name in granted:
                self.query(url, f"REVOKE {name} FROM USER {role}")
            self.query(url, f"DROP USER {role}")

    def plant_faults(self, url: str, stems: Sequence[str]) -> None:
        with self.client(url) as connection:
            connection.execute("CREATE EXCEPTION fault 'a fault'")
            connection.execute("GRANT USAGE ON EXCEPTION fault TO PUBLIC")
            for stem, event in product(stems, ("insert", "update", "delete")):
                connection.execute(
                    f"CREATE TRIGGER fault_{stem}_{event} FOR mq_{stem} AFTER {event} AS BEGIN"
                    f" IF (RDB$GET_CONTEXT('USER_SESSION', 'fault') = '{stem} {event}') THEN EXCEPTION fault; END"
                )

    def fault(self, where: str) -> str:
        return (
            "EXECUTE BLOCK AS DECLARE there INTEGER; BEGIN"
            f" there = RDB$SET_CONTEXT('USER_SESSION', 'fault', '{where}'); END"
        )

    def table(self, stem: str) -> str:
        return f"mq_{stem}"

    @cached_property
    def version(self) -> str:
        return self.query(self.url, "SELECT rdb$get_context('SYSTEM', 'ENGINE_VERSION') AS v FROM rdb$database")[0]["v"]


class ExternalFirebird(base.External, _Firebird):
    """A server that the user named; databases are made beside the one that the URL names."""

    def start(self) -> None:
        self.client(self.url).close()


class LocalFirebird(_Firebird):
    """A server of our own; durable settings stay on."""

    copies = True

    def __init__(self, name: str) -> None:
        self.name = name
        self._home = programs(name)
        driver()
        self._folder = base.folder(name).resolve()
        self._port = base.free_port()
        self._process: subprocess.Popen[bytes] | None = None
        login = f"{USER}:{quote(PASSWORD, safe='')}@127.0.0.1:{self._port}"
        self.url = f"firebird://{login}/{quote(str(self._folder / 'server.fdb'))}"
        self._make_root()
        self._add("server.fdb")
        self._home.isql(
            f"CREATE USER {USER} PASSWORD '{PASSWORD}';\n",
            self._environment,
            self._root / "security.fdb",
            cwd="/",
            **base.identity(),
        )

    @property
    def _root(self) -> Path:
        return self._folder / "root"

    @property
    def _environment(self) -> dict[str, str]:
        return fetch.environment(self._root, self._folder) | {"TZ": _TIME_ZONES.get(self.name, _TIME_ZONE)}

    def _make_root(self) -> None:
        """A root with settings, users and a log of its own. A copy: Firebird takes no plugin through a link."""
        shutil.copytree(self._home.root, self._root, ignore=shutil.ignore_patterns("*.log"))
        settings = _SETTINGS | {"RemoteServicePort": self._port}
        (self._root / "firebird.conf").write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
        self._add("root/security.fdb", "security.fdb")
        self._give(self._root)

    def copy_database(self, url: str) -> str:
        """Of this server, or of another one of that version."""
        # The last connection has written all of it.
        path = self._folder / f"{base.new_name()}.fdb"
        shutil.copyfile(unquote(urlsplit(url).path[1:]), path)
        self._give(path)
        return self.database_url(str(path))

    def _add(self, name: str, template: str = "empty.fdb") -> None:
        shutil.copyfile(self._home.data / template, self._folder / name)
        self._give(self._folder / name)

    def _give(self, path: Path) -> None:
        if who := base.identity():
            os.chown(path, who["user"], who["group"])

    @property
    def log(self) -> str:
        """What the server has printed and what it has written into its log."""
        paths = [self._folder / "log", self._root / "firebird.log"]
        return "".join(path.read_text(errors="replace") for path in paths if path.exists())

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
        environment = os.environ | self._environment | self.environment
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._home.program("firebird"), stdout=log, stderr=log, cwd="/", env=environment, **base.identity()
            )

    def _accepts(self) -> bool:
        try:
            self.client(self.url).close()
        except driver().DatabaseError:
            return False
        return True

    def stop(self, mode: str = "fast") -> None:
        self._end({"fast": signal.SIGTERM, "immediate": signal.SIGKILL}[mode])

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(how)
        # 3.0 ignores SIGTERM for good when, as it started, its thread for that was faster than the main one.
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_SECONDS)
        self._process.kill()
        self._process.wait(60)
        self._process = None

    def close(self) -> None:
        self.kill()
        base.remove(self._folder)

    @property
    def isql(self) -> tuple[list[str], dict[str, str]]:
        """The beginning of a command of Firebird's own client, and the environment by which it logs in."""
        login = {"ISC_USER": USER, "ISC_PASSWORD": PASSWORD}
        return self._home.program("isql-fb"), fetch.environment(self._home.root.resolve(), self._folder) | login

    @contextmanager
    def forbid_changes(self, url: str) -> Iterator[None]:
        def set_mode(mode: str) -> None:
            _, login = self.isql
            command = [*self._home.program("gfix"), "-mode", mode, dsn(url)]
            subprocess.run(command, check=True, capture_output=True, env=os.environ | login)

        set_mode("read_only")
        try:
            yield
        finally:
            set_mode("read_write")

    def run_script(self, url: str, text: str, *options: str) -> str:
        command, environment = self.isql
        return base.silent([*command, "-quiet", "-bail", "-charset", "UTF8", *options, dsn(url)], text, environment)

    def create_database(self) -> str:
        name = f"{base.new_name()}.fdb"
        self._add(name)
        return self.database_url(str(self._folder / name))
