"""The application: addresses, errors, the stream of changes, and the forms."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from ...databases import DatabaseError, NotAllowed, QueueError
from ..monitor import Away
from ..monitor.parts import said
from . import acting, pages
from .guard import Guard, same
from .site import BadQuery, NotFound, Page, Site

EVENT_SECONDS = 2.0
_STEP_SECONDS = 0.2  # how long a stream may delay the end of the server
_STREAMS = 100
_FORM_BYTES = 65_536
_FORM_SECONDS = 10.0
_REFUSED = (NotFound, BadQuery, Away, NotAllowed, QueueError, DatabaseError)


def build(site: Site, metrics: Callable[[Request], Response]) -> ASGIApp:
    """The whole application. `metrics` answers /metrics. If changes are not allowed, /change does not exist."""
    streams = _Streams(site)
    routes = [
        *(Route(path, _Looker(site, path), methods=["GET"]) for path in pages.PAGES),
        Route("/body", _body(site), methods=["GET"]),
        Route("/events", streams, methods=["GET"]),
        Route("/metrics", metrics, methods=["GET"]),
        Route("/live", lambda _: PlainTextResponse("live\n"), methods=["GET"]),
        Route("/ready", _ready(site), methods=["GET"]),
        Mount("/static", StaticFiles(packages=[("rowqueue.extras.web", "static")])),
    ]
    if site.options.allow_changes:
        routes.append(Route("/change", _changer(site), methods=["POST"]))

    def refused(request: Request, error: Exception) -> Response:
        return _page(site, request, _error(error))

    handlers: dict[Any, Any] = dict.fromkeys((*_REFUSED, HTTPException, Exception), refused)
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False  # it would redirect to the host that the request names
    return Guard(app, site.rules)


def _error(error: Exception) -> Page:
    """The page for an error."""
    if isinstance(error, HTTPException):
        text = {404: "There is no such page.", 405: "This cannot be done here."}.get(error.status_code, error.detail)
        return Page("error.html", {"title": "Not possible", "error": text}, error.status_code, False)
    if isinstance(error, NotAllowed):
        return Page(
            "error.html", {"title": "Forbidden", "error": f"The database user may not do this: {error}"}, 403, False
        )
    known = {NotFound: (404, "Not found"), Away: (503, "The database is away")}
    status, title = known.get(type(error), (400 if isinstance(error, _REFUSED) else 500, "Not possible"))
    return Page("error.html", {"title": title, "error": said(error)}, status, False)


def _page(site: Site, request: Request, page: Page) -> HTMLResponse:
    return HTMLResponse(site.render(page, request.query_params, request.url.path), page.status)


def _Looker(site: Site, path: str) -> Callable[[Request], Response]:
    def look(request: Request) -> Response:
        page = pages.PAGES[path](site, request.query_params)
        return HTMLResponse(site.render(page, request.query_params, path), page.status)

    return look


def _body(site: Site) -> Callable[[Request], Response]:
    def download(request: Request) -> Response:
        headers = {
            "Content-Disposition": 'attachment; filename="body.txt"',
            "Content-Security-Policy": "default-src 'none'; sandbox",
        }
        return PlainTextResponse(pages.body(site, request.query_params), headers=headers)

    return download


def _ready(site: Site) -> Callable[[Request], Response]:
    def ready(_: Request) -> Response:
        is_ready = any(not found.away for found in site.every(lambda looking: looking.session.now()))
        return PlainTextResponse("ready\n") if is_ready else PlainTextResponse("not ready\n", 503)

    return ready


def _changer(site: Site) -> Callable[[Request], Any]:
    async def change(request: Request) -> Response:
        form = await _form(request)
        if not same(form.get("csrf"), site.rules.csrf):
            raise HTTPException(
                403, "The form is from another server, or from before this one's last start. Reload the page."
            )
        made = await run_in_threadpool(acting.change, site, form)
        if isinstance(made, Page):
            return await run_in_threadpool(_page, site, request, made)
        return RedirectResponse(made, 303)

    return change


async def _form(request: Request) -> dict[str, str]:
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise HTTPException(415, "Send the form as application/x-www-form-urlencoded.")
    received = b""
    try:
        async with asyncio.timeout(_FORM_SECONDS):
            async for chunk in request.stream():
                received += chunk
                if len(received) > _FORM_BYTES:
                    raise HTTPException(413, f"A form must have at most {_FORM_BYTES:,} bytes.")
    except TimeoutError:
        raise HTTPException(408, f"A form must arrive within {_FORM_SECONDS:g} seconds.") from None
    try:
        return dict(parse_qsl(received.decode(), keep_blank_values=True, max_num_fields=50, errors="strict"))
    except ValueError:
        raise HTTPException(400, "The form is not valid UTF-8, or has too many fields.") from None


class _Streams:
    """Server-sent events: every two seconds, the live part of a page if it has changed."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._open = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        path = request.query_params.get("page", "/")
        if path not in pages.PAGES:
            raise HTTPException(404)
        if self._open >= _STREAMS:
            raise HTTPException(503, f"Too many pages are open: {_STREAMS} are being updated. Close some.")
        self._open += 1
        try:
            await StreamingResponse(self._events(path, request), media_type="text/event-stream")(scope, receive, send)
        finally:
            self._open -= 1

    async def _events(self, path: str, request: Request) -> AsyncIterator[str]:
        last = ""
        yield "retry: 3000\n\n"
        while not self._site.ending.is_set():
            html = await run_in_threadpool(self._part, path, request)
            if html != last:
                last = html
                yield f"data: {json.dumps(html)}\n\n"
            for _ in range(round(EVENT_SECONDS / _STEP_SECONDS)):
                if self._site.ending.is_set():
                    return
                await asyncio.sleep(_STEP_SECONDS)
            yield ": still here\n\n"  # fails if the browser has disconnected

    def _part(self, path: str, request: Request) -> str:
        try:
            page = pages.PAGES[path](self._site, request.query_params)
        except Exception as error:
            page = _error(error)
        return self._site.render(page, request.query_params, path, live_only=True)
