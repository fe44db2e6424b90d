"""The arguments and result columns of every public procedure are in the database's catalog what the contract says."""

from collections.abc import Callable
from typing import Any

import pytest
from catalog import SIGNATURES, Listed, columns_of_a_call, expected, is_type
from rowqueue.databases import Database, Session
from rowqueue.install.contract import CORE
from support.contract import procedures_of
from support.queues import CONTRACT, Queue
from test_parity import rows_of


def differences(found: list[Listed], contracts: list[Listed]) -> list[tuple[Listed | None, Listed | None]]:
    """Where a list of the catalog is not that of the contract: a default counts where the catalog knows it."""
    longest = max(len(found), len(contracts))
    pairs = zip(
        [*found, *[None] * (longest - len(found))], [*contracts, *[None] * (longest - len(contracts))], strict=True
    )

    def is_same(one: Listed | None, other: Listed | None) -> bool:
        if one is None or other is None or one.name != other.name or not is_type(one.type, other.type):
            return False
        return one.optional in (None, other.optional)

    return [(one, other) for one, other in pairs if not is_same(one, other)]


def test_every_procedure_has_the_arguments_and_results_of_the_contract(
    database: Database, session: Session, sql: Callable[..., list[dict[str, Any]]]
) -> None:
    wrong = {}
    installed = {*CORE, *session.call("version")[0]["areas"].split(",")}
    for name, procedure in procedures_of(database.name).items():
        if procedure.area not in installed:
            continue
        found, contracts = SIGNATURES[database.name](sql, name), expected(CONTRACT, database.name, procedure)
        faults = differences(found.arguments, contracts.arguments)
        if found.results is not None and contracts.results is not None:
            faults += differences(found.results, contracts.results)
        if faults:
            wrong[name] = faults
    assert wrong == {}


@pytest.mark.product("mysql", "mariadb")
@pytest.mark.parametrize("name", sorted(CONTRACT.procedures))
def test_a_call_returns_the_types_of_the_contract(q: Queue, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the catalog has no result columns, the driver describes those of each call."""
    import rowqueue.databases.mysql.session as module

    described: list[list[Listed]] = []
    convert = module.convert

    def note(rows: list[dict[str, Any]], procedure: str, description: list[Any]) -> None:
        if procedure == name and description:
            described.append(columns_of_a_call(description))
        convert(rows, procedure, description)

    monkeypatch.setattr(module, "convert", note)
    rows_of(q, name)
    if name in {"watch_table", "unwatch_table"} or CONTRACT.procedures[name].rows == "0":
        return
    contracts = expected(CONTRACT, "mysql", CONTRACT.procedures[name]).results
    assert described and contracts
    for columns in described:
        assert differences(columns, contracts) == []
