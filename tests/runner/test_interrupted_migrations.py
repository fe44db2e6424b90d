"""What is killed between a migration and its record is gone on with, whether DDL can be rolled back or not."""

from typing import Any

import pytest
from rowqueue import install
from rowqueue.databases import Database
from yoyo.backends import DatabaseBackend


class Killed(BaseException):
    """As a signal would end the process."""


@pytest.mark.one_engine
def test_a_migration_that_was_not_recorded_is_gone_on_with(
    empty_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(DatabaseBackend, "log_migration", kill)
        install.apply(empty_database)
    install.apply(empty_database)
    assert install.apply(empty_database) == install.Applied()
