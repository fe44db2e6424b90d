"""The pages. Each is a function of the site and the query of the address, and returns a Page."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...databases import Row
from .. import monitor as seeing
from ..monitor import (
    ANSWER_SECONDS,
    LISTS,
    MOST_ROWS,
    SIZE,
    STATES,
    WHOLE_BODY,
    Incident,
    Looking,
    Overview,
)
from . import shown
from .site import BadQuery, NotFound, Page, Site

Query = Mapping[str, str]

SIZES = (20, 50, 200, 500)
_INCIDENTS = 10  # of each database on the overview
_ROW_STATES = {"A": "claimed", "N": "waiting", "E": "dead"}


@dataclass(frozen=True)
class Column:
    """A column of a list. `kind`: text, number, time, seconds, flag, queue, message, body, verdict or status."""

    name: str
    heading: str
    kind: str = "text"


@dataclass(frozen=True)
class Listing:
    """A page with one table per database. `empty`: the text when there are no rows; `guide`: the page of
    docs/howto that explains."""

    title: str
    columns: tuple[Column, ...]
    empty: str
    guide: str = ""


LISTINGS = {
    "consumers": Listing(
        "Consumers",
        (
            Column("consumer", "Consumer"),
            Column("type", "Queue", "queue"),
            Column("status", "Status", "status"),
            Column("rate_per_minute", "Per minute", "number"),
            Column("busy", "Load", "number"),
            Column("handling", "Handles now", "handling"),
            Column("completed", "Completed", "number"),
            Column("failed", "Failed", "number"),
            Column("dead", "Dead", "number"),
            Column("started_at", "Started", "time"),
            Column("reported_at", "Last report", "time"),
        ),
        "No consumer has reported in the last day. `runner consume` reports by itself.",
        "consumers",
    ),
    "schedules": Listing(
        "Schedules",
        (
            Column("name", "Schedule"),
            Column("type", "Queue", "queue"),
            Column("cron", "Cron"),
            Column("time_zone", "Time zone"),
            Column("next_at", "Next", "time"),
            Column("last_at", "Last", "time"),
            Column("last_id", "Last message", "message"),
            Column("overlap", "Overlaps", "flag"),
            Column("body", "Body", "body"),
        ),
        "There are no schedules. `runner schedule set` makes one.",
        "schedules",
    ),
    "bindings": Listing(
        "Topics",
        (Column("pattern", "Topic"), Column("type", "Queue", "queue")),
        "No topic is bound. `runner topic bind` binds one.",
        "topics",
    ),
    "feeds": Listing(
        "Feeds",
        (
            Column("feed", "Feed"),
            Column("table_name", "Table"),
            Column("consumer", "Consumer"),
            Column("last_position", "Last position", "number"),
            Column("feed_position", "Position", "number"),
            Column("behind", "Behind", "number"),
            Column("moved_at", "Moved", "time"),
        ),
        "There are no feeds. `runner feed create` makes one.",
        "feeds",
    ),
    "subscriptions": Listing(
        "Subscriptions",
        (
            Column("table_name", "Table"),
            Column("action", "Action"),
            Column("type", "Queue", "queue"),
            Column("topic", "Topic"),
        ),
        "No table is watched. `runner subscription add` watches one.",
        "table-changes",
    ),
    "tables": Listing(
        "Polling tables",
        (
            Column("name", "Name", "table"),
            Column("table_name", "Table"),
            Column("active", "Claimed", "number"),
            Column("waiting", "Waiting", "number"),
            Column("dead", "Dead", "number"),
            Column("key_columns", "Key"),
            Column("order_column", "Order"),
            Column("status_column", "Status column"),
            Column("on_complete", "On complete"),
            Column("max_attempts", "Max attempts", "number"),
        ),
        "No table is adopted. `runner table adopt` adopts one.",
        "polling-tables",
    ),
    "limits": Listing(
        "Limits",
        (
            Column("type", "Queue", "queue"),
            Column("max_active", "Max active", "number"),
            Column("rate", "Rate", "number"),
            Column("rate_seconds", "Per seconds", "number"),
            Column("group_max_active", "Max active per group", "number"),
            Column("group_rate", "Rate per group", "number"),
            Column("group_rate_seconds", "Per seconds (group)", "number"),
            Column("paused", "Paused", "flag"),
        ),
        "No queue has a limit. `runner queue set` sets one.",
        "limits",
    ),
    "health": Listing(
        "Health",
        (
            Column("verdict", "Verdict", "verdict"),
            Column("name", "Check"),
            Column("measured", "Value", "number"),
            Column("unit", "Unit"),
            Column("detail", "Detail"),
        ),
        "There are no health checks.",
    ),
}


def overview(site: Site, query: Query) -> Page:
    """The queues of all databases, those that need attention most, and what is wrong."""
    part = query.get("queue", "").strip()
    if len(part) > 200 or "\0" in part:
        raise BadQuery("queue must have at most 200 characters.")

    def look(looking: Looking) -> tuple[Overview, list[Incident]]:
        return seeing.recent_overview(looking, part), seeing.recent_incidents(looking)

    return Page("overview.html", {"title": "Overview", "part": part, "most": _INCIDENTS, "found": site.every(look)})


def incidents(site: Site, query: Query) -> Page:
    """What is wrong with the queues of all databases, and the health checks that are not ok."""

    def look(looking: Looking) -> tuple[Any, list[Incident], list[Row]]:
        found, health = seeing.recent_incidents(looking), looking.health()
        return looking.session.now(), found, [row for row in health if row["verdict"] != "ok"]

    return Page("incidents.html", {"title": "Incidents", "most": MOST_ROWS, "found": site.every(look)})


def listing(name: str) -> Callable[[Site, Query], Page]:
    """The page of one of LISTINGS, for all databases."""

    def page(site: Site, query: Query) -> Page:
        def look(looking: Looking) -> tuple[Any, list[Row]]:
            rows = seeing.listed(looking, name, site.body_length)
            return looking.session.now(), rows

        return Page(
            "list.html",
            {
                "title": LISTINGS[name].title,
                "name": name,
                "listing": LISTINGS[name],
                "most": MOST_ROWS,
                "found": site.every(look),
            },
        )

    return page


def queue(site: Site, query: Query) -> Page:
    """One queue."""
    type, state, size = named(query, "type"), one_of(query, "state", STATES, "N"), _size(query)
    watched, detail = site.one(
        query.get("db"), lambda looking: seeing.queue(looking, type, state, size, site.body_length)
    )
    return Page("queue.html", {"title": type, "db": watched.name, "detail": detail, "size": size, "sizes": SIZES})


def message(site: Site, query: Query) -> Page:
    """One message; a body and headers of JSON are indented."""
    id = _id(query)
    length = 0 if site.options.hide_bodies else shown.CUT + 1
    watched, detail = site.one(query.get("db"), lambda looking: seeing.message(looking, id, length))
    if detail.message is None:
        raise NotFound(
            f"Message {id} does not exist or no longer exists. Completed messages are kept only in archiving queues."
        )
    texts = {}
    if not site.options.hide_bodies:
        result = detail.result["result"] if detail.result else None
        for name, text in (
            ("body", detail.message["body"]),
            ("headers", detail.message["headers"]),
            ("result", result),
        ):
            if text is not None:
                texts[name] = shown.pretty(text if len(text) <= shown.CUT else text[: shown.CUT])
    return Page(
        "message.html",
        {
            "title": f"Message {id}",
            "db": watched.name,
            "detail": detail,
            "row": detail.message,
            "texts": texts,
            "is_cut": len(detail.message["body"] or "") > shown.CUT,
            "cut": shown.CUT,
        },
    )


def body(site: Site, query: Query) -> str:
    """The whole body of a message, to download. Raises NotFound, also when bodies are hidden."""
    id = _id(query)
    if site.options.hide_bodies:
        raise NotFound("Bodies are hidden here.")
    _, detail = site.one(query.get("db"), lambda looking: seeing.message(looking, id, WHOLE_BODY))
    if detail.message is None:
        raise NotFound(f"Message {id} does not exist or no longer exists.")
    return str(detail.message["body"])


_KEYS = {"id": "Id", "dedup_key": "dedup_key", "group_key": "group_key"}


def search(site: Site, query: Query) -> Page:
    """Messages of all databases by id, dedup_key or group_key."""
    by, text, type = one_of(query, "by", _KEYS, "id"), query.get("q", "").strip(), query.get("type", "").strip()
    values: dict[str, Any] = {"by": by, "keys": _KEYS, "text": text, "type": type, "found": [], "title": "Search"}
    if text:
        key: dict[str, Any] = {by: whole_number(text, "the id") if by == "id" else text}
        size = _size(query)

        def look(looking: Looking) -> tuple[Any, list[Row]]:
            rows = seeing.search(looking, type or None, size=size, body_length=site.body_length, **key)
            return looking.session.now(), rows

        values["found"] = site.every(look, ANSWER_SECONDS)
    return Page("search.html", values)


def table(site: Site, query: Query) -> Page:
    """The claimed, waiting or dead rows of one polling table."""
    name, state, size = named(query, "name"), one_of(query, "state", _ROW_STATES, "E"), _size(query)

    def look(looking: Looking) -> tuple[Any, list[Row], list[str], list[str], dict[str, str]]:
        rows = seeing.table_rows(looking, name, state, size)
        return looking.session.now(), rows, list(looking.left_out), list(looking.absent), looking.failed

    watched, (now, rows, left_out, absent, failed) = site.one(query.get("db"), look)
    return Page(
        "table.html",
        {
            "title": name,
            "db": watched.name,
            "name": name,
            "state": state,
            "row_states": _ROW_STATES,
            "now": now,
            "rows": rows,
            "size": size,
            "sizes": SIZES,
            "left_out": left_out,
            "absent": absent,
            "failed": failed,
        },
    )


PAGES: dict[str, Callable[[Site, Query], Page]] = {
    "/": overview,
    "/incidents": incidents,
    "/queue": queue,
    "/message": message,
    "/search": search,
    "/table": table,
    **{f"/{name}": listing(name) for name in LISTINGS},
}
assert LISTINGS.keys() == LISTS.keys()


def named(query: Query, field: str) -> str:
    name = query.get(field, "")
    if not 1 <= len(name) <= 200 or "\0" in name:
        raise BadQuery(f"{field} must have 1 to 200 characters.")
    return name


def _id(query: Query) -> int:
    return whole_number(query.get("id", ""), "id")


def whole_number(text: str, name: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:20]) < 1 << 63 and len(text) < 20):
        raise BadQuery(f"{name} must be a whole number from 1 to {(1 << 63) - 1:,}.")
    return int(text)


def one_of(query: Query, field: str, known: Mapping[str, str], default: str) -> str:
    value = query.get(field, default)
    if value not in known:
        raise BadQuery(f"{field} must be one of {', '.join(known)}.")
    return value


def _size(query: Query) -> int:
    size = query.get("size", str(SIZE))
    if size not in map(str, SIZES):
        raise BadQuery(f"size must be one of {', '.join(map(str, SIZES))}.")
    return int(size)
