"""Assemble the page and write it."""

import base64
import hashlib
from functools import cache
from importlib import resources
from pathlib import Path

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from graphveil.errors import GraphveilError
from graphveil.files import write_text
from graphveil.formats.audit import AuditRecord
from graphveil.reporting.comparison import comparison_page
from graphveil.reporting.findings import audit_page, run_page
from graphveil.reporting.parts import Page
from graphveil.reporting.read import Run, Search, read
from graphveil.reporting.tuning import tune_page


def report(source: str | Path, out: str | Path) -> None:
    """Write one HTML page about saved results.

    Args:
        source: an audit.json, the folder of a run, or a folder of `graphveil tune`, `reproduce` or `sweep`.
        out: the file of the page; its name ends in .html.
    """
    source, out = Path(source), Path(out)
    if out.suffix.lower() not in (".html", ".htm"):
        raise GraphveilError(f"the report cannot be written to {out}: give a name that ends in .html.")
    found = read(source)
    if isinstance(found, AuditRecord):
        page = audit_page(found)
    elif isinstance(found, Run):
        page = run_page(found)
    elif isinstance(found, Search):
        page = tune_page(found)
    else:
        page = comparison_page(found)
    write_text(out, render(page))


def render(page: Page) -> str:
    """Render the page as HTML; a lone surrogate, which JSON may contain and UTF-8 may not, becomes a question mark."""
    style = Markup(_file("style.css"))
    script = Markup(_file("explorer.js")) if page.is_interactive else Markup("")
    allowed = {"style": _source(style), "script": _source(script) if script else "'none'"}
    text = _template().render(page=page, style=style, script=script, allowed=allowed)
    return text.encode("utf-8", "replace").decode("utf-8")


def _source(text: str) -> str:
    """What the content policy of the page allows: this text, and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _template() -> Template:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_unbroken
    )
    return environment.from_string(_file("page.html.j2"))


def _unbroken(value: object) -> object:
    """Keep a percent sign on the line of its number."""
    return value.replace(" %", "\N{NO-BREAK SPACE}%") if isinstance(value, str) else value


def _file(name: str) -> str:
    return resources.files("graphveil.reporting").joinpath(name).read_text(encoding="utf-8")
