"""Defaults from ./rowqueue.toml, or else from [tool.rowqueue] in ./pyproject.toml."""

from pathlib import Path
from typing import Any

from ..errors import Error

FILES = ("rowqueue.toml", "pyproject.toml")


class ConfigError(Error):
    """A configuration file with an error; the message names the file."""

    exit_code = 2


def read(folder: Path) -> tuple[str, dict[str, Any]]:
    """The name of the file found in `folder` and its settings; ('', {}) without one. Raises ConfigError."""
    for name in FILES:
        path = folder / name
        if not path.is_file():
            continue
        import tomllib  # only if there is a file

        try:
            data = tomllib.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigError(f"{name}: {error}") from error
        settings = data.get("tool", {}).get("rowqueue") if name == "pyproject.toml" else data
        if settings is not None:
            return name, settings
    return "", {}


def defaults(name: str, settings: dict[str, Any], commands: dict[str, Any]) -> dict[str, Any]:
    """Defaults by command, as a default_map: `database` for all commands, and a table per command.

    `commands`: for each command, its options and whether each may be repeated; for a group, such a dict. Raises
    ConfigError for an unknown name.
    """
    if not isinstance(settings.get("database", ""), (str, list)):
        raise ConfigError(f"{name}: database must be a text")
    tables = {key: value for key, value in settings.items() if key != "database"}
    if unknown := tables.keys() - commands.keys():
        raise ConfigError(f"{name}: unknown setting {min(unknown)!r}; known: database, {', '.join(sorted(commands))}")
    result: dict[str, Any] = {}
    for command, options in commands.items():
        table = tables.get(command, {})
        if not isinstance(table, dict):
            raise ConfigError(f"{name}: {command!r} must be a table of options")
        table = {key.replace("-", "_"): value for key, value in table.items()}
        inherited = {"database": settings["database"]} if "database" in settings else {}
        if any(isinstance(option, dict) for option in options.values()):
            result[command] = defaults(f"{name}: {command}", inherited | table, options)
            continue
        if unknown := table.keys() - options.keys():
            raise ConfigError(
                f"{name}: {command}: unknown option {min(unknown)!r}; known: {', '.join(sorted(options))}"
            )
        merged = inherited | table
        result[command] = {
            name: [value] if options.get(name) and not isinstance(value, list) else value
            for name, value in merged.items()
        }
    return result
