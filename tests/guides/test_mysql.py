"""The blocks of docs/dba-guide-mysql.md: the mysql client runs them as they stand there, and repairs repair."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rowqueue import install
from rowqueue.databases import Forbidden, open_database
from servers.mysql import LocalMySQL
from servers.shell import Shell

pytestmark = [pytest.mark.product("mysql", "mariadb"), pytest.mark.one_engine]

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDE = (DOCS / "dba-guide-mysql.md").read_text("utf-8")
OWNERSHIP = "Who owns it, and who may call"
REMOVAL = "Upgrading and removing"


def blocks(heading: str | None = None) -> list[tuple[str, str]]:
    """The blocks of the guide, or of one of its sections: (sql or sh, text)."""
    page = GUIDE
    if heading is not None:
        found = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#|\Z)", GUIDE, re.M | re.S)
        assert found, f"no heading {heading!r}"
        page = found[1]
    return re.findall(r"^```(sql|sh)\n(.*?)^```$", page, re.M | re.S)


class Shop:
    """A server with the database `shop` in the hands of a DBA, who has a shell."""

    def __init__(self, server: LocalMySQL, folder: Path) -> None:
        server.query(server.url, "CREATE DATABASE shop")
        self.server = server
        self.url = server.database_url("shop")
        self.shell = Shell(server, folder)

    def __call__(self, text: str) -> list[dict[str, Any]]:
        with self.server.client(self.url) as connection:
            cursor = connection.execute(text)
            rows = list(cursor.fetchall()) if cursor.description else []
            cursor.close()  # waits for the end of a procedure, which commits after its rows
            return rows

    def do(self, kind: str, text: str) -> str:
        """What a block of the guide says, where it says START TRANSACTION in a session as the guide wants it."""
        if kind == "sh":
            return self.shell(text.replace("mysqldump ", "mysqldump --set-gtid-purged=OFF "))  # as the guide tells
        isolation = blocks("How to repair by hand")[0][1] if "START TRANSACTION" in text else ""
        return self.shell("mysql shop", isolation + text)

    def follow(self, heading: str, *numbers: int) -> str:
        """Do what a section of the guide says, or some of its blocks."""
        found = blocks(heading)
        chosen = [found[number] for number in numbers] if numbers else found
        return "".join(self.do(kind, text) for kind, text in chosen)

    def send(self, count: int = 20) -> None:
        self(f"CALL mq_send_batch('email', '{chr(10).join(f'body {n}' for n in range(1, count + 1))}')")

    def states(self) -> dict[str | None, int]:
        rows = self("SELECT state, COUNT(*) AS n FROM mq_message_state GROUP BY state")
        return {row["state"]: row["n"] for row in rows}


@pytest.fixture
def empty_shop(private_server: LocalMySQL, tmp_path: Path) -> Shop:
    """A database with nothing in it."""
    return Shop(private_server, tmp_path)


def filled(shop: Shop) -> Shop:
    install.apply(open_database(shop.url))
    shop.send()
    return shop


@pytest.fixture
def own_shop(empty_shop: Shop) -> Shop:
    """A database with the queue and 20 messages of type email, numbered from 1, on a server of its own."""
    return filled(empty_shop)


@pytest.fixture
def shop(module_server: LocalMySQL, tmp_path: Path) -> Iterator[Shop]:
    """The same beside the roles and the owner of others."""
    databases = module_server.query(module_server.url, "SHOW DATABASES")
    yield filled(Shop(module_server, tmp_path))
    for row in module_server.query(module_server.url, "SHOW DATABASES"):
        if row not in databases:
            [name] = row.values()
            module_server.query(module_server.url, f"DROP DATABASE {name}")


def test_every_block_of_the_guide_runs_in_its_order(empty_shop: Shop) -> None:
    shop = empty_shop
    has_dump = shop.shell("command -v mysqldump || true")
    filled = False
    for kind, text in blocks():
        if "mysqldump" in text:
            if not has_dump:
                continue
            shop.server.query(shop.url, "CREATE DATABASE shop2")
            install.apply(open_database(shop.server.database_url("shop2")))
        if not filled and shop("SHOW TABLES LIKE 'mq\\_installed'"):
            filled = True
            shop.send(100)
            shop("CALL mq_set_queue('invoice', NULL, NULL, NULL, NULL, NULL, 1, NULL)")
            for _ in range(3):
                shop("CALL mq_send_message('invoice', 'x', NULL, NULL, 'g', NULL, NULL, NULL, NULL)")
            shop("CALL mq_claim_batch('invoice', 2, 'worker-1', NULL)")
        if "mq_installed" in text and not filled:
            continue  # it stands before the installation, which the guide tells next
        if text == blocks(REMOVAL)[-1][1] and has_dump:
            shop.server.drop_database(shop.server.database_url("shop2"))
        shop.do(kind, text)
    assert filled
    assert shop("SHOW TABLES") == []
    assert shop("SELECT user FROM mysql.user WHERE user LIKE 'mq\\_%' AND user <> 'mq_sends_and_consumes'") == []


def test_the_installer_of_the_guide_installs_with_the_rights_that_it_names_and_not_with_fewer(empty_shop: Shop) -> None:
    shop = empty_shop
    shop.do(*blocks(OWNERSHIP)[0])
    tester = re.escape(shop.url.partition("@")[0])
    installer = open_database(re.sub(tester, "mysql://queue_installer:change%20me", shop.url))
    install.apply(installer)
    assert install.pending(installer) == []
    shop("REVOKE CREATE USER ON *.* FROM queue_installer@'%'")
    shop("DROP PROCEDURE mq_cancel")
    with pytest.raises(Forbidden, match="CREATE USER"):
        install.apply(installer)
    shop("GRANT CREATE USER ON *.* TO queue_installer@'%'")
    assert install.apply(installer).procedures == ["cancel", "grants"]


def test_accounts_of_the_guide_may_do_what_their_roles_may(own_shop: Shop) -> None:
    shop = own_shop
    for kind, text in blocks(OWNERSHIP)[-2:]:
        shop.do(kind, text)
    tester = re.escape(shop.url.partition("@")[0])
    web = open_database(re.sub(tester, "mysql://web:change%20me", shop.url)).connect("web")
    on_duty = open_database(re.sub(tester, "mysql://on_duty:change%20me", shop.url)).connect("on_duty")
    web.call("send", "email", "x")
    assert len(web.call("claim_batch", "email", 30)) == 21
    with pytest.raises(Forbidden):
        web.call("pause", "email")
    assert on_duty.call("pause", "email") == [{"count": 1}]
    with pytest.raises(Forbidden):
        on_duty.call("send", "email", "x")
    with on_duty.transaction() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM mq_message_state")
        assert cursor.fetchone() == (21,)
    web.close()
    on_duty.close()


def test_a_stuck_consumer_loses_its_messages(shop: Shop) -> None:
    for reader in ("worker-1", "worker-2", "worker-1"):
        shop(f"CALL mq_claim_batch('email', 4, '{reader}', NULL)")
    shop.follow("A stuck consumer", 0)
    assert {row["attempts"] for row in shop("CALL mq_peek('email', 'N', 100)")} == {0}
    assert {row["reader"] for row in shop("CALL mq_peek('email', 'A', 100)")} == {"worker-2"}
    shop("CALL mq_claim_batch('email', 5, 'worker-1', NULL)")
    shop.follow("A stuck consumer", 1)
    assert shop.states() == {"N": 16, "A": 4}
    assert sum(row["attempts"] == 1 for row in shop("CALL mq_peek('email', 'N', 100)")) == 5


@pytest.mark.parametrize("held", [True, False])
def test_a_poisoned_message_is_dead_at_once(shop: Shop, held: bool) -> None:
    if held:
        shop("CALL mq_claim_batch('email', 20, 'worker-1', NULL)")
    assert shop.follow("A poisoned message").split() == ["state", "E"]
    assert shop.states() == {"E": 1, "A" if held else "N": 19}
    [dead] = shop("CALL mq_peek('email', 'E', 10)")
    assert (dead["id"], dead["error"]) == (17, "kills the worker, see ticket 4711")


def test_dead_letters_are_redriven_one_some_and_all_and_purged(shop: Shop) -> None:
    def die() -> None:
        [row, *rows] = shop("CALL mq_claim_batch('email', 20, NULL, NULL)")
        failures = "\n".join(f"{r['id']},-1,{'it timed out' if r['id'] > 10 else 'refused'}" for r in (row, *rows))
        shop(f"CALL mq_finish_batch('{row['batch_key']}', '{failures}', NULL)")
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
    assert [(r["id"], r["body"]) for r in shop("CALL mq_peek('email', 'N', 10)")] == [(17, "to ada@example.org")]
    shop.follow("Dead letters", 4)
    assert shop.states() == {"N": 1}


@pytest.mark.parametrize("ordered", [0, 1])
def test_messages_in_no_state_are_new_again_and_ids_without_message_are_gone(shop: Shop, ordered: int) -> None:
    shop("CALL mq_purge('email', 'N')")
    shop(f"CALL mq_set_queue('email', NULL, NULL, NULL, NULL, NULL, {ordered}, NULL)")
    for n in range(21, 41):
        shop(f"CALL mq_send_message('email', 'x', NULL, NULL, 'g{n}', NULL, NULL, NULL, NULL)")
    first = shop("SELECT MIN(id) AS id FROM mq_message")[0]["id"]
    shop(f"DELETE FROM mq_ready WHERE id >= {first + 10}")
    shop(f"DELETE FROM mq_grouped WHERE id >= {first + 10}")
    shop(f"DELETE FROM mq_message WHERE id < {first + 2}")
    assert shop.states() == {"N": 8, None: 10}
    shop.follow("A message in no state")
    assert shop.states() == {"N": 18}
    assert shop(f"SELECT COUNT(*) AS n FROM mq_ready WHERE id < {first + 2}") == [{"n": 0}]
    assert len(shop("CALL mq_claim_batch('email', 100, NULL, NULL)")) == 18


def test_a_group_that_was_damaged_by_hand_goes_on_and_healthy_groups_stay(shop: Shop) -> None:
    shop("CALL mq_set_queue('invoice', NULL, NULL, NULL, NULL, NULL, 1, NULL)")
    groups = ("lost head", "lost ticket", "at work", "waiting")
    for group in groups * 2:
        shop(f"CALL mq_send_message('invoice', '{group}', NULL, NULL, '{group}', NULL, NULL, NULL, NULL)")
    claimed = {row["body"]: row for row in shop("CALL mq_claim_batch('invoice', 4, NULL, NULL)")}
    assert set(claimed) == set(groups)
    key = claimed["at work"]["batch_key"]
    shop(f"CALL mq_fail({claimed['waiting']['id']}, '{key}', 'later', 600)")
    shop(f"CALL mq_complete({claimed['lost ticket']['id']}, '{key}')")
    shop("DELETE FROM mq_ready WHERE type = 'invoice'")
    shop(f"UPDATE mq_batch SET items = '[[{claimed['at work']['id']},1]]' WHERE type = 'invoice'")
    shop(f"DELETE FROM mq_message WHERE id = {claimed['lost head']['id']}")
    assert shop("CALL mq_claim_batch('invoice', 10, NULL, NULL)") == []
    shop.follow("A group of an ordered queue that does not go on")
    bodies = [row["body"] for row in shop("CALL mq_claim_batch('invoice', 10, NULL, NULL)")]
    assert sorted(bodies) == ["lost head", "lost ticket"]


def test_a_queue_is_emptied_and_goes_on(shop: Shop) -> None:
    shop("CALL mq_claim_batch('email', 5, NULL, NULL)")
    shop("CALL mq_send_message('email', 'later', UTC_TIMESTAMP() + INTERVAL 1 DAY, NULL, NULL, NULL, NULL, NULL, NULL)")
    shop.follow("Emptying a queue", 0)
    assert shop.states() == {"A": 5}
    assert shop("CALL mq_queue_stats('email')")[0]["paused"] == 0
    shop.follow("Emptying a queue", 1)
    assert shop.states() == {}
    [sent] = shop("CALL mq_send('email', 'new')")
    assert sent["id"] > 21
    assert len(shop("CALL mq_claim_batch('email', 1, NULL, NULL)")) == 1


def test_everything_is_paused_after_a_restore_and_goes_on(shop: Shop) -> None:
    shop("CALL mq_set_queue('invoice', 7, NULL, NULL, NULL, NULL, NULL, NULL)")
    shop("CALL mq_send('invoice', 'x')")
    shop.follow("Backup, restore, moving", 0)
    assert {row["paused"] for row in shop("CALL mq_queue_stats(NULL)")} == {1}
    assert shop("CALL mq_claim_batch('email', 1, NULL, NULL)") == []
    shop.follow("Backup, restore, moving", 1)
    assert len(shop("CALL mq_claim_batch('email', 1, NULL, NULL)")) == 1


def test_the_queue_moves_to_another_database_with_all_its_states(shop: Shop) -> None:
    if not shop.shell("command -v mysqldump || true"):
        pytest.skip("mariadb-dump is not part of the programs that the tests fetch")
    [row, *_] = shop("CALL mq_claim_batch('email', 5, NULL, NULL)")
    shop(f"CALL mq_fail(1, '{row['batch_key']}', 'no', -1)")
    shop("CALL mq_set_queue('email', NULL, NULL, NULL, NULL, 'archive', NULL, NULL)")
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


def test_both_guides_have_the_same_headings() -> None:
    """What has no counterpart on the other side is named here."""
    other = (DOCS / "dba-guide.md").read_text("utf-8")
    ours, theirs = (set(re.findall(r"^##+ (.*)$", page, re.M)) for page in (GUIDE, other))
    assert ours ^ theirs == {"Purge and disk space", "Vacuum"}
