"""rowqueue: a message queue in the database you already run. The logic is in the SQL; this package calls it."""

from .feeds import Record
from .handlers import Discard, Message, Retry
from .polling import RowMessage

__all__ = ["Discard", "Message", "Record", "Retry", "RowMessage"]
