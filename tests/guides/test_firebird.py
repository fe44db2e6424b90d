"""What docs/operate says of Firebird alone; the repairs of all engines are in test_repairs.py."""

import json
import re
import time
from pathlib import Path

import pytest
from rowqueue.databases import NotAllowed, open_database
from rowqueue.install import apply as install
from servers.firebird import LocalFirebird, driver
from shops import OWNERSHIP, FirebirdShop
from support.outcomes import dead_letter

pytestmark = pytest.mark.product("firebird")


@pytest.fixture
def empty_shop(private_server: LocalFirebird, tmp_path: Path) -> FirebirdShop:
    """A database with nothing in it."""
    return FirebirdShop(private_server, private_server.create_database(), tmp_path)


@pytest.fixture
def shop(private_server: LocalFirebird, tmp_path: Path, template: str) -> FirebirdShop:
    """A database with the queue and 20 messages of type email, numbered from 1."""
    shop = FirebirdShop(private_server, private_server.copy_database(template), tmp_path)
    shop.fill()
    return shop


def adopt_orders(shop: FirebirdShop) -> None:
    """The table that the guide calls so: an order is dead, worker-1 has another, and one is ready."""
    shop("CREATE TABLE orders (id INTEGER NOT NULL PRIMARY KEY, status CHAR(1) DEFAULT 'N' NOT NULL)")
    shop("CREATE INDEX orders_claim ON orders (status, id)")
    for number in (1, 2, 3):
        shop(f"INSERT INTO orders (id) VALUES ({number})")
    shop.call(
        "adopt_table",
        "orders",
        "orders",
        json.dumps(
            {
                "key_columns": "id",
                "status_column": "status",
                "ready_value": "N",
                "active_value": "A",
                "done_value": "D",
                "error_value": "E",
            }
        ),
    )
    [row] = shop.call("claim_rows", "orders")
    shop.call("finish_rows", row["batch_key"], dead_letter(row["id"], "no such address"))
    shop.call("claim_rows", "orders", 1, "worker-1")


def orders(shop: FirebirdShop) -> str:
    return "".join(row["status"] for row in shop("SELECT status FROM orders ORDER BY id"))


@pytest.mark.level(3)
def test_every_block_of_the_guide_runs_in_its_order(empty_shop: FirebirdShop) -> None:
    shop = empty_shop
    filled = False
    for kind, text in shop.blocks():
        if not filled and kind == "sql" and "mq_" in text:
            continue  # it stands before the installation, which the guide describes next
        shop.do(kind, text)
        if "runner sql" in text:
            filled = True
            assert install.pending(open_database(shop.url)) == []
            shop.fill_all_areas()
            adopt_orders(shop)
    assert filled
    shop("DROP TABLE orders")
    assert shop("SELECT rdb$relation_name FROM rdb$relations WHERE rdb$system_flag = 0") == []
    assert shop("SELECT rdb$role_name FROM rdb$roles WHERE rdb$system_flag = 0") == []
    assert shop("SELECT rdb$procedure_name FROM rdb$procedures WHERE rdb$system_flag = 0") == []
    assert open_database(shop.url).installed() is None
    install.apply(open_database(shop.url))


@pytest.mark.level(3)
def test_the_installer_of_the_guide_installs_with_the_rights_that_it_names(empty_shop: FirebirdShop) -> None:
    shop = empty_shop
    shop.follow(OWNERSHIP, 0)
    installer = open_database(shop.login("queue_owner"))
    install.apply(installer)
    assert install.pending(installer) == []
    shop("REVOKE CREATE PROCEDURE FROM USER queue_owner")
    shop("DROP PROCEDURE mq_cancel")
    with pytest.raises(NotAllowed, match=r"No permission for CREATE PROCEDURE|no privilege for this"):
        install.apply(installer)
    shop("GRANT CREATE PROCEDURE TO USER queue_owner")
    run = install.apply(installer).procedures
    assert run[0] == "cancel" and {name.partition("/")[2] for name in run[1:]} == {"grants"}


def test_a_user_who_may_not_install_gets_an_error_at_once(empty_shop: FirebirdShop) -> None:
    empty_shop("CREATE USER nobody_much PASSWORD 'change me'")
    began = time.monotonic()
    with pytest.raises(NotAllowed, match=r"No permission for CREATE TABLE|no privilege for this"):
        install.apply(open_database(empty_shop.login("nobody_much")))
    assert time.monotonic() - began < 30


