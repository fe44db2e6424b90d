"""Handlers for `runner consume` on clusters. Each writes what it received to the file CHORES."""

import json
import os
import time

from rowqueue import Message, RowMessage


def _note(value: object) -> None:
    """Append a line in one write, because several processes write to the file."""
    file = os.open(os.environ["CHORES"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, (json.dumps(value) + "\n").encode())
    finally:
        os.close(file)


def single(message: Message) -> None:
    _note([message.body, time.monotonic()])


def several(messages: list[Message]) -> None:
    for message in messages:
        _note([message.body, time.monotonic()])


def slow(message: Message) -> None:
    """Long enough for a node to die while it runs."""
    _note([message.body, time.monotonic()])
    time.sleep(0.01)


def effect(message: Message) -> None:
    """Work in the transaction that takes the message."""
    message.connection.cursor().execute("INSERT INTO effect (body) VALUES (%s)", [message.body])


def effect_in_order(message: Message) -> None:
    """The same for a body `group number`. Notes a message whose predecessor has not had its effect."""
    group, _, number = message.body.partition(" ")
    cursor = message.connection.cursor()
    cursor.execute("SELECT COUNT(*) FROM effect WHERE body LIKE %s", [f"{group} %"])
    if cursor.fetchone()[0] != int(number):
        _note([message.body, time.monotonic()])
    effect(message)


def row(message: RowMessage) -> None:
    """A row of a polling table."""
    _note([message.row["v"], time.monotonic()])
