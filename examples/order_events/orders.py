"""Two handlers for `runner consume`: each does its part for the same event."""

import json

from rowqueue import DeadLetter, Message


def invoice(message: Message) -> None:
    """Write the invoice of an order that was paid."""
    try:
        order = json.loads(message.body)
        line = f"invoice for order {order['order']}: {order['total']}"
    except (ValueError, TypeError, KeyError) as error:
        raise DeadLetter(f"not an order: {error}") from error
    print(line, flush=True)


def count(message: Message) -> None:
    """Note the topic of any event."""
    print(json.loads(message.headers or "{}").get("topic", "no topic"), flush=True)
