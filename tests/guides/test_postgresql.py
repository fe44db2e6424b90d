"""What docs/operate and the reference say of PostgreSQL alone; the repairs of all engines are in test_repairs.py."""

import re
import subprocess
from pathlib import Path

import generated
import pytest
from rowqueue.databases import Database, open_database
from rowqueue.install import apply as install
from servers import LocalPostgreSQL, Server
from servers.postgresql import programs
from shops import DOCS, OWNERSHIP, POISONED, REMOVAL, PostgreSQLShop, blocks, psql
from tabs import for_engine

pytestmark = pytest.mark.product("postgresql")

ROOT = Path(__file__).resolve().parents[2]
GUIDE = PostgreSQLShop.page
README = (ROOT / "README.md").read_text("utf-8")
# Pages whose statements are for psql where they are in no tab; of the reference only what is written by hand.
PAGES = (
    *("reference/calling.md", "concepts/messages.md", "concepts/order.md", "concepts/transactions.md"),
    *(
        f"reference/{page.name}"
        for page in sorted(DOCS.glob("reference/*.md"))
        if generated.names(page.read_text("utf-8"))
    ),
)


@pytest.fixture
def shop(installed_database: Database, server: Server, tmp_path: Path) -> PostgreSQLShop:
    shop = PostgreSQLShop(server, installed_database.url, tmp_path)
    shop.fill()
    return shop


def statements(page: str, heading: str | None = None) -> list[str]:
    return [text for kind, text in blocks(page, heading) if kind == "sql"]


def test_every_statement_of_the_guide_runs_in_its_order(private_server: LocalPostgreSQL) -> None:
    url = private_server.create_database()
    owner = statements(GUIDE, OWNERSHIP)
    psql(url, owner[0])
    install.apply(open_database(url.replace("postgres@", "queue_owner@")))
    assert private_server.query(url, "SELECT DISTINCT proowner::regrole::text AS o FROM pg_proc WHERE prosecdef") == [
        {"o": "queue_owner"}
    ]
    psql(
        url,
        "SELECT mq.send_batch('email', string_agg('{\"n\":' || n || '}', E'\\n')) FROM generate_series(1, 100) AS n;",
        "SELECT FROM mq.claim_batch('email', 30, 'worker-1');",
        "SELECT mq.dead_letter(id, batch_key, 'timed out') FROM mq.message_state WHERE id BETWEEN 11 AND 30;",
        "SELECT mq.set_option('invoice', 'ordered', '1');",
        "SELECT mq.send_message('invoice', 'x', p_group_key => 'g') FROM generate_series(1, 3);",
        "SELECT FROM mq.claim_batch('invoice', 2, 'worker-1');",
    )
    done = [block for block in statements(GUIDE) if block not in (owner[0], *statements(GUIDE, REMOVAL))]
    # A consumer holds the poisoned message by then.
    held = ["SELECT mq.redrive(17);", "SELECT FROM mq.claim_batch('email', 100, 'worker-2');"]
    at = done.index(statements(GUIDE, POISONED)[0])
    psql(url, *done[:at], *held, *done[at:])
    # Roles that were given rights on this database go with it, as far as the guide does not remove them.
    psql(url, "DROP OWNED BY shop, on_duty;", *statements(GUIDE, REMOVAL))
    assert private_server.query(url, "SELECT to_regnamespace('mq') AS it") == [{"it": None}]
    assert private_server.query(url, "SELECT rolname FROM pg_roles WHERE rolname LIKE 'mq%%'") == []


@pytest.mark.level(3)
def test_the_owner_of_the_guide_can_read_other_users_sessions_and_no_more(private_server: LocalPostgreSQL) -> None:
    url = private_server.create_database()
    psql(url, statements(GUIDE, OWNERSHIP)[0])
    owner = url.replace("postgres@", "queue_owner@")
    install.apply(open_database(owner))
    with private_server.client(url) as other:
        other.execute("BEGIN")
        other.execute("SELECT 'look at me'")
        seen = psql(owner, "SELECT detail FROM mq.queue_health() WHERE name = 'oldest_transaction';")
        assert "idle in transaction" in seen and "look at me" not in seen
    assert private_server.query(url, "SELECT rolsuper, rolcreaterole FROM pg_roles WHERE rolname = 'queue_owner'") == [
        {"rolsuper": False, "rolcreaterole": False}
    ]


@pytest.mark.level(3)
def test_roles_created_after_the_installation_get_their_rights_from_the_grants_file(
    private_server: LocalPostgreSQL,
) -> None:
    url = private_server.create_database()
    psql(url, statements(GUIDE, OWNERSHIP)[0], "DROP ROLE mq_producer, mq_consumer, mq_operator;")
    owner = url.replace("postgres@", "queue_owner@")
    assert any("mq_producer does not exist" in notice for notice in install.apply(open_database(owner)).notices)
    psql(url, "CREATE ROLE mq_producer NOLOGIN; CREATE ROLE mq_consumer NOLOGIN; CREATE ROLE mq_operator NOLOGIN;")
    grants = (ROOT / "procedures" / "postgresql").glob("*/grants.sql")
    psql(owner, *(path.read_text("utf-8") for path in sorted(grants, key=lambda path: path.parent.name != "common")))
    psql(url, "CREATE ROLE shop LOGIN; GRANT mq_producer TO shop;")
    psql(url.replace("postgres@", "shop@"), "SELECT mq.send('email', 'x');")


