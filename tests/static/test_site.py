"""The site that `make docs` builds, in a real Chromium too: complete, findable, short pages, no code cut off."""

import json
import os
import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import TimeoutError
from rules import ROOT

sys.path.append(str(ROOT / "tests" / "runner"))

from support.pages import chromium

__all__ = ["chromium"]

LANDING = (ROOT / "docs" / "index.md").read_text("utf-8")
WIDTH, HEIGHT, SCREENS = 1280, 800, 8
NARROW = 400
# Records, which nobody reads from top to bottom, and tables of figures that programs write.
LONG = re.compile(r"decisions/|background/(?:benchmarks|peers|changelog)\.html")
# The program of each tab of the landing page; tests run each of them.
PROGRAMS = {
    "Django": "examples/django/shop/jobs.py",
    "FastAPI": "examples/fastapi/app.py",
    "Rails": "examples/rails/app/models/order.rb",
    "Laravel": "examples/laravel/app/Orders.php",
    "Node": "examples/node/shop.ts",
    "Go": "examples/go/main.go",
    "Java": "examples/java/Queue.java",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site. mkdocs checks each link and heading, and that each page is in the navigation."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """The site behind a web server: a browser does not search in files."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def html(site: Path) -> list[str]:
    """The paths of all pages."""
    return sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html") if path.name != "404.html")


@pytest.mark.level(3)
def test_each_page_has_the_version_and_loads_nothing_from_elsewhere(site: Path) -> None:
    loaded = re.compile(
        r"<(?:script|img|link rel=.?(?:stylesheet|preconnect|icon|preload).?)[^>]*(?:src|href)=.?(?:https?:)?//[^ >]*"
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for page in html(site):
        text = (site / page).read_text("utf-8")
        assert loaded.findall(text) == [], page
        assert f"rowqueue {project['version']}" in text, page
        assert project.get("urls", {}).get("Repository", "") in text, page
    index = json.loads((site / "search" / "search_index.json").read_text("utf-8"))
    assert len(index["docs"]) > 500


@pytest.mark.level(3)
def test_llms_txt_lists_every_page_with_a_sentence_and_each_is_there_as_markdown(site: Path) -> None:
    listed = re.findall(r"^- \[.+?\]\((\S+?)\): (.+)$", (site / "llms.txt").read_text("utf-8"), re.M)
    assert sorted(place.replace(".md", ".html") for place, _ in listed) == html(site)
    for place, sentence in listed:
        assert (site / place).read_text("utf-8").startswith("# "), place
        assert len(sentence) > 5, f"{place}: {sentence!r}"


def test_the_code_of_the_landing_page_stands_in_programs_that_tests_run() -> None:
    tabs = re.findall(r"^\*\*(\w+)\*\*\n(.*?)(?=^\*\*\w+\*\*\n|^<!-- end of tabs)", LANDING, re.M | re.S)
    assert [name for name, _ in tabs] == [*PROGRAMS, "SQL"]
    for name, text in tabs:
        [code] = re.findall(r"^```(?!sh$)\w+\n(.*?)^```$", text, re.M | re.S)
        lines = [line.strip() for line in code.splitlines() if line.strip()]
        assert 5 <= len(lines) <= 10, name
        if name in PROGRAMS:
            program = {line.strip() for line in (ROOT / PROGRAMS[name]).read_text("utf-8").splitlines()}
            assert [line for line in lines if line not in program] == [], name


def test_the_figures_of_the_landing_page_are_those_of_the_benchmark() -> None:
    peers = (ROOT / "benchmarks" / "PEERS.md").read_text("utf-8").partition("\n## MySQL")[0]
    [rate] = re.findall(r"^\| rowqueue `finish_batch` \|(?: [^|]+\|){2} ([\d,]+) \(", peers, re.M)
    [pick_up] = re.findall(r"^\| rowqueue, `runner consume` \| ([\d.]+) \|", peers, re.M)
    held = peers.partition("\n### Under a held snapshot\n")[2]
    [flat] = re.findall(r"^\| rowqueue `finish_batch` \|(?: [^|]+\|){2} ([\d.]+) \|", held, re.M)
    [raw] = re.findall(r"^\| raw \|(?: [^|]+\|){2} ([\d.]+) \|", held, re.M)
    assert f"| {rate} per second | {float(pick_up):.1f} ms | {flat} times |" in LANDING
    assert f"plain SQL took {float(raw):.0f} times as long" in LANDING


# Code whose text is wider than its box, and the page if it is wider than the window. All tabs are shown. A table gets
# the scroll bar that the site's own script gives it.
CUT_OFF = """() => {
    document.documentElement.className = "js";
    const style = document.createElement("style");
    style.textContent = ".tabbed-block { display: block !important }";
    document.head.append(style);
    for (const table of document.querySelectorAll(".md-typeset table:not([class])")) {
        const inner = document.createElement("div"), outer = document.createElement("div");
        inner.className = "md-typeset__table";
        outer.className = "md-typeset__scrollwrap";
        table.replaceWith(outer);
        outer.append(inner);
        inner.append(table);
    }
    const boxes = [...document.querySelectorAll("pre, pre code")];
    const cut = boxes.filter(code => code.scrollWidth > code.clientWidth + 1);
    const all = document.documentElement.scrollWidth;
    const wide = all > innerWidth ? [`the page is ${all} pixels wide`] : [];
    style.remove();
    return [...cut.map(code => code.textContent.slice(0, 60)), ...wide];
}"""


@pytest.fixture(scope="module")
def measured(site: Path, address: str, chromium: Any) -> dict[str, tuple[float, list[str]]]:
    """Of each page how many screens long it is, and the code that is cut off in a wide and in a narrow window."""
    found: dict[str, tuple[float, list[str]]] = {}
    for width in (WIDTH, NARROW):  # a page for each: Chromium has hung at a change of the width
        # Without the site's scripts a page opens three times as fast.
        page = chromium.new_page(viewport={"width": width, "height": HEIGHT}, java_script_enabled=False)
        for path in html(site):
            page.goto(f"{address}/{path}")
            height = page.evaluate("document.documentElement.scrollHeight")
            screens, cut = found.get(path, (round(height / HEIGHT, 1), []))
            found[path] = (screens, cut + page.evaluate(CUT_OFF))
        page.close()
    return found


# The first of them opens all pages twice: minutes on a busy machine.
@pytest.mark.level(3)
@pytest.mark.timeout(900)
def test_no_page_is_longer_than_eight_screens(measured: dict[str, tuple[float, list[str]]]) -> None:
    assert {p: screens for p, (screens, _) in measured.items() if screens > SCREENS and not LONG.match(p)} == {}


@pytest.mark.level(3)
@pytest.mark.timeout(900)
def test_no_code_is_cut_off(measured: dict[str, tuple[float, list[str]]]) -> None:
    assert {path: cut for path, (_, cut) in measured.items() if cut} == {}


@pytest.mark.level(3)
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("dead letter", "operate/troubleshooting.html"),
        ("dead letters", "operate/dead-letters.html"),
        ("celery", "start/coming-from.html"),
        ("sidekiq", "start/coming-from.html"),
        ("email after commit", "howto/outbox.html"),
        ("jsonb", "reference/sending.html"),
        ("lost the lease", "operate/stuck-consumers.html"),
    ],
)
def test_the_search_finds_what_helps(words: str, found: str, address: str, chromium: Any) -> None:
    """Among the first three pages."""
    page = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    page.goto(address)
    for _ in range(30):  # what is typed before the page's script listens is lost
        page.fill("input[name=query]", words)
        with suppress(TimeoutError):
            page.wait_for_selector(".md-search-result__item", timeout=4_000)
            break
    links = page.eval_on_selector_all(
        ".md-search-result__item > a", "links => links.map(link => new URL(link.href).pathname.slice(1))"
    )
    page.close()
    assert found in list(dict.fromkeys(links))[:3], links[:8]
