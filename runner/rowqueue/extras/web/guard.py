"""Access control: checks every request first, and adds the security headers to every response.

The pages show private data and have buttons, so pages of other sites in the same browser must not reach them: not
through a host name that resolves to this address (Host), not with a form or a fetch (Origin, Sec-Fetch-Site, SameSite,
CSRF tokens), and not in a frame.
"""

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
        " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not no-referrer: with it, browsers send "Origin: null" with our own forms too. Both send nothing to other sites.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
OPEN = {"/live", "/ready"}  # probes have no token; the answer is one word
_DAYS = 30


@dataclass(frozen=True)
class Rules:
    """`token`: None when none is required. `hosts`: the host names that browsers may use, without ports.

    `root`: the path under which a proxy serves the pages, "" for none. `believes_proxy`: trust X-Forwarded-Host and
    X-Forwarded-Proto.
    """

    token: str | None
    hosts: frozenset[str]
    port: int
    root: str = ""
    believes_proxy: bool = False
    _secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    @cached_property
    def base(self) -> str:
        """The path of all pages: with a token, one that only this server's visitors know.

        A browser sends the cookie only below it. Without such a path it would send it to every server on this host, on
        any port, and that server could use it here.
        """
        return self.root if self.token is None else f"{self.root}/{self._keyed(b'rowqueue web path')[:16]}"

    @property
    def cookie_name(self) -> str:
        """The cookie's name has the port, because browsers share cookies between the ports of a host."""
        return f"rowqueue-{self.port}"

    @property
    def cookie(self) -> str:
        """The cookie of a browser that has shown the token; not the token itself."""
        return self._keyed(b"rowqueue web cookie")

    def _keyed(self, purpose: bytes) -> str:
        """A text that only the token's owner can compute; it has the port: servers with one token differ."""
        return hmac.new((self.token or "").encode(), purpose + b" %d" % self.port, hashlib.sha256).hexdigest()

    @property
    def csrf(self) -> str:
        """The secret in each form of these pages, which other sites cannot read."""
        return hmac.new(self._secret, self.cookie.encode(), hashlib.sha256).hexdigest()


def same(given: str | None, wanted: str) -> bool:
    """Compare secrets in constant time."""
    return given is not None and hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())


def host_names(hosts: Iterable[str]) -> frozenset[str]:
    """Host names for comparison: without port, in lower case."""
    return frozenset(_host_name(host) for host in hosts)


def _host_name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


class Guard:
    """The outermost ASGI application: passes on the requests that the rules allow."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        base, root = self._rules.base, self._rules.root
        for prefix in (base, base.removeprefix(root), root):  # a proxy may keep the root path or remove it
            if prefix and (scope["path"] == prefix or scope["path"].startswith(f"{prefix}/")):
                scope = {**scope, "path": scope["path"].removeprefix(prefix) or "/"}
                break
        refusal = self._refusal(scope)
        await (refusal or self._app)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        """The response to a request that is refused; None for one that is allowed."""
        headers = Headers(scope=scope)
        host = self._host(headers)
        if _host_name(host) not in self._rules.hosts:
            return PlainTextResponse("wrong host\n", 421)
        if scope["path"] in OPEN:
            return None
        if not _is_own(scope["method"], headers, host):
            return PlainTextResponse("forbidden\n", 403)
        return self._login(scope, headers) if self._rules.token is not None else None

    def _host(self, headers: Headers) -> str:
        if self._rules.believes_proxy and (forwarded := headers.get("x-forwarded-host")):
            return forwarded.rpartition(",")[2].strip()
        named = headers.getlist("host")
        return named[0] if len(named) == 1 else ""

    def _login(self, scope: Scope, headers: Headers) -> Response | None:
        """Turn a token in the address into a cookie, to keep it out of the history. Programs send it as a header."""
        token = self._rules.token
        assert token is not None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if given := [value for name, value in query if name == "token"]:
            if not same(given[0], token):
                return PlainTextResponse("forbidden\n", 403)
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            # Exactly one slash: an address with two slashes names another host.
            path = f"{self._rules.base}/{scope['path'].lstrip('/')}"
            response = _onward(f"{path}?{rest}" if rest else path, headers)
            response.set_cookie(
                self._rules.cookie_name,
                self._rules.cookie,
                max_age=_DAYS * 86_400,
                path=self._rules.base,
                secure=self._is_https(scope, headers),
                httponly=True,
                samesite="strict",
            )
            return response
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and same(bearer, token):
            return None
        if any(same(value, self._rules.cookie) for value in _cookies(headers, self._rules.cookie_name)):
            return None
        return PlainTextResponse("unauthorized\n", 401)

    def _is_https(self, scope: Scope, headers: Headers) -> bool:
        forwarded = headers.get("x-forwarded-proto", "") if self._rules.believes_proxy else ""
        return (forwarded.rpartition(",")[2].strip() or scope["scheme"]) == "https"


def _onward(address: str, headers: Headers) -> Response:
    """A redirect. After a link on another site, a page that redirects itself: only then is the strict cookie sent."""
    if headers.get("sec-fetch-site") in (None, "none", "same-origin"):
        return RedirectResponse(address, 303)
    return HTMLResponse(
        '<!doctype html><html lang="en"><title>rowqueue</title>'
        f'<meta http-equiv="refresh" content="0; url={escape(address)}"><a href="{escape(address)}">Go on</a>'
    )


def _cookies(headers: Headers, name: str) -> list[str]:
    """The values of a cookie; a browser sends one for each path."""
    pairs = (part.strip().partition("=") for line in headers.getlist("cookie") for part in line.split(";"))
    return [value for key, _, value in pairs if key == name]


def _is_own(method: str, headers: Headers, host: str) -> bool:
    """Whether the request comes from one of our pages or directly from the user.

    SameSite alone is not enough: other servers on this machine count as the same site, because ports do not matter.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if method not in ("GET", "HEAD"):
        if site is None and origin is None:
            return False
        return site in (None, "same-origin") and (origin is None or urlsplit(origin).netloc.lower() == host.lower())
    if site in (None, "same-origin", "none"):
        return origin is None or urlsplit(origin).netloc.lower() == host.lower()
    return headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
