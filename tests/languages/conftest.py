"""Tests of the clients in other languages that people copy from `examples/`: `make test-languages` runs them."""

import signal
from collections.abc import Generator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from languages import LANGUAGES, Language, Missing
from rowqueue.databases import Database
from servers import Server, product
from suite import Client, MakeClient, Start, create_orders

LONGEST_LOG = 10_000  # the last characters that are shown


@pytest.fixture(scope="session", autouse=True)
def _interruptible() -> None:
    """A shell starts background processes with SIGINT ignored, and children inherit that; Java honours it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def start(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Start:
    """Prepares a client, once, and returns its command: start(language, product). Skips the test without it."""
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
def make_client(start: Start, server: Server, installed_database: Database, tmp_path: Path) -> MakeClient:
    """Clients of several languages for one database, which has an empty queue and a table of the application's."""
    create_orders(server, installed_database)

    def make(language: Language, **settings: int) -> Client:
        folder = tmp_path / language.name
        folder.mkdir()
        command = start(language, product(server.name))
        client = Client(command, server, installed_database, folder, language.batches, **settings)
        if language.name == "node" and product(server.name) == "firebird":
            _let_in(client)
        return client

    return make


def _let_in(client: Client) -> None:
    """Set the same password again until the client can log in.

    node-firebird 2.17 misreads the server's answer for one account in sixteen, depending on the account's salt: it
    never can log in then. Each password has a salt of its own.
    """
    login = urlsplit(client.database.url)
    user, password = unquote(login.username or ""), unquote(login.password or "")
    for _ in range(9):
        if "50002" in client.send("x" * 201, "no such queue").stderr:
            return
        client.server.query(client.database.url, f"ALTER USER {user} PASSWORD '{password}'")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test shows the logs of its clients."""
    report = yield
    if report.failed and (folder := getattr(item, "funcargs", {}).get("tmp_path")):
        for log in sorted(folder.rglob("*.log")):
            text = log.read_text(encoding="utf-8", errors="replace")
            report.sections.append((str(log.relative_to(folder)), text[-LONGEST_LOG:]))
    return report


@pytest.fixture(
    params=[pytest.param(each, id=each.name, marks=pytest.mark.product(*each.drivers)) for each in LANGUAGES]
)
def client(request: pytest.FixtureRequest, make_client: MakeClient) -> Client:
    """The client of one language; each test runs with all of them."""
    return make_client(request.param)
