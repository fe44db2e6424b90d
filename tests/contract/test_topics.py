"""Topics: bindings, publish, and subscriptions of watched tables to a topic."""

import json
import random
import time
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from rowqueue.databases import Session
from support.queues import LONG_AGO, Queue, call, ids, in_an_hour, make_watched, refused

TOPIC = "topic: must be words separated by dots, without *, #, quotes, backslashes or white space"
PATTERN = "pattern: must be words separated by dots; a word may be * or #"


@pytest.fixture
def types(q: Queue) -> Iterator[Callable[[str], Queue]]:
    """Makes queues by the ends of their names, and takes their bindings away at the end."""
    made: list[Queue] = [q]

    def type(end: str) -> Queue:
        made.append(q.named(f"{q.name}.{end}"))
        return made[-1]

    yield type
    for each in made:
        call(q.session, "unbind_topic", None, each.name)


@pytest.fixture
def top(types: Callable[[str], Queue], q: Queue) -> str:
    """The first word of topics that no other test uses."""
    return "t" + q.name.rpartition(".")[2]


def bind(q: Queue, *patterns: str) -> None:
    for pattern in patterns:
        assert call(q.session, "bind_topic", pattern, q.name) == [{"created": 1}]


def publish(q: Queue, topic: str, body: str = "body", **options: Any) -> int:
    [row] = call(q.session, "publish_with" if options else "publish", topic, body, **options)
    count: int = row["affected"]
    return count


def bound(q: Queue, topic: str | None) -> list[str]:
    """The patterns of this queue that match a topic; all of them for None."""
    rows = call(q.session, "list_bindings", topic)
    return [row["pattern"] for row in rows if row["type"] == q.name]


# ---- matching ------------------------------------------------------------------------------------


def matches(pattern: str, topic: str) -> bool:
    """As AMQP defines it."""
    words, parts = topic.split("."), pattern.split(".")

    @cache
    def rest(i: int, j: int) -> bool:
        if j == len(parts):
            return i == len(words)
        if parts[j] == "#":
            return rest(i, j + 1) or (i < len(words) and rest(i + 1, j))
        return i < len(words) and parts[j] in ("*", words[i]) and rest(i + 1, j + 1)

    return rest(0, 0)


MATCHES = {
    "orders": ["orders", "*", "#", "#.orders", "orders.#", "#.orders.#", "#.#", "#.*", "*.#"],
    "orders.eu": ["orders.eu", "orders.*", "*.eu", "*.*", "#", "orders.#", "#.eu", "orders.#.eu", "#.#.eu", "*.#.*"],
    "orders.eu.paid": ["orders.*.paid", "orders.#", "#.paid", "*.*.*", "orders.#.paid", "*.#.paid", "#.eu.#", "#.*.*"],
}
NOT = ["orders.*.*.paid", "order", "orders.", "Orders.#", "*.orders.#", "eu", "eu.#", "*.*.*.#.*", "#.order", "ORDERS"]


def test_a_pattern_matches_as_in_amqp(q: Queue, types: Callable[[str], Queue]) -> None:
    patterns = sorted({p for each in MATCHES.values() for p in each} | {p for p in NOT if not p.endswith(".")})
    bind(q, *patterns)
    for topic, expected in MATCHES.items():
        assert set(expected) <= {p for p in patterns if matches(p, topic)}
        assert set(bound(q, topic)) == {p for p in patterns if matches(p, topic)}


@pytest.mark.parametrize("words", ["ab", ["a", "aa", "b", "A", "é", "e", "a_", "a%", "😀"]], ids=["two", "many"])
def test_random_patterns_match_what_an_independent_matcher_says(
    q: Queue, types: Callable[[str], Queue], words: Any
) -> None:
    chance = random.Random(1)
    patterns = {
        ".".join(chance.choices([*words, "*", "#"], [*[6 / len(words)] * len(words), 2, 2], k=chance.randint(1, 7)))
        for _ in range(250)
    }
    topics = {".".join(chance.choices(words, k=chance.choice([1, 2, 3, 4, 5, 8]))) for _ in range(40)}
    with q.session.transaction():
        bind(q, *patterns)
    for topic in topics:
        assert set(bound(q, topic)) == {p for p in patterns if matches(p, topic)}, topic


