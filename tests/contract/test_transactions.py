"""Every procedure that changes something: one with the caller's transaction, and whole or not at all.

Compared are all rows of all tables, not only what the procedures show.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
from rowqueue.databases import DatabaseError, Session, open_database
from rowqueue.install import apply as install
from rowqueue.install.contract import sql_root
from servers import Server
from support.capabilities import BY_DATABASE
from support.outcomes import dead_letter, done, joined, released
from support.queues import CONTRACT, POLLING, Feed, Queue, call, in_time, make_table, make_watched, refused

READING = {
    "queue_stats",
    "queue_health",
    "peek",
    "wait_for_message",
    "wait_for_any",
    "fetch_feed",
    "list_feeds",
}
READING |= {"get_state", "list_subscriptions", "list_bindings", "get_result", "list_schedules", "next_occurrence"}
READING |= {"get_steps", "list_steps", "list_cancelled"}
READING |= {"list_queues", "list_errors", "find_messages", "find_queues", "list_consumers", "throughput", "version"}
# Triggers are made and dropped outside of the caller's transaction on some databases: see test_subscriptions.py.
# Polling tables have their own, see test_polling_tables.py. What changes all queues is in test_pause.py.
ELSEWHERE = {"watch_table", "unwatch_table", "pause_all", "resume_all"}
CHANGING = sorted(CONTRACT.procedures.keys() - READING - POLLING - ELSEWHERE)
FEED_NAMES = ("feed", "name")  # by which what belongs to feeds goes; the rest goes by type
EVENTS = ("insert", "update", "delete")


def first_argument(procedure: str) -> str:
    return CONTRACT.procedures[procedure].arguments[0].name


# ---- a queue in which a call of each procedure has much to do --------------------------------------


def options(q: Queue) -> dict[str, Any]:
    return {"body": "b", "group_key": "g", "dedup_key": "new", "priority": -1}


def backlog(q: Queue) -> dict[str, Any]:
    """What a claim finds on its way: ready messages, expired claims with and without attempts left, a due message."""
    ready = [q.send(group_key=f"r{n}", dedup_key=str(n)) for n in range(3)]
    for attempts in (1, 9):
        q.send(priority=-1, max_attempts=attempts, group_key=f"e{attempts}")
        q.claim_expired()
    failed = q.send(priority=-1, group_key="f")
    [row] = [row for row in q.claim(10) if row["id"] == failed]
    q.on("fail", failed, row["batch_key"], "no", 0)
    q.on("release_batch", row["batch_key"])
    assert len(ready) == 3
    return {"size": 10}


def first_only(q: Queue) -> dict[str, Any]:
    backlog(q)
    return {}


def held(q: Queue) -> dict[str, Any]:
    """A claim of several messages, with more messages after them."""
    for n in range(4):
        q.send(group_key=f"g{n % 2}", dedup_key=str(n))
    rows = q.claim(2, lease_seconds=3_600)
    return {"id": rows[0]["id"], "batch_key": rows[0]["batch_key"]}


def held_key(q: Queue) -> dict[str, Any]:
    return {"batch_key": held(q)["batch_key"]}


def finished(q: Queue) -> dict[str, Any]:
    """A batch of which one message has failed, and a next batch."""
    values = held(q)
    return {"batch_key": values["batch_key"], "outcomes": dead_letter(values["id"], "no"), "next_size": 2}


def partly(q: Queue) -> dict[str, Any]:
    """A batch of which one message is done, and another one is given back."""
    values = held(q)
    return {"batch_key": values["batch_key"], "outcomes": joined(done(values["id"]), released(values["id"] + 1))}


def expired(q: Queue) -> dict[str, Any]:
    """Expired claims, one with attempts left and one without; the last call of all, for every claim rescues some."""
    backlog(q)
    for attempts in (1, 9):
        q.send(priority=-2, max_attempts=attempts, group_key=f"x{attempts}")
    q.claim_expired(2)
    return {}


def cancelled(q: Queue) -> dict[str, Any]:
    q.send(group_key="g")
    return {"id": q.send(group_key="g", dedup_key="d")}


def moved(q: Queue) -> dict[str, Any]:
    return {"id": cancelled(q)["id"], "options": '{"body":"c","priority":-3,"run_at":null}'}


def abandoned(q: Queue) -> dict[str, Any]:
    """Two claims of one consumer, with more messages after them."""
    for n in range(5):
        q.send(group_key=f"g{n}")
    for size in (1, 2):
        q.claim(size, consumer=q.name)
    return {"consumer": q.name}


def dead(q: Queue) -> dict[str, Any]:
    for n in range(3):
        id = q.send(priority=-1, group_key=f"g{n % 2}", dedup_key=str(n))
        q.on("dead_letter", id, q.claim_key(), "no")
    return {}


def one_dead(q: Queue) -> dict[str, Any]:
    dead(q)
    return {"id": min(id for id, state in q.states().items() if state == "E")}


def ready(q: Queue) -> dict[str, Any]:
    """The first of the ready messages."""
    sent = [q.send(group_key="g", dedup_key=str(n)) for n in range(3)]
    return {"id": sent[0]}


def purged(q: Queue) -> dict[str, Any]:
    backlog(q)
    return {"state": "N"}


def policy(q: Queue) -> dict[str, Any]:
    return {"lease_seconds": 7, "on_complete": "archive"}


def ring(q: Queue) -> dict[str, Any]:
    """Made of a queue with messages in every state."""
    values = backlog(q)
    q.ring()
    return values


def worked_off(q: Queue) -> dict[str, Any]:
    """A queue with settings, a group and marks, but without messages."""
    held_key(q)
    q.call("set_group", "g0", 3)
    q.on("complete_batch", q.call("peek", "A")[0]["batch_key"])
    while rows := q.claim(10):
        q.on("complete_batch", rows[0]["batch_key"])
    return {}


def shared(q: Queue) -> dict[str, Any]:
    """A group that has messages and a weight."""
    backlog(q)
    q.call("set_group", "f", 3)
    return {"group_key": "f", "weight": 2}


def paused(q: Queue) -> dict[str, Any]:
    q.call("pause")
    return {}


def table_of(q: Queue, *ids: int) -> Feed:
    """A table with rows, not yet a feed; that is to have the queue's name."""
    feed = Feed(q.name, make_table(q), q)
    feed.write(*ids)
    return feed


