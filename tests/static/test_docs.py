"""The documentation: the reference is what its generator writes, and all links work."""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
import tabs
from rowqueue.install import contract
from rules import ROOT, offending

DOCS = ROOT / "docs"
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md"), *ROOT.glob("examples/**/*.md")]
)


@cache
def build() -> ModuleType:
    """tools/docs/build.py, which is a script and in no package."""
    spec = importlib.util.spec_from_file_location("docs_build", ROOT / "tools" / "docs" / "build.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_reference_is_what_make_docs_writes() -> None:
    written = build().pages()
    assert [page.name for page in written if page.read_text("utf-8") != written[page]] == [], "run `make docs`"


def test_the_reference_has_every_procedure_argument_and_error_of_the_contract() -> None:
    known = contract.load()
    for procedure in known.every.values():
        page = (ROOT / "docs" / "reference" / f"{procedure.area}.md").read_text("utf-8")
        section = page.partition(f"\n### {procedure.name}\n")[2].partition("\n##")[0]
        if "#the-message-row)" in section:
            section += (DOCS / "reference" / "queue.md").read_text("utf-8").partition("\n## The message row\n")[2]
        for name in (*(a.name for a in procedure.arguments), *(c.name for c in procedure.columns), *procedure.roles):
            assert f"`{name}`" in section, f"{procedure.name}: {name}"
        for error in procedure.errors:
            assert f"{known.errors[error].number} `{error}`" in section


def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    """mkdocs checks each link and heading, and that each page is in the navigation."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    loaded = re.compile(
        r"<(?:script|img|link rel=.?(?:stylesheet|preconnect|icon|preload).?)[^>]*(?:src|href)=.?(?:https?:)?//[^ >]*"
    )
    for page in tmp_path.rglob("*.html"):
        assert loaded.findall(page.read_text("utf-8")) == [], page
    assert '"search":' in (tmp_path / "index.html").read_text("utf-8")
    assert (tmp_path / "search" / "search_index.json").stat().st_size > 100_000


def test_a_group_of_tabs_reads_as_one_engine_and_shows_as_tabs() -> None:
    page = "a\n\n<!-- tabs -->\n**PostgreSQL, Firebird**\n\nb\n\n**SQL Server**\n\nc\n<!-- end of tabs -->\nd\n"
    assert "".join(tabs.for_engine(page, "firebird").split()) == "abd"
    assert "".join(tabs.for_engine(page, "mysql").split()) == "ad"
    assert re.findall(r'=== "(.*)"', tabs.for_site(page)) == ["PostgreSQL", "Firebird", "SQL Server"]
    with pytest.raises(ValueError, match="no beginning or no end"):
        tabs.for_site(page.replace("<!-- end of tabs -->", ""))


def test_the_core_in_an_evening_names_forty_files_that_every_engine_has() -> None:
    page = (DOCS / "background" / "core.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \| \[([\w]+)\]\(\.\./\.\./(\S+?)\) \|", page, re.M)
    assert [int(number) for number, *_ in rows] == list(range(1, 41))
    assert len({path for *_, path in rows}) == 40
    for _, name, path in rows:
        assert Path(path).stem.removeprefix("rowqueue_") == name
        lacking = [engine for engine in tabs.ENGINES if not (ROOT / path.replace("postgresql", engine)).is_file()]
        assert lacking == [], path
    drawn = (DOCS / "images" / "core.svg").read_text("utf-8")
    known = "\n".join(name for _, name, _ in rows)
    for word in re.findall(
        r"\b(?:claim|complete|leave|put|pick|set|queue|take|send|require|change|renew|extend)_\w+", drawn
    ):
        assert word in known or word == "queue_group", f"the drawing names {word}"


def test_every_relative_link_leads_to_a_file_and_a_heading() -> None:
    def faults(page: Path) -> Iterator[str]:
        text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            if "://" in target:
                continue
            if not file.exists():
                yield f"{target}: no such file"
            elif anchor and anchor not in anchors(file):
                yield f"{target}: no such heading"

    assert offending(PAGES, faults) == []


@pytest.mark.parametrize("folder", ["start", "howto", "concepts", "operate/repair.md"])
def test_steps_of_a_user_are_shown_for_every_engine(folder: str) -> None:
    pages = [DOCS / folder] if folder.endswith(".md") else sorted((DOCS / folder).glob("*.md"))
    for page in pages:
        for group in re.findall(rf"{tabs.BEGIN}\n(.*?){tabs.END}", page.read_text("utf-8"), re.S):
            lacking = [
                name for name in tabs.ENGINES.values() if not re.search(rf"^\*\*.*\b{name}\b.*\*\*$", group, re.M)
            ]
            assert lacking == [], f"{page.name}: {group[:60]!r}"
