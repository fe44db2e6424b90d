"""The URL of a database of Django's settings."""

from typing import Any

from ..url import join


def url(connection: Any) -> str:
    """The URL that reaches the same database as a connection of Django."""
    chosen = connection.settings_dict
    return join("sqlserver", chosen["HOST"], chosen["PORT"], chosen["NAME"], chosen["USER"], chosen["PASSWORD"], {})