@pytest.mark.level(3)
def test_the_queue_moves_to_another_database_with_all_its_states(shop: PostgreSQLShop, server: Server) -> None:
    shop("SELECT FROM mq.claim_batch('email', 5)")
    shop("SELECT mq.dead_letter(id, batch_key, 'no') FROM mq.message_state WHERE state = 'A' AND id = 1")
    shop("SELECT mq.set_option('email', 'on_complete', 'archive')")
    shop("SELECT mq.complete(id, batch_key) FROM mq.message_state WHERE state = 'A' AND id = 2")
    command = re.search(r"^pg_dump (.*) postgresql://\S+ \\$", GUIDE, re.M)
    assert command
    dump = subprocess.run(
        [str(programs(18) / "pg_dump"), *command[1].split(), shop.url], check=True, capture_output=True, text=True
    ).stdout.replace("SET transaction_timeout = 0;", "")  # a newer pg_dump than the server
    there = server.create_database()
    install.apply(open_database(there))
    psql(there, "DELETE FROM mq.queue;", dump)
    assert install.pending(open_database(there)) == []
    rows = "SELECT id, state, body, attempts, error FROM mq.message_state ORDER BY id"
    assert server.query(there, rows) == shop(rows)
    assert server.query(there, "SELECT mq.send('email', 'next') AS id") == [{"id": 21}]
    server.drop_database(there)


def test_claims_work_under_a_publication_of_all_tables(shop: PostgreSQLShop) -> None:
    """Tables without a replica identity would refuse every DELETE."""
    shop("CREATE PUBLICATION everything FOR ALL TABLES")
    shop("SELECT mq.set_option('email', 'on_complete', 'archive')")
    for procedure in ("claim_batch", "claim_wraparound"):
        shop(f"SELECT mq.set_option('email', 'ring', '{int(procedure == 'claim_wraparound')}')")
        for _ in range(3):
            assert shop(f"SELECT mq.complete_batch(batch_key) AS affected FROM mq.{procedure}('email')") == [
                {"affected": 1}
            ]
            shop("SELECT mq_internal.lower_mark('email')")
    assert shop("SELECT affected FROM mq.purge('email', 'C')") == [{"affected": 6}]


def test_the_first_minute_of_the_readme_prints_what_it_shows(private_server: LocalPostgreSQL) -> None:
    url = private_server.create_database()
    install.apply(open_database(url))
    shown = re.findall(r"^```sql\n(.*?)^```\n\n```text\n(.*?)^```$", README, re.M | re.S)
    assert len(shown) == 2
    for text, expected in shown:
        command = [str(programs(18) / "psql"), "-X", "-d", url]
        printed = subprocess.run(command, input=text, check=True, capture_output=True, text=True, timeout=60).stdout
        assert [line.rstrip() for line in printed.rstrip().splitlines()] == expected.rstrip().splitlines()


@pytest.mark.level(3)
def test_the_sql_of_the_landing_page_sends_with_the_row_and_completes(private_server: LocalPostgreSQL) -> None:
    url = private_server.create_database()
    install.apply(open_database(url))
    printed = psql(url, *statements((DOCS / "index.md").read_text("utf-8")))
    assert printed.splitlines()[-3:] == ["complete", "1", "(1 row)"]
    assert private_server.query(url, "SELECT customer FROM orders") == [{"customer": "ada@example.org"}]


@pytest.mark.level(3)
def test_the_first_message_does_what_it_says(private_server: LocalPostgreSQL) -> None:
    url = private_server.create_database()
    install.apply(open_database(url))
    page = for_engine((DOCS / "start" / "first-message.md").read_text("utf-8"), "postgresql")
    printed = psql(url, *statements(page))
    rows = {tuple(cell.strip() for cell in line.split("|")) for line in printed.splitlines()}
    shown = re.findall(r"^\| (?!id |---)(.*) \|$", page, re.M)
    assert len(shown) == 8
    for row in shown:
        cells = tuple(cell.strip(" `") for cell in f"{row} ".split("| "))
        assert any(found[: len(cells)] == cells for found in rows), row
    assert private_server.query(url, "SELECT body FROM delivered") == [{"body": '{"to":"nobody@gone.example"}'}]
    left = private_server.query(url, "SELECT state, body, error FROM mq.message_state ORDER BY id")
    assert [(row["state"], row["error"]) for row in left] == [("N", "mailbox busy"), ("N", None)]
    assert left[1]["body"] == '{"to":"edsger@example.org"}'


def test_the_statements_of_the_reference_run_in_their_order_and_return_what_it_shows(
    installed_database: Database,
) -> None:
    psql(
        installed_database.url,
        "CREATE TABLE article (id integer PRIMARY KEY, title text, sync bigint);",
        "CREATE INDEX ON article (sync);",
        "CREATE TABLE orders (id integer PRIMARY KEY, status char(1) NOT NULL);",
        "CREATE INDEX ON orders (status, id);",
        "INSERT INTO orders VALUES (17, 'N');",
    )
    by_hand = {page: generated.by_hand((DOCS / page).read_text("utf-8")) for page in PAGES}
    texts = {page: for_engine(text, "postgresql") for page, text in by_hand.items()}
    printed = {page: psql(installed_database.url, *statements(text)) for page, text in texts.items()}
    [sent] = re.findall(r"id\|created\|changed\|state\n(.*)\n", printed["reference/sending.md"])
    assert sent.endswith("|1|0|N")
    assert 'C|{"width":160}|' in printed["reference/results.md"]
    assert printed["reference/topics.md"].endswith("publish\n2\n(1 row)\n")
    assert "nightly report|" in printed["reference/schedules.md"]
    assert re.search(r'\{"id": ?17\}', printed["reference/tables.md"])