def registered(q: Queue) -> dict[str, Any]:
    return {"table": table_of(q).table, "key_columns": "id", "sync_column": "sync"}


def unpublished(q: Queue) -> dict[str, Any]:
    feed = table_of(q, 1, 2, 3)
    feed.call("create_feed", feed.table, "id", "sync")
    return {}


def published(q: Queue) -> dict[str, Any]:
    unpublished(q)
    call(q.session, "publish_feed", q.name)
    return {"consumer": "consumer", "position": 2}


def advanced(q: Queue) -> dict[str, Any]:
    values = published(q)
    call(q.session, "advance_feed", q.name, "consumer", 2)
    return values | {"position": 1}


def followed(q: Queue) -> dict[str, Any]:
    advanced(q)
    return {}


def watched(q: Queue) -> dict[str, Any]:
    return {"table": make_watched(q), "action": "IUD", "type": q.name}


def subscribed(q: Queue) -> dict[str, Any]:
    call(q.session, "subscribe", **(values := watched(q)))
    return values | {"action": "ID"}


def resulted(q: Queue) -> dict[str, Any]:
    return held(q.archived()) | {"result": "r"}


def stepped(q: Queue) -> dict[str, Any]:
    """A step that is there and gets another value."""
    values = held(q)
    q.on("save_step", **values, step="charge", value="before")
    return values | {"step": "charge", "value": "now"}


def marked(q: Queue) -> dict[str, Any]:
    """An active message that was cancelled, and has a step and a result."""
    values = stepped(q.archived())
    values = {name: values[name] for name in ("id", "batch_key")}
    q.on("set_result", **values, result="r")
    q.on("cancel", values["id"])
    return values


