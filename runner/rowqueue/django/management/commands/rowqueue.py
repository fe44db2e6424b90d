"""`manage.py rowqueue`: the runner, with the project's database, settings and apps."""

import argparse
import os
import sys
from typing import Any

from django.core.management.base import BaseCommand

from rowqueue.django.settings import url


class Command(BaseCommand):
    """Runs a command of the runner in this process, so its handlers can use the project's models."""

    help = (
        "The runner with the project's database: manage.py rowqueue consume --type email --handler shop.jobs:send."
        " `manage.py rowqueue -- --help` lists its commands."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("arguments", nargs=argparse.REMAINDER, help="a command of the runner and its arguments")

    def handle(self, *_: Any, arguments: list[str], **__: Any) -> None:
        from rowqueue.cli import main

        # In the environment, and not as an argument: other users see the arguments of a process.
        os.environ["RUNNER_DATABASE"] = url()
        sys.argv = ["runner", *(arguments[1:] if arguments[:1] == ["--"] else arguments)]
        main()
