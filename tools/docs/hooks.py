"""Hooks for mkdocs: tabs per engine, and links to files that are not in docs/.

README.md is the home page. The pages of examples/ and benchmarks/ and the changelog are part of the site; any other
file that a page links to is copied to source/, to keep the site self-contained.
"""

import posixpath
import re
from pathlib import Path
from urllib.parse import quote

import tabs
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
# Pages outside docs/, by their path on the site.
OUTSIDE = {
    "index.md": ROOT / "README.md",
    "background/benchmarks.md": ROOT / "benchmarks" / "README.md",
    "background/peers.md": ROOT / "benchmarks" / "PEERS.md",
    "background/changelog.md": ROOT / "CHANGELOG.md",
    **{f"examples/{page.parent.name}.md": page for page in sorted(ROOT.glob("examples/*/README.md"))},
}
_PLACES = {path: place for place, path in OUTSIDE.items()}
_LINK = re.compile(r"(\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^)\s]+)\)")
_FENCE = re.compile(r"^( *```.*?^ *```$)", re.M | re.S)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add each document of docs/decisions to the navigation, under its title."""
    pages = sorted((DOCS / "decisions").glob("*.md"))
    for section in config.nav or []:
        for entry in next(iter(section.values())):
            if "Decisions" in entry:
                entry["Decisions"] = [{_title(page): f"decisions/{page.name}"} for page in pages]
    return config


def _title(page: Path) -> str:
    return page.read_text("utf-8").partition("\n")[0].lstrip("# ")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for place, path in OUTSIDE.items():
        files.append(File.generated(config, place, abs_src_path=str(path)))
    for path in sorted(_linked_sources()):
        files.append(File.generated(config, _source(path), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    place = page.file.src_uri
    file = OUTSIDE.get(place, DOCS / place)
    return tabs.for_site(_relink(markdown, file, place))


def _source(path: Path) -> str:
    """The path on the site of a repository file that is not a page."""
    name = path.relative_to(ROOT).as_posix()
    return f"source/{name}" + ("" if path.suffix else ".txt")


def _linked_sources() -> set[Path]:
    found = set()
    for file in [*DOCS.rglob("*.md"), *OUTSIDE.values()]:
        for part in _FENCE.split(file.read_text("utf-8"))[::2]:
            for _, target in _LINK.findall(part):
                path = _resolve(file, target)
                if path and path.is_file() and DOCS not in path.parents and path not in _PLACES:
                    found.add(path)
    return found


def _resolve(file: Path, target: str) -> Path | None:
    """The file or folder of the repository that a link leads to; None for other links."""
    if "://" in target or target.startswith(("#", "mailto:")):
        return None
    return (file.parent / target.partition("#")[0]).resolve()


def _relink(markdown: str, file: Path, place: str) -> str:
    """Change links to their targets on the site. A link to a folder becomes its text: a folder is not a page."""

    def changed(link: re.Match[str]) -> str:
        text, target = link.groups()
        path = _resolve(file, target)
        if path is None or not path.exists():
            return link[0]  # mkdocs reports missing targets
        if path.is_dir():
            if (path / "README.md") not in _PLACES:
                return text[1:-1]
            path = path / "README.md"
        if path in _PLACES:
            there = _PLACES[path]
        elif DOCS in path.parents:
            there = path.relative_to(DOCS).as_posix()
        else:
            there = _source(path)
        anchor = target.partition("#")[1:]
        return f"{text}({quote(posixpath.relpath(there, posixpath.dirname(place) or '.'))}{''.join(anchor)})"

    parts = _FENCE.split(markdown)
    return "".join(part if number % 2 else _LINK.sub(changed, part) for number, part in enumerate(parts))
