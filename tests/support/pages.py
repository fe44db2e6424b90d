"""Shared by the tests of `runner web`: a server in the background, requests without a browser, and Chromium."""

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from rowqueue.databases import Database

from support.processes import Running
from support.waiting import until

TOKEN = "a-token-of-the-tests"
CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP evil.example 127.0.0.1"]


@dataclass(frozen=True)
class Answer:
    """A server's response to one request; header names are in lower case."""

    status: int
    headers: dict[str, str]
    text: str


@dataclass(frozen=True)
class Site:
    """A running `runner web`."""

    running: Running
    port: int
    root: str = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.base}"

    @property
    def base(self) -> str:
        """The path of all pages for browsers: only those with the token learn it."""
        return self.ask(f"{self.root}/?token={TOKEN}", token=None).headers["location"].rstrip("/")

    @property
    def login(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.root}/?token={TOKEN}"

    def ask(
        self,
        path: str,
        method: str = "GET",
        form: dict[str, str] | None = None,
        token: str | None = TOKEN,
        **headers: str,
    ) -> Answer:
        """One request as a program sends it, with the token and these headers; `_` in a name means `-`."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {"Authorization": f"Bearer {token}"} if token else {}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        if form is not None:
            sent.setdefault("Content-Type", "application/x-www-form-urlencoded")
        connection.request(method, path, None if form is None else urlencode(form), sent)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, text)

    def post(self, form: dict[str, str], **headers: str) -> Answer:
        """A form as one of the site's own pages sends it."""
        found: set[str] = set()
        # A cached page may be of a moment before the first queue: it has no form.
        until(lambda: found.update(re.findall(r'name="csrf" value="(\w+)"', self.ask("/").text)) or found, seconds=20)
        [csrf] = found
        origin = {"Origin": f"http://127.0.0.1:{self.port}"}
        return self.ask("/change", "POST", {"csrf": csrf} | form, **(origin | headers))


Serve = Callable[..., Site]


# Not the one that all tests share: a page shows the first queues and consumers, and other tests leave hundreds.
@pytest.fixture(scope="module")
def database(install_database: Callable[[], AbstractContextManager[Database]]) -> Iterator[Database]:
    with install_database() as database:
        yield database


@pytest.fixture
def serve(start: Callable[..., Running]) -> Serve:
    """Starts `runner web` on a port of its own: serve("--allow-changes", url="", root="")."""

    def run(*arguments: object, url: str = "", root: str = "", token: str = TOKEN) -> Site:
        more = ("--root-path", root) if root else ()
        running = start("web", "--port", "0", *more, *arguments, url=url, env={"RUNNER_WEB_TOKEN": token})
        found = until(lambda: re.search(r"^http://\S+", running.stderr, re.M) or running.process.poll() is not None)
        assert isinstance(found, re.Match), running.stderr
        port = urlsplit(found[0]).port
        assert port
        return Site(running, port, root)

    return run


# Not of the session: as long as Playwright runs, its event loop counts as running for all tests of this process.
@pytest.fixture(scope="module")
def chromium(pytestconfig: pytest.Config) -> Iterator[Any]:
    """Debian's Chromium, driven by Playwright."""
    if shutil.which(CHROMIUM) is None:
        lacking = f"no Chromium: {CHROMIUM} is missing (apt-get install chromium)"
        if pytestconfig.getoption("--require-databases"):
            pytest.fail(lacking, pytrace=False)
        pytest.skip(lacking)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()
