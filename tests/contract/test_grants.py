"""Who may call and read what: denied by default, allowed where the contract says so."""

import re
import uuid
from collections.abc import Callable, Iterator
from importlib import import_module

import pytest
import servers
from rowqueue.databases import Database, NotAllowed, QueueError, Session, open_database
from support.outcomes import dead_letter, released
from support.queues import CONTRACT, NO_KEY, Queue, call, refused, required

ROLES = ["mq_producer", "mq_consumer", "mq_operator", "mq_viewer"]
PAIRS = [(role, name) for role in [*ROLES, None] for name in sorted(CONTRACT.procedures)]
GIVEN, DENIED = (
    [
        pytest.param(role, name, id=f"{role or 'nobody'}-{name}")
        for role, name in PAIRS
        if (role in CONTRACT.procedures[name].roles) is given
    ]
    for given in (True, False)
)


@pytest.fixture
def session(lasting_session: Session) -> Session:
    return lasting_session


@pytest.fixture(scope="module")
def logins(server: servers.Server, database: Database) -> Iterator[Callable[[str | None], Session]]:
    """Makes a session of a user with one role or none, and no other right; one session per role."""
    contexts = []
    sessions: dict[str | None, Session] = {}

    def session_of(role: str | None) -> Session:
        if role not in sessions:
            name = f"login_{uuid.uuid4().hex[:12]}"
            contexts.append(server.login(database.url, name, *([role] if role else [])))
            sessions[role] = open_database(contexts[-1].__enter__()).connect(name)
        return sessions[role]

    yield session_of
    for session in sessions.values():
        session.close()
    for context in contexts:
        context.__exit__(None, None, None)


def test_the_contract_names_no_other_role() -> None:
    assert {role for procedure in CONTRACT.procedures.values() for role in procedure.roles} == set(ROLES)


@pytest.mark.parametrize(("role", "procedure"), GIVEN)
def test_a_role_may_call_what_the_contract_gives_it(
    q: Queue, logins: Callable[[str | None], Session], role: str, procedure: str
) -> None:
    values = required(q, procedure)
    if procedure == "unwatch_table" and q.can.fold("a") == "A":  # Firebird: only the table's owner can drop its trigger
        with refused("unsuitable_table", "its owner must call unwatch_table"):
            call(logins(role), procedure, **values)
        return
    rows = call(logins(role), procedure, **values)
    if procedure == "pause_all":
        call(q.session, "resume_all")
    described = CONTRACT.procedures[procedure]
    assert all([*row] == [column.name for column in described.columns] for row in rows)
    if described.rows == "1":
        assert len(rows) == 1


@pytest.mark.parametrize(("role", "procedure"), DENIED)
def test_a_role_may_call_nothing_else(
    q: Queue, database: Database, logins: Callable[[str | None], Session], role: str | None, procedure: str
) -> None:
    values = required(q, procedure)
    # Some databases refuse the connection of a user without any right.
    with q.unchanged(), pytest.raises(NotAllowed) as caught:
        call(logins(role), procedure, **values)
    assert (caught.value.number, caught.value.name) == (50010, "not_allowed")
    if role is not None or database.name != "mysql":  # which refuses the connection
        allowed = CONTRACT.procedures[procedure].roles
        assert f"{' or '.join(allowed)} may call {procedure}: " in str(caught.value)
        assert re.search(rf"\b(GRANT|ROLE) {allowed[0]}\b", str(caught.value))


@pytest.mark.parametrize("role", ROLES)
def test_a_role_gets_the_same_errors_as_the_owner(q: Queue, logins: Callable[[str | None], Session], role: str) -> None:
    """Checks run inside the procedure, so their helpers need no grant."""
    name = next(n for n, p in CONTRACT.procedures.items() if role in p.roles and p.arguments[0].name == "type")
    values = required(q, name) | {"type": ""}
    with pytest.raises(QueueError, match="invalid_argument: type"):
        call(logins(role), name, **values)


