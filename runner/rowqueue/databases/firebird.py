"""Firebird 3.0 and later through firebird-driver. All that the runner knows of it stands in the modules firebird*."""

import hashlib
import logging
import math
import re
import selectors
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from firebird.driver import Error
from firebird.driver.core import Cursor, Statement, TransactionManager
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from .. import contract
from . import Conflict, Database, DatabaseError, Disconnected, Installed, QueueError, Row, Session
from . import firebird_client as client
from .firebird_client import Connection, line, translate, translated
from .firebird_events import Listener
from .firebird_rights import rights_problems

_log = logging.getLogger(__name__)

# These wait for the locks of others; all other calls pass over what is locked, or are tried again.
_WAITING = {"send", "send_message", "send_batch", "set_queue", "pause", "resume", "extend_lease"} | {
    *("advance_sequence", "create_feed", "drop_feed", "advance_feed", "rewind_feed"),
    *("subscribe", "unsubscribe", "unwatch_table"),
}
# A prepared statement goes on with the procedure as it was when it was prepared, after an upgrade too.
_STATEMENT_SECONDS = 5.0
_ROLES = ("mq_producer", "mq_consumer", "mq_operator")
_RESERVED = {"count", "value", "position", "row", "table"}  # words of SQL: these columns have quoted names, in capitals

# This driver takes 0.2 ms more for a BLOB than for a VARCHAR, in either direction: short texts go as such.
_SHORT = 2000  # bytes
_LONG = {"body", "key", "row"}  # the columns that are BLOBs, as far as speed matters
_NAME_CHARACTERS = 1000  # what an argument that is a name has room for; the procedure then says what is allowed
_BIGINT = 1 << 63
_TRUNCATION = 335544914
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Where nobody waits for locks, this is how to wait for what takes longer than the procedure itself tries.
_RETRYING = Retrying(
    retry=retry_if_exception_type(Conflict),
    wait=wait_random_exponential(multiplier=0.002, max=0.1),
    stop=stop_after_attempt(10),
    reraise=True,
)


def _invalid(argument: str, reason: str) -> QueueError:
    return QueueError(50002, f"invalid_argument: {argument}: {reason}")


# ---- values --------------------------------------------------------------------------------------


def _value(argument: contract.Argument, value: Any) -> Any:
    """The value as the driver is to write it. Raises QueueError when its type cannot hold it."""
    if value is None:
        return None
    if argument.type in {"text", "key"}:
        return _text(argument, str(value))
    if argument.type == "time":
        return _time(argument.name, value)
    try:
        number = float(value) if argument.type == "number" else int(value)
    except (ValueError, TypeError, OverflowError):
        raise _invalid(argument.name, f"must be a finite number, not {str(value)[:100]!r}") from None
    if not math.isfinite(number) or (isinstance(value, float) and number != value):
        raise _invalid(argument.name, f"must be a whole number, not {value}")
    if isinstance(number, int) and not -_BIGINT <= number < _BIGINT:
        raise _invalid(argument.name, f"must be {-_BIGINT:,} to {_BIGINT - 1:,}")
    return number


def _text(argument: contract.Argument, text: str) -> str:
    if "\0" in text:
        raise _invalid(argument.name, "must not hold the character NUL")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise _invalid(argument.name, "must be valid Unicode text") from None
    if _is_name(argument) and len(text) > _NAME_CHARACTERS:
        limit = contract.load().limits.get(argument.limit or "")
        raise _invalid(argument.name, f"must be {limit}, not {len(text):,}" if limit else "is too long")
    return text


def _time(name: str, value: Any) -> datetime:
    """A time of the server's, which has no zone; whole milliseconds, as in results."""
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        if moment.tzinfo is not None:
            moment = moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise _invalid(name, f"must be a time of the years 1 to 9999 in UTC, not {str(value)[:100]!r}") from None
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _is_name(argument: contract.Argument) -> bool:
    return argument.type == "key" or argument.limit == "name"


def _marker(argument: contract.Argument, value: Any) -> str:
    """The parameter's place in a call: as a VARCHAR, or as the type that the procedure has."""
    if argument.type != "text" or _is_name(argument):
        return "?"
    is_short = value is None or len(value) <= _SHORT // 4 or len(value.encode()) <= _SHORT
    return f"CAST(? AS VARCHAR({_SHORT}))" if is_short else "?"


