"""An order in three steps: charged, packed, shipped. A retry continues after the last one that is done."""

import json
import os
from pathlib import Path
from typing import Any

import psycopg
import rowqueue

FOLDER = Path(os.environ.get("SHOP_FOLDER", "."))
COOLING_OFF = float(os.environ.get("COOLING_OFF_SECONDS", "2"))


def handle(message: rowqueue.Message) -> None:
    """One order. The steps that an earlier attempt has done are not done again."""
    order = json.loads(message.body)
    charge = message.steps.run("charge", lambda: ask_bank(order))
    # The parcel and the step are in one database: they are committed together, or neither.
    with psycopg.connect(os.environ["RUNNER_DATABASE"]) as connection:
        message.steps.run("pack", lambda: pack(connection, order, charge), connection)
    # The customer may still cancel. The message is put back; this process does other work meanwhile.
    message.steps.sleep(COOLING_OFF)
    message.steps.run("ship", lambda: call_carrier(order))


def ask_bank(order: dict[str, Any]) -> str:
    """The bank's number of the charge. It stands for a request to another system, which may happen twice."""
    key = f"order-{order['number']}-charge"
    # A crash between the request and the step repeats the request: with the same key, the bank does not charge twice.
    with (FOLDER / "bank.txt").open("a") as requests:
        requests.write(f"{key} {order['amount']}\n")
    return f"ch_{order['number']}"


def pack(connection: "psycopg.Connection[Any]", order: dict[str, Any], charge: str) -> int:
    """The number of the parcel."""
    insert = "INSERT INTO parcel (order_number, charge) VALUES (%s, %s) RETURNING id"
    row = connection.execute(insert, [order["number"], charge]).fetchone()
    assert row is not None
    return int(row[0])


def call_carrier(order: dict[str, Any]) -> None:
    """Another request that may happen twice."""
    with (FOLDER / "carrier.txt").open("a") as requests:
        requests.write(f"order-{order['number']}-parcel\n")
