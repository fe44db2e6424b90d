"""Texts of senders and handlers, made safe for a terminal, a log or a label."""

import json
import logging

from .messages import text_of


def escaped(text: str) -> str:
    """A text for a terminal, a log or a label: on one line, with control and direction characters as in JSON.

    Texts of senders may contain sequences that move the cursor, forge a line or turn the reading direction.
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def escape_record(record: logging.LogRecord) -> bool:
    """A filter for log records: escapes the texts in their arguments."""
    if isinstance(record.args, tuple):
        record.args = tuple(a if isinstance(a, int | float) else escaped(text_of(a)) for a in record.args)
    return True


def escaped_lines(text: str) -> str:
    """As `escaped`, but lines are kept and tabs become spaces."""
    return "\n".join(escaped(line.expandtabs(4)) for line in text.replace("\r\n", "\n").split("\n"))