@cache
def _query(procedure: str, markers: tuple[str, ...]) -> str:
    """The text of a call. A long text comes in two columns, of which one is NULL: when it is short, as a VARCHAR.

    Times come as milliseconds: this driver takes longer for a TIMESTAMP than for all else in a row.
    """
    columns, whole = [], []
    for column in contract.load().procedures[procedure].columns:
        name = f'"{column.name.upper()}"' if column.name in _RESERVED else column.name
        if column.name in _LONG:
            whole.append(f"CASE WHEN OCTET_LENGTH({name}) > {_SHORT} THEN {name} END")
            name = f"CASE WHEN OCTET_LENGTH({name}) <= {_SHORT} THEN CAST({name} AS VARCHAR({_SHORT})) END"
        elif column.type == "time":
            name = f"CAST(DATEDIFF(MILLISECOND FROM TIMESTAMP '{_EPOCH:%Y-%m-%d}' TO {name}) AS BIGINT)"
        columns.append(name)
    arguments = f"({', '.join(markers)})" if markers else ""
    return f"SELECT {', '.join(columns + whole)} FROM mq_{procedure}{arguments}"


@dataclass(frozen=True)
class _Shape:
    """The columns of a result: which are times, and which are in two."""

    names: tuple[str, ...]
    times: tuple[str, ...]
    long: tuple[str, ...]

    def rows(self, values: Sequence[tuple[Any, ...]]) -> list[Row]:
        rows = [dict(zip(self.names, row, strict=False)) for row in values]
        for name in self.times:
            for row in rows:
                if row[name] is not None:
                    row[name] = _EPOCH + timedelta(milliseconds=row[name])
        for place, name in enumerate(self.long, len(self.names)):
            for row, found in zip(rows, values, strict=True):
                if found[place] is not None:
                    row[name] = found[place]
        return rows


@cache
def _shape(procedure: str) -> _Shape:
    columns = contract.load().procedures[procedure].columns
    names = tuple(column.name for column in columns)
    times = tuple(column.name for column in columns if column.type == "time")
    return _Shape(names, times, tuple(name for name in names if name in _LONG))


# ---- the connection ------------------------------------------------------------------------------


def _cursor(transaction: TransactionManager) -> Cursor:
    """A cursor that reads every value whole."""
    cursor = transaction.cursor()
    cursor.stream_blob_threshold = -1
    return cursor


