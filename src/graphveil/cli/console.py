"""The console of the command line: results on stdout, or as JSON, and errors as one sentence on stderr."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from rich.console import Console
from rich.status import Status
from rich.text import Text

from graphveil.errors import LONGEST, printable, shortened
from graphveil.processes import claim_report, finish_report, launched, wait_for_report

if TYPE_CHECKING:
    from graphveil.formats.record import File


class PlainConsole(Console):
    """Prints every text literally: names of files, columns and classes are neither markup nor control characters."""

    as_json = False
    """Whether the result of the verb is printed as JSON."""

    def start(self, as_json: bool, quiet: bool) -> None:
        """Set the console up for one verb.

        Args:
            as_json: print one JSON document on stdout at the end, and all else on stderr.
            quiet: print nothing but errors and that document.
        """
        is_first = launched().is_first  # of several processes, one prints
        super().__init__(stderr=as_json, quiet=quiet or not is_first)
        self.as_json = as_json and is_first

    def result(self, record: "File") -> None:
        """Print the result of the verb if JSON was requested."""
        if self.as_json:
            typer.echo(json.dumps(record.to_dict(), indent=2))  # in ASCII, since stdout may have any encoding

    def render_str(self, text: str, **options: Any) -> Text:
        """Render a text of a sentence, a table or a title."""
        plain = "\n".join(map(printable, text.split("\n")))
        return super().render_str(plain, **options | {"markup": False, "emoji": False})

    def status(self, status: Any, **options: Any) -> Status:
        """Show a line while something runs."""
        return super().status(Text(printable(status)), **options)


console = PlainConsole()


@contextmanager
def exit_on_interrupt(
    outcome: str | None = None, folder: Path | None = None, otherwise: str | None = None
) -> Iterator[None]:
    """On Ctrl-C, print a sentence and exit with code 130. Of several processes, the first prints it.

    Args:
        outcome: What was kept, and what to do; None if nothing was kept and the same command starts over.
        folder: Where it was kept: if this folder does not exist, `otherwise` is printed in place of `outcome`.
        otherwise: What to do if nothing was kept; None if the same command starts over.
    """
    try:
        yield
    except KeyboardInterrupt:
        if not launched().is_first:
            wait_for_report()
            sys.exit(130)
        if folder is not None and not folder.exists():
            outcome = otherwise
        if outcome is None:
            fail("interrupted before anything was finished; the same command starts over.", code=130)
        fail(f"interrupted; {outcome}", code=130)


def fail(sentence: str, code: int = 2, longest: int = LONGEST) -> NoReturn:
    """Print a sentence on stderr, shortened if it is too long, and exit. Of several processes, one prints it."""
    if claim_report():
        PlainConsole(stderr=True, soft_wrap=True).print(
            "graphveil:", printable(shortened(sentence, longest)), highlight=False
        )
        finish_report()
    else:
        wait_for_report()
    sys.exit(code)
