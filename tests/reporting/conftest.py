"""Reports of made-up results, and a way to read them."""

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from graphveil.reporting import report
from tests.reporting import made

VOID = {"meta", "link", "input"}


@dataclass
class Element:
    """A tag, its attributes, its children and the text directly in it."""

    tag: str
    attributes: dict[str, str | None]
    children: list["Element"] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def all(self, tag: str = "") -> list["Element"]:
        """This and everything below, of a tag if one is given, in the order of the page."""
        own = [self] if tag in ("", self.tag) else []
        return own + [one for child in self.children for one in child.all(tag)]

    @property
    def text(self) -> str:
        """All the words, in no certain order between an element's own and its children's."""
        return " ".join(" ".join([*self.texts, *(child.text for child in self.children)]).split())

    def cells(self) -> list[list[str]]:
        """The body of a table."""
        return [[cell.text for cell in row.children] for body in self.all("tbody") for row in body.all("tr")]


class Reader(HTMLParser):
    """Builds the tree, and refuses a page whose tags do not match."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs))
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        self.open[-1].texts.append(data)


def parse(page: Path) -> Element:
    reader = Reader()
    reader.feed(page.read_text(encoding="utf-8"))
    reader.close()
    assert reader.open == [reader.root]
    return reader.root


Show = Callable[..., Element]


@pytest.fixture
def show(tmp_path: Path) -> Show:
    """`show(audit)` or `show(table2=...)` writes these files, reports on them, and reads the page."""

    def of(audit: Any = None, **experiments: Any) -> Element:
        if audit is not None:
            report(made.write(tmp_path / "audit.json", audit), tmp_path / "report.html")
        else:
            for name, content in experiments.items():
                made.write(tmp_path / "experiments" / f"{name}.json", content)
            report(tmp_path / "experiments", tmp_path / "report.html")
        return parse(tmp_path / "report.html")

    return of


MINUS = "\N{MINUS SIGN}"


def table(page: Element, title: str) -> Element:
    """The one whose caption begins so."""
    return next(one for one in page.all("table") if one.all("caption")[0].text.startswith(title))


def hashed(text: str) -> str:
    """As a content policy names a text that it allows."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


def signed(difference: float) -> str:
    return f"{100 * difference:+.1f}".replace("-", MINUS)
