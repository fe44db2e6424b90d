"""The blocks of docs/dba-guide-firebird.md: isql runs them as they stand there, and repairs repair."""

import re
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest
from rowqueue import install
from rowqueue.databases import Forbidden, open_database
from servers.firebird import LocalFirebird, driver, dsn
from servers.shell import Shell

pytestmark = pytest.mark.product("firebird")

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDE = (DOCS / "dba-guide-firebird.md").read_text("utf-8")
OWNERSHIP = "Who owns it, and who may call"
REMOVAL = "Upgrading and removing"
LATER = "-- 4.0 and later"


def blocks(heading: str | None = None) -> list[tuple[str, str]]:
    """The blocks of the guide, or of one of its sections: (sql or sh, text)."""
    page = GUIDE
    if heading is not None:
        found = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#|\Z)", GUIDE, re.M | re.S)
        assert found, f"no heading {heading!r}"
        page = found[1]
    return re.findall(r"^```(sql|sh)\n(.*?)^```$", page, re.M | re.S)


class Shop:
    """A database that the guide calls `shop`, in the hands of a DBA, who has a shell."""

    def __init__(self, server: LocalFirebird, folder: Path, url: str) -> None:
        self.server = server
        self.url = url
        self.restored = re.sub(r"\.fdb$", "_restored.fdb", self.url)
        self.shell = Shell(server, folder)

    def __call__(self, text: str) -> list[dict[str, Any]]:
        return self.server.query(self.url, text)

    def call(self, procedure: str, *arguments: Any) -> list[dict[str, Any]]:
        """A call of the runner's."""
        session = open_database(self.url).connect("test")
        try:
            return session.call(procedure, *arguments)
        finally:
            session.close()

    def login(self, user: str, role: str = "") -> str:
        """The URL under which a user of the guide connects."""
        parts = urlsplit(self.url)
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit(parts._replace(netloc=f"{user}:change%20me@{host}", query=f"role={role}" if role else ""))

    def do(self, kind: str, text: str) -> str:
        """What a block of the guide says, in a session as the guide wants it."""
        text = text.replace("localhost:shop2", dsn(self.restored)).replace("localhost:shop", dsn(self.url))
        if kind == "sh":
            return self.shell(text)
        if text.startswith(LATER) and self.server.version.startswith("3."):
            return ""
        beginning = blocks("Transactions in isql")[0][1]
        said = self.shell(f"isql -quiet -bail -charset UTF8 {dsn(self.url)} 2>&1", f"{beginning}COMMIT;\n{text}")
        return said.replace("Rolling back work.\n", "")

    def follow(self, heading: str, *numbers: int) -> str:
        """Do what a section of the guide says, or some of its blocks."""
        found = blocks(heading)
        chosen = [found[number] for number in numbers] if numbers else found
        return "".join(self.do(kind, text) for kind, text in chosen)

    def send(self, count: int = 20) -> None:
        self.call("send_batch", "email", "\n".join(f"body {n}" for n in range(1, count + 1)))

    def adopt_orders(self) -> None:
        """The table that the guide calls so: an order is dead, worker-1 has another, and one is ready."""
        self("CREATE TABLE orders (id INTEGER NOT NULL PRIMARY KEY, status CHAR(1) DEFAULT 'N' NOT NULL)")
        self("CREATE INDEX orders_claim ON orders (status, id)")
        for number in (1, 2, 3):
            self(f"INSERT INTO orders (id) VALUES ({number})")
        self.call("adopt_table", "orders", "orders", "id", None, "status", "N", "A", "D", "E")
        [row] = self.call("claim_rows", "orders")
        self.call("finish_rows", row["batch_key"], f"{row['id']},-1,no such address")
        self.call("claim_rows", "orders", 1, "worker-1")

    def orders(self) -> str:
        return "".join(row["status"] for row in self("SELECT status FROM orders ORDER BY id"))

    def states(self) -> dict[str | None, int]:
        rows = self("SELECT TRIM(state) AS state, COUNT(*) AS n FROM mq_message_state GROUP BY 1")
        return {row["state"]: row["n"] for row in rows}


