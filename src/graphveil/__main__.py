"""`graphveil` and `python -m graphveil`: the command line, which answers Ctrl-C from its first line on."""

import io
import os
import sys

SENTENCE = "graphveil: interrupted before anything was finished; the same command starts over.\n"


def main() -> None:
    """The entry point. Nothing that takes a while is imported before it can be interrupted."""
    try:
        from graphveil.interrupts import leave_at_once, leave_while_importing  # noqa: PLC0415

        leave_while_importing(SENTENCE)
        speak_any_encoding()
        from graphveil.cli import run  # noqa: PLC0415

        try:
            run()
        finally:
            leave_at_once("graphveil: interrupted while leaving.\n")
    except KeyboardInterrupt:
        sys.stderr.write(SENTENCE)
        sys.exit(130)


def speak_any_encoding() -> None:
    """Names of files are UTF-8 whatever the locale is, and what a terminal cannot show is shown as `\\xe8`.

    Libraries take a path for UTF-8; Python does not where a locale says otherwise, and has to be started anew for it.
    """
    if sys.getfilesystemencoding() != "utf-8" and not sys.flags.ignore_environment:
        os.environ["PYTHONUTF8"] = "1"
        os.execv(sys.executable, sys.orig_argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    main()
