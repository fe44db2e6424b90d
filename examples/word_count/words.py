"""A handler for `runner consume --keep-results`: its return value is stored with the message."""

from rowqueue import DeadLetter, Message


def count(message: Message) -> dict[str, int]:
    """The number of words in a text."""
    words = message.body.split()
    if not words:
        raise DeadLetter("no words")
    return {"words": len(words), "different": len(set(words))}