def bound(q: Queue) -> dict[str, Any]:
    values = {"pattern": f"x{q.name.rpartition('.')[2]}.#"}
    call(q.session, "bind_topic", **values, type=q.name)
    return values


def published_to(q: Queue) -> dict[str, Any]:
    """A topic of two patterns, and a live message that is replaced."""
    topic = bound(q)["pattern"].removesuffix(".#")
    call(q.session, "bind_topic", topic, q.name)
    q.send(group_key="g", dedup_key="new")
    return {"topic": topic, "body": "b"}


def published_to_with(q: Queue) -> dict[str, Any]:
    return options(q) | published_to(q) | {"on_conflict": "replace"}


def scheduled(q: Queue) -> dict[str, Any]:
    call(q.session, "set_schedule", q.name, q.name, "@yearly", "b")
    return {}


# What is to be there before, and the arguments of the call, without the type.
PREPARE: dict[str, Callable[[Queue], dict[str, Any]]] = {
    "send": lambda q: {"body": "b"},
    "send_message": options,
    "send_with": options,
    "send_batch": lambda q: {"bodies": "a\nb\nc"},
    "get_message": first_only,
    "claim_batch": backlog,
    "claim_any": lambda q: backlog(q) | {"types": f"{q.name}.empty\n{q.name}"},
    "claim_wraparound": ring,
    "take_batch": backlog,
    "complete": held,
    "complete_batch": held_key,
    "fail": held,
    "dead_letter": marked,
    "count_attempt": ready,
    "finish_batch": finished,
    "finish_messages": partly,
    "release_batch": held_key,
    "extend_lease": lambda q: held_key(q) | {"seconds": 60},
    "rescue_expired": expired,
    "cancel": cancelled,
    "cancel_key": lambda q: {"dedup_key": "d"} if cancelled(q) else {},
    "update_message": moved,
    "release_consumer": abandoned,
    "redrive": one_dead,
    "redrive_all": dead,
    "purge": purged,
    "set_queue": policy,
    "set_option": lambda q: {"option": "lease_seconds", "value": "7"},
    "set_group": shared,
    "drop_queue": worked_off,
    "pause": lambda q: {},
    "report_consumer": lambda q: {
        "consumer": "me",
        "type": q.name,
        "completed": 1,
        "sent": 1,
        "sent_at": in_time(minutes=-5),
    },
    "resume": paused,
    "advance_sequence": lambda q: {"size": 3},
    "create_feed": registered,
    "drop_feed": followed,
    "publish_feed": unpublished,
    "advance_feed": published,
    "rewind_feed": advanced,
    "subscribe": watched,
    "unsubscribe": subscribed,
    "set_result": resulted,
    "save_step": stepped,
    "set_progress": lambda q: held(q) | {"done": 3, "total": 10, "note": "page 3"},
    "snooze": lambda q: held(q) | {"seconds": 60},
    "bind_topic": lambda q: {"pattern": "a.#", "type": q.name},
    "unbind_topic": bound,
    "publish": published_to,
    "publish_with": published_to_with,
    "set_schedule": lambda q: {"type": q.name, "cron": "@yearly", "body": "b"},
    "drop_schedule": scheduled,
    "run_schedule": scheduled,
}
CASES = [
    pytest.param(name, ordered, id=f"{name}-{'ordered' if ordered else 'plain'}")
    for name, ordered in product(CHANGING, (0, 1))
    if not ordered or (name != "claim_wraparound" and first_argument(name) not in FEED_NAMES)
]
each = pytest.mark.parametrize(("procedure", "ordered"), CASES)


def test_every_procedure_that_changes_something_is_here() -> None:
    assert sorted(PREPARE) == CHANGING


# ---- fixtures ----------------------------------------------------------------------------------------


