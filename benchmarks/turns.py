"""The lines of two trees in turns: python benchmarks/turns.py BEFORE AFTER --server postgresql-15

BEFORE and AFTER are folders with a whole tree, such as two worktrees of git. Each line of the benchmark runs in the
one and then in the other, with the tree's own program, SQL and runner, in as many rounds as you want. Prints a Markdown
table: the median of each tree, and the median of the rounds' ratios. 1.00 is no change; more is better.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import lines
import mysql
import on_firebird
import postgresql
from lines import servers

PROGRAMS = {"postgresql.py": postgresql.Client, "mysql.py": mysql.Client, "on_firebird.py": on_firebird.Client}


def figures(tree: Path, program: str, *options: str) -> dict[str, tuple[float, bool]]:
    """The first figure of each row, and whether more is better, from a run of one tree's benchmark."""
    done = subprocess.run(
        [sys.executable, str(tree / "benchmarks" / program), *options],
        env=os.environ | {"PYTHONPATH": str(tree / "runner")},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{tree}: {program} {' '.join(options)} failed:\n{done.stderr}")
    found = {}
    for name, figure in re.findall(r"^\| (.+?) \| ([\d.,]+ ?\S+) \|", done.stdout, re.M):
        found[name] = float(re.sub(r"[^\d.]", "", figure.split("/")[0])), figure.endswith("/s")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--server", default="postgresql-15", choices=servers.names())
    parser.add_argument("--only", choices=lines.LINES, action="append", help="only these lines")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a tenth of the messages")
    options = parser.parse_args()
    product = servers.product(options.server)
    program = next(name for name, kind in PROGRAMS.items() if product in kind.products)
    quick = ["--quick"] if options.quick else []
    print("| line | before | after | ratio |\n| --- | ---: | ---: | ---: |")
    for line in options.only or lines.LINES:
        values: dict[str, list[tuple[float, float]]] = defaultdict(list)
        rising: dict[str, bool] = {}
        for number in range(options.rounds):
            # The one that runs second may profit from the first; so they change places.
            order = [options.before, options.after][:: -1 if number % 2 else 1]
            run = ["--server", options.server, "--only", line, "--repeat", "1", *quick]
            found = {tree: figures(tree, program, *run) for tree in order}
            for name in found[options.before].keys() & found[options.after].keys():
                (was, rising[name]), (is_now, _) = found[options.before][name], found[options.after][name]
                values[name].append((was, is_now))
        for name, pairs in sorted(values.items()):
            ratio = statistics.median(now / was if rising[name] else was / now for was, now in pairs)
            was, now = (statistics.median(column) for column in zip(*pairs, strict=True))
            print(f"| {name} | {was:,.2f} | {now:,.2f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
