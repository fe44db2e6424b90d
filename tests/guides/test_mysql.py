"""What docs/operate says of MySQL and MariaDB alone; the repairs of all engines are in test_repairs.py."""

from pathlib import Path

import pytest
from rowqueue.databases import NotAllowed, open_database
from rowqueue.install import apply as install
from servers.mysql import LocalMySQL
from shops import OWNERSHIP, POISONED, REMOVAL, MySQLShop

pytestmark = pytest.mark.product("mysql", "mariadb")


@pytest.fixture
def empty_shop(private_server: LocalMySQL, tmp_path: Path) -> MySQLShop:
    """A database with nothing in it."""
    private_server.query(private_server.url, "CREATE DATABASE shop")
    return MySQLShop(private_server, private_server.database_url("shop"), tmp_path)


@pytest.fixture
def shop(empty_shop: MySQLShop) -> MySQLShop:
    """A database with the queue and 20 messages of type email, numbered from 1."""
    install.apply(open_database(empty_shop.url))
    empty_shop.fill()
    return empty_shop


def test_every_block_of_the_guide_runs_in_its_order(empty_shop: MySQLShop) -> None:
    shop = empty_shop
    has_dump = shop.shell("command -v mysqldump || true")
    filled = False
    for kind, text in shop.blocks():
        if "mysqldump" in text:
            if not has_dump:
                continue
            shop.server.query(shop.url, "CREATE DATABASE shop2")
            install.apply(open_database(shop.server.database_url("shop2")))
        if not filled and shop("SHOW TABLES LIKE 'mq\\_installed'"):
            filled = True
            shop.fill_all_areas()
        if "mq_installed" in text and not filled:
            continue  # it stands before the installation, which the guide describes next
        if text == shop.blocks(REMOVAL)[-1][1] and has_dump:
            shop.server.drop_database(shop.server.database_url("shop2"))
        if text == shop.blocks(POISONED)[0][1]:  # a consumer holds the message by now
            shop.call("claim_batch", "email", 100, "worker-2")
        shop.do(kind, text)
    assert filled
    assert shop("SHOW TABLES") == []
    assert shop("SELECT user FROM mysql.user WHERE user LIKE 'mq\\_%' AND user <> 'mq_sends_and_consumes'") == []


@pytest.mark.level(3)
def test_the_installer_of_the_guide_needs_the_rights_that_it_names(
    empty_shop: MySQLShop,
) -> None:
    shop = empty_shop
    shop.do(*shop.blocks(OWNERSHIP)[0])
    installer = open_database(shop.login("queue_installer"))
    install.apply(installer)
    assert install.pending(installer) == []
    shop("REVOKE CREATE USER ON *.* FROM queue_installer@'%'")
    shop("DROP PROCEDURE mq_cancel")
    with pytest.raises(NotAllowed, match="CREATE USER"):
        install.apply(installer)
    shop("GRANT CREATE USER ON *.* TO queue_installer@'%'")
    run = install.apply(installer).procedures
    assert run[0] == "cancel" and {name.partition("/")[2] for name in run[1:]} == {"grants"}


def test_accounts_of_the_guide_may_do_what_their_roles_may(shop: MySQLShop) -> None:
    for kind, text in shop.blocks(OWNERSHIP)[-2:]:
        shop.do(kind, text)
    web = open_database(shop.login("web")).connect("web")
    on_duty = open_database(shop.login("on_duty")).connect("on_duty")
    web.call("send", "email", "x")
    assert len(web.call("claim_batch", "email", 30)) == 21
    with pytest.raises(NotAllowed):
        web.call("pause", "email")
    assert on_duty.call("pause", "email")[0]["affected"] == 1
    with pytest.raises(NotAllowed):
        on_duty.call("send", "email", "x")
    with on_duty.transaction() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM mq_message_state")
        assert cursor.fetchone() == (21,)
    web.close()
    on_duty.close()


@pytest.mark.level(3)
def test_the_queue_moves_to_another_database_with_all_its_states(shop: MySQLShop) -> None:
    if not shop.shell("command -v mysqldump || true"):
        pytest.skip("mariadb-dump is not part of the programs that the tests fetch")
    [row, *_] = shop("CALL mq_claim_batch('email', 5, NULL, NULL)")
    shop(f"CALL mq_dead_letter(1, '{row['batch_key']}', 'no')")
    shop("CALL mq_set_option('email', 'on_complete', 'archive')")
    shop(f"CALL mq_complete(2, '{row['batch_key']}')")
    there = shop.server.database_url("shop2")
    shop("CREATE DATABASE shop2")
    install.apply(open_database(there))
    shop.follow("Backup, restore, moving", 2)
    assert install.pending(open_database(there)) == []
    rows = "SELECT id, state, body, attempts, error FROM mq_message_state ORDER BY id"
    assert shop.server.query(there, rows) == shop(rows)
    assert shop.states() == {"N": 15, "A": 3, "E": 1, "C": 1}
    [sent] = shop.server.query(there, "CALL mq_send('email', 'next')")
    assert sent["id"] > 20
