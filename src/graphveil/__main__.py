"""`graphveil` and `python -m graphveil`: the command line, which answers Ctrl-C from its first line on."""

import sys

SENTENCE = "graphveil: interrupted before anything was finished; the same command starts over.\n"


def main() -> None:
    """The entry point. Nothing that takes a while is imported before it can be interrupted."""
    try:
        from graphveil.interrupts import leave_at_once, leave_while_importing  # noqa: PLC0415

        leave_while_importing(SENTENCE)
        from graphveil.cli import run  # noqa: PLC0415

        try:
            run()
        finally:
            leave_at_once("graphveil: interrupted while leaving.\n")
    except KeyboardInterrupt:
        sys.stderr.write(SENTENCE)
        sys.exit(130)


if __name__ == "__main__":
    main()
