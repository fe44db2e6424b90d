"""docs/languages/python.md: every block of code runs, and does what the page says."""

import asyncio
import re
import time
from pathlib import Path
from typing import Any

import pytest
import rowqueue
from rowqueue.databases import Database, open_database
from servers import Server

pytestmark = pytest.mark.product("postgresql")

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "languages" / "python.md").read_text("utf-8")


def names(**given: Any) -> dict[str, Any]:
    """What the page's blocks define, run in its order."""
    found: dict[str, Any] = dict(given)
    for block in re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S):
        exec(block, found)
    return found


def test_the_blocks_of_the_page_do_what_it_says(installed_database: Database, server: Server) -> None:
    import psycopg
    from support import applications

    url = installed_database.url
    django = applications.django_connection(url)
    delivered: list[str] = []

    def deliver(body: str) -> None:
        if "alan" in body:
            raise ValueError("mailbox full")
        delivered.append(body)

    page = names(deliver=deliver)
    server.query(url, "CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY, customer text)")
    with psycopg.connect(url) as connection:
        page["place_order"](connection, "Ada")
    from sqlalchemy.orm import Session

    engine = applications.engine_of(url)
    with Session(engine) as session:
        page["place_order_in_session"](session, "Grace")
    engine.dispose()
    page["place_order_in_django"]("Alan")
    django.close()

    async def place() -> None:
        async with await psycopg.AsyncConnection.connect(url) as connection:
            await page["place_order_async"](connection, "Edsger")

    asyncio.run(place())
    orders = server.query(url, "SELECT customer FROM orders ORDER BY id")
    assert [row["customer"] for row in orders] == ["Ada", "Grace", "Alan", "Edsger"]
    states = server.query(url, "SELECT body, state FROM mq.message_state ORDER BY id")
    assert [re.findall(r"\w+(?=@)", row["body"])[0] for row in states] == ["ada", "grace", "alan", "edsger"]
    with psycopg.connect(url) as connection:
        assert page["work"](connection) == 1
    assert delivered == ['{"to": "ada@example.org"}', '{"to": "edsger@example.org"}'], "one is delayed by a minute"
    [failed] = server.query(url, "SELECT error FROM mq.message_state WHERE attempts = 1")
    assert failed == {"error": "ValueError: mailbox full"}


def test_a_consumer_runs_in_the_background(installed_database: Database) -> None:
    handled: list[str] = []
    session = open_database(installed_database.url).connect("test")
    session.call("send", "email", "x")
    consumer, thread = names()["consume_in_background"](
        installed_database.url, lambda message: handled.append(message.body)
    )
    deadline = time.monotonic() + 30
    while not handled and time.monotonic() < deadline:
        time.sleep(0.01)
    consumer.stop()
    thread.join(30)
    assert handled == ["x"] and not thread.is_alive()
    assert session.call("peek", "email", "N") == []
    session.close()


def test_the_tables_name_every_function() -> None:
    import inspect

    functions = {name for name in rowqueue.__all__ if inspect.isfunction(getattr(rowqueue, name))}
    assert functions == set(rowqueue.aio.__all__)
    assert functions == set(re.findall(r"^\| `(\w+)\(connection", PAGE, re.M))
    for name in (
        "QueueError",
        "LeaseLost",
        "Conflict",
        "Disconnected",
        "ReadOnly",
        "SchemaMissing",
        "NotAllowed",
        "DatabaseError",
    ):
        assert f"`{name}`" in PAGE
