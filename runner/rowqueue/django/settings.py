"""The setting ROWQUEUE, and the runner's URL for a database of the setting DATABASES."""

from importlib import import_module
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, connections

from ..databases.registry import DJANGO

_KNOWN = {"DATABASE", "URL"}


def _setting(name: str) -> Any:
    chosen = getattr(settings, "ROWQUEUE", {})
    if unknown := chosen.keys() - _KNOWN:
        raise ImproperlyConfigured(f"ROWQUEUE: unknown name {min(unknown)!r}; known: {', '.join(sorted(_KNOWN))}")
    return chosen.get(name)


def alias() -> str:
    """The alias of the database that has the queue."""
    chosen = _setting("DATABASE") or DEFAULT_DB_ALIAS
    if chosen not in connections:
        raise ImproperlyConfigured(f"ROWQUEUE: DATABASE is {chosen!r}, which is not in DATABASES")
    return str(chosen)


def connection() -> Any:
    """Django's connection to the database that has the queue."""
    return connections[alias()]


def url() -> str:
    """The runner's URL for the database that has the queue. In a test it is that of the test database."""
    if chosen := _setting("URL"):
        return str(chosen)
    found = connection()
    if found.vendor not in DJANGO:
        raise ImproperlyConfigured(
            f"the queue cannot be in the database {found.alias!r}, which is {found.vendor}: name another one with"
            " ROWQUEUE = {'DATABASE': …}, or give its URL: {'URL': …}"
        )
    module = import_module(f"rowqueue.databases.{DJANGO[found.vendor]}.django")
    return str(module.url(found))
