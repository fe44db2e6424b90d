"""Which tests run on which servers: docs/background/contributing.md has the rule for level(n) and --level."""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import servers
from rules import ROOT, offending
from support.capabilities import STAND_INS

TESTS = """
import pytest

def test_unmarked(server_name):
    pass

@pytest.mark.level(1)
def test_one_is_enough(server_name):
    pass

@pytest.mark.level(1)
@pytest.mark.parametrize("n", range(20))
def test_one_per_value(server_name, n):
    pass

@pytest.mark.parametrize("n", range(20))
def test_many(server_name, n):
    pass

@pytest.mark.level(3)
@pytest.mark.parametrize("n", range(20))
def test_slow(server_name, n):
    pass

@pytest.mark.level(3, one=True)
def test_slow_for_one(server_name):
    pass

@pytest.mark.product("mysql", "mariadb")
def test_of_two(server_name):
    pass

@pytest.mark.product("mysql", "mariadb")
@pytest.mark.level(1)
def test_one_of_two(server_name):
    pass

@pytest.mark.product("none")
def test_of_a_product_that_is_not_there(server_name):
    pass

@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.level(3))])
def test_slow_value(server_name, n):
    pass

@pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.product("firebird"))])
def test_value_of_one_product(server_name, n):
    pass

@pytest.mark.level(3)
def test_slow_without_server():
    pass
"""
EVERY = servers.names()
NEWEST = servers.newest(servers.product)
MYSQL = [name for name in EVERY if servers.engine(name) == "mysql"]
FIREBIRD = [name for name in EVERY if servers.product(name) == "firebird"]


def collected(folder: Path, level: int, text: str = TESTS) -> dict[str, list[str]]:
    """The servers of each test, or of each of its values: {"slow_value": ["postgresql-18-1", ...]}."""
    (folder / "test_it.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "conftest", "--level", str(level), "."]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, list[str]] = {}
    for name, case in re.findall(r"::test_(\w+)(?:\[(.+)\])?$", done.stdout, re.M):
        found.setdefault(name, []).append(case)
    return found


def test_level_1_runs_a_test_on_one_server(tmp_path: Path) -> None:
    found = collected(tmp_path, 1)
    [unmarked], [one], [of_two], [one_of_two] = (
        found[name] for name in ("unmarked", "one_is_enough", "of_two", "one_of_two")
    )
    assert {unmarked, one} <= {*NEWEST}
    assert {of_two, one_of_two} <= {*NEWEST} & {*MYSQL}
    assert len(found["slow_value"]) == 1
    values = found["one_per_value"]
    assert len(values) == 20 and {value.rpartition("-")[0] for value in values} == {*NEWEST}
    assert "slow" not in found


def test_level_2_runs_a_test_and_each_value_on_one_engine(tmp_path: Path) -> None:
    newest = servers.newest(servers.engine)
    found, first = collected(tmp_path, 2), collected(tmp_path, 1)
    assert len(found["unmarked"]) == 1 and {*found["unmarked"]} <= {*newest}
    assert found["of_two"] == [MYSQL[-1]]
    assert found["value_of_one_product"] == [f"{FIREBIRD[-1]}-1"]
    for name in ("one_is_enough", "one_of_two", "one_per_value"):
        assert sorted(found[name]) == sorted(first[name])  # the same server in every run
    times = Counter(case.rpartition("-")[0] for case in found["many"])
    assert {*times} == {*newest} and times.total() == 20
    assert not {"slow", "slow_for_one", "slow_without_server"} & found.keys()
    assert len(found["slow_value"]) == 1


def test_level_3_runs_each_value_on_every_engine_and_some_of_them_not_on_its_newest_server(tmp_path: Path) -> None:
    found, first = collected(tmp_path, 3), collected(tmp_path, 1)
    newest = servers.newest(servers.engine)
    engines = sorted(map(servers.engine, newest))
    for name, least, most in ("many", 0, 8), ("slow", 3, 17):
        times = [case.rpartition("-")[::2] for case in found[name]]
        for n in map(str, range(20)):
            assert sorted(servers.engine(server) for server, of in times if of == n) == engines
        for engine in engines:
            others = {server for server in EVERY if servers.engine(server) == engine} - {*newest}
            assert not others or least < len([n for server, n in times if server in others]) < most
    for name in ("one_is_enough", "one_of_two", "one_per_value"):
        assert sorted(found[name]) == sorted(first[name])
    assert found["value_of_one_product"][0].startswith("firebird") and len(found["value_of_one_product"]) == 1
    assert len(found["slow_for_one"]) == 1 and found["slow_without_server"] == [""]
    assert len(found["slow_value"]) == 2 * len(engines)


def test_level_3_runs_a_test_of_the_runner_on_two_engines_unless_each_does_it_in_another_way(tmp_path: Path) -> None:
    (folder := tmp_path / "runner").mkdir()
    found, before = collected(folder, 3), collected(folder, 2)

    def engines(cases: list[str]) -> list[str]:
        return sorted(servers.engine(case) for case in cases)

    for name in ("many", "of_two", "one_per_value"):
        assert engines(found[name]) == engines(before[name])
    assert len(found["unmarked"]) == 2 and engines(found["unmarked"])[-1] == "postgresql"
    assert {*engines(before["unmarked"])} <= {*engines(found["unmarked"])}
    assert {*engines(found["slow"])} == {*map(servers.engine, NEWEST)} and len(found["slow"]) == 20
    found = collected(folder, 3, TESTS.replace("import pytest", "import pytest\npytestmark = pytest.mark.engines"))
    assert len(engines(found["unmarked"])) == len(servers.newest(servers.engine))
    assert len(found["many"]) == 20 * len(servers.newest(servers.engine))


def test_level_4_runs_a_test_on_every_server(tmp_path: Path) -> None:
    found = collected(tmp_path, 4)
    assert found["unmarked"] == [*EVERY] and len(found["slow"]) == 20 * len(EVERY)
    assert found["of_two"] == MYSQL
    assert found["one_is_enough"] == found["slow_for_one"] == [*NEWEST]
    assert found["value_of_one_product"] == [f"{name}-1" for name in FIREBIRD]
    assert "of_a_product_that_is_not_there" not in found


def test_a_mark_has_a_level_that_exists() -> None:
    def unknown(path: Path) -> list[str]:
        text = path.read_text()
        # One server for one value only is not foreseen.
        wrong = re.findall(r"mark\.level\((?![1-4]\)|3, one=True\)).*", text)
        return wrong + re.findall(r"marks=.*level\([12]\).*", text)

    assert offending(sorted((ROOT / "tests").rglob("*.py")), unknown) == []


def test_every_test_that_a_stand_in_cannot_run_exists() -> None:
    text = "".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    tests = set(re.findall(r"def (test_\w+)", text))
    listed = {name.partition("[")[0] for lacks in STAND_INS.values() for names in lacks.values() for name in names}
    assert listed - tests == set()
