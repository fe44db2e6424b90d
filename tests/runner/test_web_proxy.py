"""`runner web` behind a real nginx, under a path that the proxy removes or leaves."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rowqueue.databases import Session
from servers.base import free_port
from support.pages import TOKEN, Serve, Site, chromium, database, serve
from support.waiting import until

__all__ = ["chromium", "database", "serve"]

pytestmark = pytest.mark.product("postgresql")

NGINX = "/usr/sbin/nginx"
# As docs/operate/web.md has it; the slash at the end of the target is what removes the path.
CONFIGURATION = """
daemon off; pid {folder}/pid; error_log {folder}/error; worker_processes 1; master_process off;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f;
    uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    server {{
        listen 127.0.0.1:{port};
        location /queues/ {{
            proxy_pass http://127.0.0.1:{target}{slash};
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-Host $http_host;
            proxy_set_header X-Forwarded-Proto $scheme;
            proxy_buffering off;
        }}
    }}
}}
"""


@pytest.fixture
def nginx(tmp_path: Path, pytestconfig: pytest.Config) -> Iterator[Callable[[int, str], int]]:
    """Starts nginx in front of a port: nginx(port, slash) -> its own port."""
    if not Path(NGINX).exists():
        lacking = f"no nginx: {NGINX} is missing (apt-get install nginx-light)"
        if pytestconfig.getoption("--require-databases"):
            pytest.fail(lacking, pytrace=False)
        pytest.skip(lacking)
    started: list[subprocess.Popen[bytes]] = []

    def run(target: int, slash: str) -> int:
        port = free_port()
        path = tmp_path / "nginx.conf"
        path.write_text(CONFIGURATION.format(folder=tmp_path, port=port, target=target, slash=slash))
        started.append(subprocess.Popen([NGINX, "-c", str(path), "-e", str(tmp_path / "error")]))
        return port

    yield run
    for process in started:
        process.terminate()
        process.wait(10)


@pytest.mark.level(3)
@pytest.mark.parametrize("slash", ["", "/"])
def test_the_pages_work_behind_a_proxy_under_a_path(
    serve: Serve, nginx: Callable[[int, str], int], chromium: Any, session: Session, queue: str, slash: str
) -> None:
    session.call("send", queue, "x")
    behind = serve("--allow-changes", "--behind-proxy", root="/queues")
    front = Site(behind.running, nginx(behind.port, slash), "/queues")
    until(lambda: _answers(front), seconds=20)
    context = chromium.new_context()
    page = context.new_page()
    try:
        page.goto(front.login)
        assert page.url == f"{front.url}/"
        assert TOKEN not in page.url
        row = page.get_by_role("row").filter(has_text=queue)
        assert row.locator("td").first.inner_text() == "1"
        session.call("send", queue, "y")
        until(lambda: row.locator("td").first.inner_text() == "2", seconds=20)  # the stream is not held back
        page.get_by_role("button", name=f"Pause {queue}").click()
        assert "is paused" in page.locator(".note").inner_text()
        assert session.call("queue_stats", queue)[0]["paused"]
        page.get_by_role("link", name=queue, exact=True).last.click()
        assert page.url.startswith(f"{front.url}/queue?")
        assert (
            front.ask("/queues/", X_Forwarded_Host="evil.example").status == 200
        )  # nginx sets it to the requested host
        assert front.ask("/queues/", Host="evil.example").status == 421
    finally:
        context.close()


def _answers(front: Site) -> bool:
    try:
        return front.ask("/queues/live").status == 200
    except OSError:
        return False


def test_the_page_of_the_documentation_has_this_configuration() -> None:
    text = (Path(__file__).parents[2] / "docs" / "operate" / "web.md").read_text("utf-8")
    for line in ("proxy_pass http://127.0.0.1:", "X-Forwarded-Proto $scheme;", "proxy_buffering off;"):
        assert line in text
        assert line in CONFIGURATION
