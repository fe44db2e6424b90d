"""The list of outcomes that finish_batch and finish_rows take."""

import json
from typing import Any


def done(id: Any) -> str:
    """The line of an item that did not fail."""
    return json.dumps({"id": id})


def failure(id: Any, error: str, retry: int | None = None) -> str:
    """The line of an item that failed. `retry`: seconds until the retry; None: the default backoff; -1: never."""
    said = {} if retry is None else {"dead": 1} if retry == -1 else {"retry_after_seconds": retry}
    return json.dumps({"id": id, "error": error, **said}, ensure_ascii=False)


def dead_letter(id: Any, error: str) -> str:
    """The line of an item that is never tried again."""
    return failure(id, error, -1)


def joined(*lines: str) -> str:
    """The list of these lines."""
    return "\n".join(lines)
