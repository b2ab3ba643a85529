"""Tables that a notebook shows for an object."""

import html
from collections.abc import Mapping


def table(caption: str, rows: Mapping[str, object]) -> str:
    """Return an HTML table with a caption and one value in each row; every text is escaped."""
    body = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>" for name, value in rows.items()
    )
    return f"<table><caption>{html.escape(caption)}</caption>{body}</table>"
