"""docs/howto/outbox.md: a message is sent when its transaction commits, on every engine."""

from pathlib import Path

import pytest
from rowqueue.databases import Database
from servers import Server
from shops import DOCS, blocks, make
from tabs import for_engine

pytestmark = pytest.mark.one_engine


def test_the_message_of_a_rolled_back_transaction_is_gone(
    installed_database: Database, server: Server, tmp_path: Path
) -> None:
    shop = make(server, installed_database.url, tmp_path)
    page = for_engine((DOCS / "howto" / "outbox.md").read_text("utf-8"), installed_database.name)
    [(kind, text)] = blocks(page)
    said = shop.do(kind, text)
    assert "customer" in said and [row["body"] for row in shop.call("peek", "welcome", "N")] == ['{"customer":7}']