@pytest.fixture
def empty_shop(private_server: LocalFirebird, tmp_path: Path) -> Shop:
    """A database with nothing in it."""
    return Shop(private_server, tmp_path, private_server.create_database())


@pytest.fixture
def shop(private_server: LocalFirebird, tmp_path: Path, template: str) -> Shop:
    """A database with the queue and 20 messages of type email, numbered from 1."""
    shop = Shop(private_server, tmp_path, private_server.copy_database(template))
    shop.send()
    return shop


def test_every_block_of_the_guide_runs_in_its_order(empty_shop: Shop) -> None:
    shop = empty_shop
    filled = False
    for kind, text in blocks():
        if not filled and kind == "sql" and "mq_" in text:
            continue  # it stands before the installation, which the guide tells next
        shop.do(kind, text)
        if "runner sql" in text:
            filled = True
            assert install.pending(open_database(shop.url)) == []
            shop.send(100)
            shop.call("set_queue", "invoice", None, None, None, None, None, 1)
            for _ in range(3):
                shop.call("send_message", "invoice", "x", None, None, "g")
            shop.call("claim_batch", "invoice", 2, "worker-1")
            shop.adopt_orders()
    assert filled
    shop("DROP TABLE orders")
    assert shop("SELECT rdb$relation_name FROM rdb$relations WHERE rdb$system_flag = 0") == []
    assert shop("SELECT rdb$role_name FROM rdb$roles WHERE rdb$system_flag = 0") == []
    assert shop("SELECT rdb$procedure_name FROM rdb$procedures WHERE rdb$system_flag = 0") == []
    assert open_database(shop.url).installed() is None
    install.apply(open_database(shop.url))


@pytest.mark.one_version
def test_the_installer_of_the_guide_installs_with_the_rights_that_it_names(empty_shop: Shop) -> None:
    shop = empty_shop
    shop.follow(OWNERSHIP, 0)
    installer = open_database(shop.login("queue_owner"))
    install.apply(installer)
    assert install.pending(installer) == []
    shop("REVOKE CREATE PROCEDURE FROM USER queue_owner")
    shop("DROP PROCEDURE mq_cancel")
    with pytest.raises(Forbidden, match=r"No permission for CREATE PROCEDURE|no privilege for this"):
        install.apply(installer)
    shop("GRANT CREATE PROCEDURE TO USER queue_owner")
    assert install.apply(installer).procedures == ["cancel", "grants"]


@pytest.mark.one_version
def test_who_may_not_install_is_told_at_once(empty_shop: Shop) -> None:
    empty_shop("CREATE USER nobody_much PASSWORD 'change me'")
    began = time.monotonic()
    with pytest.raises(Forbidden, match=r"No permission for CREATE TABLE|no privilege for this"):
        install.apply(open_database(empty_shop.login("nobody_much")))
    assert time.monotonic() - began < 30


def test_users_of_the_guide_may_do_what_their_roles_may(shop: Shop) -> None:
    assert [text.startswith(LATER) for _, text in blocks(OWNERSHIP)[2:]] == [False, True, False, False, True]
    shop.follow(OWNERSHIP, 2, 4, 5)
    web = open_database(shop.login("web", "mq_producer")).connect("web")
    on_duty = open_database(shop.login("on_duty", "mq_operator")).connect("on_duty")
    web.call("send", "email", "x")
    assert len(web.call("claim_batch", "email", 30)) == 21
    for session, procedure in ((web, "pause"), (on_duty, "send_batch")):
        with pytest.raises(Forbidden):
            session.call(procedure, "email", *(["x"] if procedure == "send_batch" else []))
    assert on_duty.call("pause", "email") == [{"count": 1}]
    checks = {row["name"]: row for row in on_duty.call("queue_health")}
    assert "cannot be seen" in checks["oldest_transaction"]["detail"] or checks["oldest_transaction"]["value"] is None
    seen = shop.server.query(shop.login("on_duty"), "SELECT COUNT(*) AS n FROM mq_message_state")
    assert seen == [{"n": 21}]
    web.close()
    on_duty.close()
    if not shop.server.version.startswith("3."):
        shop.follow(OWNERSHIP, 3, 6)
        assert shop.server.query(shop.login("web"), "SELECT id FROM mq_send('email', 'y')") == [{"id": 22}]
        health = "SELECT \"VALUE\" AS n FROM mq_queue_health WHERE name = 'oldest_transaction'"
        assert shop.server.query(shop.login("on_duty", "mq_operator"), health)[0]["n"] is not None


