"""Fixtures for all suites. Tests use `database` and do not know which server it is on."""

import itertools
import os
import re
import shutil
import sys
import tempfile
import uuid
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import servers
from rowqueue.databases import AreaMissing, Database, Session, open_database
from rowqueue.install import apply as install
from servers.clock import Clock

# capabilities.py, which every suite uses.
sys.path.append(str(Path(__file__).parent / "contract"))
# tabs.py, which reads a page of the documentation for one engine.
sys.path.append(str(Path(__file__).parents[1] / "tools" / "docs"))
# release.py, which makes a release, and frozen.py, which holds later versions to it.
sys.path.append(str(Path(__file__).parents[1] / "releases"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--require-databases", action="store_true", help="a server that is not there fails its tests")
    parser.addoption(
        "--every-version",
        action="store_true",
        help="on older versions too, and whatever is marked one_engine, any_engine, heavy or long",
    )
    parser.addoption("--heavy", action="store_true", help="only what is marked heavy, which a short run leaves out")
    parser.addoption(
        "--clusters", action="store_true", help="with the tests on clusters, which `tests/clusters` names too"
    )
    parser.addoption(
        "--languages", action="store_true", help="with the tests of other languages, which `tests/languages` names too"
    )
    parser.addoption(
        "--areas", metavar="NAME,...", help="the databases have only these areas; what needs another one is skipped"
    )
    parser.addoption("--only-rest", action="store_true", help="only what --every-version adds")
    parser.addoption(
        "--sample", metavar="WORD", help="each test on one only of the servers that it would run on; WORD chooses which"
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
        "markers",
        "one_version: on the newest server of each product, as what has no mark; for a test whose module is marked"
        " otherwise; --every-version runs all on all",
    )
    config.addinivalue_line(
        "markers",
        "one_engine: likewise, on one server of each engine only: MariaDB runs the SQL and the driver of MySQL",
    )
    config.addinivalue_line(
        "markers",
        "any_engine: what is the runner's own doing, on one server of one engine, another one from test to test;"
        " --every-version runs it on one of each engine",
    )
    config.addinivalue_line(
        "markers",
        "heavy(engine, ...): takes long, and a short run can do without it, on these engines or on all; .ci/run runs"
        " it, as --heavy does, and on MariaDB what has run on MySQL, or the other way round",
    )
    config.addinivalue_line("markers", "long: what .ci/run can do without as well; --every-version runs it")
    config.addinivalue_line("markers", "cluster: needs a cluster of servers, see --clusters")
    config.addinivalue_line("markers", "language: needs another language and its drivers, see --languages")
    config.addinivalue_line("markers", "product(name, ...): what is tested is special to these products")


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test with a server once per server that it is for; see the markers."""
    if "server_name" in metafunc.fixturenames:
        # Otherwise twice as many items would be created only to be deselected below.
        names = [name for name in servers.names() if _may_be_for(metafunc, name)]
        metafunc.parametrize("server_name", names, scope="session")


def _may_be_for(metafunc: pytest.Metafunc, name: str) -> bool:
    test, config = metafunc.definition, metafunc.config
    every = config.getoption("--only-rest") or config.getoption("--every-version")
    product = test.get_closest_marker("product")
    # Marks on the values of a parameter take precedence over those of the test.
    values = [value for mark in test.iter_markers("parametrize") for value in mark.args[1:2]]
    may_be_marked = any(not isinstance(value, list | tuple) or any(map(_has_marks, value)) for value in values)
    return (product is None or servers.product(name) in product.args) and (
        may_be_marked or name in _on(test, every, servers.newest(servers.engine))
    )


def _has_marks(value: object) -> bool:
    return bool(getattr(value, "marks", ()))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the servers that a test is not for; see the markers."""
    rest = config.getoption("--only-rest")
    every = rest or config.getoption("--every-version")
    heavy = config.getoption("--heavy")
    left_out = {
        item
        for item in items
        if not _runs(item, every, heavy) or (rest and (_runs(item, False, False) or _runs(item, False, True)))
    }
    for option, mark in (("clusters", "cluster"), ("languages", "language")):
        named = any(option in argument for argument in config.invocation_params.args)
        if not config.getoption(f"--{option}") and not named:
            left_out |= {item for item in items if item.get_closest_marker(mark)}
    if sample := config.getoption("--sample"):
        left_out |= _not_in_sample([item for item in items if item not in left_out], sample)
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def _not_in_sample(items: list[pytest.Item], sample: str) -> set[pytest.Item]:
    """Of items that differ only in their server, all except one."""
    same: dict[str, list[pytest.Item]] = {}
    for item in items:
        if name := _server_name(item):
            same.setdefault(item.nodeid.replace(name, ""), []).append(item)
    kept = {found[zlib.crc32(f"{sample} {node}".encode()) % len(found)] for node, found in same.items()}
    return {item for found in same.values() for item in found} - kept


def _runs(item: pytest.Item, every: bool, heavy: bool) -> bool:
    name = _server_name(item)
    if name is not None and not _is_for(item, name, every):
        return False
    is_long = item.get_closest_marker("long") is not None
    return every or (not is_long and _is_heavy(item, name) == heavy)


def _is_heavy(item: pytest.Item, name: str | None) -> bool:
    """Whether an item is marked so, or on a product of the engine whose turn it is not; turns change per test."""
    for mark in item.iter_markers("heavy"):
        if not mark.args or (name is not None and servers.engine(name) in mark.args):
            return True
    takes_no_turns = item.get_closest_marker("language") is not None or _nearest(item) in ("one_engine", "any_engine")
    if name is None or takes_no_turns:
        return False
    same = [other for other in servers.newest(servers.product) if servers.engine(other) == servers.engine(name)]
    turn = zlib.crc32(item.name.replace(name, "").encode()) % len(same)
    return name in same and same[turn] != name


# Each engine's share of the tests for any engine: on Firebird they take three times as long as on PostgreSQL.
_SHARES = {"postgresql": 4, "mysql": 3, "firebird": 2}


def _is_for(item: pytest.Item, name: str, every: bool) -> bool:
    if name not in servers.names():  # no server of that product is available
        return False
    newest = servers.newest(servers.engine)
    # Always the same server.
    others = item.name.replace(name, "")
    shared = [other for other in newest for _ in range(_SHARES.get(servers.engine(other), 1))]
    any_engine = [shared[zlib.crc32(others.encode()) % len(shared)]]
    product = item.get_closest_marker("product")
    return name in _on(item, every, any_engine) and (product is None or servers.product(name) in product.args)


def _on(test: pytest.Item, every: bool, any_engine: Sequence[str]) -> Sequence[str]:
    """The servers for a test in a short run or in one of every version; the nearest mark decides."""
    nearest = _nearest(test)
    if nearest == "any_engine":
        return servers.newest(servers.engine) if every else any_engine
    if every:
        return servers.names()
    return servers.newest(servers.engine if nearest == "one_engine" else servers.product)


def _nearest(test: pytest.Item) -> str:
    marks = {"one_version", "one_engine", "any_engine"}
    return next((mark.name for mark in test.iter_markers() if mark.name in marks), "")


def _server_name(item: pytest.Item) -> str | None:
    callspec = getattr(item, "callspec", None)
    name = callspec.params.get("server_name") if callspec else None
    return None if name is None else str(name)


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
        from capabilities import lack

        server: servers.Server = request.getfixturevalue("server")
        case = request.node.name.partition("[")[2].removesuffix("]").removeprefix(f"{server.name}-")
        if reason := lack(server.stand_in, request.node.originalname, case):
            pytest.skip(f"not the product but {server.stand_in}, which {reason}")


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


@pytest.fixture
def installed_database(server: servers.Server, template: str | None, pytestconfig: pytest.Config) -> Iterator[Database]:
    """A database with the queue installed, for one test."""
    if template is None:
        url = server.create_database()
        install.apply(open_database(url), areas=_areas(pytestconfig))
    else:
        url = server.copy_database(template)
    yield open_database(url)
    server.drop_database(url)


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
