"""Parts of sentences: names in a row, and how many there are of something."""

from collections.abc import Sequence


def listed(names: Sequence[str], most: int = 10) -> str:
    """Names in a row, of which only the first are said."""
    if not names:
        return "none"
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(short(name) for name in names[:most]) + more


def short(name: str) -> str:
    """A name in quotation marks, without its end if that is far."""
    text = repr(name)
    return text if len(text) <= 50 else f"{text[:47]}..."


def some(count: int, one: str, several: str | None = None) -> str:
    """ "1 node", "2,000 nodes"; `several` is what is said of these where an s does not make it."""
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"
