"""The documentation: the reference is what its generator writes, and no link leads nowhere."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from rowqueue import contract

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md"), *ROOT.glob("examples/**/*.md")]
)


def build() -> ModuleType:
    """docs/build.py, which is a script and in no package."""
    spec = importlib.util.spec_from_file_location("docs_build", ROOT / "docs" / "build.py")
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
    page = (ROOT / "docs" / "procedures.md").read_text("utf-8")
    assert page == build().page(), "run `make docs`"


def test_the_reference_tells_every_procedure_argument_and_error_of_the_contract() -> None:
    page = (ROOT / "docs" / "procedures.md").read_text("utf-8")
    known = contract.load()
    for procedure in known.every.values():
        section = page.partition(f"\n### {procedure.name}\n")[2].partition("\n##")[0]
        for name in (*(a.name for a in procedure.arguments), *(c.name for c in procedure.columns), *procedure.roles):
            assert f"`{name}`" in section, f"{procedure.name}: {name}"
        for error in procedure.errors:
            assert f"{known.errors[error].number} `{error}`" in section


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{target}: no such file"
        if anchor:
            assert anchor in anchors(file), f"{target}: no such heading"
