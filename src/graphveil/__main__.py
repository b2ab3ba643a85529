"""`python -m graphveil` is the command line."""

from graphveil.cli import run

run()
