"""rowqueue: a message queue in the database you already run. The logic is in the SQL; this package calls it."""

from .messages import Discard, Message, Record, Retry, RowMessage

__all__ = ["Discard", "Message", "Record", "Retry", "RowMessage"]