def test_users_of_the_guide_may_do_what_their_roles_may(shop: FirebirdShop) -> None:
    assert [text.startswith(shop.LATER) for _, text in shop.blocks(OWNERSHIP)[2:]] == [False, True, False, True]
    shop.follow(OWNERSHIP, 2, 4)
    web = open_database(shop.login("web", "mq_producer")).connect("web")
    on_duty = open_database(shop.login("on_duty", "mq_operator")).connect("on_duty")
    web.call("send", "email", "x")
    assert len(web.call("claim_batch", "email", 30)) == 21
    for session, procedure in ((web, "pause"), (on_duty, "send_batch")):
        with pytest.raises(NotAllowed):
            session.call(procedure, "email", *(["x"] if procedure == "send_batch" else []))
    assert on_duty.call("pause", "email")[0]["affected"] == 1
    checks = {row["name"]: row for row in on_duty.call("queue_health")}
    assert (
        "cannot be seen" in checks["oldest_transaction"]["detail"] or checks["oldest_transaction"]["measured"] is None
    )
    seen = shop.server.query(shop.login("on_duty", "mq_operator"), "SELECT COUNT(*) AS n FROM mq_message_state")
    assert seen == [{"n": 21}]
    web.close()
    on_duty.close()
    if not shop.server.version.startswith("3."):
        shop.follow(OWNERSHIP, 3, 5)
        assert shop.server.query(shop.login("web"), "SELECT id FROM mq_send('email', 'y')") == [{"id": 22}]
        health = "SELECT measured AS n FROM mq_queue_health WHERE name = 'oldest_transaction'"
        assert shop.server.query(shop.login("on_duty", "mq_operator"), health)[0]["n"] is not None


def test_an_old_transaction_is_found_and_its_connection_ended(shop: FirebirdShop) -> None:
    with shop.server.client(shop.url) as forgotten:
        forgotten.connection.main_transaction.execute_immediate("UPDATE mq_queue SET paused = 1 WHERE type = ''")
        found = re.search(r"^ +(\d+) +\d+ ", shop.follow("An old open transaction", 0), re.M)
        assert found
        shop.do("sql", shop.blocks("An old open transaction")[1][1].replace("4711", found[1]))
        deadline = time.monotonic() + 10
        while shop("SELECT COUNT(*) AS n FROM mon$transactions WHERE mon$transaction_id <> CURRENT_TRANSACTION")[0][
            "n"
        ]:
            assert time.monotonic() < deadline
        with pytest.raises(Exception, match=r"(?i)shutdown|connection|handle"):
            forgotten.execute("SELECT 1 FROM rdb$database")
    assert shop("SELECT paused FROM mq_queue WHERE type = ''") == [{"paused": 0}]


def test_a_forgotten_snapshot_is_shown_where_it_keeps_deleted_rows(shop: FirebirdShop) -> None:
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
        assert shop.call("purge", "email", "N")[0]["affected"] == 20
        shop("SELECT COUNT(*) FROM mq_message")
        keeps = shop(removed)[0]["n"] - before < 20
        assert keeps == check["detail"].startswith("attachment ")
        assert keeps != shop.server.version.startswith("3.")


def test_an_uncommitted_claim_stops_no_consumer_and_ends_with_its_session(
    shop: FirebirdShop,
) -> None:
    with shop.server.client(shop.url) as forgotten:
        forgotten.connection.begin(driver().tpb(driver().Isolation.READ_COMMITTED_RECORD_VERSION, lock_timeout=0))
        cursor = forgotten.connection.cursor()
        assert len(cursor.execute("SELECT id FROM mq_claim_batch('email', 5)").fetchall()) == 5
        shop.call("send", "email", "body")
        assert len(shop.call("claim_batch", "email", 100)) == 16
    assert len(shop.call("claim_batch", "email", 100)) == 5


@pytest.mark.level(3)
def test_a_restored_database_is_as_installed_and_returns_its_messages(shop: FirebirdShop) -> None:
    shop.call("set_queue", "invoice", '{"lease_seconds": 7}')
    shop.call("send", "invoice", "x")
    shop.call("claim_batch", "email", 3, "worker-1", 1)
    shop.follow("Watched tables in production", 0)
    shop("INSERT INTO stock (id) VALUES (1)")
    shop.follow("Backup, restore, moving", 0)
    shop.url = shop.restored
    shop.hand_to(shop.url)
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


def test_a_table_is_watched_and_no_longer(shop: FirebirdShop) -> None:
    said = shop.follow("Watched tables in production", 0)
    assert re.search(r"^STOCK +U +reorder", said, re.M), said
    shop("INSERT INTO stock (id) VALUES (1)")
    shop("UPDATE stock SET quantity = 1")
    assert "SYSDBA" in shop.follow("Watched tables in production", 1)
    assert "ALTER TRIGGER MQ_WATCH_1 INACTIVE AS BEGIN END" in shop.follow("Watched tables in production", 2)
    shop("UPDATE stock SET quantity = 2")
    assert len(shop.call("claim_batch", "reorder", 20)) == 1
    assert shop.call("watch_table", "stock") == []
    assert shop.call("subscribe", "stock", "U", "reorder") == [{"affected": 1}]
    shop("UPDATE stock SET quantity = 3")
    assert len(shop.call("claim_batch", "reorder", 20)) == 1


def test_dead_orders_can_be_retried_and_a_worker_loses_an_order_that_it_holds(shop: FirebirdShop) -> None:
    adopt_orders(shop)
    assert orders(shop) == "EAN"
    said = shop.follow("Polling tables in production", 0)
    assert "no such address" in said and '{"ID":1}' in said
    assert orders(shop) == "NAN"
    assert "worker-1" in shop.follow("Polling tables in production", 1)
    shop.follow("Polling tables in production", 2)
    assert orders(shop) == "NNN"
    assert [row["attempt"] for row in shop.call("claim_rows", "orders", 10)] == [1, 1, 1]
