"""Hooks for mkdocs: tabs, links to files that are not in docs/, the version, the order of search results, llms.txt.

The pages of examples/ and benchmarks/ and the changelog are part of the site; any other file that a page links to is
copied to source/, to keep the site self-contained. Each page is also there as Markdown, with .md in place of .html.
"""

import posixpath
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import tabs
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure import StructureItem
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation, Section
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
# Pages outside docs/, by their path on the site.
OUTSIDE = {
    "background/benchmarks.md": ROOT / "benchmarks" / "README.md",
    "background/peers.md": ROOT / "benchmarks" / "PEERS.md",
    "background/changelog.md": ROOT / "CHANGELOG.md",
    **{f"examples/{page.parent.name}.md": page for page in sorted(ROOT.glob("examples/*/README.md"))},
}
_PLACES = {path: place for place, path in OUTSIDE.items()} | {ROOT / "README.md": "index.md"}
# How much a word counts in the search, by the beginning of a page's path; the first that fits. What helps at work comes
# before the records of how it was made.
_BOOSTS = {
    "operate/troubleshooting.md": 4,
    "start/": 2,
    "howto/": 2,
    "operate/": 1.5,
    "decisions/": 0.2,
    "background/changelog.md": 0.1,
    "background/peers.md": 0.3,
    "background/benchmarks.md": 0.3,
    "": 1,
}
_LINK = re.compile(r"(\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^)\s]+)\)")
# A picture with a twin for dark pages.
_PICTURE = re.compile(r"(!\[[^\]]*\]\(\S+)-light\.png\)")
_FENCE = re.compile(r"^( *```.*?^ *```$)", re.M | re.S)
_SHORT = 40  # a sentence with fewer characters says too little of its page
# The text of each page with the links of the site, for llms.txt.
_texts: dict[str, str] = {}
_navigation: list[Navigation] = []


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the decisions to the navigation, under their titles; the version, and the repository if it has an address."""
    pages = sorted((DOCS / "decisions").glob("*.md"))
    for section in config.nav or []:
        entries = next(iter(section.values())) if isinstance(section, dict) else []
        for entry in entries if isinstance(entries, list) else []:
            if "Decisions" in entry:
                entry["Decisions"] = [{_title(page): f"decisions/{page.name}"} for page in pages]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    version = project["version"]
    released = (ROOT / "releases" / version).is_dir()
    config.copyright = f"{project['name']} {version}" + ("" if released else ", not released yet")
    # The one place for the address: pyproject.toml, [project.urls], Repository.
    if repository := project.get("urls", {}).get("Repository"):
        config.repo_url, config.repo_name = repository, project["name"]
    return config


def _title(page: Path) -> str:
    return page.read_text("utf-8").partition("\n")[0].lstrip("# ")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for place, path in OUTSIDE.items():
        files.append(File.generated(config, place, abs_src_path=str(path)))
    for path in sorted(_linked_sources()):
        files.append(File.generated(config, _source(path), abs_src_path=str(path)))
    return files


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    _navigation[:] = [nav]
    return nav


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    place = page.file.src_uri
    page.meta["search"] = {"boost": next(boost for start, boost in _BOOSTS.items() if place.startswith(start))}
    _texts[place] = _relink(markdown, OUTSIDE.get(place, DOCS / place), place)
    return tabs.for_site(_PICTURE.sub(r"\1-light.png#only-light) \1-dark.png#only-dark)", _texts[place]))


def on_post_build(config: MkDocsConfig) -> None:
    """Write each page as Markdown, and the list of all pages: see llmstxt.org."""
    site = Path(config.site_dir)
    for place, text in _texts.items():
        (site / place).write_text(text, "utf-8")
    lines = [f"# {config.site_name}", "", f"> {config.site_description} {config.copyright}."]
    for item in _navigation[0].items:
        lines += ["", f"## {item.title}", ""]
        for page in _pages(item):
            place = page.file.src_uri
            lines.append(f"- [{page.title}]({place}): {_summary(_texts[place])}")
    (site / "llms.txt").write_text("\n".join(lines) + "\n", "utf-8")


def _pages(item: StructureItem) -> Iterator[Page]:
    if isinstance(item, Page):
        yield item
    elif isinstance(item, Section):
        for child in item.children:
            yield from _pages(child)


def _summary(markdown: str) -> str:
    """The first sentence of a page, or more if it is short, as plain text."""
    paragraphs = re.split(r"\n\s*\n|\n(?=- )", _FENCE.sub("", markdown).strip())
    first = next((text for text in paragraphs if not re.match(r"#|<!--|\||!|\*\*Roles", text) and text.strip()), "")
    plain = _LINK.sub(lambda link: link[1][1:-1], " ".join(first.removeprefix("- ").split())).replace("**", "")
    end = re.search(r"(?<=[.:]) (?=[A-Z`])", plain[_SHORT:])
    return plain[: _SHORT + end.start()] if end else plain


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
