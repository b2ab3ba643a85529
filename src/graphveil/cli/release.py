"""`graphveil export`, `embed` and `grid`: write a release, apply an encoder to another graph, round embeddings."""

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphveil.cli.console import console, exit_on_interrupt
from graphveil.cli.graph_options import takes_graph
from graphveil.cli.shared import AttackJobs, Device, GraphName, Root, read_audits, show_table, warn_if_utility_is_lost
from graphveil.cli.verbs import app, examples

if TYPE_CHECKING:
    from graphveil.auditing import Audit
    from graphveil.formats.results import ReleasedSecret, ReleaseRecord
    from graphveil.release import Audited, Release
    from graphveil.runs.embed import Embedded

RunFolder = Annotated[Path, typer.Argument(help="The folder of a finished run.")]


@app.command(
    epilog=examples(
        "graphveil export runs/a --out release",
        "graphveil export runs/a --out release --format parquet,word2vec --pseudonyms ~/key --max-leak 0.6",
    )
)
def export(
    run: RunFolder,
    out: Annotated[Path, typer.Option(help="The folder to write; it must be new or empty.")],
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="One or more of codes, parquet, npy, safetensors, word2vec, projector and embedding-atlas, separated"
            " by commas (default: codes if the run has codes, else parquet).",
        ),
    ] = None,
    pseudonyms: Annotated[
        Path | None,
        typer.Option(
            help="A file with a key: replace ids by keyed pseudonyms (HMAC-SHA256) and sort the rows by them."
        ),
    ] = None,
    max_leak: Annotated[
        list[str] | None,
        typer.Option(
            help="The highest attack accuracy or AUC to accept, from 0 to 1: refuse if the certificate allows more."
            " Without a certificate, refuse if one of these is above it: the upper bound over all attacks, or the upper"
            " end of the 95 % interval of the second metric (balanced accuracy or, for links, class-matched AUC)."
            " NAME=0.6 is for one secret. May be given several times."
        ),
    ] = None,
    released_before: Annotated[
        list[Path] | None,
        typer.Option(
            help="The folder of another run whose codes of the same nodes have been released: compute what both"
            " releases reveal together. May be given several times."
        ),
    ] = None,
    root: Root = None,
    force: Annotated[bool, typer.Option("--force", help="Export in spite of objections; the card lists them.")] = False,
) -> None:
    """Write a release of a run: codes or embeddings, a card and checksums, and nothing else.

    A run is refused if a secret has no audit, if the audit does not match the embeddings, or if the verdict is
    "flagged", "leaks" or "unprotected".

    With --max-leak, a run within the limit is exported even if the verdict is "leaks" or "unprotected", or "flagged"
    only for too few examples or for the lack of an unprotected encoder.

    A run that `tune` chose has the limit of the search, unless --max-leak states another one.

    A release of codes is recorded in releases.json in the folder of the run.
    """
    from graphveil.release import Limits, release

    formats = None if format_ is None else [name.strip() for name in format_.split(",") if name.strip()]
    limits = Limits.parsed(max_leak or [])
    with exit_on_interrupt("nothing was released."), console.status("Writing the release ..."):
        made = release(run, out, formats, pseudonyms, limits, force, released_before or [], root)
    rows = [_row(secret, audit) for secret, audit in made.audits.items()]
    show_table("Audit", ("secret", "verdict", "strongest attack", "result", "chance level"), rows)
    _print_certificates(made)
    for objection in made.objections:
        _say(f"exported in spite of an objection: {objection}", style="bold")
    sizes = [[name, f"{size:,}"] for name, size in made.files.items()]
    show_table(f"In {made.folder}", ("file", "bytes"), sizes)
    for secret, audit in made.audits.items():
        if audit is not None and audit.reasons:
            _say(f"the embeddings reveal {audit.amount} {secret}: {'; '.join(audit.reasons)}", style="bold")
    _say(f"read the card before you share the release: {made.folder / 'CARD.md'}")
    console.result(_release_record(made))


@app.command(epilog="Example:  graphveil grid z.npy --out z.grid.npy")
def grid(
    file: Annotated[Path, typer.Argument(help="Embeddings: .npy, .npz, .parquet, .csv or .safetensors.")],
    out: Annotated[Path, typer.Option(help="The file to write, of the same kind; it must not exist yet.")],
) -> None:
    """Round embeddings of any origin to a grid, so that low-order bits cannot carry a secret past the audit.

    Most values then have 7 to 8 bits. Ids and small whole numbers are not changed.

    The files of `protect` and `export` are on a grid or discrete already. Audit and share the rounded file.
    """
    from graphveil.formats.results import GridRecord
    from graphveil.release.rounding import round_file

    with exit_on_interrupt("nothing was written."), console.status(f"Rounding {file} ..."):
        columns = round_file(file, out)
    _say(f"rounded {columns:,} columns to a grid in {out}; audit this file, and share only this file")
    console.result(GridRecord(str(out), columns))


