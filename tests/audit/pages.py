"""Read a page of HTML as a browser would, and refuse what needs anything else. Holds no test."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

VOID = frozenset({"meta"})
ALLOWED = frozenset(
    {"html", "head", "meta", "title", "style", "body", "script"}
    | {"h1", "h2", "p", "b", "code", "span", "pre", "ul", "li", "details", "summary"}
    | {"table", "tr", "th", "td"}
)
ATTRIBUTES = frozenset({"lang", "charset", "name", "content", "class", "type", "id"})


class Page(HTMLParser):
    """The tags, the visible text and the data of a page. Raises AssertionError for any other."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.headings: list[str] = []
        self.shown: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    @property
    def text(self) -> str:
        """Everything that can be read."""
        return "\n".join(self.shown)

    @property
    def data(self) -> dict[str, Any]:
        """The explanation that is part of the page."""
        (text,) = self.scripts
        found: dict[str, Any] = json.loads(text)
        return found

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED, tag
        names = {name for name, _ in attrs}
        assert names <= ATTRIBUTES, names
        if tag == "script":
            assert dict(attrs)["type"] == "application/json"
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        inside = self.open[-1] if self.open else ""
        if inside == "script":
            self.scripts.append(data)
        elif inside == "style":
            assert "url(" not in data
            assert "@import" not in data
        else:
            if inside == "h2":
                self.headings.append(data)
            self.shown.append(data)
