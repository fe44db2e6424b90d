"""Fixtures that only the tests of a named server need."""

from collections.abc import Iterator
from typing import Any

import pytest
from servers.base import Unavailable
from servers.postgresql import PgBouncer


@pytest.fixture
def pooler(server: Any, pytestconfig: pytest.Config) -> Iterator[PgBouncer]:
    """PgBouncer in front of the server that all tests share."""
    try:
        bouncer = PgBouncer(server)
    except Unavailable as error:
        if pytestconfig.getoption("--require-databases"):
            pytest.fail(str(error))
        pytest.skip(str(error))
    yield bouncer
    bouncer.close()
