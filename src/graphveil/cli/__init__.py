"""The command line: verbs, no logic. torch and PyG are imported inside the verbs, so that --help is quick."""

import os
import sys
from collections.abc import Iterable

from graphveil.cli import data, demo, experiments, release, report, runs
from graphveil.cli.shared import answer_interrupts, app, fail
from graphveil.errors import OUT_OF_MEMORY, GraphveilError, is_out_of_memory

__all__ = ["app", "data", "demo", "experiments", "release", "report", "run", "runs"]


def run() -> None:
    """The entry point: every expected fault is one sentence on stderr and exit code 2."""
    # GNU OpenMP's threads spin so long while they wait that a run was 15 times slower on a machine with other work.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    try:
        with answer_interrupts():
            check_words(sys.argv)
            app()
    except GraphveilError as error:
        fail(str(error))
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        fail(OUT_OF_MEMORY)
    except OSError as error:
        fail(f"{error}: see to the file, the disk or the connection, and run the same command again.")


def check_words(words: Iterable[str]) -> None:
    """Refuse the name of a file that is not UTF-8: not every library could open it."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError as error:
            raise GraphveilError(f"{word!a} is not UTF-8: give the file or the folder another name.") from error
