"""The runner's rooms in layers: a module imports only from lower layers, without cycles, and none is long."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "runner" / "rowqueue"
# From the lowest to the highest. A layer imports from itself and from those below it. A name stands for a module, or
# for a room with all that is in it that is not named itself.
LAYERS = (
    ("errors", "messages", "install.contract", "escaping", "shutdown", "tracing", "extras.rows"),
    ("databases",),
    ("handlers", "requests", "calling", "aio", "testing", "install", "extras.steps"),
    ("consume",),
    ("extras.tracing", "extras.health", "extras.handling", "extras.processes", "extras.tables", "extras.feeds"),
    ("extras.bench", "extras.demo", "extras.monitor"),
    ("extras.top", "extras.web", "django"),
    ("cli",),
)
LEVELS = {name: level for level, names in enumerate(LAYERS) for name in names}
OUTSIDE = ("databases", "cli", "django", "extras", "testing", "aio")  # what is not the core, and nothing of it needs
CORE_LINES = 3_988
LONGEST = 400  # lines


def name_of(path: Path) -> str:
    """The module of a file, without the package's own name; '' for the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imported(name: str) -> Iterator[str]:
    """The modules of the package that a module imports, wherever in its text it does so."""
    path = FILES[name]
    here = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [*here[: len(here) - node.level + 1], *(node.module or "").split(".")]
            for alias in node.names:
                # Either a module of a package, or a name that a module has.
                found = [".".join(filter(None, [*base, alias.name])), ".".join(filter(None, base))]
                yield next(module for module in found if module in FILES)


IMPORTS = {name: set(imported(name)) for name in FILES}


def level(name: str) -> int:
    """The layer of a module: its own, or that of the room that it is in. The package itself is the lowest."""
    while name and name not in LEVELS:
        name = name.rpartition(".")[0]
    return LEVELS.get(name, -1)


def test_every_module_has_a_layer() -> None:
    assert [name for name in FILES if name not in ("", "extras") and level(name) < 0] == []


def test_nothing_is_imported_from_a_higher_layer() -> None:
    upward = [
        f"{name} imports {other}" for name in FILES if name for other in IMPORTS[name] if level(other) > level(name)
    ]
    assert upward == []


def test_the_core_imports_no_extra_and_is_small() -> None:
    core = [name for name in FILES if name.partition(".")[0] not in OUTSIDE]
    # The package itself names some of these for type checkers, and imports them on first use.
    outward = [
        name for name in core for other in IMPORTS[name] if other.startswith(("extras", "cli", "testing", "aio"))
    ]
    assert {*outward} <= {""}
    assert sum(len(FILES[name].read_text("utf-8").splitlines()) for name in core) <= CORE_LINES


def test_nothing_is_imported_in_a_circle() -> None:
    order = list(TopologicalSorter(IMPORTS).static_order())  # raises CycleError, which names the circle
    assert len(order) == len(FILES)


def test_one_database_knows_nothing_of_another() -> None:
    engines = {path.name for path in (PACKAGE / "databases").iterdir() if (path / "database.py").exists()}
    assert len(engines) == 4
    for engine in engines:
        own = {other for name in FILES if name.startswith(f"databases.{engine}") for other in IMPORTS[name]}
        assert not [name for name in own for other in engines - {engine} if name.startswith(f"databases.{other}")]


def test_every_engine_has_the_same_modules() -> None:
    """Some also have `address` where the driver reads no URL, `yoyo` where yoyo has no backend, Django's names."""
    everywhere = {"__init__", "calls", "connection", "database", "errors", "removal", "rights", "script", "session"}
    optional = {"address", "django", "yoyo", "yoyo_tables"}
    own = {
        "postgresql": {"embedded_server"},
        "mysql": {"clusters"},
        "sqlserver": {"babelfish", "suitable"},
        "firebird": {"events", "library", "statements", "watch"},
    }
    for engine, more in own.items():
        found = {path.stem for path in (PACKAGE / "databases" / engine).glob("*.py")}
        assert everywhere <= found and found - everywhere - optional == more, engine


def test_the_package_itself_loads_only_what_handlers_need() -> None:
    program = (
        "import sys, rowqueue; print(*sorted(m for m in sys.modules if m.startswith('rowqueue') or m == 'asyncio'))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["rowqueue", "rowqueue.errors", "rowqueue.messages"]


def test_no_module_is_long() -> None:
    assert [name for name, path in FILES.items() if len(path.read_text("utf-8").splitlines()) > LONGEST] == []