@pytest.mark.one_version
def test_an_old_transaction_is_found_and_its_connection_ended(shop: Shop) -> None:
    with shop.server.client(shop.url) as forgotten:
        forgotten.connection.main_transaction.execute_immediate("UPDATE mq_queue SET paused = 1 WHERE type = ''")
        found = re.search(r"^ +(\d+) +\d+ ", shop.follow("An old open transaction", 0), re.M)
        assert found
        shop.do("sql", blocks("An old open transaction")[1][1].replace("4711", found[1]))
        deadline = time.monotonic() + 10
        while shop("SELECT COUNT(*) AS n FROM mon$transactions WHERE mon$transaction_id <> CURRENT_TRANSACTION")[0][
            "n"
        ]:
            assert time.monotonic() < deadline
        with pytest.raises(Exception, match=r"(?i)shutdown|connection|handle"):
            forgotten.execute("SELECT 1 FROM rdb$database")
    assert shop("SELECT paused FROM mq_queue WHERE type = ''") == [{"paused": 0}]


def test_a_forgotten_look_is_shown_where_it_keeps_deleted_rows(shop: Shop) -> None:
    """On 3.0 a transaction that only reads what is committed keeps none: the server counts what it removes."""
    removed = """
        SELECT SUM(r.mon$record_purges + r.mon$record_expunges) AS n
        FROM mon$database AS d JOIN mon$record_stats AS r ON r.mon$stat_id = d.mon$stat_id"""
    with shop.server.client(shop.url) as forgotten:
        reads = driver().TraAccessMode.READ
        forgotten.connection.begin(driver().tpb(driver().Isolation.READ_COMMITTED_RECORD_VERSION, access_mode=reads))
        forgotten.connection.cursor().execute("SELECT COUNT(*) FROM mq_message").fetchall()
        [check] = [row for row in shop.call("queue_health") if row["name"] == "oldest_transaction"]
        before = shop(removed)[0]["n"]
        assert shop.call("purge", "email", "N") == [{"count": 20}]
        shop("SELECT COUNT(*) FROM mq_message")
        keeps = shop(removed)[0]["n"] - before < 20
        assert keeps == check["detail"].startswith("attachment ")
        assert keeps != shop.server.version.startswith("3.")


@pytest.mark.one_version
def test_a_claim_that_nobody_commits_stops_no_consumer_and_is_ready_again_when_the_session_ends(shop: Shop) -> None:
    with shop.server.client(shop.url) as forgotten:
        forgotten.connection.begin(driver().tpb(driver().Isolation.READ_COMMITTED_RECORD_VERSION, lock_timeout=0))
        cursor = forgotten.connection.cursor()
        assert len(cursor.execute("SELECT id FROM mq_claim_batch('email', 5)").fetchall()) == 5
        shop.send(1)
        assert len(shop.call("claim_batch", "email", 100)) == 16
    assert len(shop.call("claim_batch", "email", 100)) == 5