class FirebirdSession(Session):
    """One connection; each call outside `transaction()` is a transaction of its own."""

    def __init__(self, database: "Firebird", connection: Connection) -> None:
        self._database = database
        self._connection = connection
        self._main = connection.main_transaction
        self._polling = connection.transaction_manager(client.NO_WAIT)
        self._waiting = connection.transaction_manager(client.WAIT)
        self._cursors = {manager: _cursor(manager) for manager in (self._main, self._polling, self._waiting)}
        self._statements: dict[str, Statement] = {}
        self._prepared_at = 0.0
        self._listener: Listener | None = None
        connection.at_rest()

    def call(self, procedure: str, *arguments: Any) -> list[Row]:
        known = contract.load().procedures[procedure].arguments
        values = [_value(argument, value) for argument, value in zip(known, arguments, strict=False)]
        text = _query(procedure, tuple(map(_marker, known, values)))
        if self._connection.is_closed():
            raise Disconnected("the connection is closed")
        if self._connection.guarded:
            found = self._run(self._main, text, known, values)
        else:
            transaction = self._waiting if procedure in _WAITING else self._polling
            found = _RETRYING(self._run, transaction, text, known, values)
        return _shape(procedure).rows(found)

    def _run(
        self, transaction: TransactionManager, text: str, known: Sequence[contract.Argument], values: Sequence[Any]
    ) -> list[tuple[Any, ...]]:
        """The values of a call, in a transaction of its own unless it is the caller's."""
        own = transaction is not self._main
        if own:
            self._connection.at_work()
        try:
            if own:
                transaction.begin()
            found = self._fetch(transaction, text, values)
            if own:
                transaction.commit()
        except BaseException as error:
            self._connection.let_go(error)
            if own:
                client.forget_transaction(transaction)
            if isinstance(error, Error):
                raise _bad_argument(error, known, values) or self._failed(error) from error
            raise
        finally:
            if own:
                self._connection.at_rest()
        return found

    def _fetch(self, transaction: TransactionManager, text: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        cursor = self._cursors[transaction]
        try:
            cursor.execute(self._statement(cursor, text), values)
            found: list[tuple[Any, ...]] = cursor.fetchall()
            return found
        except Error as error:
            self._connection.let_go(error)
            raise
        finally:
            with suppress(Error):  # the connection is lost, and the result with it
                cursor.close()

    def _statement(self, cursor: Cursor, text: str) -> Statement:
        """The statement, prepared once for a while."""
        now = time.monotonic()
        if now - self._prepared_at > _STATEMENT_SECONDS:
            self._forget_statements()
            self._prepared_at = now
        statement = self._statements.get(text)
        if statement is None:
            statement = self._statements[text] = cursor.prepare(text)
        return statement

    def _forget_statements(self) -> None:
        while self._statements:
            client.free(self._statements.popitem()[1])

    def _failed(self, error: Error) -> Exception:
        """Our exception for the driver's; unless it is the contract's, a prepared statement may be out of date."""
        failure = translate(error)
        if not isinstance(failure, QueueError | Conflict):
            self._prepared_at = 0.0
        return failure

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        connection = self._connection
        if connection.is_closed():
            raise Disconnected("the connection is closed")
        connection.at_work()  # what the caller does in it is looked after as well
        try:
            with self._guarded():
                yield connection
        finally:
            connection.at_rest()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """A transaction that nobody else ends."""
        connection, main = self._connection, self._main
        with translated():
            main.begin()
        begun, connection.guarded = main._tra, True
        try:
            yield
            if main._tra is not begun or client.has_ended(main):
                raise DatabaseError("a statement inside the transaction has ended it")
            connection.guarded = False
            with translated():
                main.commit()
        except BaseException as error:
            connection.guarded = False
            connection.let_go(error.__cause__ or error)
            client.forget_transaction(main)
            raise

    def now(self) -> datetime:
        if self._connection.is_closed():
            raise Disconnected("the connection is closed")
        # 3.0 has no time zones, and is to be run in UTC.
        zone = " UTC" if self._database.version >= 4 else ""
        since = f"DATEDIFF(MILLISECOND FROM TIMESTAMP '{_EPOCH:%Y-%m-%d 00:00}{zone}' TO CURRENT_TIMESTAMP)"
        [[milliseconds]] = self._run(self._polling, f"SELECT CAST({since} AS bigint) FROM rdb$database", (), ())
        return _EPOCH + timedelta(milliseconds=milliseconds)

    def execute(self, statement: str) -> None:
        with translated():
            super().execute(statement)

    def listen(self, types: Sequence[str]) -> bool:
        if self._listener is not None and self._listener.types >= set(types):
            return self._listener.is_on
        known = self._listener.types if self._listener else frozenset[str]()
        self._deafen()
        self._listener = Listener([*known, *types], lambda: self._database.open("rowqueue events"))
        return self._listener.is_on

    def wait(self, seconds: float, interrupt: int) -> bool:
        with selectors.DefaultSelector() as selector:
            selector.register(interrupt, selectors.EVENT_READ)
            if self._listener is not None:
                selector.register(self._listener.descriptor, selectors.EVENT_READ)
            selector.select(max(0.0, seconds))
        return self._listener is not None and self._listener.clear()

    def _deafen(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def close(self) -> None:
        self._deafen()
        self._connection.close()


def _bad_argument(error: Error, known: Sequence[contract.Argument], values: Sequence[Any]) -> QueueError | None:
    """The contract's error for a text that never reached the procedure because it is too long."""
    if _TRUNCATION not in getattr(error, "gds_codes", ()) or re.search(r"^-?At ", str(error), re.M):
        return None
    texts = [
        (len(value), argument.name) for argument, value in zip(known, values, strict=False) if isinstance(value, str)
    ]
    return _invalid(max(texts)[1], "is too long") if texts else None


# ---- the database ----------------------------------------------------------------------------------


class Firebird(Database):
    """A database of Firebird 3.0 or later, on a server or in a file that the embedded engine opens."""

    name: ClassVar[str] = "firebird"
    schemes: ClassVar[tuple[str, ...]] = ("firebird",)
    # A call may meet new procedures beside old ones.
    swaps_at_once: ClassVar[bool] = False
    cascades: ClassVar[bool] = False

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._address = client.parse(url)

    def open(self, application_name: str, manner: bytes = client.NO_WAIT) -> Connection:
        """A connection of the driver's. Raises as `connect` does."""
        return client.connect(self._address, application_name, manner)

    def connect(self, application_name: str) -> Session:
        return FirebirdSession(self, self.open(application_name))

    def yoyo_url(self) -> str:
        return f"firebird:///?url={quote(self.url, safe='')}"

    @contextmanager
    def installing(self) -> Iterator[None]:
        # A row that is locked until this connection ends, however that happens. It is yoyo's, whose tables come first.
        with translated(), closing(self.open("rowqueue apply", client.PATIENT)) as connection:
            _refuse_unsuitable(connection)
            make_yoyo_tables(connection)
            connection.begin()
            with _cursor(connection.main_transaction) as cursor:
                try:
                    cursor.execute('SELECT "version" FROM "_yoyo_version" WITH LOCK').fetchall()
                except Error as error:
                    if isinstance(translate(error), Conflict):
                        lack = f"another installation runs in this database; gave up after {client.PATIENCE} s"
                        raise Conflict(lack) from error
                    raise
            connection.at_rest()
            yield

    @cached_property
    def version(self) -> int:
        """The server's major version."""
        with translated(), closing(self.open("rowqueue apply")) as connection:
            [[version]] = _rows(connection, f"SELECT {_VERSION} FROM rdb$database")
        return int(version)

    def fitted(self, files: Sequence[tuple[str, str, str, str]]) -> list[tuple[str, str, str, str]]:
        return [file if not _variants(file[1]) else self._fitted(file) for file in files]

    def _fitted(self, file: tuple[str, str, str, str]) -> tuple[str, str, str, str]:
        fitting = [text for version, text in _variants(file[1]) if version <= self.version]
        return (*file[:2], _sha256(fitting[-1]), fitting[-1]) if fitting else file

    def installed(self) -> dict[str, Installed] | None:
        with translated(), closing(self.open("rowqueue apply")) as connection:
            if not _existing(connection, "TABLE", ["MQ_INSTALLED"]):
                return None
            needed = ["MQ_INSTALLED_FILES", "MQ_OBJECT_FINGERPRINT"]
            found = _existing(connection, "PROCEDURE", needed) + _existing(connection, "FUNCTION", needed)
            # Without the procedures nothing can be compared, and all of them are to be installed again.
            rows = _rows(
                connection,
                "SELECT name, kind, sha256, changed FROM mq_installed_files"
                if set(found) == set(needed)
                else "SELECT name, kind, sha256, IIF(kind = 'procedure', 1, 0) FROM mq_installed",
            )
        return {name: Installed(name, kind, sha256, bool(changed)) for name, kind, sha256, changed in rows}

    def rights_problems(self) -> list[str]:
        with translated(), closing(self.open("rowqueue apply")) as connection:
            return rights_problems(connection)

    def run_files(self, files: Sequence[tuple[str, str, str, str]]) -> list[str]:
        # DDL is seen by the next statement when it is committed. The records come last: after an interruption, the next
        # `apply` runs all the files again.
        with closing(self.open("rowqueue apply", client.PATIENT)) as connection:
            for _, name, _, text in files:
                _run_file(connection, name, text)
            with translated(), _cursor(connection.main_transaction) as cursor:
                for kind, name, sha256, _ in files:
                    cursor.execute(_RECORD.format("?", "?", "?", "?", "?"), [name, kind, sha256, kind, name])
                connection.commit()
        return []

    def script(self, files: Sequence[tuple[str, str, str, str]]) -> Iterator[str]:
        yield _SCRIPT_HEAD.format(unsuitable=_UNSUITABLE)
        yield from (_YOYO_TABLE.format(name=name, columns=_quoted(columns)) for name, columns in YOYO_TABLES.items())
        yield f"COMMIT^\n{_YOYO_VERSION.format(time='NULL')}^\nCOMMIT^\n\nSET TERM ; ^\n\n"
        for kind, name, _, text in files:
            if kind == "migration":
                yield f"-- {kind} {name}\n\nSET TERM ^ ;\n\n"
                yield from (f"{_guarded(statement)}^\n\nCOMMIT^\n\n" for statement in statements(text))
                yield f"{_YOYO_ROW.format(hash=_sha256(name), name=name)}^\nCOMMIT^\n\nSET TERM ; ^\n\n"
                continue
            # What a block does is not committed by itself, as other DDL is.
            text = text.replace("\nSET TERM ; ^\n", "\nSET TERM ; ^\n\nCOMMIT;\n")
            yield f"-- {kind} {name}\n{text.rstrip()}\n"
            # isql's transaction may have begun before the file, and not see it.
            yield from (f"COMMIT;\n{_variant(version, other)}" for version, other in _variants(name))
            yield "COMMIT;\n"
        for kind, name, sha256, _ in files:
            of_version = [(version, _sha256(text)) for version, text in _variants(name)]
            whens = "".join(f"WHEN {_VERSION} >= {version} THEN '{other}' " for version, other in reversed(of_version))
            sha256 = f"CASE {whens}ELSE '{sha256}' END" if whens else f"'{sha256}'"
            yield _RECORD.format(f"'{name}'", f"'{kind}'", sha256, f"'{kind}'", f"'{name}'") + ";\n"
        yield _SCRIPT_END

    def adopted_tables(self) -> list[str]:
        with translated(), closing(self.open("rowqueue uninstall")) as connection:
            if not _existing(connection, "TABLE", ["MQ_POLLED"]):
                return []
            return [name for (name,) in _rows(connection, "SELECT name FROM mq_polled ORDER BY 1")]

    def dependents(self) -> list[str]:
        with translated(), closing(self.open("rowqueue uninstall")) as connection:
            watching = {name for (name,) in _rows(connection, _WATCHING)}
            return [f"{kind} {name}" for kind, name in _rows(connection, _DEPENDENTS) if name not in watching]

    def uninstall(self) -> None:
        with self.installing(), closing(self.open("rowqueue uninstall", client.PATIENT)) as connection:
            recorded = self.installed() or {}
            migrations = {name for name, entry in recorded.items() if entry.kind == "migration"}
            with translated():
                _drop_objects(connection, recorded)
                _forget_migrations(connection, migrations | {path.stem for path in _migration_files()})
        # The lock was a row of one of these.
        with translated(), closing(self.open("rowqueue uninstall", client.PATIENT)) as connection:
            _drop_yoyo_tables(connection)


# ---- installing ----------------------------------------------------------------------------------

_ENGINE = "RDB$GET_CONTEXT('SYSTEM', 'ENGINE_VERSION')"
_VERSION = f"CAST(LEFT({_ENGINE}, POSITION('.' IN {_ENGINE}) - 1) AS integer)"

_RECORD = """\
UPDATE OR INSERT INTO mq_installed (name, kind, sha256, fingerprint, applied_at)
VALUES ({}, {}, {}, IIF({} = 'procedure', mq_object_fingerprint({}), NULL), mq_utc_now()) MATCHING (name)"""

# yoyo's own tables as yoyo 9 makes them, so that `yoyo apply` and `runner apply` go on from here.
YOYO_TABLES = {
    "yoyo_lock": '"locked" INT DEFAULT 1 NOT NULL, "ctime" TIMESTAMP, "pid" INT NOT NULL, PRIMARY KEY ("locked")',
    "_yoyo_log": """\
"id" VARCHAR(36) NOT NULL, "migration_hash" VARCHAR(64), "migration_id" VARCHAR(255), "operation" VARCHAR(10),
    "username" VARCHAR(255), "hostname" VARCHAR(255), "comment" VARCHAR(255), "created_at_utc" TIMESTAMP,
    PRIMARY KEY ("id")""",
    "_yoyo_version": '"version" INT NOT NULL PRIMARY KEY, "installed_at_utc" TIMESTAMP',
    "_yoyo_migration": """\
"migration_hash" VARCHAR(64) NOT NULL, "migration_id" VARCHAR(255), "applied_at_utc" TIMESTAMP,
    PRIMARY KEY ("migration_hash")""",
}
_YOYO_VERSION = (
    'UPDATE OR INSERT INTO "_yoyo_version" ("version", "installed_at_utc") VALUES (2, {time}) MATCHING ("version")'
)

_CATALOG = {
    "PROCEDURE": "procedure",
    "FUNCTION": "function",
    "TRIGGER": "trigger",
    "VIEW": "relation",
    "TABLE": "relation",
    "SEQUENCE": "generator",
    "EXCEPTION": "exception",
    "DOMAIN": "field",
    "ROLE": "role",
}
# The triggers of watched tables, and of those that were: whatever has a right that we give to no others.
_WATCHING = """\
SELECT TRIM(t.rdb$trigger_name) FROM rdb$triggers AS t JOIN rdb$user_privileges AS p ON p.rdb$user = t.rdb$trigger_name
WHERE p.rdb$user_type = 2 AND p.rdb$relation_name = 'MQ_TELL_CHANGES'"""
_DEPENDENTS = """\
SELECT DISTINCT DECODE(d.rdb$dependent_type, 1, 'view', 2, 'trigger', 3, 'computed column of', 5, 'procedure', 15,
    'function', 'object'), TRIM(d.rdb$dependent_name)
FROM rdb$dependencies AS d
WHERE d.rdb$depended_on_name STARTING WITH 'MQ_' AND d.rdb$dependent_name NOT STARTING WITH 'MQ_'
    AND d.rdb$dependent_name NOT STARTING WITH 'CHECK_' AND d.rdb$dependent_name NOT STARTING WITH 'RDB$'
ORDER BY 1, 2"""
_CREATED = re.compile(rf"\bCREATE (?:OR ALTER |GLOBAL TEMPORARY )?({'|'.join(_CATALOG)}) (mq_\w+)")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _rows(connection: Connection, text: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """The rows of a statement, in a transaction of its own."""
    connection.at_work()
    with _cursor(connection.main_transaction) as cursor:
        try:
            rows: list[tuple[Any, ...]] = cursor.execute(text, parameters).fetchall()
        except Error as error:
            connection.let_go(error)
            raise
    connection.commit()
    return rows


def make_yoyo_tables(connection: Connection) -> None:
    """Make yoyo's own tables where they are missing; several processes may be about to."""
    deadline = time.monotonic() + client.PATIENCE
    while True:
        try:
            found = _existing(connection, "TABLE", YOYO_TABLES)
            for name, columns in YOYO_TABLES.items():
                if name not in found:
                    connection.execute_immediate(f'CREATE TABLE "{name}" ({columns})')
            connection.commit()
            if not _rows(connection, 'SELECT 1 FROM "_yoyo_version"'):
                connection.execute_immediate(_YOYO_VERSION.format(time="CAST('NOW' AS timestamp)"))
                connection.commit()
            return
        except Error as error:
            client.forget_transaction(connection.main_transaction)
            if not client.is_taken(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.05)


@cache
def _variants(name: str) -> tuple[tuple[int, str], ...]:
    """The texts of a file for later servers, `NAME.4.sql` beside `NAME.sql`, each with the first version it is for."""
    folder = contract.sql_root() / "procedures" / Firebird.name
    found = [(int(path.suffixes[0][1:]), path.read_text("utf-8")) for path in folder.rglob(f"{name}.[0-9]*.sql")]
    return tuple(sorted(found))


def _variant(version: int, text: str) -> str:
    """What gives a file its text of a later version, if the server is that new: for isql, which has no conditions."""
    blocks = "".join(
        f"    IF ({_VERSION} >= {version}) THEN\n"
        f"        EXECUTE STATEMENT '{statement.replace(chr(39), chr(39) * 2)}';\n"
        for statement in statements(text)
    )
    return f"SET TERM ^ ;\n\nEXECUTE BLOCK AS\nBEGIN\n{blocks}END^\n\nSET TERM ; ^\n"


def statements(text: str) -> Iterator[str]:
    """The statements of a file for isql, which end where a line does; SET TERM lines change with what."""
    terminator, lines, inside = ";", list[str](), ""
    for whole in text.splitlines():
        if not lines and (term := re.fullmatch(r"SET TERM (\S+) (\S+)", whole.rstrip())):
            terminator = term[1]
            continue
        code, inside = _code(whole, inside)
        if lines or code:
            lines.append(whole)
        if lines and not inside and code.endswith(terminator):
            lines[-1] = whole[: len(code) - len(terminator)]
            yield "\n".join(lines).rstrip()
            lines = []
    if lines:
        yield "\n".join(lines)


def _code(text: str, inside: str) -> tuple[str, str]:
    """A line with blanks for its comments and quoted texts, and what is still open at its end: a quote or a comment."""
    code = ""
    while text:
        if inside:
            end = {"/*": "*/"}.get(inside, inside)
            skipped, found, text = text.partition(end)
            code += " " * len(skipped + found)
            inside = "" if found else inside
        else:
            start = re.search(r"--|/\*|['\"]", text)
            kept = text[: start.start()] if start else text
            code, text = code + kept, text[len(kept) :]
            if start and start[0] == "--":
                break
            if start:
                code, text, inside = code + " " * len(start[0]), text[len(start[0]) :], start[0]
    return code.rstrip(), inside


# What cannot be run twice in a migration, each with the object that it makes.
_MAKES = re.compile(
    r"(?:\s|--.*\n)*(?:CREATE (?:GLOBAL TEMPORARY |UNIQUE |ASC\w* |DESC\w* )*(?P<kind>\w+) (?P<name>mq_\w+)"
    r"|ALTER TABLE (?P<table>mq_\w+)\s+ADD (?P<column>\w+)"
    r"|INSERT INTO (?P<filled>mq_\w+))",
    re.I,
)


def is_there(statement: str) -> str | None:
    """A query that has a row when a statement of a migration was run before; None for one that can be run again.

    DDL commits: after an interruption the next installation goes on behind what is there. What somebody else has made
    is not ours.
    """
    found = _MAKES.match(statement)
    if found is None:
        return None
    if found["filled"]:
        return f"SELECT FIRST 1 1 FROM {found['filled']}"
    if found["column"]:
        return (
            "SELECT 1 FROM rdb$relation_fields"
            f" WHERE rdb$relation_name = '{found['table'].upper()}' AND rdb$field_name = '{found['column'].upper()}'"
        )
    kind = found["kind"].upper()
    if kind == "INDEX":
        return f"SELECT 1 FROM rdb$indices WHERE rdb$index_name = '{found['name'].upper()}'"
    column = _CATALOG[kind]
    return (
        f"SELECT 1 FROM rdb${column}s WHERE rdb${column}_name = '{found['name'].upper()}'"
        " AND rdb$owner_name = CURRENT_USER"
    )


def _guarded(statement: str) -> str:
    """A statement of a migration as a block that leaves what is there already, for isql, which has no conditions."""
    condition = is_there(statement)
    text = re.sub(r"\A(?:\s|--.*\n)*", "", statement)
    if condition is None:
        return text
    return (
        f"EXECUTE BLOCK AS\nBEGIN\n    IF (NOT EXISTS ({condition})) THEN\n"
        f"        EXECUTE STATEMENT '{_quoted(text)}';\nEND"
    )


def _refuse_unsuitable(connection: Connection) -> None:
    """Raises DatabaseError for a database that the queue cannot live in, before anything is made."""
    [[reason]] = _rows(connection, f"SELECT {_UNSUITABLE} FROM mon$database")
    if reason is not None:
        raise DatabaseError(reason)


_UNSUITABLE = """\
CASE WHEN EXISTS (SELECT 1 FROM rdb$relations WHERE rdb$relation_name IN ('PLG$SRP', 'PLG$USERS', 'PLG$SRP_VIEW'))
        THEN 'this is the database of the users of the server: make one of its own for the queue'
    WHEN mon$sql_dialect < 3
        THEN 'the database has SQL dialect 1 and the queue needs 3: make a new one, or gfix -sql_dialect 3'
    WHEN mon$page_size < 8192
        THEN 'the database has pages of ' || mon$page_size || ' bytes and the queue needs 8,192: gbak -b, '
            || 'then gbak -c -page_size 8192'
    WHEN mon$read_only = 1
        THEN 'the database is read-only: gfix -mode read_write' END"""


def _run_file(connection: Connection, name: str, text: str) -> None:
    for statement in statements(text):
        connection.at_work()
        try:
            if statement != "COMMIT":
                connection.execute_immediate(statement)
            connection.commit()
        except Error as error:
            client.forget_transaction(connection.main_transaction)
            translated = translate(error)
            raise type(translated)(f"{name}.sql: {line(error)}") from error


def _existing(connection: Connection, kind: str, names: Iterable[str]) -> list[str]:
    """Which of these objects of a kind are in the database."""
    column = _CATALOG[kind]
    condition = {"VIEW": " AND rdb$relation_type = 1", "TABLE": " AND rdb$relation_type <> 1"}.get(kind, "")
    rows = _rows(connection, f"SELECT TRIM(rdb${column}_name) FROM rdb${column}s WHERE rdb$system_flag = 0{condition}")
    return [name for name in names if (name,) in set(rows)]


def _migration_files() -> list[Path]:
    return sorted((contract.sql_root() / "migrations" / Firebird.name).glob("*.sql"))


def _drop_objects(connection: Connection, recorded: Iterable[str]) -> None:
    """Drop what the files of this release create, and the procedures that are recorded."""
    files = [*_migration_files(), *(contract.sql_root() / "procedures" / Firebird.name).rglob("*.sql")]
    created = [found for path in files for found in _CREATED.findall(path.read_text("utf-8"))]
    created += [(kind, f"mq_{name}") for kind in ("PROCEDURE", "FUNCTION", "VIEW") for name in recorded]
    created += [("ROLE", role) for role in _ROLES]
    drops = [f"DROP TRIGGER {name}" for (name,) in _rows(connection, _WATCHING)]
    for kind in _CATALOG:
        names = sorted({name.upper() for found, name in created if found == kind})
        drops += [f"DROP {kind} {name}" for name in _existing(connection, kind, names)]
    # In one transaction, because what they need of each other is looked at when it ends: all go, or none when a session
    # that has used one is still there.
    for statement in drops:
        connection.execute_immediate(statement)
    connection.commit()


def _forget_migrations(connection: Connection, migrations: Iterable[str]) -> None:
    """Delete our rows of yoyo's tables."""
    with _cursor(connection.main_transaction) as cursor:
        for table in ("_yoyo_migration", "_yoyo_log"):
            for migration in migrations:
                cursor.execute(f'DELETE FROM "{table}" WHERE "migration_id" = ?', [migration])
    connection.commit()


def _drop_yoyo_tables(connection: Connection) -> None:
    """Drop yoyo's tables when no other project's migrations are left in them."""
    if not _rows(connection, 'SELECT FIRST 1 1 FROM "_yoyo_migration"'):
        for table in YOYO_TABLES:
            connection.execute_immediate(f'DROP TABLE "{table}"')
        connection.commit()


def _quoted(text: str) -> str:
    return text.replace("'", "''")


DATABASE = Firebird

_SCRIPT_HEAD = """\
-- rowqueue for Firebird 3.0, 4.0 and 5.0: the whole installation in an empty database, for isql:
-- isql -charset UTF8 -input this-file DATABASE. It ends at the first error; run again, it goes on from there.
SET BAIL ON;
SET AUTODDL ON;
SET TERM ^ ;

-- What cannot hold the queue is refused first, by an error that shows the reason.
EXECUTE BLOCK AS
DECLARE v_reason varchar(300) CHARACTER SET UTF8;
DECLARE v_done integer;
DECLARE v_at timestamp;
BEGIN
    SELECT {unsuitable}
    FROM mon$database
    INTO v_reason;
    IF (v_reason IS NULL AND EXISTS (SELECT 1 FROM rdb$relations WHERE rdb$relation_name = 'MQ_INSTALLED')) THEN
    BEGIN
        EXECUTE STATEMENT 'SELECT COUNT(*) FROM mq_installed WHERE kind = ''procedure''' INTO v_done;
        IF (v_done > 0) THEN
            v_reason = 'the queue is already installed in this database: to upgrade it, use runner apply';
    END
    IF (v_reason IS NOT NULL) THEN
        v_at = CAST(v_reason AS timestamp);
END^

"""

_YOYO_TABLE = """\
EXECUTE BLOCK AS
BEGIN
    IF (NOT EXISTS (SELECT 1 FROM rdb$relations WHERE rdb$relation_name = '{name}')) THEN
        EXECUTE STATEMENT 'CREATE TABLE "{name}" ({columns})';
END^

"""

_YOYO_ROW = """\
UPDATE OR INSERT INTO "_yoyo_migration" ("migration_hash", "migration_id") VALUES ('{hash}', '{name}')
MATCHING ("migration_hash")"""

_SCRIPT_END = """\
UPDATE "_yoyo_version" SET "installed_at_utc" = mq_utc_now() WHERE "installed_at_utc" IS NULL;
UPDATE "_yoyo_migration" SET "applied_at_utc" = mq_utc_now() WHERE "applied_at_utc" IS NULL;
COMMIT;
"""
