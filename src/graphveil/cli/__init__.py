"""The command line: verbs, no logic. torch and PyG are imported inside the verbs, so that --help is fast."""

import sys
from collections.abc import Iterable

from graphveil.cli import data, demo, experiments, release, report, runs, tune
from graphveil.cli.console import exit_on_interrupt, fail
from graphveil.cli.verbs import app
from graphveil.errors import OUT_OF_MEMORY, GraphveilError, is_out_of_memory

__all__ = ["app", "data", "demo", "experiments", "release", "report", "run", "runs", "tune"]


def run() -> None:
    """Run the command line. Every expected error is one sentence on stderr and exit code 2."""
    try:
        with exit_on_interrupt():
            check_arguments(sys.argv)
            app()
    except GraphveilError as error:
        fail(str(error), longest=error.longest)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        fail(OUT_OF_MEMORY)
    except OSError as error:
        fail(f"{error}: check the file, the disk or the connection, and run the same command again.")


def check_arguments(arguments: Iterable[str]) -> None:
    """Refuse file names that are not UTF-8: some libraries cannot open them."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError as error:
            raise GraphveilError(f"{argument!a} is not UTF-8: rename the file or the folder.") from error
