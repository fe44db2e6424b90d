"""A handler for `runner consume --keep-results`: what it returns is kept with the message."""

from rowqueue import Discard, Message


def count(message: Message) -> dict[str, int]:
    """How many words a text has."""
    words = message.body.split()
    if not words:
        raise Discard("no words")
    return {"words": len(words), "different": len(set(words))}
