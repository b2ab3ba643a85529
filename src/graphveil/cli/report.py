"""`graphveil report`: one page about saved results."""

from pathlib import Path
from typing import Annotated

import typer

from graphveil.cli.shared import app, report_results


@app.command(epilog="Examples:  graphveil report runs/a      graphveil report runs/paper --out paper.html")
def report(
    source: Annotated[
        Path, typer.Argument(help="The folder of a run, of `reproduce` or of `sweep`, or an audit.json.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="The page to write (default: report.html beside the results).")
    ] = None,
) -> None:
    """Write one page about saved results: tables, curves, maps and findings, without a network and without scripts.

    The maps show secrets, point by point: the page is for those who may see them.
    """
    report_results(source, out or (source if source.is_dir() else source.parent) / "report.html")