WORDS = [
    "a",
    "A",
    "á",
    "a\u0301",
    "_",
    "%",
    "a_",
    "aa",
    "[a]",
    "(a|b)",
    "a+",
    "a?",
    "^a$",
    "{a}",
    "a'",
    "$1",
    "-",
    "a,b",
    "ß",
    "ss",
    "İ",
]


def test_a_word_of_a_pattern_matches_only_itself(q: Queue, types: Callable[[str], Queue]) -> None:
    """Characters with a meaning in LIKE or regular expressions, and characters that a collation treats as equal."""
    with q.session.transaction():
        bind(q, *(f"{word}.x" for word in WORDS), *(f"*.#.{word}" for word in WORDS), *(f"#.{word}" for word in WORDS))
    for word in WORDS:
        assert bound(q, f"{word}.x") == [f"{word}.x"]
        assert sorted(bound(q, f"y.{word}")) == sorted([f"*.#.{word}", f"#.{word}"])


@pytest.mark.parametrize(
    ("pattern", "topic"),
    [
        (".".join(["#.a"] * 50), ".".join("a" * 100)),
        (".".join(["#.a"] * 49) + ".b", ".".join("a" * 100)),
        (".".join(["#", "*"] * 49) + ".b", ".".join("a" * 100)),
        (".".join(["*", "#", "a"] * 33), ".".join("a" * 100)),
        ("#." + ".".join("a" * 98) + "b", ".".join("a" * 100)),
        (".".join("#" * 100), ".".join("a" * 100)),
        ("*." + ".".join("#" * 98) + ".b", ".".join("a" * 100)),
        (".".join(["#.*.%.#.%._"] * 10), ".".join(["%._"] * 40) + ".x"),
        ("#.a" + ".#.aaaaaaaaab" * 15, "a" * 199),
    ],
)
def test_a_hostile_pattern_takes_no_time(q: Queue, types: Callable[[str], Queue], pattern: str, topic: str) -> None:
    pattern, topic = pattern[:200].rstrip("."), topic[:200].rstrip(".")
    assert max(len(pattern), len(topic)) <= 200
    bind(q, pattern)
    begun = time.monotonic()
    assert (bound(q, topic) == [pattern]) is matches(pattern, topic)
    assert time.monotonic() - begun < 5  # one that tries all ways takes minutes
    # Many of them: the others are not slower either.
    with q.session.transaction():
        for n in range(20):
            call(q.session, "bind_topic", f"{pattern[:190].rstrip('.')}.{n}", q.name)
    begun = time.monotonic()
    bound(q, topic)
    assert time.monotonic() - begun < 10


BAD = [
    "",
    ".",
    "a.",
    ".a",
    "a..b",
    " ",
    "a b",
    "a\tb",
    "a\n",
    "a\r.b",
    "a\x01b",
    "a\x7f",
    'a"b',
    "a\\b",
    "a\x1f.b",
    "\x0b.a",
    "x" * 201,
]


@pytest.mark.parametrize("topic", BAD)
def test_an_invalid_topic_is_an_invalid_pattern_too(q: Queue, topic: str) -> None:
    told = "1 to 200 characters" if topic in ("", "x" * 201) else "words separated by dots"
    with q.refused("invalid_argument", "topic: ", told):
        publish(q, topic)
    with q.refused("invalid_argument", "topic: ", told):
        call(q.session, "list_bindings", topic)
    with q.refused("invalid_argument", "pattern: ", told):
        call(q.session, "bind_topic", topic, q.name)


