"""The pages for DBAs, and what runs their blocks: a database that the pages call `shop`, in the hands of a DBA."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit, urlunsplit

from rowqueue.databases import Session, open_database
from rowqueue.databases.sqlserver.script import batches
from servers import Server
from servers.firebird import dsn
from servers.postgresql import programs
from servers.shell import Shell
from tabs import for_engine

DOCS = Path(__file__).resolve().parents[2] / "docs"
OWNERSHIP = "Who owns it, and who may call"
REMOVAL = "Upgrading and removing"
POISONED = "A poisoned message"
OWNER = "-- As the owner of the tables\n"
# The pages in the order in which their blocks run.
PAGES = (
    *("reference/schema.md", "operate/sessions.md", "operate/roles.md", "operate/monitoring.md", "operate/repair.md"),
    *("operate/stuck-consumers.md", "operate/dead-letters.md", "operate/damage.md"),
    *("operate/limits.md", "operate/feeds.md", "operate/watched-tables.md", "operate/polling-tables.md"),
    *("operate/disk.md", "operate/backup.md", "operate/upgrade.md", "reference/limits.md"),
)

Block = tuple[str, str]


def blocks(page: str, heading: str | None = None) -> list[Block]:
    """The blocks of a page, or of one of its sections: (sql or sh, text)."""
    if heading is not None:
        found = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#|\Z)", page, re.M | re.S)
        assert found, f"no heading {heading!r}"
        page = found[1]
    return re.findall(r"^```(sql|sh)\n(.*?)^```$", page, re.M | re.S)


class Shop:
    """A database; `shop("SELECT ...")` looks into it with all rights, `shop.call(...)` calls a procedure."""

    engine: ClassVar[str]
    page: ClassVar[str]

    def __init__(self, server: Any, url: str, folder: Path) -> None:
        self.server = server
        self.url = url
        self.folder = folder
        self.hands = url  # of the user who follows the pages
        self.first = 1  # the id of the first message

    def __init_subclass__(cls) -> None:
        cls.page = "\n".join(for_engine((DOCS / page).read_text("utf-8"), cls.engine) for page in PAGES)

    def __call__(self, text: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.server.query(self.url, text)
        return rows

    @contextmanager
    def session(self) -> Iterator[Session]:
        session = open_database(self.url).connect("test")
        try:
            yield session
        finally:
            session.close()

    def call(self, procedure: str, *arguments: Any) -> list[dict[str, Any]]:
        with self.session() as session:
            return session.call(procedure, *arguments)

    def login(self, user: str, role: str = "") -> str:
        """The URL under which a user of the guide connects."""
        parts = urlsplit(self.url)
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit(parts._replace(netloc=f"{user}:change%20me@{host}", query=f"role={role}" if role else ""))

    def blocks(self, heading: str | None = None, kind: str = "") -> list[Block]:
        return [block for block in blocks(self.page, heading) if kind in ("", block[0])]

    def hand_to(self, url: str) -> None:
        """From now on a user with this URL does what the pages say, but for blocks of the tables' owner."""
        self.hands = url

    def do(self, kind: str, text: str) -> str:
        """What a block of the guide says, about the 17th message of ours; returns what it prints."""
        by = self.url if text.startswith(OWNER) else self.hands
        return self._do(kind, re.sub(r"\b17\b", str(self.first + 16), text), by)

    def _do(self, kind: str, text: str, by: str) -> str:
        """`by`: the URL of the user who does it."""
        raise NotImplementedError

    def follow(self, heading: str, *numbers: int, kind: str = "") -> str:
        """Do what a section of the guide says, or some of its blocks, counted among those of a kind."""
        found = self.blocks(heading, kind)
        return "".join(self.do(*block) for block in ([found[n] for n in numbers] if numbers else found))

    def only_emails(self) -> "Shop":
        """Twenty messages of type email in a database that other tests may have used."""
        self.follow("Emptying a queue", 1)
        self(f"DELETE FROM {self.table('archive')}")
        self(f"DELETE FROM {self.table('queue')} WHERE type <> ''")
        return self.fill()

    def fill(self) -> "Shop":
        """Twenty messages of type email."""
        self.call("send_batch", "email", "\n".join(f"body {n}" for n in range(1, 21)))
        [row] = self(f"SELECT MIN(id) AS id FROM {self.table('message')}")
        self.first = row["id"]
        return self

    def fill_all_areas(self) -> None:
        """What the blocks of a guide find when all are done in their order: messages, and an ordered queue."""
        self.call("send_batch", "email", "\n".join(f"body {n}" for n in range(1, 101)))
        self.call("set_queue", "invoice", '{"ordered": 1}')
        for _ in range(3):
            self.call("send_message", "invoice", "x", None, None, "g")
        self.call("claim_batch", "invoice", 2, "worker-1")

    def table(self, name: str) -> str:
        return str(self.server.table(name))

    def states(self) -> dict[str | None, int]:
        """How many messages are in each state; None: in no state."""
        rows = self(f"SELECT state, COUNT(*) AS n FROM {self.table('message_state')} GROUP BY state")
        return {row["state"] and row["state"].strip(): row["n"] for row in rows}

    def empty_batches_but(self, kept: int) -> None:
        """Take all messages but one out of their batches, as no procedure would."""
        self(f"DELETE FROM {self.table('claimed')} WHERE id <> {kept}")


