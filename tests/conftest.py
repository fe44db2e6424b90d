"""Fixtures for all suites. Tests use `database` and do not know which server it is on."""

import itertools
import os
import re
import shutil
import tempfile
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import servers
from rowqueue.databases import AreaMissing, Database, Session, open_database
from rowqueue.install import apply as install
from servers.clock import Clock
from support.capabilities import BY_DATABASE, Capabilities, lack
from support.queues import Feed, Queue, make_feed


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--require-databases", action="store_true", help="a server that is not there fails its tests")
    parser.addoption(
        "--level",
        type=int,
        choices=range(1, 5),
        default=2,
        help="1: each test on one server; 2: on PostgreSQL and another engine, each value of a test on one server;"
        " 3: on one of each engine, some on an older version or on MariaDB, and slow tests;"
        " 4: on every server",
    )
    parser.addoption(
        "--areas", metavar="NAME,...", help="the databases have only these areas; what needs another one is skipped"
    )


# Files in memory are durable enough for the tests, which kill processes and never the
# machine. They make the contract suite a quarter faster. The servers of each worker took at most 1 GB.
_MEMORY = Path("/dev/shm")
_MEMORY_BYTES = 8 << 30


def _keep_files_in_memory() -> None:
    """Only if there is room for it and the user has not set a folder."""
    if "TMPDIR" in os.environ or not _MEMORY.is_dir() or shutil.disk_usage(_MEMORY).free < _MEMORY_BYTES:
        return
    available = re.search(r"MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text())
    if available and int(available[1]) << 10 >= _MEMORY_BYTES:
        os.environ["TMPDIR"] = str(_MEMORY)
        tempfile.tempdir = None  # computed again


def pytest_sessionstart(session: pytest.Session) -> None:
    plugins = session.config.pluginmanager
    if terminal := plugins.get_plugin("terminalreporter"):  # a worker of xdist has none
        plugins.register(_Failures(terminal))


class _Failures:
    """Prints each failure at once: pytest itself prints them at the end of a run, which may take minutes."""

    def __init__(self, terminal: Any) -> None:
        self._terminal = terminal

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._terminal.write_line("")  # after the dots
            self._terminal.section(f"{report.when} of {report.nodeid}", sep="_", red=True)
            self._terminal.write_line(report.longreprtext)
            for name, text in report.sections:
                self._terminal.section(name, sep="-")
                self._terminal.write_line(text)


def pytest_configure(config: pytest.Config) -> None:
    _keep_files_in_memory()
    config.addinivalue_line(
        "markers", "level(n): 1: one server is enough; 3: takes long; level(3, one=True): both; see contributing.md"
    )
    config.addinivalue_line("markers", "product(name, ...): what is tested is special to these products")
    config.addinivalue_line("markers", "engines: of the runner, but each engine does it in another way")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Clusters and other languages need programs of their own: their tests run when their folder is named."""
    name = collection_path.name
    is_optional = name in ("clusters", "languages") and collection_path.parent == Path(__file__).parent
    return True if is_optional and not any(name in argument for argument in config.invocation_params.args) else None


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test with a server once per server that the levels of the test and of the run may give it."""
    if "server_name" in metafunc.fixturenames:
        names = _servers_for(metafunc.definition, metafunc.config.getoption("--level"))
        metafunc.parametrize("server_name", names, scope="session")


def _servers_for(test: pytest.Item, level: int) -> list[str]:
    names = [name for name in servers.names() if _is_for(test, name)]
    one_is_enough = _is_for_one(test)
    if level > 2 and not one_is_enough:
        return names
    kind = servers.engine if level == 2 and not one_is_enough else servers.product
    return list({kind(name): name for name in names}.values())  # the newest of each


def _mark(test: pytest.Item) -> tuple[int, bool]:
    """The nearest mark decides: that of a parameter's value, of the test, of its module."""
    callspec = getattr(test, "callspec", None)
    marks = [*(callspec.marks if callspec else ()), *test.iter_markers()]
    return next(((mark.args[0], mark.kwargs.get("one", False)) for mark in marks if mark.name == "level"), (2, False))


def _level(test: pytest.Item) -> int:
    return _mark(test)[0]


def _is_for_one(test: pytest.Item) -> bool:
    """Whether one server is enough."""
    level, one = _mark(test)
    return one or level == 1


def _is_for(test: pytest.Item, name: str) -> bool:
    product = test.get_closest_marker("product")
    return product is None or servers.product(name) in product.args


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what is of a higher level, and the servers that a test or a parameter's value is not for."""
    left_out = {item for item in items if not _is_selected(item, config.getoption("--level"))}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def _is_selected(item: pytest.Item, level: int) -> bool:
    callspec = getattr(item, "callspec", None)
    name = callspec.params.get("server_name") if callspec else None
    is_too_high = _level(item) > max(level, 2)
    if name is None:
        return not is_too_high
    names = _servers_for(item, level)
    choice = zlib.crc32(item.nodeid.replace(str(name), "").encode())  # always the same
    engines = list(dict.fromkeys(map(servers.engine, names)))
    of_runner = item.path.parent.name == "runner" and item.get_closest_marker("engines") is None
    if names and (level == 1 or (_is_for_one(item) and level < 4)):
        names = [names[choice % len(names)]]
    elif level == 2 or (level == 3 and of_runner):
        if callspec is not None and len(callspec.params) > 1:  # its other values are on the other engines
            engines = [engines[choice % len(engines)]] if engines else []
        elif len(engines) > 2:  # the first, which is PostgreSQL, and one of the others
            engines = [engines[0], engines[1 + choice % (len(engines) - 1)]]
            if level == 2:
                engines = [engines[choice // 8 % 2]]
    if level == 3 and not _is_for_one(item) and name in names:
        # Every eighth test on another server of the engine than the newest, and every second slow one.
        *others, newest = [other for other in names if servers.engine(other) == servers.engine(name)]
        turns = 2 if _level(item) == 3 else 8
        names = [others[choice // turns % len(others)] if others and choice % turns == 0 else newest]
    return name in names and servers.engine(name) in engines and not is_too_high


@contextmanager
def _skipping(config: pytest.Config) -> Iterator[None]:
    """Skip what needs an area that --areas leaves out."""
    try:
        yield
    except AreaMissing as error:
        if config.getoption("--areas"):
            pytest.skip(str(error).partition(":")[2].strip())
        raise


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Any:
    with _skipping(pyfuncitem.config):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(request: pytest.FixtureRequest) -> Any:
    with _skipping(request.config):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Any:
    with _skipping(item.config):
        return (yield)


def _areas(config: pytest.Config) -> list[str] | None:
    named: str | None = config.getoption("--areas")
    return named.split(",") if named else None


def unavailable(config: pytest.Config, reason: object) -> None:
    """Skip the current test, or fail it under --require-databases."""
    if config.getoption("--require-databases"):
        pytest.fail(str(reason), pytrace=False)
    pytest.skip(str(reason))


@pytest.fixture(scope="session")
def share(server_name: str) -> tuple[int, int]:
    """For random tests that are divided among a product's versions: the index of this version, and their number."""
    versions = [name for name in servers.names() if servers.product(name) == servers.product(server_name)]
    return versions.index(server_name), len(versions)


def _started(name: str, config: pytest.Config) -> Iterator[servers.Server]:
    try:
        server = servers.make(name)
    except servers.Unavailable as error:
        unavailable(config, error)
        raise
    server.start()
    yield server
    server.close()


@pytest.fixture(scope="session")
def server(server_name: str, pytestconfig: pytest.Config) -> Iterator[servers.Server]:
    """A running server that all tests of a worker share: do not stop it, see `private_server`."""
    yield from _started(server_name, pytestconfig)


@pytest.fixture(autouse=True)
def _possible(request: pytest.FixtureRequest) -> None:
    """Skip tests that a stand-in for the product cannot run."""
    if "server" in request.fixturenames:
        server: servers.Server = request.getfixturevalue("server")
        case = request.node.name.partition("[")[2].removesuffix("]").removeprefix(f"{server.name}-")
        if reason := lack(server.stand_in, request.node.originalname, case):
            pytest.skip(f"not the product but {server.stand_in}, which {reason}")


@pytest.fixture
def run_script(server: servers.Server, pytestconfig: pytest.Config) -> Callable[..., str]:
    """Runs a script in the product's own client: run_script(url, text) -> what it prints; see Server.run_script."""

    def run(url: str, text: str, *options: str) -> str:
        try:
            return server.run_script(url, text, *options)
        except servers.Unavailable as error:
            unavailable(pytestconfig, error)
            raise

    return run


@pytest.fixture
def interrupt() -> Iterator[tuple[int, int]]:
    """A pipe: (read end, write end)."""
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


@pytest.fixture
def private_server(server_name: str, pytestconfig: pytest.Config) -> Iterator[servers.Server]:
    """A running server for one test, which may stop, kill and start it."""
    if server_name.endswith("-dsn"):
        pytest.skip("the named server is not ours to stop")
    yield from _started(server_name, pytestconfig)


@pytest.fixture
def clock(private_server: servers.Server, pytestconfig: pytest.Config) -> Iterator[Clock]:
    """The clock of a running server for one test: clock.set(-30) sets it half a minute back.

    The queue is installed at `clock.url` before the clock is replaced, which makes installing on MySQL much slower.
    """
    url = private_server.create_database()
    install.apply(open_database(url))
    private_server.stop()
    try:
        clock = Clock(private_server, url)
    except servers.Unavailable as error:
        unavailable(pytestconfig, error)
        raise
    private_server.start()
    yield clock
    private_server.kill()
    clock.close()


@pytest.fixture(scope="session")
def database(server: servers.Server, pytestconfig: pytest.Config) -> Iterator[Database]:
    """A database with the queue installed, shared by all tests of a worker: use names of your own, see `queue`."""
    url = server.create_database()
    database = open_database(url)
    install.apply(database, areas=_areas(pytestconfig))
    # Firebird closes a database without attachments, and the next connection then takes twice as long.
    with closing(database.connect("the tests")):
        yield database
    server.drop_database(url)


@pytest.fixture
def empty_database(server: servers.Server) -> Iterator[Database]:
    """A database with nothing in it, for one test."""
    url = server.create_database()
    yield open_database(url)
    server.drop_database(url)


@pytest.fixture(scope="session")
def template(server: servers.Server, pytestconfig: pytest.Config) -> Iterator[str | None]:
    """An installed database to copy, which is faster than an installation; None if it cannot be copied."""
    if not server.copies:
        yield None
        return
    url = server.create_database()
    install.apply(open_database(url), areas=_areas(pytestconfig))
    yield url
    server.drop_database(url)


@pytest.fixture(scope="session")
def install_database(
    server: servers.Server, template: str | None, pytestconfig: pytest.Config
) -> Callable[[], AbstractContextManager[Database]]:
    """Makes databases with the queue installed: with install_database() as database."""

    @contextmanager
    def make() -> Iterator[Database]:
        url = server.create_database() if template is None else server.copy_database(template)
        database = open_database(url)
        if template is None:
            install.apply(database, areas=_areas(pytestconfig))
        yield database
        server.drop_database(url)

    return make


@pytest.fixture
def installed_database(install_database: Callable[[], AbstractContextManager[Database]]) -> Iterator[Database]:
    """A database with the queue installed, for one test."""
    with install_database() as database:
        yield database


@pytest.fixture
def connect(database: Database) -> Iterator[Callable[..., Session]]:
    """Makes sessions that are closed after the test: connect(application_name="test")."""
    sessions: list[Session] = []

    def make(application_name: str = "test") -> Session:
        sessions.append(database.connect(application_name))
        return sessions[-1]

    yield make
    for session in sessions:
        session.close()


@pytest.fixture
def session(connect: Callable[..., Session]) -> Session:
    """A session for one test."""
    return connect()


# A statement that begins with another word may leave a setting or a transaction in the connection.
_LEAVES_NO_TRACE = ("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER", "GRANT", "REVOKE", "ANALYZE")


@pytest.fixture(scope="session")
def _kept() -> Iterator[dict[str, list[Any]]]:
    """Reusable connections with all rights, by URL: connecting costs as much as a short test. Some modules have a
    `database` of their own."""
    kept: dict[str, list[Any]] = {}
    yield kept
    for connection in itertools.chain(*kept.values()):
        connection.close()


@pytest.fixture
def sql(
    server: servers.Server, database: Database, _kept: dict[str, list[Any]]
) -> Iterator[Callable[..., list[dict[str, Any]]]]:
    """Runs a statement with all rights: sql("SELECT ... %s", value) -> rows as dicts."""
    kept = _kept.setdefault(database.url, [])
    connection = kept.pop() if kept else server.client(database.url)
    try:
        connection.execute(f"SELECT COUNT(*) FROM {server.table('queue')} WHERE type = 'none'")
    except Exception:  # the test has ended the connection
        connection = server.client(database.url)
    as_it_was = True

    def query(text: str, *parameters: Any) -> list[dict[str, Any]]:
        nonlocal as_it_was
        keep, as_it_was = as_it_was and text.lstrip().upper().startswith(_LEAVES_NO_TRACE), False
        cursor = connection.execute(text, parameters or None)
        rows = list(cursor.fetchall()) if cursor.description else []
        while hasattr(cursor, "nextset") and cursor.nextset():
            pass  # MySQL sends the rows of a call before the call has committed
        as_it_was = keep
        return rows

    yield query
    if as_it_was:
        kept.append(connection)
    else:
        connection.close()


@pytest.fixture
def queue() -> str:
    """The name of a queue that no other test uses."""
    return f"test.{uuid.uuid4().hex[:16]}"


@pytest.fixture
def can(database: Database) -> Capabilities:
    """The characteristics of this database."""
    return BY_DATABASE[database.name]


@pytest.fixture
def q(queue: str, session: Session, sql: Callable[..., list[dict[str, Any]]], can: Capabilities) -> Iterator[Queue]:
    """A queue that no other test uses."""
    q = Queue(queue, session, sql, can)
    yield q
    if q.is_big:
        q.empty()


@pytest.fixture
def feed(q: Queue) -> Iterator[Feed]:
    """A feed of an empty table that no other test uses."""
    feed = make_feed(q)
    yield feed
    feed.call("drop_feed")
