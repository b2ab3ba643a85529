"""Check the links of the Markdown files: `python -m tools.links [FILE ...]` names the wrong ones and exits with 1.

A relative link must lead to a file or a folder of the repository, and its anchor to a heading. Nothing is fetched: of
an address only the form is checked.
"""

import argparse
import itertools
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parent.parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Print each wrong link as FILE:LINE: REASON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="Markdown files (default: those of the root and of docs)")
    files = parser.parse_args(arguments).files or pages()
    faults = [f"{file}:{line}: {reason}" for file in files for line, reason in check(file)]
    sys.stderr.writelines(f"{fault}\n" for fault in faults)
    return 1 if faults else 0


def pages() -> list[Path]:
    """The Markdown files that people read: of the root, and of docs and its folders."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def check(file: Path) -> Iterator[tuple[int, str]]:
    """Each wrong link of a file: the line on which its paragraph starts, and what is wrong."""
    for block in _blocks(file):
        for token in block.children or []:
            link = token.attrGet("src" if token.type == "image" else "href")
            reason = None if link is None else fault(str(link), file)
            if reason is not None:
                yield block.map[0] + 1 if block.map else 0, reason


def fault(link: str, file: Path) -> str | None:
    """What is wrong with a link of a file; None if it is right."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None if parts.scheme in ("http", "https") and "." in parts.netloc else f"{link!r} is no http address"
    target = (file.parent / unquote(parts.path)).resolve()
    if parts.path == "":
        target = file
    if not link or not target.exists():
        return f"{link!r} leads nowhere"
    if parts.fragment and parts.fragment not in anchors(target):
        return f"{link!r} names a heading that {target.name} does not have"
    return None


def anchors(file: Path) -> set[str]:
    """The anchors of a Markdown file's headings, as GitHub and MyST make them; of other files none."""
    if file.suffix != ".md":
        return set()
    blocks = _blocks(file)
    headings = [after for before, after in itertools.pairwise(blocks) if before.type == "heading_open"]
    found: set[str] = set()
    for heading in headings:
        words = "".join(token.content for token in heading.children or [])
        slug = unique = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        repeated = 0
        while unique in found:
            repeated += 1
            unique = f"{slug}-{repeated}"
        found.add(unique)
    return found


def _blocks(file: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(file.read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main())
