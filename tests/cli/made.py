"""What the tests of the verbs share."""

from typer.testing import CliRunner

from graphveil.cli import app


def show(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["data", "show", *arguments], env={"COLUMNS": "200"})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0
    return done.output
