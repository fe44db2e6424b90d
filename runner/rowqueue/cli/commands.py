"""The commands of `runner` in the panels of its help. The module of a command is imported when it is used."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

# For each panel, its commands and groups of commands, and the module of this package that defines each.
_PANELS = {
    "Install": {
        **{"apply": "install", "sql": "install", "uninstall": "install"},
        **{"doctor": "doctor", "completion": "completion"},
    },
    "Send and handle messages": {"send": "send", "topic": "topic", "schedule": "schedule", "consume": "consume"},
    "Monitor and operate": {
        "stats": "queue",
        "top": "top",
        "consumers": "consumers",
        "throughput": "consumers",
        "queue": "queue",
        "dead": "dead",
        "exporter": "exporter",
        "web": "web",
    },
    "Your own tables": {"table": "table", "feed": "feed", "subscription": "subscription"},
    "Try it out": {"demo": "trials", "bench": "trials"},
}
_MODULES = {name: module for panel in _PANELS.values() for name, module in panel.items()}

# How the help names the value of an option by its type, unless the option has a metavar.
_VALUES = {"int": "N", "int range": "N", "float": "SECONDS", "float range": "SECONDS", "str": "TEXT"}
_SECONDS = ("delay", "lease", "report")

# The environment variable that the script of `runner completion` sets when a shell asks for completions.
COMPLETION = "_RUNNER_COMPLETE"


def program() -> str:
    """The name that this command was called by."""
    name = Path(sys.argv[0]).stem
    return name if name in ("runner", "rowqueue") else "runner"


class Commands(TyperGroup):
    """The commands of `runner`. A module has a group `app`, or a group `top` of commands that belong to no group."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*_MODULES]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _MODULES:
            return None
        module = import_module(f"{__package__}.{_MODULES[cmd_name]}")
        if hasattr(module, "top") and cmd_name in (commands := typer.main.get_group(module.top).commands):
            return _with_values(commands[cmd_name])
        group = typer.main.get_group(module.app)
        group.name = cmd_name
        return _with_values(group)

    @property
    def commands(self) -> dict[str, Any]:
        """All commands; imports all their modules."""
        return {name: self.get_command(None, name) for name in _MODULES}

    @commands.setter
    def commands(self, _: object) -> None:
        """Ignored: the commands are those of _MODULES."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        longest = max(map(len, _MODULES))
        for panel, names in _PANELS.items():
            with formatter.section(panel):
                formatter.write_dl([(name.ljust(longest), _line(self.get_command(ctx, name))) for name in names])


class Group(TyperGroup):
    """A group of commands. Its help shows the whole first sentence of each command."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _line(command)) for name, command in self.commands.items()])


def _line(command: Any) -> str:
    """The line of a command in the list of all commands: its first sentence; for a group, its commands."""
    if hasattr(command, "commands"):
        return f"{command.help.partition(':')[0]}: {', '.join(command.commands)}."
    return str(command.help).partition("\n")[0].partition(". ")[0].rstrip(".") + "."


def _with_values(command: Any) -> Any:
    """The command or group, with readable names for the values of its options in place of Python's types."""
    for child in getattr(command, "commands", {}).values():
        _with_values(child)
    for option in command.params:
        kind = getattr(getattr(option, "type", None), "name", None)
        if option.metavar is None and option.opts[0].startswith("-") and not option.is_flag and kind in _VALUES:
            is_time = option.name.endswith("_seconds") or option.name in _SECONDS
            option.metavar = "SECONDS" if is_time else _VALUES[kind]
    return command
