"""`graphveil` and `python -m graphveil`: the command line, which handles Ctrl-C from its first line on."""

import io
import os
import sys

SENTENCE = "graphveil: interrupted before anything was finished; the same command starts over.\n"


def main() -> None:
    """Run the command line. Slow imports come after the handler of Ctrl-C is installed.

    Once the command line is imported, `cli.console.exit_on_interrupt` answers Ctrl-C. Of several processes, the first
    one prints.
    """
    sentence = SENTENCE
    try:
        from graphveil.interrupts import exit_at_once, exit_while_importing  # noqa: PLC0415
        from graphveil.processes import launched  # noqa: PLC0415

        sentence = SENTENCE if launched().is_first else ""
        exit_while_importing(sentence)
        accept_any_encoding()
        from graphveil.cli import run  # noqa: PLC0415

        try:
            run()
        finally:
            exit_at_once("graphveil: interrupted during shutdown.\n")
    except KeyboardInterrupt:
        sys.stderr.write(sentence)
        sys.exit(130)


def accept_any_encoding() -> None:
    """Treat file names as UTF-8 in every locale, and print characters that the terminal cannot show as `\\xe8`.

    Libraries take paths to be UTF-8. Python follows the locale, and must be restarted to change that.
    """
    if sys.getfilesystemencoding() != "utf-8" and not sys.flags.ignore_environment:
        os.environ["PYTHONUTF8"] = "1"
        os.execv(sys.executable, sys.orig_argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    main()