@pytest.mark.one_version
def test_a_stuck_consumer_loses_its_messages(shop: Shop) -> None:
    for reader in ("worker-1", "worker-2", "worker-1"):
        shop.call("claim_batch", "email", 4, reader)
    shop.follow("A stuck consumer", 0)
    assert {row["attempts"] for row in shop.call("peek", "email", "N", 100)} == {0}
    assert {row["reader"] for row in shop.call("peek", "email", "A", 100)} == {"worker-2"}
    shop.call("claim_batch", "email", 5, "worker-1")
    shop.follow("A stuck consumer", 1)
    assert shop.states() == {"N": 16, "A": 4}
    assert sum(row["attempts"] == 1 for row in shop.call("peek", "email", "N", 100)) == 5


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.one_version
def test_a_poisoned_message_is_dead_at_once(shop: Shop, held: bool) -> None:
    if held:
        shop.call("claim_batch", "email", 20, "worker-1")
    assert re.search(r"^E\s*$", shop.follow("A poisoned message"), re.M)
    assert shop.states() == {"E": 1, "A" if held else "N": 19}
    [dead] = shop.call("peek", "email", "E", 10)
    assert (dead["id"], dead["error"]) == (17, "kills the worker, see ticket 4711")


def test_dead_letters_are_redriven_one_some_and_all_and_purged(shop: Shop) -> None:
    def die() -> None:
        rows = shop.call("claim_batch", "email", 20)
        failures = "\n".join(f"{row['id']},-1,{'it timed out' if row['id'] > 10 else 'refused'}" for row in rows)
        shop.call("finish_batch", rows[0]["batch_key"], failures)
        assert shop.states() == {"E": 20}

    die()
    seen = []
    for number in range(3):
        shop.follow("Dead letters", number)
        seen.append(shop.states()["N"])
    assert seen == [1, 10, 20]
    die()
    shop("UPDATE mq_message SET body = 'to ada@exmaple.org' WHERE id = 17")
    shop.follow("Dead letters", 3)
    assert [(row["id"], row["body"]) for row in shop.call("peek", "email", "N", 10)] == [(17, "to ada@example.org")]
    shop.follow("Dead letters", 4)
    assert shop.states() == {"N": 1}


@pytest.mark.parametrize("ordered", [0, 1])
@pytest.mark.one_version
def test_messages_in_no_state_are_new_again_and_ids_without_message_are_gone(shop: Shop, ordered: int) -> None:
    shop.call("purge", "email", "N")
    shop.call("set_queue", "email", None, None, None, None, None, ordered)
    for n in range(21, 41):
        shop.call("send_message", "email", "x", None, None, f"g{n}")
    first = shop("SELECT MIN(id) AS id FROM mq_message")[0]["id"]
    shop(f"DELETE FROM mq_ready WHERE id >= {first + 10}")
    shop(f"DELETE FROM mq_grouped WHERE id >= {first + 10}")
    shop(f"DELETE FROM mq_message WHERE id < {first + 2}")
    assert shop.states() == {"N": 8, None: 10}
    shop.follow("A message in no state")
    assert shop.states() == {"N": 18}
    assert shop(f"SELECT COUNT(*) AS n FROM mq_ready WHERE id < {first + 2}") == [{"n": 0}]
    assert len(shop.call("claim_batch", "email", 100)) == 18


@pytest.mark.one_version
def test_a_group_that_was_damaged_by_hand_goes_on_and_healthy_groups_stay(shop: Shop) -> None:
    shop.call("set_queue", "invoice", None, None, None, None, None, 1)
    groups = ("lost head", "lost ticket", "at work", "waiting")
    for group in groups * 2:
        shop.call("send_message", "invoice", group, None, None, group)
    claimed = {row["body"]: row for row in shop.call("claim_batch", "invoice", 4)}
    assert set(claimed) == set(groups)
    key = claimed["at work"]["batch_key"]
    shop.call("fail", claimed["waiting"]["id"], key, "later", 600)
    shop.call("complete", claimed["lost ticket"]["id"], key)
    shop("DELETE FROM mq_ready WHERE type = 'invoice'")
    shop(f"DELETE FROM mq_claimed WHERE id <> {claimed['at work']['id']}")
    shop(f"DELETE FROM mq_message WHERE id = {claimed['lost head']['id']}")
    assert shop.call("claim_batch", "invoice", 10) == []
    shop.follow("A group of an ordered queue that does not go on")
    bodies = [row["body"] for row in shop.call("claim_batch", "invoice", 10)]
    assert sorted(bodies) == ["lost head", "lost ticket"]