@dataclass
class Place:
    """A database whose tables fail on request, and that has a table of the caller's own, `mine`."""

    server: Server
    url: str
    name: str
    stems: tuple[str, ...]
    feed_stems: dict[str, str]
    looking: Any

    def query(self, text: str, *parameters: Any) -> list[dict[str, Any]]:
        """Look with all rights."""
        cursor = self.looking.execute(text, parameters)
        return list(cursor.fetchall()) if cursor.description else []

    def rows(self, type: str) -> dict[str, list[str]]:
        """All that all tables hold of a queue, by table."""
        found = {}
        for stem in self.stems:
            columns = "n" if stem == "mark" else "*"  # a mark may have a time before Python's first year
            rows = self.query(f"SELECT {columns} FROM {self.server.table(stem)} WHERE type = %s", type)
            found[stem] = sorted(map(str, rows))
        of_messages = f"SELECT id FROM {self.server.table('message')} WHERE type = %s"
        for stem in ("result", "step"):
            rows = self.query(f"SELECT * FROM {self.server.table(stem)} WHERE id IN ({of_messages})", type)
            found[stem] = sorted(map(str, rows))
        for stem, column in self.feed_stems.items():
            rows = self.query(f"SELECT * FROM {self.server.table(stem)} WHERE {column} = %s", type)
            found[stem] = sorted(map(str, rows))
        return found

    def mine(self, type: str) -> int:
        """How many rows of the caller's own are there."""
        count: int = self.query("SELECT count(*) AS n FROM mine WHERE type = %s", type)[0]["n"]
        return count


@pytest.fixture(scope="module")
def place(server: Server) -> Iterator[Place]:
    url = server.create_database()
    database = open_database(url)
    install.apply(database)
    files = sorted((sql_root() / "migrations" / database.name).glob("*.sql"))
    text = "".join(path.read_text("utf-8") for path in files)
    tables = re.findall(r"CREATE TABLE (?:IF NOT EXISTS )?mq[._](\w+) \(\n((?:    .*\n)+)", text)
    stems = tuple(stem for stem, columns in tables if re.search(r"^    type ", columns, re.M))
    keys = {stem: re.search(r"^    (feed|name) ", columns, re.M) for stem, columns in tables if stem not in stems}
    feed_stems = {stem: key[1] for stem, key in keys.items() if key and stem != "installed"}
    server.plant_faults(url, [*stems, *feed_stems, "result", "step"])
    server.query(url, "CREATE TABLE mine (type VARCHAR(200) NOT NULL)")
    with server.client(url) as looking:
        yield Place(server, url, database.name, stems, feed_stems, looking)
    server.drop_database(url)


@pytest.fixture
def caller(place: Place) -> Iterator[Session]:
    session = open_database(place.url).connect("caller")
    yield session
    session.close()


@pytest.fixture
def q(place: Place, caller: Session, queue: str) -> Queue:
    return Queue(queue, caller, place.query, BY_DATABASE[place.name])


@dataclass
class Call:
    """One call with all that it needs, in the queue of one test."""

    q: Queue
    place: Place
    procedure: str
    values: dict[str, Any]

    def __call__(self, **other: Any) -> list[dict[str, Any]]:
        return call(self.q.session, self.procedure, **self.values | other)

    def work(self, connection: Any) -> None:
        """Something of the caller's own."""
        connection.cursor().execute(f"INSERT INTO mine VALUES ('{self.q.name}')")

    @contextmanager
    def failing(self, connection: Any) -> Iterator[None]:
        """The block may fail, and then the caller's transaction continues, with a savepoint if an error ends it.

        If that does not help either, it ends with the next statement.
        """
        savepoint = not self.q.can.undoes_a_call and self.q.can.keeps_savepoints
        if savepoint:
            connection.cursor().execute("SAVEPOINT before_the_call")
        yield
        if savepoint:
            connection.cursor().execute("ROLLBACK TO SAVEPOINT before_the_call")

    def fault(self, where: str) -> None:
        """Let the session's changes of one kind fail from now on."""
        with self.q.session.transaction() as connection:
            connection.cursor().execute(self.place.server.fault(where))

    def rows(self) -> dict[str, list[str]]:
        return self.place.rows(self.q.name)


@pytest.fixture
def prepared(place: Place, q: Queue, procedure: str, ordered: int) -> Call:
    if ordered:
        q.ordered()
    values = PREPARE[procedure](q)
    if first_argument(procedure) in ("type", *FEED_NAMES):
        values[first_argument(procedure)] = q.name
    return Call(q, place, procedure, values)


