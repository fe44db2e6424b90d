"""An installation killed between a migration and its record continues, with and without transactional DDL."""

from typing import Any

import pytest
from rowqueue.databases import Database
from rowqueue.install import apply as install
from yoyo.backends import DatabaseBackend

pytestmark = pytest.mark.engines


class Killed(BaseException):
    """As a signal would end the process."""


def test_apply_continues_after_a_migration_that_was_not_recorded(
    empty_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(DatabaseBackend, "log_migration", kill)
        install.apply(empty_database)
    install.apply(empty_database)
    assert install.apply(empty_database) == install.Applied()