@pytest.mark.parametrize("pattern", ["a*", "*a", "**", "##", "#*", "a.b#.c", "a.*b", "a#b"])
def test_a_wildcard_is_a_word_by_itself(q: Queue, pattern: str) -> None:
    with refused("invalid_argument", PATTERN):
        call(q.session, "bind_topic", pattern, q.name)


@pytest.mark.parametrize("topic", ["*", "#", "a.*", "#.a", "a*", "a.b#"])
def test_a_topic_has_no_wildcards(q: Queue, topic: str) -> None:
    with q.refused("invalid_argument", TOPIC):
        publish(q, topic)
    with q.refused("invalid_argument", TOPIC):
        call(q.session, "list_bindings", topic)


# ---- bindings ------------------------------------------------------------------------------------


def test_a_binding_is_created_once_and_removed(q: Queue, types: Callable[[str], Queue], top: str) -> None:
    other = types("other")
    bind(q, f"{top}.a", f"{top}.#")
    bind(other, f"{top}.#")
    assert call(q.session, "bind_topic", f"{top}.#", q.name) == [{"created": 0}]
    mine = [tuple(row.values()) for row in call(q.session, "list_bindings") if row["pattern"].startswith(top)]
    assert mine == [(f"{top}.#", q.name), (f"{top}.#", other.name), (f"{top}.a", q.name)]
    assert [row["type"] for row in call(q.session, "list_bindings", f"{top}.b")] == [q.name, other.name]
    assert call(q.session, "unbind_topic", f"{top}.*") == [{"affected": 0}]
    assert call(q.session, "unbind_topic", f"{top}.a", other.name) == [{"affected": 0}]
    assert call(q.session, "unbind_topic", f"{top}.#", other.name) == [{"affected": 1}]
    assert call(q.session, "unbind_topic", None, q.name) == [{"affected": 2}]
    assert call(q.session, "list_bindings", f"{top}.a") == []


def test_unbinding_a_pattern_takes_it_from_all_types(q: Queue, types: Callable[[str], Queue], top: str) -> None:
    for each in (q, types("a"), types("b")):
        bind(each, f"{top}.#")
    assert call(q.session, "unbind_topic", f"{top}.#") == [{"affected": 3}]
    assert publish(q, top) == 0


def test_unbinding_nothing_in_particular_is_refused(q: Queue, top: str) -> None:
    bind(q, f"{top}.#")
    for values in ((), (None,), (None, None)):
        with refused("invalid_argument", "pattern: give a pattern, a type, or both"):
            call(q.session, "unbind_topic", *values)
    assert publish(q, top) == 1


# ---- publish -------------------------------------------------------------------------------------


def test_publish_sends_one_message_to_each_bound_type(q: Queue, types: Callable[[str], Queue], top: str) -> None:
    every, paid, other = types("every"), types("paid"), types("other")
    bind(every, f"{top}.#", f"{top}.*.paid", "*.eu.paid")
    bind(paid, f"{top}.*.paid")
    bind(other, f"{top}.us.#")
    assert publish(q, f"{top}.eu.paid", "17") == 2
    assert publish(q, f"{top}.us", "18") == 2
    assert publish(q, f"{top[1:]}.eu.PAID", "19") == 0
    assert [(row["body"], row["headers"]) for row in every.rows()] == [
        ("17", f'{{"topic":"{top}.eu.paid"}}'),
        ("18", f'{{"topic":"{top}.us"}}'),
    ]
    assert [row["body"] for row in paid.rows()] == ["17"]
    assert [row["body"] for row in other.rows()] == ["18"]
    assert q.rows() == []
    [row] = paid.claim()
    assert (row["priority"], row["group_key"], row["dedup_key"], row["attempt"]) == (0, None, None, 1)
    assert row["source"].startswith("test")


