"""Parts of messages: lists of names, and counts with their nouns."""

from collections.abc import Sequence


def list_names(names: Sequence[str], most: int = 10) -> str:
    """Return quoted names separated by commas; after `most` of them, "and 5 more"."""
    if not names:
        return "none"
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(quote(name) for name in names[:most]) + more


def quote(name: str) -> str:
    """Return a name in quotation marks, shortened if it is long."""
    text = repr(name)
    return text if len(text) <= 50 else f"{text[:47]}..."


def data_row(row: int) -> str:
    """Return what messages call a row of a table: "data row 1" is the first one, below the header if there is one."""
    return f"data row {row + 1}"


def plural(count: int, singular: str, plural: str | None = None) -> str:
    """Return a count with its noun: "1 node", "2,000 nodes"; `plural` is for nouns whose plural is irregular."""
    return f"{count:,} {singular if count == 1 else plural or f'{singular}s'}"
