"""Build the wheel and use it like a user: in an environment of its own, outside the repository, without any warning.

`python -m tools.wheel` takes the other packages from this environment; `python -m tools.wheel --lowest` installs the
lowest version of each that pyproject.toml allows, except torch, of which there is one build (constraints.txt).
"""

import argparse
import json
import re
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import venv
from collections.abc import Sequence
from pathlib import Path

from tools.links import ROOT

ONE_BUILD = "torch"
COMMANDS = (
    "protect karate --utility links --secret labels --set rounds=40 --device cpu --out run",
    "audit run --panel quick",
    "export run --out release --force",
    "report run",
    "sweep karate --tradeoff 0.5,1 --seeds 1 --rounds 2 --device cpu --quiet --out sweep",
)
EXPERIMENTS = "from graphveil.experiments.spec import NAMES, load_experiment; [load_experiment(name) for name in NAMES]"
"""Reads every YAML file of the package."""

WRITTEN = (
    "sweep/report.html",
    "run/run.json",
    "run/audit.json",
    "run/report.html",
    "release/CARD.md",
    "release/SHA256SUMS",
)


def main() -> None:
    """Build, install, and run the commands."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lowest", action="store_true", help="the lowest versions of all packages except torch")
    lowest = parser.parse_args().lowest
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        wheel = build(folder / "dist")
        python = environment(folder / "venv", wheel, lowest_versions() if lowest else ())
        use(python, folder)


def lowest_versions() -> list[str]:
    """The dependencies of pyproject.toml, each at its lower bound."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bounds = [re.fullmatch(r"([\w-]+)>=([\d.]+)(,<[\d.]+)?", text) for text in project["dependencies"]]
    assert all(bounds), "every dependency has a lower bound"
    return [f"{bound[1]}=={bound[2]}" for bound in bounds if bound is not None and bound[1] != ONE_BUILD]


def build(folder: Path) -> Path:
    """Build the wheel of this repository."""
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    _run([*pip, "--wheel-dir", str(folder), str(ROOT)], ROOT, silent=False)
    (wheel,) = folder.glob("graphveil-*.whl")
    return wheel


def environment(folder: Path, wheel: Path, pinned: Sequence[str]) -> Path:
    """Install the wheel and some packages; the others, such as torch, are those of this environment.

    Returns:
        The interpreter.
    """
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    _run([*install, str(wheel), *pinned], folder, silent=False)
    own = next((folder / "lib").glob("python*/site-packages"))
    # a line of a .pth file adds a folder, but not its .pth files: the editable install there stays out
    (own / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    return python


def use(python: Path, folder: Path) -> None:
    """Run the commands in a folder outside the repository; each must succeed without a word on stderr."""
    where = _run([str(python), "-c", "import graphveil; print(graphveil.__file__)"], folder)
    assert Path(where.strip()).is_relative_to(folder), f"the tested package is {where.strip()}, not the wheel"
    for command in COMMANDS:
        _run([str(python.with_name("graphveil")), *command.split()], folder)
    missing = [name for name in WRITTEN if not (folder / name).exists()]
    assert not missing, f"not written: {missing}"
    assert "<script>" in (folder / "sweep" / "report.html").read_text(encoding="utf-8"), "the page has no slider"
    _run([str(python), "-c", EXPERIMENTS], folder)
    json.loads(_run([str(python.with_name("graphveil")), "data", "show", "karate", "--json", "--quiet"], folder))


def _run(command: Sequence[str], folder: Path, silent: bool = True) -> str:
    """Run a command; it must succeed and, if `silent`, print nothing on stderr."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode or (silent and done.stderr):
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
