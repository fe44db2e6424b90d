"""A handler for `runner consume`: delete old files.

A message is {"folder": "exports", "days": 30}. Deleting twice does no harm, so the handler may run again after a crash.
"""

import json
import time
from pathlib import Path

from rowqueue import DeadLetter, Message

DAY = 86_400  # seconds


def clean(message: Message) -> None:
    """Delete the files in the folder that were last changed more than `days` ago."""
    try:
        order = json.loads(message.body)
        folder, days = Path(order["folder"]), float(order["days"])
    except (ValueError, TypeError, KeyError) as error:
        raise DeadLetter(f"not an order for housekeeping: {error}") from error
    limit = time.time() - days * DAY
    old = [path for path in folder.iterdir() if path.is_file() and path.stat().st_mtime < limit]
    for path in old:
        path.unlink(missing_ok=True)
    print(f"{folder}: {len(old)} deleted", flush=True)
