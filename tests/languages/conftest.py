"""Tests of the clients in other languages that people copy from `examples/`: `make test-languages` runs them."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from rowqueue.databases import Database
from servers import Server, product

# languages.py and suite.py, which the tests share.
sys.path.append(str(Path(__file__).parent))
from languages import LANGUAGES, Language, Missing
from suite import Client, create_orders

Start = Callable[[Language, str], Sequence[str]]


@pytest.fixture(scope="session")
def start(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Start:
    """Makes a client ready, once, and returns its command: start(language, product). The test is skipped without it."""
    commands: dict[str, Sequence[str]] = {}

    def ready(language: Language, product: str) -> Sequence[str]:
        try:
            if language.lacks(product):
                raise Missing(f"{language.name} or its driver for {product} is not installed")
            if language.name not in commands:
                commands[language.name] = language.start(tmp_path_factory.mktemp(language.name))
        except Missing as missing:
            if pytestconfig.getoption("--require-databases"):
                pytest.fail(str(missing), pytrace=False)
            pytest.skip(str(missing))
        return commands[language.name]

    return ready


@pytest.fixture
def shop(server: Server, installed_database: Database) -> Database:
    """A database with an empty queue and a table of the application's."""
    create_orders(server, installed_database)
    return installed_database


@pytest.fixture(
    params=[pytest.param(each, id=each.name, marks=pytest.mark.product(*each.drivers)) for each in LANGUAGES]
)
def client(request: pytest.FixtureRequest, start: Start, server: Server, shop: Database, tmp_path: Path) -> Client:
    """The client of one language; each test runs with all of them."""
    return Client(start(request.param, product(server.name)), server, shop, tmp_path)
