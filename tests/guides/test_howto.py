"""Pages of docs/howto with SQL per engine: their blocks do what the pages say, on every engine."""

import re
from pathlib import Path

import pytest
from rowqueue.databases import Database
from servers import Server
from shops import DOCS, Shop, blocks, make
from tabs import for_engine


@pytest.fixture
def shop(installed_database: Database, server: Server, tmp_path: Path) -> Shop:
    return make(server, installed_database.url, tmp_path)


def do(shop: Shop, task: str) -> str:
    """What the only block of a page prints."""
    page = for_engine((DOCS / "howto" / f"{task}.md").read_text("utf-8"), shop.engine)
    [(kind, text)] = blocks(page)
    return shop.do(kind, text)


def test_the_message_of_a_rolled_back_transaction_is_gone(shop: Shop) -> None:
    said = do(shop, "outbox")
    assert "customer" in said and [row["body"] for row in shop.call("peek", "welcome", "N")] == ['{"customer":7}']


def test_a_second_round_begins_where_the_first_one_ended(shop: Shop) -> None:
    said = do(shop, "visits")
    if shop.engine != "sqlserver":  # its harness returns the last result only
        assert re.findall(r"host-[abc]", said)[-4:] == ["host-a", "host-b", "host-c", "host-a"]
    assert {row["body"] for row in shop.call("peek", "visit", "A", 10)} == {"host-c", "host-a"}


def test_the_next_attempt_finds_the_steps(shop: Shop) -> None:
    page = for_engine((DOCS / "howto" / "steps.md").read_text("utf-8").partition("## In SQL")[2], shop.engine)
    [(kind, text)] = blocks(page)
    assert "charge" in shop.do(kind, text)
    [row] = shop.call("peek", "parcel")
    assert [step["step"] for step in shop.call("list_steps", row["id"])] == ["charge"]


def test_a_cancelled_message_is_gone_after_its_attempt(shop: Shop) -> None:
    page = for_engine((DOCS / "howto" / "cancel.md").read_text("utf-8").partition("## In SQL")[2], shop.engine)
    [(kind, text)] = blocks(page)
    shop.do(kind, text)
    assert shop.call("peek", "parcel") == shop.call("peek", "parcel", "A") == shop.call("peek", "parcel", "E") == []
