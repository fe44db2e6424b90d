"""Shared by all pages: the databases, the options, rendering, and notes for the next page."""

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from ...databases import Database
from ..monitor import ANSWER_SECONDS, BODY_LENGTH, STATES, Looking, Watched
from ..monitor.parts import said
from . import charts, shown
from .guard import Rules

T = TypeVar("T")

_NOTES = 100
_EVERY_SECONDS = 2.0  # the longest time that a page waits for a slow database


class NotFound(Exception):
    """The page, database or message does not exist."""


class BadQuery(Exception):
    """An invalid field of the address or of a form; the message names the field and its limit."""


@dataclass(frozen=True)
class Options:
    """The options of `runner web`."""

    allow_changes: bool = False
    hide_bodies: bool = False


@dataclass
class Page:
    """A template and its values. `follows`: the page updates itself."""

    template: str
    values: dict[str, Any]
    status: int = 200
    follows: bool = True


@dataclass(frozen=True)
class Found(Generic[T]):
    """The answer of one database, or in `away` the reason why there is none."""

    watched: Watched
    result: T | None
    away: str = ""
    left_out: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


class Site:
    """The databases by name, and what is needed to render pages."""

    def __init__(self, databases: Sequence[tuple[str, Database]], rules: Rules, options: Options) -> None:
        self.databases = {name: Watched(name, database, "runner web") for name, database in databases}
        self.rules = rules
        self.options = options
        self.ending = threading.Event()
        self._notes: OrderedDict[str, str] = OrderedDict()
        self._environment = Environment(
            loader=PackageLoader("rowqueue.extras.web"),
            autoescape=select_autoescape(default=True, default_for_string=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= shown.FILTERS
        self._environment.filters["error"] = shown.error_kind if options.hide_bodies else shown.visible
        self._environment.globals |= {
            "link": self.link,
            "options": options,
            "csrf": rules.csrf,
            "states": STATES,
            "sparkline": charts.sparkline,
            "minute_chart": charts.minute_chart,
        }

    @property
    def body_length(self) -> int:
        """How many characters of each body a list reads; with --hide-bodies, none leaves the database."""
        return 0 if self.options.hide_bodies else BODY_LENGTH

    def link(self, path: str, /, **query: Any) -> str:
        """The address of a page for the browser, including the root path."""
        given = {name: value for name, value in query.items() if value is not None}
        return f"{self.rules.base}{path}" + (f"?{urlencode(given)}" if given else "")

    def watched(self, name: str | None) -> Watched:
        """The database with this name; with only one database, the name may be None. Raises NotFound."""
        if name is None and len(self.databases) == 1:
            return next(iter(self.databases.values()))
        if name not in self.databases:
            raise NotFound("There is no such database here.")
        return self.databases[name]

    def every(self, work: Callable[[Looking], T], seconds: float = _EVERY_SECONDS) -> list[Found[T]]:
        """The answer of each database within `seconds`; all are asked at the same time, and none spoils another."""

        def look(looking: Looking) -> tuple[T, list[str], list[str], dict[str, str]]:
            looking.begin()
            result = work(looking)
            return result, list(looking.left_out), list(looking.absent), looking.failed

        asked = [(watched, watched.submit(look)) for watched in self.databases.values()]
        deadline = time.monotonic() + seconds
        found: list[Found[T]] = []
        for watched, future in asked:
            try:
                result, left_out, absent, failed = watched.result(future, max(0.1, deadline - time.monotonic()))
                found.append(Found(watched, result, "", left_out, absent, failed))
            except Exception as error:
                found.append(Found(watched, None, said(error)))
        return found

    def one(self, name: str | None, work: Callable[[Looking], T]) -> tuple[Watched, T]:
        """The answer of one database. Raises NotFound, Away, QueueError."""
        watched = self.watched(name)
        return watched, watched.ask(work, ANSWER_SECONDS)

    def note(self, text: str) -> str:
        """Keep a sentence for the next page; returns a random name for it, which is used in the address."""
        key = secrets.token_urlsafe(9)
        self._notes[key] = text
        while len(self._notes) > _NOTES:
            self._notes.popitem(last=False)
        return key

    def render(self, page: Page, query: Mapping[str, str], path: str, live_only: bool = False) -> str:
        """A page as HTML; with `live_only`, only its live part."""
        here = {name: value for name, value in query.items() if name not in ("done", "page")}
        return self._environment.get_template(page.template).render(
            layout="bare.html" if live_only else "layout.html",
            databases=list(self.databases),
            path=path,
            here=self.link(path, **here),
            events=self.link("/events", page=path, **here) if page.follows else "",
            note=self._notes.get(query.get("done", "")),
            **page.values,
        )
