"""Who may call what: denied by default, allowed where the contract says so, and never a table."""

import uuid
from collections.abc import Callable, Iterator

import pytest
import servers
from queues import CONTRACT, NO_KEY, Queue, call, refused, required
from rowqueue.databases import Database, Forbidden, QueueError, Session, open_database

pytestmark = pytest.mark.one_version

ROLES = ["mq_producer", "mq_consumer", "mq_operator"]
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
    assert isinstance(call(logins(role), procedure, **required(q, procedure)), list)


@pytest.mark.parametrize(("role", "procedure"), DENIED)
def test_a_role_may_call_nothing_else(
    q: Queue, logins: Callable[[str | None], Session], role: str | None, procedure: str
) -> None:
    values = required(q, procedure)
    # Some databases refuse the connection of a user without any right.
    with q.unchanged(), pytest.raises(Forbidden):
        call(logins(role), procedure, **values)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_gets_the_same_errors_as_the_owner(q: Queue, logins: Callable[[str | None], Session], role: str) -> None:
    """Checks run inside the procedure, so their helpers need no grant."""
    name = next(n for n, p in CONTRACT.procedures.items() if role in p.roles and p.arguments[0].name == "type")
    values = required(q, name) | {"type": ""}
    with pytest.raises(QueueError, match="invalid_argument: type"):
        call(logins(role), name, **values)


def test_the_roles_together_can_do_a_messages_whole_life(q: Queue, logins: Callable[[str | None], Session]) -> None:
    producer, consumer, operator = (q.by(logins(role)) for role in ROLES)
    operator.call("set_queue", ordered=1, on_complete="archive", backoff_seconds=0)
    sent = [producer.call("send_message", "b", None, None, "g", str(n))[0]["id"] for n in range(3)]
    key = consumer.claim_key(5)
    assert consumer.one("fail", sent[0], key, "busy", 0) == "N"
    key = consumer.claim_key(5, lease_seconds=0)
    assert operator.count("rescue_expired") == 1
    with refused("lease_lost", "batch_key"):
        consumer.on("finish_batch", key, None, 1)
    rows = consumer.claim(5)
    rows = consumer.on("finish_batch", rows[0]["batch_key"], f"{sent[0]},-1,broken", 1)
    assert [row["id"] for row in rows] == [sent[1]]
    assert operator.count("redrive") == 1
    assert operator.on("cancel", sent[0]) == [{"count": 1}]
    assert consumer.one("complete_batch", rows[0]["batch_key"]) == 1
    assert [row["id"] for row in consumer.call("take_batch")] == [sent[2]]
    assert consumer.one("complete_batch", NO_KEY) == 0
    assert operator.count("purge", "C") == 2
    assert q.rows() == []


@pytest.mark.parametrize("role", [*ROLES, None])
def test_no_role_may_read_the_view_behind_the_procedures(
    q: Queue, server: servers.Server, database: Database, role: str | None
) -> None:
    name = f"login_{uuid.uuid4().hex[:12]}"
    with (
        server.login(database.url, name, *([role] if role else [])) as url,
        pytest.raises(Exception, match=r"(?i)denied|permission|privilege"),
    ):
        server.query(url, f"SELECT * FROM {q.can.view}")
