"""Ctrl-C while the program is being loaded, and while it exits: one sentence and exit code 130, never a traceback.

Programs are real processes that import everything themselves. The interpreter runs `sitecustomize` before our first
line; here it makes one import, or the end of the program, wait until a file exists.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.forked import happens

SITECUSTOMIZE = """
import atexit, os, sys, time

def wait():
    open(os.environ["HERE"], "w").close()
    try:
        while not os.path.exists(os.environ["GO"]):
            time.sleep(0.002)
    except BaseException:
        pass  # as some libraries do when something is missing

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["SLOW"]:
            wait()

sys.meta_path.insert(0, Slow())
if os.environ["SLOW"] == "the end":
    atexit.register(wait)
"""
PROTECT = ["protect", "karate", "--split", "proportional", "--device", "cpu", "--set", "rounds=2"]
INTERRUPTED = "graphveil: interrupted before anything was finished; the same command starts over.\n"


class Slow:
    """A program that waits at one place."""

    def __init__(self, folder: Path, words: list[str], place: str, ignoring: bool = False) -> None:
        (folder / "sitecustomize.py").write_text(SITECUSTOMIZE)
        self.here, self.go = folder / "here", folder / "go"
        path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
        names = {"HERE": self.here, "GO": self.go, "SLOW": place, "PYTHONPATH": path}
        environment = os.environ | {name: str(value) for name, value in names.items()}
        deaf = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh"] if ignoring else []
        self.process = subprocess.Popen(
            [*deaf, *words], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def interrupt(self) -> None:
        """Where it waits."""
        assert happens(lambda: self.here.exists() or self.process.poll() is not None)
        assert self.here.exists(), self.process.communicate()
        self.process.send_signal(signal.SIGINT)

    def ended(self) -> tuple[int, str, str]:
        """Its exit code and its output."""
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


@pytest.fixture(params=["script", "module"])
def program(request: pytest.FixtureRequest) -> list[str]:
    """How it is started: by the command that pip installs, or as a module."""
    script = "import sys; from graphveil.__main__ import main; sys.exit(main())"
    return [sys.executable, *(["-c", script] if request.param == "script" else ["-m", "graphveil"])]


@pytest.mark.parametrize("place", ["graphveil.cli", "typer", "rich.console", "graphveil.cli.release"])
def test_while_the_command_line_is_loaded(place: str, program: list[str], tmp_path: Path) -> None:
    slow = Slow(tmp_path, [*program, "--version"], place)
    slow.interrupt()
    assert slow.ended() == (130, "", INTERRUPTED)


@pytest.mark.parametrize("place", ["numpy", "torch", "torch.optim", "graphveil.runs.protect"])
def test_while_a_verb_is_loaded(place: str, program: list[str], tmp_path: Path) -> None:
    """A library that takes the interrupt for a missing module would continue, and fail elsewhere."""
    slow = Slow(tmp_path, [*program, *PROTECT, "--out", str(tmp_path / "run")], place)
    slow.interrupt()
    code, _, err = slow.ended()
    assert (code, err) == (130, INTERRUPTED)
    assert not (tmp_path / "run").exists()


def test_while_it_exits(program: list[str], tmp_path: Path) -> None:
    slow = Slow(tmp_path, [*program, "--version"], "the end")
    slow.interrupt()
    code, out, err = slow.ended()
    assert (code, err) == (130, "graphveil: interrupted during shutdown.\n")
    assert out.startswith("graphveil "), "its output is not lost"


@pytest.mark.parametrize("place", ["typer", "the end"])
def test_where_it_is_ignored_it_stays_so(place: str, program: list[str], tmp_path: Path) -> None:
    """A shell starts background jobs that way."""
    slow = Slow(tmp_path, [*program, "--version"], place, ignoring=True)
    slow.interrupt()
    slow.go.touch()
    code, out, err = slow.ended()
    assert (code, err) == (0, "")
    assert out.startswith("graphveil ")


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--help"], PROTECT])
def test_at_sixty_moments(words: list[str], program: list[str], tmp_path: Path) -> None:
    """Before our first line the interpreter reacts as usual; later there is a sentence, or it has ended."""
    pick, sentences = random.Random(0), 0
    for number in range(60):
        out = ["--out", str(tmp_path / str(number))] if words == PROTECT else []
        slow = Slow(tmp_path, [*program, *words, *out], "nowhere")
        time.sleep(pick.uniform(0, 1.5))
        slow.process.send_signal(signal.SIGINT)
        code, _, err = slow.ended()
        if code == 130 and "Traceback" not in err:
            assert err.startswith("graphveil: interrupted")
            assert err.count("\n") == 1
            sentences += 1
        else:
            assert (code in (0, -signal.SIGINT) and not err) or "KeyboardInterrupt" in err, err
            assert "graphveil/" not in err, "a line of ours in a traceback"
    assert sentences
