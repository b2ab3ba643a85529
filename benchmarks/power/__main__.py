"""Run all simulations, and write one line for each to a file: `python -m benchmarks.power --out runs/power.jsonl`.

Trials that are already in the file are not run again. `python -m benchmarks.power.tables` makes the tables.
"""

import itertools
import json
import random
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from joblib import Parallel, delayed

from benchmarks.power.trials import run_trial
from benchmarks.power.worlds import LEAKS, PLANTS

BAYES = (0.52, 0.55, 0.6, 0.7)
SIZES = (300, 1_000, 5_000)
NATS = (0.01, 0.05, 0.2, 0.5, 0.69)
SHARES = (0.1, 0.2, 0.3, 0.5, 1.0)
GRAPHS = ("cora", "citeseer", "pubmed")
MINUTES = 10.0
"""The time of each library's search for one embedding."""
FIRST_SEED = 1000
"""Smaller seeds may have been used to choose attacks."""


def trials(repeats: float = 1.0) -> list[tuple[Any, ...]]:
    """All trials.

    Args:
        repeats: a factor for the number of seeds.
    """

    def seeds(count: int) -> range:
        return range(FIRST_SEED, FIRST_SEED + max(1, round(repeats * count)))

    return [
        *itertools.product(["leak"], LEAKS, BAYES, SIZES, seeds(8)),
        *itertools.product(["information"], ["line", "codes"], NATS, [5_000], seeds(10)),
        *itertools.product(["noise"], ["2 classes", "7 classes", "links"], seeds(200)),
        *itertools.product(["plant"], PLANTS, SHARES, [1_000], seeds(20)),
        *itertools.product(["outside"], GRAPHS, ["labels", "links"], ["club", "codes"], [MINUTES], seeds(1)),
    ]


def main(
    out: Annotated[Path, typer.Option(help="The file of results, one line for each trial.")] = Path("runs/power.jsonl"),
    only: Annotated[str, typer.Option(help="Only trials of this name.")] = "",
    repeats: Annotated[float, typer.Option(help="A factor for the number of seeds.")] = 1.0,
    part: Annotated[str, typer.Option(help="'2/5' runs every fifth trial, starting with the second.")] = "1/1",
    jobs: Annotated[int, typer.Option(help="The number of parallel processes.")] = 2,
) -> None:
    """Run the trials that are not in the file yet, and write each result when it is ready."""
    out.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()] if out.exists() else []
    done = {(line["trial"], *line["settings"]) for line in lines}
    first, step = map(int, part.split("/"))
    todo = [trial for trial in trials(repeats) if trial[0].startswith(only) and trial not in done][first - 1 :: step]
    random.Random(0).shuffle(todo)  # so that an interrupted run has trials of all kinds
    results = Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(run_trial)(*trial) for trial in todo)
    with out.open("a", encoding="utf-8") as file:
        for number, result in enumerate(results, start=1):
            file.write(json.dumps(result) + "\n")
            file.flush()
            sys.stdout.write(f"\r{number} of {len(todo)} trials")
    sys.stdout.write("\n")


if __name__ == "__main__":
    typer.run(main)
