"""Run all simulations and write them to a file, one line each: `python -m benchmarks.power --out runs/power.jsonl`.

What is in the file already is not run again. The tables of RESULTS.md come from `python -m benchmarks.power.tables`.
"""

import itertools
import json
import random
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from joblib import Parallel, delayed

from benchmarks.power.trials import one
from benchmarks.power.worlds import LEAKS, PLANTS

BAYES = (0.52, 0.55, 0.6, 0.7)
SIZES = (300, 1_000, 5_000)
NATS = (0.01, 0.05, 0.2, 0.5, 0.69)
SHARES = (0.1, 0.2, 0.3, 0.5, 1.0)
FIRST = 1000
"""The first seed: none below was ever used to choose an attack."""


def trials(repeats: float = 1.0) -> list[tuple[Any, ...]]:
    """All of them, with fewer or more seeds than usual."""

    def seeds(count: int) -> range:
        return range(FIRST, FIRST + max(1, round(repeats * count)))

    return [
        *itertools.product(["leak"], LEAKS, BAYES, SIZES, seeds(8)),
        *itertools.product(["information"], ["line", "codes"], NATS, [5_000], seeds(10)),
        *itertools.product(["noise"], ["2 classes", "7 classes", "links"], seeds(200)),
        *itertools.product(["plant"], PLANTS, SHARES, [1_000], seeds(20)),
    ]


def main(
    out: Annotated[Path, typer.Option(help="The file of results, one line a trial.")] = Path("runs/power.jsonl"),
    only: Annotated[str, typer.Option(help="Only trials of this name.")] = "",
    repeats: Annotated[float, typer.Option(help="A share of the usual number of seeds.")] = 1.0,
    part: Annotated[str, typer.Option(help="'2/5' runs every fifth trial, beginning with the second.")] = "1/1",
    jobs: Annotated[int, typer.Option(help="Processes at once.")] = 2,
) -> None:
    """Run what is not in the file yet, and write each result as it comes."""
    out.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()] if out.exists() else []
    done = {(line["trial"], *line["settings"]) for line in lines}
    first, step = map(int, part.split("/"))
    todo = [one for one in trials(repeats) if one[0].startswith(only) and one not in done][first - 1 :: step]
    random.Random(0).shuffle(todo)  # so that all kinds have some, if it is stopped
    found = Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(one)(*trial) for trial in todo)
    with out.open("a", encoding="utf-8") as file:
        for number, result in enumerate(found, start=1):
            file.write(json.dumps(result) + "\n")
            file.flush()
            sys.stdout.write(f"\r{number} of {len(todo)} trials")
    sys.stdout.write("\n")


if __name__ == "__main__":
    typer.run(main)
