"""What SECURITY.md guarantees: no code from files, no network access, no files outside the output."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "graphveil"
FILES = sorted(SOURCE.rglob("*.py"))

FORBIDDEN_MODULES = {
    "pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal",
    "socket", "ssl", "requests", "urllib3", "urllib.request", "http", "ftplib", "smtplib", "telnetlib", "webbrowser",
    "mlflow",
}  # fmt: skip
ALLOWED_MODULES = {
    "data/datasets/planetoid.py": {"pickle"},  # an unpickler that allows six names
    "data/readers/pyg.py": {"pickle"},  # the error of torch's own restricted one
    "files.py": {"socket"},  # this machine's name
    "data/datasets/fetch.py": {"http"},  # `data fetch`: the errors of a download
    "tracking.py": {"mlflow"},  # where an address is given
    "experiments/cluster.py": {"socket"},  # the same: whether a Ray cluster answers there, and this machine's name
}
FORBIDDEN_CALLS = {
    "eval", "exec", "compile", "__import__", "os.system", "os.popen", "yaml.load", "yaml.unsafe_load", "yaml.full_load",
    "joblib.load", "pickle.load", "pickle.loads", "pd.read_pickle", "tempfile.mktemp",
}  # fmt: skip
REQUIRED_ARGUMENTS = {"torch.load": ("weights_only", True), "np.load": ("allow_pickle", False)}
PROCESSES = {"data/datasets/fetch.py", "experiments/workers.py"}
"""Who may start a program: pip for `data fetch`, and our own workers."""


def faults(code: str, where: str = "") -> list[str]:
    """Forbidden imports and calls of a file."""
    found = []
    for node in ast.walk(ast.parse(code)):
        for module in _imported(node):
            parents = [module.rsplit(".", cut)[0] for cut in range(module.count(".") + 1)]
            for name in FORBIDDEN_MODULES.intersection(parents) - ALLOWED_MODULES.get(where, set()):
                found.append(f"imports {name}")
            if module == "subprocess" and where not in PROCESSES:
                found.append("starts programs")
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            given = {word.arg: getattr(word.value, "value", None) for word in node.keywords}
            if name in FORBIDDEN_CALLS or given.get("shell"):
                found.append(f"calls {name}")
            if name in REQUIRED_ARGUMENTS:
                word, value = REQUIRED_ARGUMENTS[name]
                if given.get(word) is not value:
                    found.append(f"calls {name} without {word}={value}")
    return found


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (name.name for name in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module
        yield from (f"{node.module}.{name.name}" for name in node.names)


@pytest.mark.parametrize("file", FILES, ids=[str(file.relative_to(SOURCE)) for file in FILES])
def test_no_file_does_what_no_file_may(file: Path) -> None:
    assert faults(file.read_text(encoding="utf-8"), file.relative_to(SOURCE).as_posix()) == []


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from pickle import loads",
        "import urllib.request",
        "from urllib import request",
        "from http.client import HTTPSConnection",
        "def f():\n    import requests.sessions",
        "torch.load(file)",
        "torch.load(file, weights_only=False)",
        "torch.load(file, weights_only=safe)",
        "np.load(file)",
        "np.load(file, allow_pickle=True)",
        "yaml.load(text, Loader=yaml.Loader)",
        "exec(text)",
        "import subprocess",
        "run(command, shell=True)",
    ],
)
def test_the_look_at_the_code_sees_what_it_should(code: str) -> None:
    assert faults(code)


def test_the_look_at_the_code_lets_pass_what_it_should() -> None:
    good = "from urllib.parse import quote\nmodule.eval()\nyaml.safe_load(text)\ntorch.load(file, weights_only=True)"
    assert faults(good) == []
    assert len(FILES) > 60


WATCH = """
import os, sys
def watch(event, arguments):
    network = event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.sendto")
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        network = True
    program = event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn")
    if network or program:
        # a file descriptor of our own, since opening one here would be watched as well
        with os.fdopen(os.open(os.environ["WATCH"], os.O_WRONLY | os.O_CREAT | os.O_APPEND), "w") as log:
            log.write(f"{event} {arguments[:2]}\\n")
    if network:
        raise OSError("there is no network")
sys.addaudithook(watch)
"""


@pytest.fixture
def watched(tmp_path: Path) -> Path:
    """An empty home, an empty folder to work in, and a Python that has no network and writes down what it starts."""
    for name in ("watch", "home", "work"):
        (tmp_path / name).mkdir()
    (tmp_path / "watch" / "sitecustomize.py").write_text(WATCH)
    return tmp_path


def call(watched: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "PYTEST_"))}
    path = os.pathsep.join([str(watched / "watch"), *filter(None, [os.environ.get("PYTHONPATH")])])
    own = {"PYTHONPATH": path, "WATCH": str(watched / "seen"), "HOME": str(watched / "home")}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=watched / "work",
        env=kept | own | {"PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def files_in(folder: Path) -> set[str]:
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}


def test_the_watch_sees_a_call_and_a_program(watched: Path) -> None:
    done = call(watched, "-c", "import socket; socket.create_connection(('127.0.0.1', 9))")
    assert "there is no network" in done.stderr
    call(watched, "-c", "import subprocess; subprocess.run(['true'])")
    assert [line.split()[0] for line in (watched / "seen").read_text().splitlines()] == [
        "socket.getaddrinfo",
        "subprocess.Popen",
    ]


VERBS = """
protect synthetic --utility labels --secret secret --set rounds=5 --out runs/a
audit runs/a --panel quick
report runs/a --out page/report.html
embed runs/a synthetic --out runs/b --panel quick
export runs/a --out release --force
"""
IN_ONE_PROCESS = f"""
from graphveil.cli import app
for line in {VERBS.strip().splitlines()}:
    app(line.split(), standalone_mode=False)
"""


def test_a_whole_run_needs_no_network_and_writes_only_its_outputs(watched: Path) -> None:
    """One verb after the other, and then a look at every file that came of it."""
    done = call(watched, "-c", IN_ONE_PROCESS)
    assert done.returncode == 0, done.stderr
    seen = (watched / "seen").read_text().splitlines() if (watched / "seen").exists() else []
    assert [line for line in seen if "ldconfig" not in line] == [], "a library asks ldconfig where another one is"
    assert files_in(watched / "home") == set()
    written = files_in(watched / "work")
    runs = {name for name in written if name.startswith(("runs/a/", "runs/b/"))}
    assert {"runs/a/run.json", "runs/a/releases.json"} <= runs
    assert "runs/b/releases.json" not in runs
    assert written - runs == {
        "page/report.html",
        "release/CARD.md",
        "release/SHA256SUMS",
        "release/code_book.json",
        "release/code_book.parquet",
        "release/codes.parquet",
    }


def test_the_policy_is_linked_and_says_how_to_report() -> None:
    policy = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert "](SECURITY.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
    for word in ("report", "pickle", "weights_only", "data fetch", "--mlflow", "not guaranteed", "make audit"):
        assert word in policy
