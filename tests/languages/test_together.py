"""The clients of all languages on one queue at the same time, as producers and as consumers."""

import json
import random
import signal
import uuid
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import cycle, islice
from subprocess import Popen

import pytest
from languages import LANGUAGES
from servers import Server, product
from suite import FAIL, FAILURE, SIZE, Client, MakeClient, bodies
from support.waiting import until

MESSAGES = 5000
PRODUCERS = 6  # or one of each language, where there are more
AT_A_TIME = 170  # messages in one transaction of a producer
# Longer than in the tests of one client: twenty processes run at the same time.
LEASE_SECONDS = 6
# The outcomes of the words that the handlers know; all other messages are done at the first attempt.
ATTEMPTS = {FAIL: 3, "dead": 1, "retry": 2}
ERRORS = {FAIL: FAILURE, "dead": "no such address"}

pytestmark = pytest.mark.product(*{product for language in LANGUAGES for product in language.drivers})


@pytest.fixture
def clients(server: Server, make_client: MakeClient) -> dict[str, Client]:
    """One of each language that has a driver for the server."""
    of_server = [language for language in LANGUAGES if product(server.name) in language.drivers]
    return {language.name: make_client(language, lease_seconds=LEASE_SECONDS) for language in of_server}


def stop(client: Client, consumer: Popen[bytes]) -> None:
    """It has done something, so it is ready to receive the signal."""
    consumer.send_signal(signal.SIGTERM)
    assert consumer.wait(10) == 0


def produce(client: Client, type: str, messages: list[str]) -> None:
    """In several transactions; after each, one that fails after sending and one that the queue refuses."""
    for begin in range(0, len(messages), AT_A_TIME):
        sent = client.send(type, *messages[begin : begin + AT_A_TIME])
        assert (sent.returncode, sent.stderr) == (0, ""), sent
        assert client.send(type, "taken back", "too long for the table" * 20).returncode == 1
        refused = client.send("x" * 201, "refused")
        assert refused.returncode == 1 and "50002 invalid_argument: type: must be" in refused.stderr, refused


def set_queue(client: Client, type: str, *, ordered: int) -> None:
    with closing(client.database.connect("test")) as session:
        session.call(
            "set_queue",
            type,
            json.dumps({"max_attempts": 3, "backoff_seconds": 0, "on_complete": "archive", "ordered": ordered}),
        )


def test_clients_of_all_languages_do_each_message_once(server: Server, clients: dict[str, Client]) -> None:
    type = f"test.{uuid.uuid4().hex[:16]}"
    any_client = next(iter(clients.values()))
    set_queue(any_client, type, ordered=0)
    # The consumer of one language, another one on each product, is killed in the midst of these.
    name = list(clients)[zlib.crc32(product(server.name).encode()) % len(clients)]
    first = ["one", "slow", *(f"{n}" for n in range(SIZE - 3)), "slow"]
    assert clients[name].send(type, *first).returncode == 0
    other = [FAIL, "dead"] * 100 + ["retry"] * 400
    sent = [*bodies(MESSAGES - len(first) - len(other)), *other]
    random.Random(1).shuffle(sent)

    count = max(PRODUCERS, len(clients))
    with ThreadPoolExecutor(count) as threads, ExitStack() as stack:
        killed = stack.enter_context(clients[name].consumer(type, "killed"))
        until(lambda: clients[name].handled("killed") and clients[name].is_slow(type), "the first message")
        of_killed = {id: row["batch_key"] for id, row in any_client.held(type).items()}
        assert len(of_killed) == clients[name].size, f"{name} holds not all: {of_killed}"
        producers = [
            threads.submit(produce, client, type, sent[n::count])
            for n, client in enumerate(islice(cycle(clients.values()), count))
        ]
        running = [(client, stack.enter_context(client.consumer(type, "consumer"))) for client in clients.values()]
        until(lambda: any_client.orders() > SIZE, "the first messages of the producers")
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        keys = {row["id"]: row["batch_key"] for row in any_client.messages(type)}
        assert {id: keys.get(id) for id in of_killed} == of_killed, f"{name} was not in the midst of a batch"
        for producer in producers:
            producer.result()
        until(lambda: any_client.unfinished(type) == 0, "all messages done", 120)
        for client, consumer in running:
            assert len(client.handled("consumer")) > SIZE
            stop(client, consumer)

    rows = {row["id"]: row for row in any_client.messages(type)}
    assert Counter(row["body"] for row in rows.values()) == Counter(first + sent)
    assert any_client.orders() == MESSAGES
    _check_record(rows, set(of_killed))
    finished = [line for line in clients[name].handled("killed") if line[0] not in of_killed]
    _check_handled(clients, rows, finished)
    assert of_killed.keys() - {id for id, _ in clients[name].handled("killed")}, "killed in the midst of its work"


def test_clients_of_all_languages_keep_the_order_of_a_queue(clients: dict[str, Client]) -> None:
    """In each round one sends, and the consumer that has done most is stopped: in the end all take part."""
    type = f"test.{uuid.uuid4().hex[:16]}"
    any_client = next(iter(clients.values()))
    set_queue(any_client, type, ordered=1)
    sent = []
    with ExitStack() as stack:
        running = {name: stack.enter_context(client.consumer(type, "consumer")) for name, client in clients.items()}
        done = Counter[str]()
        for sender in clients.values():
            sent += [*bodies(10), "retry", FAIL, "dead", "retry"]
            assert sender.send(type, *sent[-14:]).returncode == 0
            until(lambda: any_client.unfinished(type) == 0, "all messages done")
            before, done = done, Counter({name: len(client.handled("consumer")) for name, client in clients.items()})
            [(name, _)] = (done - before).most_common(1)
            stop(clients[name], running.pop(name))
    rows = {row["id"]: row for row in any_client.messages(type)}
    assert [row["body"] for row in rows.values()] == sent
    _check_record(rows, set())
    _check_handled(clients, rows, [])
    times = [row["changed_at"] for row in rows.values()]
    assert times == sorted(times)


def _check_record(rows: dict[int, dict[str, object]], of_killed: set[int]) -> None:
    """Each message is completed or dead, once, after the attempts that it must have had."""
    for id, row in rows.items():
        body = str(row["body"])
        assert (row["state"], row["error"]) == (("E", ERRORS[body]) if body in ERRORS else ("C", None)), row
        assert row["attempts"] == ATTEMPTS.get(body, 1) + (id in of_killed), row


def _check_handled(
    clients: dict[str, Client], rows: dict[int, dict[str, object]], finished: list[tuple[int, str]]
) -> None:
    """Each message that can be done was done once, with the text that was sent; some before a consumer was killed."""
    handled = Counter([*finished, *(line for client in clients.values() for line in client.handled("consumer"))])
    assert handled == Counter((id, row["body"]) for id, row in rows.items() if row["body"] not in ERRORS)
