"""The blocks of docs/dba-guide-sqlserver.md, as they stand there, batch by batch; and repairs repair.

The driver sends the batches: there is no sqlcmd to be had. Where the server is Babelfish, what begins with ABSENT is
left out.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rowqueue import install
from rowqueue.databases import Forbidden, open_database
from rowqueue.databases.sqlserver import _batches
from servers.sqlserver import ExternalSQLServer

pytestmark = [pytest.mark.product("sqlserver"), pytest.mark.one_engine]

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDE = (DOCS / "dba-guide-sqlserver.md").read_text("utf-8")
OWNERSHIP = "Who owns it, and who may call"
REMOVAL = "Upgrading and removing"
ABSENT = "-- Not on Babelfish"


def blocks(heading: str | None = None) -> list[str]:
    """The blocks of T-SQL in the guide, or in one of its sections."""
    page = GUIDE
    if heading is not None:
        found = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#|\Z)", GUIDE, re.M | re.S)
        assert found, f"no heading {heading!r}"
        page = found[1]
    return re.findall(r"^```sql\n(.*?)^```$", page, re.M | re.S)


class Shop:
    """A database that the guide calls `shop`, in the hands of a DBA."""

    def __init__(self, server: ExternalSQLServer) -> None:
        self.server = server
        self.url = server.create_database()
        self.first = 1  # the id of the first of the messages that `fill` has sent
        version = server.query(server.url, "SELECT CAST(SERVERPROPERTY('BabelfishVersion') AS nvarchar(128)) AS v")
        self.babelfish = version[0]["v"] is not None

    def __call__(self, text: str) -> list[dict[str, Any]]:
        """The rows of the last result."""
        rows: list[dict[str, Any]] = []
        with self.server.client(self.url) as client, client.connection.cursor() as cursor:
            for batch in _batches(text):
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

    def do(self, text: str) -> list[dict[str, Any]]:
        """What a block of the guide says, about the 17th message of ours."""
        if self.babelfish and text.startswith(ABSENT):
            return []
        return self(re.sub(r"\b17\b", str(self.first + 16), text))

    def follow(self, heading: str, *numbers: int) -> list[dict[str, Any]]:
        """Do what a section of the guide says, or some of its blocks; the rows of the last result."""
        found = blocks(heading)
        rows = []
        for text in [found[number] for number in numbers] if numbers else found:
            rows = self.do(text)
        return rows

    def fill(self) -> None:
        """20 messages of type email, and nothing else."""
        self.follow("Emptying a queue", 1)
        self("DELETE FROM mq.queue WHERE type <> N''")
        self.send()
        self.first = self("SELECT MIN(id) AS id FROM mq.message")[0]["id"]

    def send(self, count: int = 20) -> None:
        self(f"EXEC mq.send_batch N'email', N'{chr(10).join(f'body {n}' for n in range(1, count + 1))}'")

    def states(self) -> dict[str | None, int]:
        rows = self("SELECT state, COUNT(*) AS n FROM mq.message_state GROUP BY state")
        return {row["state"]: row["n"] for row in rows}

    def close(self) -> None:
        self.server.drop_database(self.url)


@pytest.fixture(scope="module")
def installed(server: ExternalSQLServer) -> Iterator[Shop]:
    """A database with the queue."""
    shop = Shop(server)
    install.apply(open_database(shop.url))
    yield shop
    shop.close()


@pytest.fixture
def shop(installed: Shop) -> Shop:
    """A database with the queue and 20 messages of type email."""
    installed.fill()
    return installed


def test_every_block_of_the_guide_runs_in_its_order(server: ExternalSQLServer) -> None:
    shop = Shop(server)
    try:
        install.apply(open_database(shop.url))
        shop.send(100)
        shop("EXEC mq.set_queue N'invoice', @ordered = 1")
        for _ in range(3):
            shop("EXEC mq.send_message N'invoice', N'x', @group_key = N'g'")
        shop("EXEC mq.claim_batch N'invoice', 2, N'worker-1'")
        for text in blocks():
            if "IDENTITY_INSERT" in text and not shop.babelfish:
                continue  # it wants a second database of its own
            shop.do(text.replace(" shop ", f" {shop.url.rpartition('/')[2]} "))
            # Babelfish asks for a right on every procedure that a procedure calls.
            if text in blocks(OWNERSHIP) and not shop.babelfish:
                may_do_what_their_roles_may(shop)
        assert shop("SELECT name FROM sys.objects WHERE SCHEMA_NAME(schema_id) = N'mq'") == []
        assert shop("SELECT name FROM sys.database_principals WHERE name LIKE N'mq[_]%'") == []
    finally:
        shop.close()
        for name in ("web", "on_duty"):
            server.query(server.url, f"IF SUSER_ID(N'{name}') IS NOT NULL DROP LOGIN {name}")


def may_do_what_their_roles_may(shop: Shop) -> None:
    account = re.compile("//[^@]*@")
    urls = {name: account.sub(f"//{name}:change%20Me%201@", shop.url) for name in ("web", "on_duty")}
    if not shop("SELECT 1 AS one FROM sys.database_principals WHERE name = N'on_duty'"):
        return
    web, on_duty = (open_database(urls[name]).connect(name) for name in ("web", "on_duty"))
    try:
        web.call("send", "web", "x")
        assert len(web.call("claim_batch", "web", 30)) == 1
        with pytest.raises(Forbidden):
            web.call("pause", "email")
        assert on_duty.call("resume", "email") == [{"count": 0}]
        with pytest.raises(Forbidden):
            on_duty.call("send", "email", "x")
    finally:
        web.close()
        on_duty.close()


def test_a_stuck_consumer_loses_its_messages(shop: Shop) -> None:
    for reader in ("worker-1", "worker-2", "worker-1"):
        shop(f"EXEC mq.claim_batch N'email', 4, N'{reader}'")
    shop.follow("A stuck consumer", 0)
    assert {row["attempts"] for row in shop("EXEC mq.peek N'email', N'N', 100")} == {0}
    assert {row["reader"] for row in shop("EXEC mq.peek N'email', N'A', 100")} == {"worker-2"}
    shop("EXEC mq.claim_batch N'email', 5, N'worker-1'")
    shop.follow("A stuck consumer", 1)
    assert shop.states() == {"N": 16, "A": 4}
    assert sum(row["attempts"] == 1 for row in shop("EXEC mq.peek N'email', N'N', 100")) == 5


@pytest.mark.parametrize("held", [True, False])
def test_a_poisoned_message_is_dead_at_once(shop: Shop, held: bool) -> None:
    if held:
        shop("EXEC mq.claim_batch N'email', 20, N'worker-1'")
    assert shop.follow("A poisoned message") == [{"state": "E"}]
    assert shop.states() == {"E": 1, "A" if held else "N": 19}
    [dead] = shop("EXEC mq.peek N'email', N'E'")
    assert (dead["id"], dead["error"]) == (shop.first + 16, "kills the worker, see ticket 4711")


def test_dead_letters_are_redriven_one_some_and_all_and_purged(shop: Shop) -> None:
    def die() -> None:
        [row, *rows] = shop("EXEC mq.claim_batch N'email', 20")
        bad = "\n".join(f"{r['id']},-1,{'it timed out' if r['body'] > 'body 4' else 'refused'}" for r in (row, *rows))
        shop(f"EXEC mq.finish_batch '{row['batch_key']}', N'{bad}'")
        assert shop.states() == {"E": 20}

    die()
    seen = []
    for number in range(3):
        shop.follow("Dead letters", number)
        seen.append(shop.states()["N"])
    assert seen == [1, 6, 20]
    die()
    shop(f"UPDATE mq.message SET body = N'to ada@exmaple.org' WHERE id = {shop.first + 16}")
    shop.follow("Dead letters", 3)
    assert [row["body"] for row in shop("EXEC mq.peek N'email', N'N'")] == ["to ada@example.org"]
    shop.follow("Dead letters", 4)
    assert shop.states() == {"N": 1}


@pytest.mark.parametrize("ordered", [0, 1])
def test_messages_in_no_state_are_new_again_and_ids_without_message_are_gone(shop: Shop, ordered: int) -> None:
    shop("EXEC mq.purge N'email', N'N'")
    shop(f"EXEC mq.set_queue N'email', @ordered = {ordered}")
    for n in range(1, 21):
        shop(f"EXEC mq.send_message N'email', N'x', @group_key = N'g{n}'")
    first = shop("SELECT MIN(id) AS id FROM mq.message")[0]["id"]
    shop(f"DELETE FROM mq.ready WHERE id >= {first + 10}")
    shop(f"DELETE FROM mq.grouped WHERE id >= {first + 10}")
    shop(f"DELETE FROM mq.message WHERE id < {first + 2}")
    assert shop.states() == {"N": 8, None: 10}
    shop.follow("A message in no state")
    assert shop.states() == {"N": 18}
    assert shop(f"SELECT COUNT(*) AS n FROM mq.ready WHERE id < {first + 2}") == [{"n": 0}]
    assert len(shop("EXEC mq.claim_batch N'email', 100")) == 18


def test_a_group_that_was_damaged_by_hand_goes_on_and_healthy_groups_stay(shop: Shop) -> None:
    shop("EXEC mq.set_queue N'invoice', @ordered = 1")
    groups = ("lost head", "lost ticket", "at work", "waiting")
    for group in groups * 2:
        shop(f"EXEC mq.send_message N'invoice', N'{group}', @group_key = N'{group}'")
    claimed = {row["body"]: row for row in shop("EXEC mq.claim_batch N'invoice', 4")}
    assert set(claimed) == set(groups)
    key = claimed["at work"]["batch_key"]
    shop(f"EXEC mq.fail {claimed['waiting']['id']}, '{key}', N'later', 600")
    shop(f"EXEC mq.complete {claimed['lost ticket']['id']}, '{key}'")
    shop("DELETE FROM mq.ready WHERE type = N'invoice'")
    shop(f"DELETE FROM mq.claimed WHERE id = {claimed['lost head']['id']}")
    shop(f"DELETE FROM mq.message WHERE id = {claimed['lost head']['id']}")
    assert shop("EXEC mq.claim_batch N'invoice', 10") == []
    shop.follow("A group of an ordered queue that does not go on")
    bodies = [row["body"] for row in shop("EXEC mq.claim_batch N'invoice', 10")]
    assert sorted(bodies) == ["lost head", "lost ticket"]


def test_a_queue_is_emptied_and_goes_on(shop: Shop) -> None:
    shop("EXEC mq.claim_batch N'email', 5")
    shop("DECLARE @at datetime2(7) = DATEADD(DAY, 1, SYSUTCDATETIME()); EXEC mq.send_message N'email', N'later', @at")
    shop.follow("Emptying a queue", 0)
    assert shop.states() == {"A": 5}
    assert shop("EXEC mq.queue_stats N'email'")[0]["paused"] == 0
    shop.follow("Emptying a queue", 1)
    assert shop.states() == {}
    [sent] = shop("EXEC mq.send N'email', N'new'")
    assert sent["id"] > shop.first + 20
    assert len(shop("EXEC mq.claim_batch N'email', 1")) == 1


def test_everything_is_paused_after_a_restore_and_goes_on(shop: Shop) -> None:
    shop("EXEC mq.set_queue N'invoice', @lease_seconds = 7")
    shop("EXEC mq.send N'invoice', N'x'")
    shop.follow("Backup, restore, moving", 0)
    assert {row["paused"] for row in shop("EXEC mq.queue_stats")} == {1}
    assert shop("EXEC mq.claim_batch N'email', 1") == []
    shop.follow("Backup, restore, moving", 1)
    assert len(shop("EXEC mq.claim_batch N'email', 1")) == 1


def test_both_guides_have_the_same_headings() -> None:
    """What has no counterpart on the other side is named here."""
    other = (DOCS / "dba-guide.md").read_text("utf-8")
    ours, theirs = (set(re.findall(r"^##+ (.*)$", page, re.M)) for page in (GUIDE, other))
    assert ours ^ theirs == {"Ghosts and disk space", "Vacuum"}