def psql(url: str, *texts: str) -> str:
    """Run texts in one psql and return what it prints, unaligned. Fails on the first error."""
    command = [str(programs(18) / "psql"), "-X", "-A", "-v", "ON_ERROR_STOP=1", "-d", url]
    done = subprocess.run(command, input="\n".join(texts), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


class PostgreSQLShop(Shop):
    engine = "postgresql"

    def _do(self, kind: str, text: str, by: str) -> str:
        return psql(by, text) if kind == "sql" else ""

    def empty_batches_but(self, kept: int) -> None:
        self(f"UPDATE mq.batch SET ids = '{{{kept}}}', attempts = '{{1}}' WHERE {kept} = ANY (ids)")


class MySQLShop(Shop):
    engine = "mysql"

    def __init__(self, server: Any, url: str, folder: Path) -> None:
        super().__init__(server, url, folder)
        self.shell = Shell(server, folder)

    def __call__(self, text: str) -> list[dict[str, Any]]:
        with self.server.client(self.url) as connection:
            cursor = connection.execute(text)
            rows = list(cursor.fetchall()) if cursor.description else []
            cursor.close()  # waits for the end of a procedure, which commits after its rows
            return rows

    def _do(self, kind: str, text: str, by: str) -> str:
        """Where it says START TRANSACTION, in a session as the guide wants it."""
        self.shell.log_in(by)
        name = self.url.rpartition("/")[2]
        if kind == "sh":
            text = text.replace("mysqldump ", "mysqldump --set-gtid-purged=OFF ")  # as the guide says
            return self.shell(re.sub(r"\bshop\b", name, text))
        isolation = self.blocks("Before you start")[0][1] if "START TRANSACTION" in text else ""
        return self.shell(f"mysql {name}", isolation + text)

    def empty_batches_but(self, kept: int) -> None:
        self(f"UPDATE mq_batch SET items = '[[{kept},1]]' WHERE type = 'invoice'")


class FirebirdShop(Shop):
    engine = "firebird"
    LATER = "-- 4.0 and later"

    def __init__(self, server: Any, url: str, folder: Path) -> None:
        super().__init__(server, url, folder)
        self.restored = re.sub(r"\.fdb$", "_restored.fdb", url)
        self.shell = Shell(server, folder)

    def _do(self, kind: str, text: str, by: str) -> str:
        """In a session as the guide wants it."""
        text = text.replace("localhost:shop2", dsn(self.restored)).replace("localhost:shop", dsn(self.url))
        if kind == "sh":
            return self.shell(text)
        if text.startswith(self.LATER) and self.server.version.startswith("3."):
            return ""
        beginning = self.blocks("Transactions in isql")[0][1]
        login = urlsplit(by)
        role = f"-role {login.query.removeprefix('role=')}" if login.query else ""
        options = f"-user {login.username} -password {login.password} {role}" if by != self.url else ""
        command = f"isql -quiet -bail -charset UTF8 {options} {dsn(self.url)} 2>&1"
        said = self.shell(command, f"{beginning}COMMIT;\n{text}")
        return said.replace("Rolling back work.\n", "")


class SQLServerShop(Shop):
    """The driver sends the batches: there is no sqlcmd to be had. On Babelfish what begins with ABSENT is left out."""

    engine = "sqlserver"
    ABSENT = "-- Not on Babelfish"

    def __init__(self, server: Any, url: str, folder: Path) -> None:
        super().__init__(server, url, folder)
        version = server.query(server.url, "SELECT CAST(SERVERPROPERTY('BabelfishVersion') AS nvarchar(128)) AS v")
        self.babelfish = version[0]["v"] is not None

    def __call__(self, text: str, by: str = "") -> list[dict[str, Any]]:
        """The rows of the last result."""
        rows: list[dict[str, Any]] = []
        with self.server.client(by or self.url) as client, client.connection.cursor() as cursor:
            for batch in batches(text):
                cursor.execute(batch)
                while True:
                    if cursor.description:
                        names = [column[0] for column in cursor.description]
                        rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
                    if not cursor.nextset():
                        break
            cursor.execute("SELECT @@TRANCOUNT AS n")
            assert cursor.fetchone() == (0,)
        return rows

    def _do(self, kind: str, text: str, by: str) -> str:
        if kind == "sh" or (self.babelfish and text.startswith(self.ABSENT)):
            return ""
        rows = self(text, by)
        return "\n".join(" ".join(str(value) for value in row.values()) for row in rows)


SHOPS = {
    "postgresql": PostgreSQLShop,
    "mysql": MySQLShop,
    "firebird": FirebirdShop,
    "sqlserver": SQLServerShop,
}


def make(server: Server, url: str, folder: Path) -> Shop:
    """The shop for a database's engine."""
    return SHOPS[open_database(url).name](server, url, folder)