def test_publish_sets_all_options_on_each_message(q: Queue, types: Callable[[str], Queue], top: str) -> None:
    first, second = types("1"), types("2")
    second.ordered()
    for each in (first, second):
        bind(each, top)
    due = in_an_hour()
    options = {"priority": -7, "group_key": "g", "dedup_key": "d", "source": "shop"}
    assert publish(q, top, "b", run_at=due, headers='{"a": [1]}', max_attempts=1, **options) == 2
    for each in (first, second):
        [row] = each.rows()
        assert {name: row[name] for name in options} == options
        assert (row["run_at"], row["headers"]) == (due, f'{{"topic":"{top}","a": [1]}}')
    assert publish(q, top, "c", **options) == 0
    assert publish(q, top, "c", on_conflict="replace", **options) == 0
    for each in (first, second):
        [row] = each.claim(10)
        assert (row["body"], row["headers"], row["group_key"]) == ("c", f'{{"topic":"{top}"}}', "g")
        assert each.one("fail", row["id"], row["batch_key"], "no", 0) == "E"
    first.call("purge", "E")
    assert publish(q, top, "e", delay_seconds=3_600, dedup_key="d") == 1
    assert (first.stats()["delayed"], second.stats()["dead"]) == (1, 1)


def test_an_ordered_type_gets_its_groups_in_order(q: Queue, types: Callable[[str], Queue], top: str) -> None:
    each = types("1").ordered()
    bind(each, top)
    for n in range(6):
        publish(q, top, str(n), group_key="gh"[n % 2])
    assert [row["body"] for row in each.claim(10)] == ["0", "1"]
    assert each.claim(10) == []


HEADERS = {
    "{}": '{{"topic":"{}"}}',
    "{ \n}": '{{"topic":"{}"}}',
    '{"a":1}': '{{"topic":"{}","a":1}}',
    '{"a": {"b": [1, "}"]}}': '{{"topic":"{}","a": {{"b": [1, "}}"]}}}}',
    '{ "é😀" : null }': '{{"topic":"{}", "é😀" : null }}',
}


@pytest.mark.parametrize(("headers", "expected"), HEADERS.items())
def test_the_topic_comes_first_in_the_headers(
    q: Queue, types: Callable[[str], Queue], top: str, headers: str, expected: str
) -> None:
    bind(q, top)
    publish(q, top, headers=headers)
    [row] = q.rows()
    assert row["headers"] == expected.format(top)
    json.loads(row["headers"])


@pytest.mark.parametrize("headers", ["", "{", "[]", '{"a":1', '{"topic":"other"}', '{"a":1,"a":2}'])
def test_headers_that_are_no_object_or_name_the_topic_are_refused(q: Queue, top: str, headers: str) -> None:
    bind(q, top)
    with q.refused("invalid_argument", "headers: must be a JSON object"):
        publish(q, top, headers=headers)


