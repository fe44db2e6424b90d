"""docs/images/*.svg: a browser draws each of them, whole and from itself alone."""

import re
from pathlib import Path
from typing import Any

import pytest
from support.pages import chromium

__all__ = ["chromium"]

pytestmark = pytest.mark.level(3)

DRAWINGS = sorted((Path(__file__).resolve().parents[2] / "docs" / "images").glob("*.svg"))
# The texts that leave the drawing, by what the browser measures.
OUTSIDE = """() => {
    const all = document.documentElement.getBoundingClientRect();
    return [...document.querySelectorAll("text")].filter(text => {
        const own = text.getBoundingClientRect();
        return own.left < all.left || own.right > all.right || own.top < all.top || own.bottom > all.bottom;
    }).map(text => text.textContent);
}"""


@pytest.mark.parametrize("drawing", DRAWINGS, ids=lambda drawing: drawing.name)
def test_a_drawing_is_drawn_and_none_of_its_words_is_cut(drawing: Path, chromium: Any) -> None:
    text = drawing.read_text("utf-8")
    assert re.findall(r"""(?:href|src|url\()\s*[="'(]+\s*(?:https?:)?//[^"')]*""", text) == []
    page = chromium.new_page()
    try:
        page.goto(drawing.as_uri())
        assert page.evaluate("document.documentElement.tagName") == "svg"
        assert page.evaluate("document.querySelectorAll('text').length") > 5
        assert page.evaluate(OUTSIDE) == []
        page.goto("about:blank")
        page.set_content(f'<img src="data:image/svg+xml,{"".join(f"%{byte:02x}" for byte in text.encode())}">')
        assert (
            page.evaluate("async () => { const i = document.images[0]; await i.decode(); return i.naturalWidth }") > 300
        )
    finally:
        page.close()
