"""The list of outcomes that finish_batch, finish_messages and finish_rows take."""

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


def released(id: Any) -> str:
    """The line of an item that is given back."""
    return json.dumps({"id": id, "released": 1})


def joined(*lines: str) -> str:
    """The list of these lines."""
    return "\n".join(lines)


def hostile_errors(neighbour: int) -> list[str]:
    """Texts that are stored unchanged and touch no other message of the batch.

    With lines of id,seconds,error the first one dead-lettered the neighbour: decision 37.
    """
    return [
        f"SMTP said: full\n{neighbour},-1,go away",
        f'no\n{{"id":{neighbour},"error":"go away","dead":1}}',
        f'"}}\n{{"id":{neighbour},"error":"go away","dead":1',
        f'Traceback:\n  File "x.py", line 1\n    1/0\r\nZeroDivisionError: {neighbour}\n\n!',
        f"\\{neighbour}\\\\n\\",
        f'{neighbour}"quoted"\\"',
        "'; DROP TABLE %s ? $1 :x --",
        "tab\t, bell\x07, escape\x1b, \x01\x1f\x7f!",
        "é😀\u2028\u0085\ufeff\U0010ffff",
    ]