def test_the_roles_together_can_do_a_messages_whole_life(q: Queue, logins: Callable[[str | None], Session]) -> None:
    producer, consumer, operator, _ = (q.by(logins(role)) for role in ROLES)
    operator.call("set_queue", ordered=1, on_complete="archive", backoff_seconds=0)
    sent = [producer.call("send_message", "b", None, None, "g", str(n))[0]["id"] for n in range(3)]
    key = consumer.claim_key(5)
    assert consumer.one("fail", sent[0], key, "busy", 0) == "N"
    key = consumer.expired_key(5)
    assert operator.count("rescue_expired") == 1
    with refused("lease_lost", "batch_key"):
        consumer.on("finish_batch", key, None, 1)
        consumer.on("finish_messages", key, "")
    rows = consumer.claim(5)
    assert consumer.one("finish_messages", rows[0]["batch_key"], released(sent[0])) == 1
    rows = consumer.claim(5)
    rows = consumer.on("finish_batch", rows[0]["batch_key"], dead_letter(sent[0], "broken"), 1)
    assert [row["id"] for row in rows] == [sent[1]]
    assert operator.count("redrive_all") == 1
    assert operator.on("cancel", sent[0])[0]["affected"] == 1
    assert consumer.one("complete_batch", rows[0]["batch_key"]) == 1
    assert [row["id"] for row in consumer.call("take_batch")] == [sent[2]]
    with refused("lease_lost", "batch_key"):
        consumer.on("complete_batch", NO_KEY)
    assert operator.count("purge", "C") == 2
    assert q.rows() == []


# Tables and views of the queue that every database has.
OBJECTS = [  # not `claimed`, which only some have
    *("message_state", "message_overview", "message", "ready", "delayed", "batch", "dead", "grouped"),
    "group_lock",
    *("archive", "result", "queue", "polled", "polled_batch", "polled_row", "feed", "consumer", "report"),
    *("schedule", "mark", "queue_group"),
]


@pytest.mark.parametrize("role", [*ROLES, None])
def test_a_role_reads_the_tables_and_views_of_the_contract_and_no_other(
    server: servers.Server, database: Database, role: str | None
) -> None:
    name = f"login_{uuid.uuid4().hex[:12]}"
    with server.login(database.url, name, *([role] if role else [])) as url:
        read = [thing for thing in OBJECTS if can_read(server, url, thing)]
    assert {*read} == {*CONTRACT.reads.get(role or "", ())} - {"claimed"}


@pytest.mark.product("mysql", "mariadb", "firebird", "sqlserver")
def test_the_error_of_a_table_names_the_roles_that_may_read_it(server: servers.Server, database: Database) -> None:
    """PostgreSQL's error has the name of the table without that of its schema."""
    translate = import_module(f"rowqueue.databases.{database.name}.errors").translate
    with server.login(database.url, f"login_{uuid.uuid4().hex[:12]}", "mq_producer") as url:
        with pytest.raises(Exception) as caught:
            server.query(url, f"SELECT * FROM {server.table('ready')}")
        error = translate(caught.value)
    assert isinstance(error, NotAllowed)
    assert "; mq_operator or mq_viewer may read ready: " in str(error)


def can_read(server: servers.Server, url: str, thing: str) -> bool:
    try:
        server.query(url, f"SELECT * FROM {server.table(thing)} WHERE 1 = 0")
    except Exception as error:
        assert re.search(r"(?i)denied|permission|privilege", str(error)), error
        return False
    return True


def test_a_viewer_sees_each_message_without_its_body_headers_and_batch_key(
    q: Queue, server: servers.Server, database: Database
) -> None:
    q.call("set_queue", on_complete="archive", backoff_seconds=0)
    q.send_many(5)
    key = q.claim_key(4, consumer="worker-1")
    _, dead, archived, failed = sorted(row["id"] for row in q.rows() if row["state"].strip() == "A")
    q.on("dead_letter", dead, key, "broken")
    q.on("complete", archived, key)
    q.on("fail", failed, key, "busy", 600)
    with server.login(database.url, f"login_{uuid.uuid4().hex[:12]}", "mq_viewer") as url:
        query = f"SELECT * FROM {server.table('message_overview')} WHERE type = %s ORDER BY id"
        rows = server.query(url, query, q.name)
    assert [row["state"].strip() for row in rows] == ["A", "E", "C", "N", "N"]
    hidden = {"body", "headers", "batch_key"}
    assert rows == [{name: row[name] for name in row if name not in hidden} for row in q.rows()]


def test_an_operator_repairs_with_the_batch_key_that_the_view_shows(
    q: Queue, server: servers.Server, database: Database
) -> None:
    q.send_many(3)
    q.claim_key(2, consumer="worker-1")
    with server.login(database.url, f"login_{uuid.uuid4().hex[:12]}", "mq_operator") as url:
        held = f"SELECT id, batch_key FROM {server.table('message_state')} WHERE type = %s AND state = 'A' ORDER BY id"
        rows = server.query(url, held, q.name)
        operator = open_database(url).connect("operator")
        try:
            key = str(rows[0]["batch_key"]).strip()
            [failed] = operator.call("dead_letter", rows[0]["id"], key, "kills its consumer")
            [released] = operator.call("release_batch", key)
        finally:
            operator.close()
    assert (failed["state"], released["affected"]) == ("E", 1)
    assert sorted(q.states().values()) == ["E", "N", "N"]
