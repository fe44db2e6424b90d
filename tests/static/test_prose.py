"""Plain English: no misspellings, and no words for which the pages have a better one."""

import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

from rules import ROOT, offending

PAGES = [
    page
    for page in (
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/**/*.md"),
        ROOT / "benchmarks/README.md",
    )
    if "node_modules" not in page.parts
]
# Words that pages must not use, and what to write instead.
WORDS = {
    r"anew": "again",
    r"besides": "also, in addition",
    r"told|tells?|untold": "reports, returns, says",
    r"com(?:e|es|ing) again|round again|sends? (?:it|them) round": "retry; of dead letters: redrive",
    r"(?:giv(?:e|es|en|ing)|gave) (?:it |them )?up": "dead-letter",
    r"of yours": "your own, a user's",
    r"so that": "two sentences",
    r"as it is": "unchanged",
    r"of itself": "leave it out",
    r"he|him|his|himself": "they, the caller, the operator",
    r"shall": "must, will",
    r"mend(?:s|ed|ing)?": "repair, fix",
    r"(?:legacy|polled|adopted) tables?": "polling table",
    r"floor": "baseline",
    r"walk(?:s|ed|ing)?": "scan, read",
    r"whatever|whoever": "name the thing or the person",
    r"go(?:es)? on": "continue",
    r"bec(?:ome|omes|ame|oming) of": "name the result",
    r"(?:limits|rate) by group": "per group",
    r"with (?:blanks|commas|dots) between": "separated by",
    r"(?:messages|rows|changes|calls|commits|times|µs|ms) an? (?:second|minute|hour|day|batch|message)": "per second",
    r"thereof|therein|whereof": "of it",
}


def test_no_page_uses_a_word_that_has_a_plainer_one() -> None:
    def faults(page: Path) -> Iterator[str]:
        text = re.sub(
            r"^ *```.*?^ *```$|`[^`\n]*`|\]\([^)]*\)",
            lambda found: "\n" * found[0].count("\n"),
            page.read_text("utf-8"),
            flags=re.M | re.S,
        )
        for number, line in enumerate(text.splitlines(), 1):
            for word, better in WORDS.items():
                for match in re.finditer(rf"\b(?:{word})\b", line, re.I):
                    yield f"line {number}: {match[0]!r}: {better}"

    assert offending(PAGES, faults) == []


def plain_faults(text: str, number: int) -> Iterator[str]:
    for word, better in WORDS.items():
        for match in re.finditer(rf"(?<![\w.@])(?:{word})(?![\w(])", text, re.I):
            yield f"line {number}: {match[0]!r}: {better}"


def test_no_comment_uses_a_word_that_has_a_plainer_one() -> None:
    """Comments of SQL and Python, and docstrings. Released migrations keep theirs."""

    def faults(path: Path) -> Iterator[str]:
        text = path.read_text("utf-8")
        if path.suffix == ".sql":
            comments = [(n, line.partition("--")[2]) for n, line in enumerate(text.splitlines(), 1)]
        else:
            tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
            comments = [(t.start[0], t.string) for t in tokens if t.type == tokenize.COMMENT or t.string[:3] == '"""']
        for number, comment in comments:
            yield from plain_faults(re.sub(r"`[^`\n]*`", "", comment), number)

    code = [
        path
        for folder, pattern in (("procedures", "*.sql"), ("runner", "*.py"), ("tests", "*.py"), ("benchmarks", "*.py"))
        for path in (ROOT / folder).rglob(pattern)
        if path != Path(__file__)
    ]
    assert offending(code, faults) == []


def test_no_test_is_named_with_a_word_that_has_a_plainer_one() -> None:
    def faults(path: Path) -> Iterator[str]:
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if name := re.match(r"(?:async )?def test_(\w+)", line):
                yield from plain_faults(name[1].replace("_", " "), number)
                if re.match(r"what_|who_|whatever_", name[1]):
                    yield f"line {number}: {name[1]}: name the thing or the person"

    assert offending((ROOT / "tests").rglob("test_*.py"), faults) == []


def test_nothing_is_misspelt() -> None:
    """Pages, SQL headers, docstrings and comments."""
    folders = (
        "README.md",
        "CHANGELOG.md",
        "docs",
        "examples",
        "benchmarks",
        "procedures",
        "migrations",
        "runner",
        "tools",
    )
    skip = "*.json,*.svg,*.png,*.css,node_modules"
    command = [sys.executable, "-m", "codespell_lib", "--skip", skip, *folders]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