# ---- the tests -----------------------------------------------------------------------------------------


@each
def test_a_call_is_one_with_the_callers_transaction(prepared: Call) -> None:
    """Undone with it, and committed with it and not before; what is refused is no part of it."""
    before = prepared.rows()
    transaction, mine = prepared.q.session.transaction, lambda: prepared.place.mine(prepared.q.name)
    with pytest.raises(ZeroDivisionError), transaction() as connection:
        prepared.work(connection)
        prepared()
        raise ZeroDivisionError
    assert (prepared.rows(), mine()) == (before, 0)

    first = CONTRACT.procedures[prepared.procedure].arguments[0]
    lost = nullcontext() if prepared.q.can.keeps_savepoints else pytest.raises(DatabaseError)
    with lost, transaction() as connection:
        prepared.work(connection)
        with prepared.failing(connection), refused("invalid_argument", first.name):
            prepared(**{first.name: "" if first.optional else None})
    refusals = int(prepared.q.can.keeps_savepoints)
    assert (prepared.rows(), mine()) == (before, refusals)

    with transaction() as connection:
        prepared.work(connection)
        prepared()
        prepared.work(connection)
        assert (prepared.rows(), mine()) == (before, refusals)
    assert prepared.rows() != before
    assert mine() == refusals + 2


@pytest.mark.level(3)
@pytest.mark.product("postgresql")
@each
def test_a_call_can_be_prepared_for_two_phase_commit_if_its_queue_does_not_notify(prepared: Call) -> None:
    """While a consumer waits. PREPARE TRANSACTION fails after a NOTIFY."""
    q, name = prepared.q, prepared.q.name.replace(".", "_")
    call(q.session, "set_queue", q.name, notify=0)
    values = "(%s, clock_timestamp() + interval '1 hour')"
    q.sql(
        f"INSERT INTO mq.waiter VALUES {values} ON CONFLICT (type) DO UPDATE SET wait_until = excluded.wait_until",
        q.name,
    )
    before = prepared.rows()
    with pytest.raises(DatabaseError, match="ended it"), q.session.transaction() as connection:
        prepared()
        connection.execute(f"PREPARE TRANSACTION '{name}'")
    assert prepared.rows() == before
    q.sql(f"COMMIT PREPARED '{name}'")
    assert prepared.rows() != before


class Undo(Exception):
    """Ends a transaction without a commit."""


def fails(prepared: Call, goes_on: bool) -> bool:
    """Call inside the caller's transaction; commit that if the call failed and it `goes_on`, else undo it all."""
    failed = False
    with suppress(Undo), prepared.q.session.transaction() as connection:
        prepared.work(connection)
        with prepared.failing(connection):
            try:
                prepared()
            except DatabaseError:
                failed = True
        if not failed or prepared.q.can.keeps_savepoints:
            prepared.work(connection)
        if not (failed and goes_on):
            raise Undo
    return failed


@pytest.mark.level(3)
@each
def test_a_call_that_fails_halfway_changes_nothing(prepared: Call) -> None:
    """One kind of change after the other fails, inside the caller's transaction, which continues, and outside one."""
    before = prepared.rows()
    met, mine = 0, 0
    place = prepared.place
    of_feeds = first_argument(prepared.procedure) in FEED_NAMES and "schedule" not in prepared.procedure
    for where in map(" ".join, product(place.feed_stems if of_feeds else (*place.stems, "result", "step"), EVENTS)):
        prepared.fault(where)
        goes_on = prepared.place.server.undoes(where)
        if fails(prepared, goes_on):
            met += 1
            mine += 2 * goes_on
            assert (prepared.rows(), prepared.place.mine(prepared.q.name)) == (before, mine), where
            with pytest.raises(DatabaseError):
                prepared()
            assert prepared.rows() == before, where
    prepared.fault("")
    assert met
    prepared()
    after = prepared.rows()
    assert after != before
    prepared.q.session.close()
    assert prepared.rows() == after, "the call did not commit by itself"
