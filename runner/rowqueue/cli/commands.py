"""Which commands there are, in the panels of the help, and the module of each, which is loaded when it is asked for."""

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

# A panel; in it each command or group of commands, and the module of this package that has it.
_PANELS = {
    "Install": {
        "apply": "install",
        "sql": "install",
        "uninstall": "install",
        "doctor": "doctor",
        "completion": "completion",
    },
    "Send and handle messages": {"send": "send", "topic": "topic", "schedule": "schedule", "consume": "consume"},
    "Look and operate": {"stats": "queue", "queue": "queue", "dead": "dead"},
    "Tables of yours": {"table": "table", "feed": "feed", "subscription": "subscription"},
    "Try it out": {"demo": "trials", "bench": "trials"},
}
# The script of `runner completion` sets it when a shell asks for completions.
COMPLETION = "_RUNNER_COMPLETE"

_MODULES = {name: module for panel in _PANELS.values() for name, module in panel.items()}


class Commands(TyperGroup):
    """The commands of `runner`. A module has a group `app`, and commands of no group in a group `top`."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*_MODULES]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _MODULES:
            return None
        module = import_module(f"{__package__}.{_MODULES[cmd_name]}")
        if hasattr(module, "top") and cmd_name in (commands := typer.main.get_group(module.top).commands):
            return commands[cmd_name]
        group = typer.main.get_group(module.app)
        group.name = cmd_name
        return group

    @property
    def commands(self) -> dict[str, Any]:
        """All of them, for whoever asks for all."""
        return {name: self.get_command(None, name) for name in _MODULES}

    @commands.setter
    def commands(self, _: object) -> None:
        """There are no others."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = formatter.width - 6 - max(map(len, _MODULES))
        longest = max(map(len, _MODULES))
        for panel, names in _PANELS.items():
            with formatter.section(panel):
                helps = [(name, self.get_command(ctx, name).get_short_help_str(width)) for name in names]
                formatter.write_dl([(name.ljust(longest), text) for name, text in helps])
