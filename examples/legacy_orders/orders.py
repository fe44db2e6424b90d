"""Handles the table legacy_orders: appends a confirmation for each new order to a file.

runner table consume orders --handler orders:confirm
"""

import os
from pathlib import Path

from rowqueue import DeadLetter, Retry, RowMessage

OUTBOX = Path(os.environ.get("ORDERS_OUTBOX", "confirmations.txt"))


def confirm(message: RowMessage) -> None:
    """Handle one order. The columns of the row are named as the database folds them."""
    order = {name.lower(): value for name, value in message.row.items()}
    if not order["email"]:
        raise DeadLetter("no address")
    if "@" not in order["email"] and message.attempt == 1:
        raise Retry("not an address yet", after=0)
    line = f"order {order['order_no']}: {order['item']} to {order['email']}\n"
    with OUTBOX.open("a", encoding="utf-8") as file:
        file.write(line)