def test_the_longest_headers_have_the_topic_in_them(q: Queue, types: Callable[[str], Queue], top: str) -> None:
    bind(q, top)
    room = 65_536 - len(f'{{"topic":"{top}",""a":""}}')
    headers = '{"a":"' + "é" * (room // 2) + "x" * (room % 2) + '"}'
    with q.refused("invalid_argument", "headers: ", "64 KiB"):
        publish(q, top, headers=headers.replace("é", "éx", 2))
    assert publish(q, top, headers=headers) == 1
    [row] = q.claim()
    assert row["headers"] == f'{{"topic":"{top}",{headers[1:]}'
    assert len(row["headers"].encode()) == 65_535


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"body": "x" * 16_777_217}, "body: "),
        ({"priority": 32_768}, "priority: "),
        ({"group_key": ""}, "group_key: "),
        ({"dedup_key": "x" * 201}, "dedup_key: "),
        ({"max_attempts": 0}, "max_attempts: "),
        ({"source": ""}, "source: "),
        ({"delay_seconds": -1}, "delay_seconds: "),
        ({"delay_seconds": 1, "run_at": LONG_AGO}, "delay_seconds: must be NULL when run_at is given"),
        ({"on_conflict": "replace"}, "on_conflict: replace and postpone need a dedup_key"),
        ({"on_conflict": "x", "dedup_key": "d"}, "on_conflict: must be keep, replace or postpone"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
@pytest.mark.parametrize("is_bound", [True, False])
def test_a_bad_argument_is_refused_even_if_no_queue_is_bound(
    q: Queue, types: Callable[[str], Queue], top: str, is_bound: bool, options: dict[str, Any], told: str
) -> None:
    if is_bound:
        bind(q, top)
    with q.refused("invalid_argument", told):
        call(q.session, "publish_with", **{"topic": top, "body": "b"} | options)


def test_publish_is_all_or_nothing_and_part_of_the_callers_transaction(
    q: Queue, other: Queue, types: Callable[[str], Queue], top: str
) -> None:
    bound = [types(str(n)) for n in range(3)]
    for each in bound:
        bind(each, f"{top}.#")
    with pytest.raises(ZeroDivisionError), q.session.transaction():
        assert publish(q, top) == 3
        assert other.named(bound[0].name).claim() == []
        raise ZeroDivisionError
    assert [each.rows() for each in bound] == [[]] * 3
    with q.session.transaction():
        publish(q, top, "1")
        publish(q, f"{top}.x", "2")
    assert [[row["body"] for row in each.claim(10)] for each in bound] == [["1", "2"]] * 3


def test_a_binding_counts_from_its_commit_on(q: Queue, other: Queue, types: Callable[[str], Queue], top: str) -> None:
    with q.session.transaction():
        bind(q, top)
        assert publish(q, top) == 1
        assert publish(other, top) == 0
    assert publish(other, top) == 1


def test_a_type_whose_name_sorts_before_all_others_gets_its_message(q: Queue, top: str) -> None:
    first = q.named(f"\x01\x02{q.name}")
    bind(first, top)
    assert publish(q, top) == 1
    assert len(first.claim(10)) == 1
    call(q.session, "unbind_topic", None, first.name)


def test_types_that_differ_by_case_are_different(q: Queue, types: Callable[[str], Queue], top: str) -> None:
    small, big = types("a"), types("A")
    bind(small, f"{top}.a")
    bind(big, f"{top}.A")
    assert publish(q, f"{top}.A") == 1
    assert (len(small.rows()), len(big.rows())) == (0, 1)


def test_publish_to_a_paused_type_waits_there(q: Queue, types: Callable[[str], Queue], top: str) -> None:
    bind(q, top)
    q.call("pause")
    assert publish(q, top) == 1
    assert q.claim() == []
    q.call("resume")
    assert len(q.claim()) == 1


def test_a_round_robin_claim_gets_what_is_published(q: Queue, types: Callable[[str], Queue], top: str) -> None:
    bind(q.ring(), top)
    first = q.send()
    assert ids(q.call("claim_wraparound", 10, "consumer")) == [first]
    publish(q, top, "b")
    assert [row["body"] for row in q.call("claim_wraparound", 10, "consumer")] == ["b"]


# ---- watched tables ------------------------------------------------------------------------------


def subscriptions(q: Queue, table: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values())[1:] for row in call(q.session, "list_subscriptions", table)]


def test_a_watched_table_publishes_its_changes_to_a_topic(q: Queue, types: Callable[[str], Queue], top: str) -> None:
    table, direct, twice = make_watched(q), types("direct"), types("twice")
    assert call(q.session, "subscribe", table, "IU", topic=f"{top}.stock") == [{"affected": 2}]
    assert call(q.session, "subscribe", table, "I", direct.name) == [{"affected": 1}]
    q.sql(f"INSERT INTO {table} (id, v) VALUES (1, 'nobody is bound')")
    bind(q, f"{top}.#", "*.stock")
    bind(twice, f"{top}.stock")
    assert call(q.session, "subscribe", table, "I", twice.name) == [{"affected": 1}]
    q.sql(f"INSERT INTO {table} (id, v) SELECT id + 1, v FROM {table}")
    q.sql(f"UPDATE {table} SET v = 'new'")
    q.sql(f"DELETE FROM {table}")
    headers = f'{{"topic":"{top}.stock"}}'
    assert [(json.loads(row["body"])["action"], row["headers"]) for row in q.rows()] == [
        ("I", headers),
        ("U", headers),
        ("U", headers),
    ]
    assert [row["headers"] for row in direct.rows()] == [None, None]
    told = [(json.loads(row["body"])["action"], row["headers"]) for row in twice.rows()]
    assert sorted(told, key=str) == sorted([("I", None), ("I", headers), ("U", headers), ("U", headers)], key=str)
    assert len(q.claim(10)) == 3


