"""`graphveil export` and `graphveil embed`: what may leave, and a trained encoder on another graph."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphveil.cli.graphs import takes_graph
from graphveil.cli.shared import Device, GraphName, Root, app, console, fail, show_table

if TYPE_CHECKING:
    from graphveil.release import Audited

RunFolder = Annotated[Path, typer.Argument(help="The folder of a finished run.")]


@app.command(
    epilog="Examples:  graphveil export runs/a --out release      graphveil export runs/a --out release"
    " --format parquet,word2vec --pseudonyms ~/key --max-leak 0.6"
)
def export(
    run: RunFolder,
    out: Annotated[Path, typer.Option(help="The folder to make; it must not be there yet.")],
    format_: Annotated[
        str, typer.Option("--format", help="Some of parquet, npy, safetensors, word2vec and projector, with commas.")
    ] = "parquet",
    pseudonyms: Annotated[
        Path | None,
        typer.Option(help="Replace ids by keyed pseudonyms (HMAC-SHA256) and sort by them; a file with the key."),
    ] = None,
    max_leak: Annotated[
        list[str] | None,
        typer.Option(
            help="Refuse if an attack may read more, from 0 to 1: the accuracy and the balanced accuracy, or of links"
            " the AUC and the class-matched one, are held against it by the upper ends of their intervals; NAME=0.6 is"
            " for one secret. May be given several times."
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Go on whatever speaks against it; the card says what does.")
    ] = False,
) -> None:
    """Write the folder that may leave: embeddings, a card and checksums, and nothing else.

    A run is refused if one of its secrets has no audit, or one that is flagged, or of other embeddings.
    """
    from graphveil.release import Limits, release

    formats = [name.strip() for name in format_.split(",") if name.strip()]
    try:
        with console.status("Writing the release ..."):
            made = release(run, out, formats, pseudonyms, Limits.parsed(max_leak or []), force)
    except KeyboardInterrupt:
        fail("interrupted; nothing was released.", code=130)
    rows = [_row(secret, audit) for secret, audit in made.audits.items()]
    show_table("What a fresh attacker reads", ("secret", "verdict", "strongest attack", "reads", "guessing"), rows)
    for objection in made.objections:
        _say(f"forced, although {objection}", style="bold")
    sizes = [[name, f"{size:,}"] for name, size in made.files.items()]
    show_table(f"In {made.folder}", ("file", "bytes"), sizes)
    for secret, audit in made.audits.items():
        if audit is not None and audit.verdict == "leaks":
            _say(f"it leaks {secret}: {'; '.join(audit.told_by)}", style="bold")
    _say(f"read it before you hand it on: {made.folder / 'CARD.md'}")


@app.command(epilog="Example:  graphveil embed runs/a newer/ --out runs/a-newer")
@takes_graph
def embed(
    run: RunFolder,
    graph: GraphName,
    otherwise: dict[str, Any],
    out: Annotated[Path, typer.Option(help="The folder to write into; `audit`, `report` and `export` take it.")],
    audit: Annotated[bool, typer.Option(help="Audit every secret of the run that the graph has.")] = True,
    panel: Annotated[str, typer.Option(help="Of the audit: full, or quick for a first look.")] = "full",
    jobs: Annotated[
        int | None,
        typer.Option(min=1, max=1000, help="Attacks at once, each in a process of its own (default: one a core)."),
    ] = None,
    root: Root = None,
    device: Device = "auto",
) -> None:
    """Apply the encoder of a run to new nodes or a newer graph, and audit what comes of it.

    Columns are encoded as those of the run were. It warns where they, or what is in them, are not alike.

    The audit asks for nodes and links that the encoder was not trained on.
    """
    from graphveil.audit import Effort
    from graphveil.embed import embed as embed_graph
    from graphveil.errors import unknown
    from graphveil.progress import show_attacks
    from graphveil.review import review

    if panel not in ("full", "quick"):
        raise unknown("panel", panel, ("full", "quick"))
    try:
        with console.status(f"Embedding {graph} ..."):
            made = embed_graph(run, graph, out, otherwise, root, device)
    except KeyboardInterrupt:
        fail("interrupted; nothing was embedded.", code=130)
    for warning in made.warnings:
        _say(f"warning: {warning}", style="bold")
    _say(f"{len(made.z):,} nodes, of which {made.known:,} are in the run too; files in {out}")
    for sentence in made.unseen:
        _say(sentence)
    if not audit or not made.secrets:
        _say(f"what these tell is not known: graphveil audit {out}")
        return
    try:
        with show_attacks(console) as on_attack:
            effort = Effort(jobs or (1 if panel == "quick" else min(os.cpu_count() or 1, 8)), on_attack=on_attack)
            found = review(out, made.secrets, panel, root, effort=effort)
    except KeyboardInterrupt:
        fail(f"interrupted; the embeddings are in {out}, and not audited.", code=130)
    for file, one in found.items():
        console.print(one)
        _say(f"written to {file}")


def _row(secret: str, audit: "Audited | None") -> list[str]:
    """An audit's main line."""
    if audit is None:
        return [secret, "not audited", "", "", ""]
    read = audit.reading
    interval = f"{audit.metric} {100 * read.value:.1f} [{100 * read.low:.1f}, {100 * read.high:.1f}]"
    guessing = "" if audit.chance is None else f"{100 * audit.chance:.1f}"
    return [secret, audit.verdict, audit.attack, interval, guessing]


def _say(sentence: str, style: str | None = None) -> None:
    console.print(sentence, style=style, highlight=False, soft_wrap=True)
