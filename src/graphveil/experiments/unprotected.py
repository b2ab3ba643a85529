"""The 18 unprotected cells of the paper's Tables 2(a) and 3(a): what an encoder reaches when nothing is hidden.

    python -m graphveil.experiments.unprotected --seeds 5 --jobs 2 --out RESULTS.md
    python -m graphveil.experiments.unprotected --kept labels --seeds 20 --table "labels, 20 splits" --out RESULTS.md

Each cell and seed is one training with lambda = 1 on the paper's split of that seed; its result lies in one file, so a
killed run goes on where it was. The adversary is the paper's (linear, bilinear or Fermi-Dirac, 20 labels a class); at
lambda = 1 it cannot change the encoder.
"""

import hashlib
import json
import os
import statistics
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Annotated

import joblib
import typer
from rich.progress import track

from graphveil.data import Split, digest, load
from graphveil.data.split import default_message_edges
from graphveil.errors import GraphveilError, unknown
from graphveil.experiments.spec import load_experiment
from graphveil.files import write_atomically, write_json
from graphveil.training.recipes import Adversary
from graphveil.veil import Veil, versions

DATASETS = ("cora", "citeseer", "pubmed")
ENCODERS = ("gcn", "gat", "hgcn")
UTILITIES = ("links", "labels")

TABLES = {"links": "table2", "labels": "table3"}
"""The experiment that holds the published numbers of each utility."""


@dataclass(frozen=True)
class Cell:
    """One training: what is kept, on what, by which encoder, from which seed."""

    utility: str
    dataset: str
    encoder: str
    seed: int

    def veil(self) -> Veil:
        """The unprotected encoder with the paper's own adversary looking on."""
        links = "fermi-dirac" if self.encoder == "hgcn" else "bilinear"
        secret, head = ("labels", "linear") if self.utility == "links" else ("links", links)
        adversary = Adversary(head, steps=1, knows="few")
        return Veil(self.utility, secret, self.encoder, 1.0, adversary=adversary, seed=self.seed, device="cpu")

    def file(self, folder: Path) -> Path:
        """Where the result lies: named after all that decides it."""
        key = hashlib.sha256(json.dumps([asdict(self), self.veil().config(), versions()]).encode()).hexdigest()
        return folder / f"{self.utility}-{self.dataset}-{self.encoder}-{self.seed}-{key[:12]}.json"


def run_cell(cell: Cell, folder: Path) -> None:
    """Train one cell and write its result, unless it is there already."""
    if (file := cell.file(folder)).exists():
        return
    import torch  # noqa: PLC0415 - set in the worker, not in the parent

    torch.set_num_threads(1)
    graph = load(cell.dataset)
    split = Split.paper(graph, cell.seed, message_edges=default_message_edges(cell.utility))
    veil = cell.veil().fit(graph, split)
    score = veil.score(graph, split)
    result = {"score": score.utility, "adversary_score": score.adversary, "rounds": len(veil.history_)}
    write_json(file, asdict(cell) | result | {"graph": digest(graph)})


def markdown(cells: Iterable[Cell], folder: Path) -> str:
    """The table, from the saved results only."""
    lines = [
        "| kept | graph | encoder | paper | ours, mean (std) | difference | within 1.0 | adversary: paper | ours |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    grouped: dict[tuple[str, str, str], list[dict[str, float]]] = {}
    for cell in cells:
        result = json.loads(cell.file(folder).read_text(encoding="utf-8"))
        grouped.setdefault((cell.utility, cell.dataset, cell.encoder), []).append(result)
    for key, results in grouped.items():
        utility, adversary = ([100 * r[name] for r in results] for name in ("score", "adversary_score"))
        mean, spread = statistics.fmean(utility), statistics.stdev(utility) if len(utility) > 1 else 0.0
        paper, paper_adversary = load_experiment(TABLES[key[0]]).published["unprotected"][key[1]][key[2]]
        verdict = "yes" if mean >= paper - 1 else f"**no, {paper - 1 - mean:.1f} short**"
        lines.append(
            f"| {' | '.join(key)} | {paper:.1f} | {mean:.1f} ({spread:.1f}) | {mean - paper:+.1f} | {verdict}"
            f" | {paper_adversary:.1f} | {statistics.fmean(adversary):.1f} |"
        )
    return "\n".join(lines)


def main(
    out: Annotated[Path, typer.Option(help="The Markdown file whose marked part is written anew.")] = Path(
        "RESULTS.md"
    ),
    seeds: Annotated[int, typer.Option(min=1, help="Seeds 0, 1, ...")] = 5,
    jobs: Annotated[int, typer.Option(min=1, help="Trainings at a time, one thread each.")] = 2,
    results: Annotated[Path, typer.Option(help="The folder of finished cells.")] = Path("runs/unprotected"),
    kept: Annotated[str, typer.Option(help="'links', 'labels' or 'both'.")] = "both",
    table: Annotated[str, typer.Option(help="The name in the marks between which the table stands.")] = "unprotected",
) -> None:
    """Run what is not there yet, and write the table."""
    if kept not in ("both", *UTILITIES):
        raise unknown("--kept", kept, ("both", *UTILITIES))
    utilities = UTILITIES if kept == "both" else (kept,)
    cells = [Cell(*key, seed) for key in product(utilities, DATASETS, ENCODERS) for seed in range(seeds)]
    missing = [cell for cell in cells if not cell.file(results).exists()]
    work = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")(
        joblib.delayed(run_cell)(cell, results) for cell in missing
    )
    for _ in track(work, f"{len(missing)} of {len(cells)} trainings", total=len(missing)):
        pass
    text = out.read_text(encoding="utf-8") if out.exists() else "# Results\n\n" + "\n".join(marks(table)) + "\n"
    text = put_between_marks(text, marks(table), markdown(cells, results))
    write_atomically(out, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def marks(table: str) -> tuple[str, str]:
    """The lines between which a table stands."""
    return f"<!-- {table}: begin -->", f"<!-- {table}: end -->"


def put_between_marks(text: str, between: tuple[str, str], table: str) -> str:
    """The text with what stood between the marks replaced."""
    before, first, rest = text.partition(between[0])
    _, second, after = rest.partition(between[1])
    if not (first and second):
        raise GraphveilError(
            f"the file has no place for the table: put the lines {' and '.join(between)} where it goes."
        )
    return f"{before}{first}\n{table}\n{second}{after}"


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # one thread a worker, set before torch starts its pool there
    try:
        typer.run(main)
    except GraphveilError as error:
        sys.exit(f"graphveil: {error}")