def test_a_topic_is_looked_up_when_the_table_changes(q: Queue, types: Callable[[str], Queue], top: str) -> None:
    table, other = make_watched(q), types("other").ordered()
    call(q.session, "subscribe", table, "I", None, top)
    bind(q, top)
    q.sql(f"INSERT INTO {table} (id, v) VALUES (1, 'x')")
    call(q.session, "unbind_topic", None, q.name)
    bind(other, f"{top}.#")
    q.sql(f"INSERT INTO {table} (id, v) VALUES (2, 'x')")
    q.sql(f"INSERT INTO {table} (id, v) VALUES (3, 'x')")
    assert (len(q.rows()), len(other.rows())) == (1, 2)
    assert len(other.claim(10)) == 1, "it is ordered, and they have no group"


def test_subscriptions_to_types_and_to_topics_are_distinguished(
    q: Queue, types: Callable[[str], Queue], top: str
) -> None:
    table, word = make_watched(q), f"t{uuid.uuid4().hex[:8]}"
    for topic in (None, word):
        call(q.session, "subscribe", table, "ID", word if topic is None else None, topic)
        assert call(q.session, "subscribe", table, "I", word if topic is None else None, topic) == [{"affected": 0}]
    call(q.session, "subscribe", table, "I", None, "a.b")
    assert sorted(subscriptions(q, table), key=str) == sorted(
        [("I", word, None), ("I", None, word), ("I", None, "a.b"), ("D", word, None), ("D", None, word)], key=str
    )
    assert [action for action, _, _ in subscriptions(q, table)] == ["I", "I", "I", "D", "D"]
    assert call(q.session, "unsubscribe", table, "I", word) == [{"affected": 1}]
    assert call(q.session, "unsubscribe", table, None, None, word) == [{"affected": 2}]
    assert sorted(subscriptions(q, table), key=str) == sorted([("I", None, "a.b"), ("D", word, None)], key=str)
    assert call(q.session, "unsubscribe", table, "I") == [{"affected": 1}]
    assert call(q.session, "unsubscribe", table, "IUD") == [{"affected": 1}]
    assert subscriptions(q, table) == [(None, None, None)]


def test_a_subscription_is_to_a_type_or_to_a_topic(q: Queue) -> None:
    table = make_watched(q)
    for type, topic in ((None, None), (q.name, "a.b")):
        with refused("invalid_argument", "type: give either a type or a topic"):
            call(q.session, "subscribe", table, "I", type, topic)
    with refused("invalid_argument", "type: give either a type or a topic"):
        call(q.session, "unsubscribe", table, "I", q.name, "a.b")
    for topic in ("a.*", "a..b", "a b"):
        with refused("invalid_argument", TOPIC):
            call(q.session, "subscribe", table, "I", None, topic)
    assert subscriptions(q, table) == [(None, None, None)]


def test_a_rolled_back_writer_publishes_nothing(
    q: Queue, types: Callable[[str], Queue], top: str, connect: Callable[..., Session]
) -> None:
    table = make_watched(q)
    bind(q, top)
    call(q.session, "subscribe", table, "I", None, top)
    with pytest.raises(ZeroDivisionError), connect("writer").transaction() as connection:
        connection.cursor().execute(f"INSERT INTO {table} (id, v) VALUES (1, 'x')")
        raise ZeroDivisionError
    assert q.rows() == []