@app.command(epilog="Example:  graphveil embed runs/a newer/ --out runs/a-newer")
@takes_graph
def embed(
    run: RunFolder,
    graph: GraphName,
    overrides: dict[str, Any],
    out: Annotated[Path, typer.Option(help="The folder to write; `audit`, `report` and `export` accept it.")],
    audit: Annotated[bool, typer.Option(help="Audit every secret of the run that the graph contains.")] = True,
    panel: Annotated[str, typer.Option(help="The attacks of the audit: full, or quick for a first look.")] = "full",
    jobs: AttackJobs = None,
    root: Root = None,
    device: Device = "auto",
) -> None:
    """Apply the encoder of a run to new nodes or a newer graph, and audit the embeddings.

    Columns are encoded as in the run. There is a warning if the columns or their values differ from those of the run.

    The audit tests the attacks on nodes and links that the encoder was not trained on.
    """
    from graphveil.errors import unknown
    from graphveil.formats.results import EmbedRecord
    from graphveil.runs.embed import embed as embed_graph

    if panel not in ("full", "quick"):
        raise unknown("panel", panel, ("full", "quick"))
    with exit_on_interrupt("no embeddings were written."), console.status(f"Embedding {graph} ..."):
        made = embed_graph(run, graph, out, overrides, root, device)
    for warning in made.warnings:
        _say(f"warning: {warning}", style="bold")
    _say(f"{len(made.z):,} nodes, of which {made.known:,} are in the run too; files in {out}")
    if made.kept_codes is not None:
        new = len(made.z) - made.kept_codes
        _say(f"{made.kept_codes:,} nodes kept their code, and {new:,} new nodes were assigned one")
    if made.utility is not None:
        warn_if_utility_is_lost(made.utility, "Train a run on this graph.")
    for sentence in made.unseen:
        _say(sentence)
    audits: dict[Path, Audit] = {}
    if audit and made.secrets:
        audits = _audit_embedded(made, panel, jobs, root)
    elif made.secrets:
        _say(f"the embeddings were not audited; to audit them: {_audit_command(made, panel, root)}")
    console.result(
        EmbedRecord(
            folder=str(out),
            nodes=len(made.z),
            known=made.known,
            kept_codes=made.kept_codes,
            warnings=made.warnings,
            not_audited=made.unseen,
            audits=read_audits(audits),
        )
    )


def _audit_embedded(made: "Embedded", panel: str, jobs: int | None, root: Path | None) -> "dict[Path, Audit]":
    """Audit the embeddings of another graph, and print the audits."""
    from graphveil.auditing import Effort
    from graphveil.progress import show_attacks
    from graphveil.runs.audit import audit_run
    from graphveil.runs.folder import RunFolder

    out, command = made.folder, _audit_command(made, panel, root)
    kept = f"the embeddings and the finished attacks are kept; to continue the audit: {command} --resume"
    none_kept = f"the embeddings are kept; to audit them: {command}"
    left = exit_on_interrupt(kept, RunFolder(out).unfinished_audit, none_kept)
    with left, show_attacks(console) as on_attack:
        effort = Effort(jobs or (1 if panel == "quick" else min(os.cpu_count() or 1, 8)), on_attack=on_attack)
        audits = audit_run(out, made.secrets, panel, root, effort=effort)
    for file, result in audits.items():
        console.print(result)
        _say(f"written to {file}")
    return audits


def _audit_command(made: "Embedded", panel: str, root: Path | None) -> str:
    """The command that audits the same secrets of embeddings by the same panel."""
    words = ["graphveil", "audit", str(made.folder)]
    for secret in made.secrets:
        words += ["--secret", secret]
    words += [] if panel == "full" else ["--panel", panel]
    words += [] if root is None else ["--root", str(root)]
    return shlex.join(words)


def _release_record(made: "Release") -> "ReleaseRecord":
    from graphveil.formats.results import ReleaseRecord

    return ReleaseRecord(
        folder=str(made.folder),
        files=made.files,
        secrets={secret: None if audit is None else _released_secret(audit) for secret, audit in made.audits.items()},
        objections=made.objections,
        earlier_releases=0 if made.joint is None else made.joint.releases,
        together={} if made.joint is None else {name: one.sentence for name, one in made.joint.certificates.items()},
    )


def _released_secret(audit: "Audited") -> "ReleasedSecret":
    from graphveil.formats.results import ReleasedSecret

    return ReleasedSecret(
        verdict=audit.verdict,
        attack=audit.attack,
        metric=audit.metric,
        value=audit.interval,
        chance=audit.chance,
        certificate=None if audit.certificate is None else audit.certificate.sentence,
    )


def _print_certificates(made: "Release") -> None:
    """Print the certificates of a release, alone and together with earlier releases."""
    for secret, audit in made.audits.items():
        if audit is not None and audit.certificate is not None:
            _say(f"Certificate for {secret}: {audit.certificate.sentence}")
    if (joint := made.joint) is None:
        return
    if joint.same_run:
        _say("other codes of these nodes were released from this run before", style="bold")
    _say(f"{joint.nodes:,} of the nodes are in {joint.releases:,} earlier release{'s' * (joint.releases != 1)}")
    for secret in made.audits:
        if (certified := joint.certificates.get(secret)) is None:
            why = "the secret is known for too few of these nodes"
            _say(f"Certificate for {secret}, together with earlier releases: {why}")
        else:
            _say(f"Certificate for {secret}, together with earlier releases: {certified.sentence}")


def _row(secret: str, audit: "Audited | None") -> list[str]:
    """The row of one secret in the table of audits."""
    if audit is None:
        return [secret, "not audited", "", "", ""]
    value = audit.interval
    interval = f"{audit.metric} {100 * value.value:.1f} [{100 * value.low:.1f}, {100 * value.high:.1f}]"
    chance = "" if audit.chance is None else f"{100 * audit.chance:.1f}"
    return [secret, audit.verdict, audit.attack, interval, chance]


def _say(sentence: str, style: str | None = None) -> None:
    console.print(sentence, style=style, highlight=False, soft_wrap=True)
