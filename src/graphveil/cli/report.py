"""`graphveil report`: an HTML page of saved results."""

from pathlib import Path
from typing import Annotated

import typer

from graphveil.cli.console import console
from graphveil.cli.shared import report_results
from graphveil.cli.verbs import app, examples


@app.command(epilog=examples("graphveil report runs/a", "graphveil report runs/tuned --out tuned.html"))
def report(
    source: Annotated[
        Path, typer.Argument(help="The folder of a run, of `tune`, `sweep` or `reproduce`, or an audit.json.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="The page to write (default: report.html beside the results).")
    ] = None,
) -> None:
    """Write an HTML page of saved results: findings, tables, curves and maps. It is one file and loads nothing.

    The page of `tune` or `sweep` has a slider, and one script for it; all other pages have no script.

    The maps show the secrets of up to 300 test nodes or pairs, and how many nodes of each class have each code: share
    the page only with people who may see the secrets.
    """
    from graphveil.formats.results import ReportRecord

    page = out or (source if source.is_dir() else source.parent) / "report.html"
    report_results(source, page)
    console.result(ReportRecord(str(page)))