@pytest.mark.one_version
def test_a_queue_is_emptied_and_goes_on(shop: Shop) -> None:
    shop.call("claim_batch", "email", 5)
    shop("SELECT * FROM mq_send_message('email', 'later', DATEADD(1 DAY TO mq_utc_now()))")
    shop.follow("Emptying a queue", 0)
    assert shop.states() == {"A": 5}
    assert shop.call("queue_stats", "email")[0]["paused"] == 0
    shop.follow("Emptying a queue", 1)
    assert shop.states() == {}
    assert shop.call("send", "email", "new")[0]["id"] > 21
    assert len(shop.call("claim_batch", "email")) == 1


def test_a_restored_database_is_as_installed_and_gives_its_messages_again(shop: Shop) -> None:
    shop.call("set_queue", "invoice", 7)
    shop.call("send", "invoice", "x")
    shop.call("claim_batch", "email", 3, "worker-1", 0)
    shop.follow("Watched tables", 0)
    shop("INSERT INTO stock (id) VALUES (1)")
    shop.follow("Backup, restore, moving", 0)
    shop.url = shop.restored
    assert install.pending(open_database(shop.url)) == []
    shop.follow("Backup, restore, moving", 1)
    assert {row["paused"] for row in shop.call("queue_stats")} == {1}
    assert shop.call("claim_batch", "email") == []
    shop.follow("Backup, restore, moving", 2)
    assert [row["attempt"] for row in shop.call("claim_batch", "email", 20)] == [2] * 3 + [1] * 17
    assert shop.call("send", "email", "next")[0]["id"] == 22
    shop("UPDATE stock SET quantity = 1")
    [told] = shop.call("claim_batch", "reorder", 20)
    assert told["body"] == '{"table":"STOCK","action":"U","key":{"ID":1}}'


@pytest.mark.one_version
def test_a_table_is_watched_and_no_longer(shop: Shop) -> None:
    said = shop.follow("Watched tables", 0)
    assert re.search(r"^STOCK +U +reorder", said, re.M), said
    shop("INSERT INTO stock (id) VALUES (1)")
    shop("UPDATE stock SET quantity = 1")
    assert "SYSDBA" in shop.follow("Watched tables", 1)
    assert "ALTER TRIGGER MQ_WATCH_1 INACTIVE AS BEGIN END" in shop.follow("Watched tables", 2)
    shop("UPDATE stock SET quantity = 2")
    assert len(shop.call("claim_batch", "reorder", 20)) == 1
    assert shop.call("watch_table", "stock") == []
    assert shop.call("subscribe", "stock", "U", "reorder") == [{"count": 1}]
    shop("UPDATE stock SET quantity = 3")
    assert len(shop.call("claim_batch", "reorder", 20)) == 1


def test_all_guides_have_the_same_headings() -> None:
    """What has no counterpart on the other side is named here."""
    other = (DOCS / "dba-guide.md").read_text("utf-8")
    ours, theirs = (set(re.findall(r"^##+ (.*)$", page, re.M)) for page in (GUIDE, other))
    assert theirs - ours == {"Vacuum"}
    assert ours - theirs == {"Transactions in isql", "Sweep and disk space", "Time zones", "Events", "Embedded use"}


def test_dead_orders_come_again_and_a_worker_loses_the_order_it_holds(shop: Shop) -> None:
    shop.adopt_orders()
    assert shop.orders() == "EAN"
    said = shop.follow("Polling tables", 0)
    assert "no such address" in said and '{"ID":1}' in said
    assert shop.orders() == "NAN"
    assert "worker-1" in shop.follow("Polling tables", 1)
    shop.follow("Polling tables", 2)
    assert shop.orders() == "NNN"
    assert [row["attempt"] for row in shop.call("claim_rows", "orders", 10)] == [1, 1, 1]
