"""The SQL of docs/dba-guide.md and README.md: psql runs it as it stands there, and repairs repair."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from rowqueue import install
from rowqueue.databases import Database, open_database
from servers import LocalPostgreSQL, Server
from servers.postgresql import programs

pytestmark = [pytest.mark.product("postgresql"), pytest.mark.one_version]

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "dba-guide.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")
OWNERSHIP = "Who owns it, and who may call"
REMOVAL = "Upgrading and removing"


def blocks(page: str, heading: str | None = None) -> list[str]:
    """The SQL blocks of a page, or of one of its sections."""
    if heading is not None:
        found = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#|\Z)", page, re.M | re.S)
        assert found, f"no heading {heading!r}"
        page = found[1]
    return re.findall(r"^```sql\n(.*?)^```$", page, re.M | re.S)


def psql(url: str, *texts: str) -> str:
    """Run texts in one psql and return what it prints, unaligned. Fails on the first error."""
    command = [str(programs(18) / "psql"), "-X", "-A", "-v", "ON_ERROR_STOP=1", "-d", url]
    done = subprocess.run(command, input="\n".join(texts), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Shop:
    """A database with the queue and 20 messages of type email, in the hands of a DBA."""

    def __init__(self, server: Server, url: str) -> None:
        self._server = server
        self.url = url

    def __call__(self, text: str) -> list[dict[str, Any]]:
        return self._server.query(self.url, text)


@pytest.fixture
def shop(installed_database: Database, server: Server) -> Shop:
    shop = Shop(server, installed_database.url)
    shop("SELECT mq.send('email', 'body ' || n) FROM generate_series(1, 20) AS n")
    return shop


def follow(shop: Shop, heading: str) -> str:
    """Do what a section of the guide says."""
    return psql(shop.url, *blocks(GUIDE, heading))


def states(shop: Shop) -> dict[str | None, int]:
    rows = shop("SELECT state, count(*) FROM mq.message_state GROUP BY state")
    return {row["state"]: row["count"] for row in rows}


def test_every_statement_of_the_guide_runs_in_its_order(private_server: LocalPostgreSQL) -> None:
    url = private_server.create_database()
    owner = blocks(GUIDE, OWNERSHIP)
    psql(url, owner[0])
    install.apply(open_database(url.replace("postgres@", "queue_owner@")))
    assert private_server.query(url, "SELECT DISTINCT proowner::regrole::text AS o FROM pg_proc WHERE prosecdef") == [
        {"o": "queue_owner"}
    ]
    psql(
        url,
        "SELECT mq.send_batch('email', string_agg('{\"n\":' || n || '}', E'\\n')) FROM generate_series(1, 100) AS n;",
        "SELECT FROM mq.claim_batch('email', 30, 'worker-1');",
        "SELECT mq.fail(id, batch_key, 'timed out', -1) FROM mq.message_state WHERE id BETWEEN 11 AND 30;",
        "SELECT mq.set_queue('invoice', p_ordered => 1);",
        "SELECT mq.send_message('invoice', 'x', p_group_key => 'g') FROM generate_series(1, 3);",
        "SELECT FROM mq.claim_batch('invoice', 2, 'worker-1');",
    )
    psql(url, *(block for block in blocks(GUIDE) if block not in (owner[0], *blocks(GUIDE, REMOVAL))))
    # Roles that were given rights on this database go with it, as far as the guide does not remove them.
    psql(url, "DROP OWNED BY shop, on_duty;", *blocks(GUIDE, REMOVAL))
    assert private_server.query(url, "SELECT to_regnamespace('mq') AS it") == [{"it": None}]
    assert private_server.query(url, "SELECT rolname FROM pg_roles WHERE rolname LIKE 'mq%%'") == []


def test_the_owner_of_the_guide_can_read_other_users_sessions_and_no_more(private_server: LocalPostgreSQL) -> None:
    url = private_server.create_database()
    psql(url, blocks(GUIDE, OWNERSHIP)[0])
    owner = url.replace("postgres@", "queue_owner@")
    install.apply(open_database(owner))
    with private_server.client(url) as other:
        other.execute("BEGIN")
        other.execute("SELECT 'look at me'")
        assert "look at me" in psql(owner, "SELECT detail FROM mq.queue_health() WHERE name = 'oldest_transaction';")
    assert private_server.query(url, "SELECT rolsuper, rolcreaterole FROM pg_roles WHERE rolname = 'queue_owner'") == [
        {"rolsuper": False, "rolcreaterole": False}
    ]


def test_roles_that_come_after_the_installation_are_given_their_rights_by_the_grants_file(
    private_server: LocalPostgreSQL,
) -> None:
    url = private_server.create_database()
    psql(url, blocks(GUIDE, OWNERSHIP)[0], "DROP ROLE mq_producer, mq_consumer, mq_operator;")
    owner = url.replace("postgres@", "queue_owner@")
    assert any("mq_producer does not exist" in notice for notice in install.apply(open_database(owner)).notices)
    psql(url, "CREATE ROLE mq_producer NOLOGIN; CREATE ROLE mq_consumer NOLOGIN; CREATE ROLE mq_operator NOLOGIN;")
    psql(owner, (ROOT / "procedures" / "postgresql" / "grants.sql").read_text("utf-8"))
    psql(url, "CREATE ROLE shop LOGIN; GRANT mq_producer TO shop;")
    psql(url.replace("postgres@", "shop@"), "SELECT mq.send('email', 'x');")


def test_a_stuck_consumer_loses_its_messages(shop: Shop) -> None:
    shop("SELECT FROM mq.claim_batch('email', 5, 'worker-1')")
    shop("SELECT FROM mq.claim_batch('email', 5, 'worker-2')")
    psql(shop.url, blocks(GUIDE, "A stuck consumer")[0])
    assert shop("SELECT DISTINCT attempts FROM mq.peek('email', 'N', 100)") == [{"attempts": 0}]
    assert {row["reader"] for row in shop("SELECT reader FROM mq.peek('email', 'A', 100)")} == {"worker-2"}
    shop("SELECT FROM mq.claim_batch('email', 5, 'worker-1')")
    psql(shop.url, blocks(GUIDE, "A stuck consumer")[1])
    assert states(shop) == {"N": 15, "A": 5}
    assert shop("SELECT count(*) FROM mq.peek('email', 'N', 100) WHERE attempts = 1") == [{"count": 5}]


@pytest.mark.parametrize("held", [True, False])
def test_a_poisoned_message_is_dead_at_once(shop: Shop, held: bool) -> None:
    if held:
        shop("SELECT FROM mq.claim_batch('email', 20, 'worker-1')")
    assert "\nE\n" in follow(shop, "A poisoned message")
    assert states(shop) == {"E": 1, "A" if held else "N": 19}
    assert shop("SELECT id, error FROM mq.peek('email', 'E')") == [
        {"id": 17, "error": "kills the worker, see ticket 4711"}
    ]


def test_dead_letters_are_redriven_one_some_and_all_and_purged(shop: Shop) -> None:
    def die() -> None:
        shop("SELECT FROM mq.claim_batch('email', 20)")
        shop("SELECT mq.fail(id, batch_key, 'it timed out', -1) FROM mq.message_state WHERE state = 'A' AND id > 10")
        shop("SELECT mq.fail(id, batch_key, 'refused', -1) FROM mq.message_state WHERE state = 'A'")
        assert states(shop) == {"E": 20}

    look, *rest = blocks(GUIDE, "Dead letters")
    die()
    statements = [s for s in re.split(r"(?<=;)\n", look) if "redrive" in s]
    assert len(statements) == 3
    seen = []
    for statement in statements:
        psql(shop.url, statement)
        seen.append(states(shop)["N"])
    assert seen == [1, 10, 20]
    die()
    shop("UPDATE mq.message SET body = 'to ada@exmaple.org' WHERE id = 17")
    psql(shop.url, rest[0])
    assert shop("SELECT id, body FROM mq.peek('email', 'N')") == [{"id": 17, "body": "to ada@example.org"}]
    psql(shop.url, rest[1])
    assert states(shop) == {"N": 1}


@pytest.mark.parametrize("ordered", [0, 1])
def test_messages_in_no_state_are_new_again_and_ids_without_message_are_gone(shop: Shop, ordered: int) -> None:
    shop("SELECT mq.purge('email', 'N')")
    shop(f"SELECT mq.set_queue('email', p_ordered => {ordered})")
    shop("SELECT mq.send_message('email', 'x', p_group_key => 'g' || n) FROM generate_series(1, 20) AS n")
    shop("DELETE FROM mq.ready WHERE id > 30")
    shop("DELETE FROM mq.grouped WHERE id > 30")
    shop("DELETE FROM mq.message WHERE id < 23")
    assert states(shop) == {"N": 8, None: 10}
    follow(shop, "A message in no state")
    assert states(shop) == {"N": 18}
    assert shop("SELECT count(*) FROM mq.ready WHERE id < 23") == [{"count": 0}]
    assert len(shop("SELECT * FROM mq.claim_batch('email', 100)")) == 18


def test_a_group_that_was_damaged_by_hand_goes_on_and_healthy_groups_stay(shop: Shop) -> None:
    shop("SELECT mq.set_queue('invoice', p_ordered => 1)")
    for group in ("lost head", "lost ticket", "at work", "waiting"):
        shop(f"SELECT mq.send_message('invoice', '{group}', p_group_key => '{group}') FROM generate_series(1, 2)")
    shop("SELECT FROM mq.claim_batch('invoice', 4)")
    shop("SELECT mq.fail(id, batch_key, 'later', 600) FROM mq.message_state WHERE state = 'A' AND body = 'waiting'")
    shop("SELECT mq.complete(id, batch_key) FROM mq.message_state WHERE state = 'A' AND body = 'lost ticket'")
    shop("DELETE FROM mq.ready WHERE type = 'invoice'")
    head = shop("SELECT id, batch_key FROM mq.message_state WHERE state = 'A' AND body = 'lost head'")[0]["id"]
    shop(f"UPDATE mq.batch SET ids = array_remove(ids, {head}), attempts = attempts[2:] WHERE type = 'invoice'")
    shop(f"DELETE FROM mq.message WHERE id = {head}")
    assert shop("SELECT body FROM mq.claim_batch('invoice', 10)") == []
    found = follow(shop, "A group of an ordered queue that does not go on")
    assert re.findall(r"^invoice\|([^|]*)", found, re.M) == ["at work", "waiting", "lost head"]
    bodies = {row["body"] for row in shop("SELECT body FROM mq.claim_batch('invoice', 10)")}
    assert bodies == {"lost head", "lost ticket"}


def test_a_queue_is_emptied_and_goes_on(shop: Shop) -> None:
    shop("SELECT FROM mq.claim_batch('email', 5)")
    shop("SELECT mq.send_message('email', 'later', now() + interval '1 day')")
    psql(shop.url, blocks(GUIDE, "Emptying a queue")[0])
    assert states(shop) == {"A": 5}
    assert shop("SELECT paused FROM mq.queue_stats('email')") == [{"paused": 0}]
    psql(shop.url, blocks(GUIDE, "Emptying a queue")[1])
    assert states(shop) == {}
    shop("SELECT mq.send('email', 'new')")
    assert len(shop("SELECT * FROM mq.claim_batch('email')")) == 1


def test_everything_is_paused_after_a_restore(shop: Shop) -> None:
    shop("SELECT mq.send('invoice', 'x')")
    follow(shop, "Backup, restore, moving")
    assert shop("SELECT DISTINCT paused FROM mq.queue_stats()") == [{"paused": 1}]
    assert shop("SELECT * FROM mq.claim_batch('email')") == []


def test_the_queue_moves_to_another_database_with_all_its_states(shop: Shop, server: Server) -> None:
    shop("SELECT FROM mq.claim_batch('email', 5)")
    shop("SELECT mq.fail(id, batch_key, 'no', -1) FROM mq.message_state WHERE state = 'A' AND id = 1")
    shop("SELECT mq.set_queue('email', p_on_complete => 'archive')")
    shop("SELECT mq.complete(id, batch_key) FROM mq.message_state WHERE state = 'A' AND id = 2")
    command = re.search(r"^pg_dump (.*) postgresql://\S+ \\$", GUIDE, re.M)
    assert command
    dump = subprocess.run(
        [str(programs(18) / "pg_dump"), *command[1].split(), shop.url], check=True, capture_output=True, text=True
    ).stdout.replace("SET transaction_timeout = 0;", "")  # a newer pg_dump than the server
    there = server.create_database()
    install.apply(open_database(there))
    psql(there, dump)
    assert install.pending(open_database(there)) == []
    rows = "SELECT id, state, body, attempts, error FROM mq.message_state ORDER BY id"
    assert server.query(there, rows) == shop(rows)
    assert server.query(there, "SELECT mq.send('email', 'next') AS id") == [{"id": 21}]
    server.drop_database(there)


def test_claims_go_on_under_a_publication_of_all_tables(shop: Shop) -> None:
    """Tables without a replica identity would refuse every DELETE."""
    shop("CREATE PUBLICATION everything FOR ALL TABLES")
    shop("SELECT mq.set_queue('email', p_on_complete => 'archive')")
    for procedure in ("claim_batch", "claim_wraparound"):
        for _ in range(3):
            assert shop(f"SELECT mq.complete_batch(batch_key) AS count FROM mq.{procedure}('email')") == [{"count": 1}]
            shop("SELECT mq.lower_mark('email')")
    assert shop("SELECT mq.purge('email', 'C') AS count") == [{"count": 6}]


def test_the_sql_of_the_readme_does_what_it_says(private_server: LocalPostgreSQL) -> None:
    url = private_server.create_database()
    install.apply(open_database(url))
    psql(url, *blocks(README, "Quick start in psql"), *blocks(README, "Roles"))
    assert private_server.query(url, "SELECT body FROM delivered") == [{"body": '{"to":"nobody@gone.example"}'}]
    left = private_server.query(url, "SELECT state, body, error FROM mq.message_state ORDER BY id")
    assert [(row["state"], row["error"]) for row in left] == [("N", "mailbox busy"), ("N", None)]
    assert left[1]["body"] == '{"to":"edsger@example.org"}'
