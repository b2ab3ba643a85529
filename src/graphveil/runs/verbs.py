"""`gv.protect`: what the verb does, as a function."""

from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from graphveil.data.origin import ReadOptions
from graphveil.data.splits.split import Split, draw_split
from graphveil.progress import show_rounds
from graphveil.runs.folder import RunFolder
from graphveil.runs.opening import OpenedGraph, open_source
from graphveil.runs.protect import Run, take_part
from graphveil.runs.protect import protect as train
from graphveil.target import Target
from graphveil.training.loop import Training
from graphveil.veil import Veil


def protect(
    graph: str | Path,
    out: str | Path,
    veil: Veil | None = None,
    split: str | None = None,
    message_edges: str | None = None,
    reading: ReadOptions | None = None,
    *,
    resume: bool = False,
    progress: bool = False,
) -> Run:
    """Train embeddings that keep the utility and hide the secrets, and write them into a folder.

    Args:
        graph: the name of a graph, a file or a folder.
        out: the folder to write the run into.
        veil: what to keep and to hide, and how; None for `Veil()`.
        split: "paper" or "proportional"; None for the default of the graph.
        message_edges: "train" or "all"; None for "train" if links are kept, and "all" otherwise.
        reading: how to read a graph from files.
        resume: continue the unfinished run in `out`.
        progress: show progress on stderr.

    Returns:
        The fitted veil, its scores, the embeddings and the certificates.
    """
    veil = Veil() if veil is None else veil
    veil.check_settings()
    RunFolder(Path(out)).check_free()
    opened = open_source(str(graph), reading, targets=(veil.utility, *veil.secrets))
    kind = split or opened.default_split
    if not progress:
        return protect_opened(veil, opened, Path(out), kind, message_edges, resume=resume)
    with show_rounds(Console(stderr=True), opened.title) as on_round:
        return protect_opened(veil, opened, Path(out), kind, message_edges, on_round, resume=resume)


def protect_opened(
    veil: Veil,
    opened: OpenedGraph,
    out: Path,
    split: str,
    message_edges: str | None = None,
    on_round: Callable[[Training], None] | None = None,
    *,
    resume: bool = False,
) -> Run:
    """Draw the split of a graph, train, and write the folder; see `protect`."""
    parts = _split_of(veil, opened, split, message_edges)
    return train(veil, opened.graph, parts, out, resume, on_round, opened.source | {"split": split})


def take_part_opened(veil: Veil, opened: OpenedGraph, out: Path, split: str, message_edges: str | None = None) -> None:
    """Train together with the first of several processes, which calls `protect_opened`, and write nothing."""
    take_part(veil, opened.graph, _split_of(veil, opened, split, message_edges), out)


def _split_of(veil: Veil, opened: OpenedGraph, split: str, message_edges: str | None) -> Split:
    edges = message_edges or Target.of(veil.utility).message_edges
    return draw_split(split, opened.graph, veil.seed, edges, (veil.utility, *veil.secrets))
