"""The command line: verbs, no logic. torch and PyG are imported inside the verbs, so that --help is quick."""

import os

from graphveil.cli import data, demo, experiments, release, report, runs
from graphveil.cli.shared import answer_interrupts, app, fail
from graphveil.errors import GraphveilError

__all__ = ["app", "data", "demo", "experiments", "release", "report", "run", "runs"]


def run() -> None:
    """The entry point: every expected fault is one sentence on stderr and exit code 2."""
    # GNU OpenMP's threads spin so long while they wait that a run was 15 times slower on a machine with other work.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    try:
        with answer_interrupts():
            app()
    except GraphveilError as error:
        fail(str(error))
    except MemoryError:
        fail("there is not enough memory for this: give it a smaller graph, or fewer --jobs.")
    except OSError as error:
        fail(f"{error}: see to the file, the disk or the connection, and run the same command again.")
