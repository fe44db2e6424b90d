"""The queues of a consumer: those that it names and those that its patterns match, and whose turn it is."""

import logging
import random
import re
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from ..databases import Conflict, Disconnected
from .link import Link
from .options import Options

log = logging.getLogger("rowqueue")

# The limits of a list of types in one call: claim_any's, and what every server accepts.
MOST, LONGEST = 1_000, 100_000
LIST_SECONDS = 2.0  # a new queue is found after this time at the latest,
LIST_SHARE = 20  # or, where the list takes long, after this many times as long
FORGET_SECONDS = 600.0  # a queue without messages and settings is kept for this long
PAGE = 1_000
LOGGED = 20  # names of new queues in one line of the log


class Queues:
    """The names of all queues, in an order in which they take turns. All threads use it."""

    def __init__(self, options: Options) -> None:
        self._named, self._patterns = options.types, options.patterns
        self._matches = [_expression(pattern) for pattern in options.patterns]
        self._excluded = [_expression(pattern) for pattern in options.exclude]
        self._prefixes = sorted({_prefix(pattern) for pattern in options.patterns})
        self._listing = threading.Lock()
        self._list_at = 0.0
        self._seen: dict[str, float] = {}  # when the queues that match were last listed
        self._last = random.choice(options.types) if options.types else ""  # which had its turn last
        self._asked = 0
        self.known: tuple[str, ...] = ()
        self._set(options.types)

    @property
    def are_one(self) -> bool:
        """Whether there is one queue, and never another one."""
        return not self._patterns and len(self._named) == 1

    @property
    def calls(self) -> int:
        """How many calls ask about all queues."""
        return max(-(-len(self.known) // MOST), 1)

    def lists(self, first: Iterable[str] = ()) -> list[list[str]]:
        """All queues in the order of their turns, as lists for a call each. `first`: these come before the others."""
        return self._parts(first, self._places.get(self._last, -1) + 1)

    def questions(self) -> list[list[str]]:
        """As `lists`, but each call begins with another queue: an answer may be only about the first one."""
        self._asked += 1
        return self._parts((), self._asked % max(len(self.known), 1))

    def had_turn(self, type: str) -> None:
        """Note that messages of a queue were claimed: all others come before its next turn."""
        self._last = type

    def refresh(self, link: Link, stop: threading.Event) -> bool:
        """List the queues that match the patterns, if it is time to and no other thread does it; whether it was."""
        if not self._patterns or time.monotonic() < self._list_at or not self._listing.acquire(blocking=False):
            return False
        began = time.monotonic()
        try:
            with suppress(Disconnected, Conflict):  # only after `stop`
                self._list(link, stop, began)
                return True
            return False
        finally:
            self._list_at = time.monotonic() + max(LIST_SECONDS, LIST_SHARE * (time.monotonic() - began))
            self._listing.release()

    def until_list(self) -> float | None:
        """Seconds until the next list; None without patterns."""
        return max(self._list_at - time.monotonic(), 0.001) if self._patterns else None

    def _list(self, link: Link, stop: threading.Event, now: float) -> None:
        is_first = not self._list_at
        for prefix in self._prefixes:
            after: str | None = None
            rows = [{"type": ""}] * PAGE
            while len(rows) == PAGE:
                rows = link.call(stop, "find_queues", prefix or None, after, PAGE)
                self._seen.update((row["type"], now) for row in rows if self._takes(row["type"]))
                after = rows[-1]["type"] if rows else None
        self._seen = {type: at for type, at in self._seen.items() if now - at < FORGET_SECONDS}
        if new := self._seen.keys() - set(self.known):
            more = f" and {len(new) - LOGGED} more" if len(new) > LOGGED else ""
            log.info("consuming %s%s", ", ".join(sorted(new)[:LOGGED]), more)
        elif is_first and not self.known:
            log.warning("waiting: no queue matches %s yet", ", ".join(self._patterns))
        kept = [type for type in self.known if type in self._seen or type in self._named]
        if new or len(kept) < len(self.known):
            self._set((*kept, *sorted(new)))

    def _takes(self, type: str) -> bool:
        return any(match(type) for match in self._matches) and not any(match(type) for match in self._excluded)

    def _set(self, types: tuple[str, ...]) -> None:
        self._places = {type: place for place, type in enumerate(types)}
        self.known = types

    def _parts(self, first: Iterable[str], start: int) -> list[list[str]]:
        known, places = self.known, self._places
        if len(known) < 2:
            return [[*known]] if known else []
        front = [type for type in first if type in places]
        ordered = dict.fromkeys((*front, *known[start:], *known[:start]))
        parts: list[list[str]] = [[]]
        length = 0
        for type in ordered:
            length += len(type)
            if len(parts[-1]) == MOST or length > LONGEST:
                parts.append([])
                length = len(type)
            parts[-1].append(type)
        return parts


def _prefix(pattern: str) -> str:
    """What all names that match begin with. Without blanks at its end, as every name is."""
    return re.split(r"[*?]", pattern, maxsplit=1)[0].rstrip(" ")


def _expression(pattern: str) -> Callable[[str], "re.Match[str] | None"]:
    """The function that matches a whole name: * is any text, also none, and ? one character; all else is literal."""
    parts = (".*" if sign == "*" else "." if sign == "?" else re.escape(sign) for sign in pattern)
    return re.compile("".join(parts), re.DOTALL).fullmatch
