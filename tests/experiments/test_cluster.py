"""Cells on a Ray cluster: the messages, without Ray; and a real local cluster, one of whose workers is killed."""

import importlib.util
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import graphveil as gv
from graphveil.errors import GraphveilError
from graphveil.experiments import cluster as module
from graphveil.experiments.candidates import Search
from graphveil.experiments.cells import read_result
from graphveil.experiments.cluster import LOST, WORK, Cluster, check_address
from graphveil.experiments.reproduce import run_missing
from tests.experiments.made import TINY, write_result
from tests.forked import happens
from tests.program import CommandLine

FEW = ("--dataset", "cora", "--encoder", "gcn", "--variant", "club", "--rounds", "2", "--seeds", "3", "--jobs", "1")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether Ray is installed does not matter."""
    monkeypatch.setattr(module, "find_spec", lambda _: True)


def closed_port() -> int:
    """A port of this machine at which nothing answers."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


# ----- what is refused ------------------------------------------------------------------------------------------------


def test_ray_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    check_address(None)
    for address in ("local", "auto", "10.0.0.1:6379"):
        with pytest.raises(GraphveilError, match=r"^--ray needs Ray, which is not installed: install the extra ray \("):
            check_address(address)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    "address", ["", "here", "ray://head:10001", "head:", ":6379", "head:0", "head:70000", "head:x", "x" * 999]
)
def test_addresses_have_one_form(address: str) -> None:
    with pytest.raises(GraphveilError, match=r"is not an address: expected local, auto, or HOST:PORT") as error:
        check_address(address)
    assert "\n" not in str(error.value)


@pytest.mark.usefixtures("installed")
def test_a_cluster_that_does_not_answer(tmp_path: Path, graphveil: CommandLine) -> None:
    """Each command is refused before it writes anything."""
    address = f"127.0.0.1:{closed_port()}"
    with pytest.raises(GraphveilError, match=f"no Ray cluster answers at {address}: start one with"):
        gv.sweep("karate", tmp_path / "out", ray=address)
    for command in (["reproduce", "table2"], ["sweep", "karate"], ["tune", "karate"]):
        done = graphveil(*command, "--ray", address, "--out", str(tmp_path / "out"))
        assert done.returncode == 2
        assert f"no Ray cluster answers at {address}" in done.stderr.replace("\n", " ")
        assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("host", ["a\0b", ".....", "x" * 300])
def test_a_name_that_no_machine_has(host: str) -> None:
    with pytest.raises(GraphveilError, match="no Ray cluster answers at") as error:
        check_address(f"{host}:6379")
    assert len(str(error.value)) < 200


def test_candidates_are_trained_on_cpus() -> None:
    with pytest.raises(GraphveilError, match="trained on CPUs, but the device is 'cuda': omit --device"):
        gv.tune("karate", "out", search=Search(device="cuda", ray="local"))


# ----- work on a machine of the cluster -------------------------------------------------------------------------------


def test_work_gets_its_files_and_gives_back_what_it_wrote(tmp_path: Path) -> None:
    def work(folder: Path) -> str:
        (folder / "deep" / "new").write_bytes((folder / "deep" / "given").read_bytes() + b"!")
        (folder / ".lock").touch()
        return str(Path.cwd())

    result, files = module._run(work, {"deep/given": b"1"}, module._versions(), str(tmp_path), str(tmp_path))
    assert (result, files) == (str(tmp_path), {"deep/new": b"1!"})
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_graphveil_is_a_result_and_the_files_before_it_are_kept(tmp_path: Path) -> None:
    def work(folder: Path) -> None:
        (folder / "first").touch()
        raise GraphveilError("no.")

    error, files = module._run(work, {}, module._versions(), "/does/not/exist", str(tmp_path))
    assert isinstance(error, GraphveilError)
    assert files == {"first": b""}


def test_machines_with_another_version_are_refused(tmp_path: Path) -> None:
    source = "the source of graphveil"
    same = (("graphveil", gv.__version__), ("torch", torch.__version__), (source, module._versions()[source]))
    for library, here in same:
        other = module._versions() | {library: "0.0.0"}
        error, files = module._run(lambda _: None, {}, other, ".", str(tmp_path))
        assert str(error).startswith(f"{library} on the machine ")
        assert f"is {here}, but 0.0.0 where this command was started: install the same version" in str(error)
        assert files == {}
    error, _ = module._run(lambda _: None, {}, module._versions() | {"numba": "missing"}, ".", str(tmp_path))
    assert "numba on the machine " in str(error)


def test_a_digest_of_the_source_covers_names_and_contents(tmp_path: Path) -> None:
    found = []
    for number, (name, content) in enumerate((("a", "1"), ("a", "2"), ("b", "1"))):
        file = tmp_path / str(number) / "deep" / f"{name}.py"
        file.parent.mkdir(parents=True)
        file.write_text(content)
        found.append(module._digest_of(tmp_path / str(number)))
        (file.parent / "note.txt").touch()
        assert module._digest_of.__wrapped__(tmp_path / str(number)) == found[-1]
    assert len({*found}) == 3


def test_folders_of_killed_processes_are_removed(tmp_path: Path) -> None:
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    dead, alive = tmp_path / f"{module._own_work()}{done.pid}-x", tmp_path / f"{module._own_work()}{os.getpid()}-x"
    elsewhere = tmp_path / f"{WORK}another-machine-{done.pid}-x"
    longer_name = tmp_path / f"{module._own_work()}{done.pid}-{os.getpid()}-x"
    for folder in (dead, alive, elsewhere, longer_name):
        folder.mkdir()
    module._run(lambda _: None, {}, module._versions(), ".", str(tmp_path))
    assert set(tmp_path.iterdir()) == {alive, elsewhere, longer_name}


def test_folders_of_killed_processes_of_a_machine_with_a_hyphen_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "node-1")
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    (tmp_path / f"{WORK}node-1-{done.pid}-x").mkdir()
    module._run(lambda _: None, {}, module._versions(), ".", str(tmp_path))
    assert list(tmp_path.iterdir()) == []


# ----- the driver, with a stand-in for Ray ----------------------------------------------------------------------------


class TaskError(Exception):
    """Stands in for Ray's errors."""


class StandIn(SimpleNamespace):
    """What graphveil uses of Ray, in this process; work is done when its result is fetched."""

    def __init__(self, lost: int = 0) -> None:
        kinds = SimpleNamespace(RayTaskError=type("RayTaskError", (TaskError,), {}), RayError=TaskError)
        super().__init__(exceptions=kinds, lost=lost, cancelled=[], ended=0, options={})

    def init(self, **options: Any) -> None:
        self.options = options

    def remote(self, **_: Any) -> Callable[[Callable[..., Any]], Any]:
        return lambda function: SimpleNamespace(remote=lambda *arguments: (id(arguments), lambda: function(*arguments)))

    def wait(self, futures: list[Any], num_returns: int, timeout: object) -> tuple[list[Any], list[Any]]:
        del timeout
        return futures[:num_returns], futures[num_returns:]

    def get(self, future: Any) -> Any:
        if self.lost:
            self.lost -= 1
            raise TaskError
        return future[1]()

    def cancel(self, future: Any, force: bool) -> None:
        assert force
        self.cancelled.append(future)

    def shutdown(self) -> None:
        self.ended += 1


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch, installed: None) -> StandIn:
    ray = StandIn()
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    return ray


def run(cell: Any, folder: Path) -> str | None:
    if cell.seed == 1:
        return "it failed"
    write_result(cell, folder, {"utility": 0.5})
    return None


def test_the_head_writes_the_files_of_cells(tmp_path: Path, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphveil.experiments.reproduce.run_cell", run)
    todo = [type(TINY)(**{**vars(TINY), "seed": seed}) for seed in range(3)]
    seen: list[int] = []
    failed = run_missing(todo, tmp_path, 2, lambda cell, _: seen.append(cell.seed), ray="local")
    assert [(cell.seed, fault) for cell, fault in failed] == [(1, "it failed")]
    assert sorted(seen) == [0, 1, 2]
    assert [read_result(cell, tmp_path) is not None for cell in todo] == [True, False, True]
    assert stand_in.ended == 1
    assert stand_in.cancelled == []
    assert stand_in.options["num_cpus"] == 2
    assert not Path(stand_in.options["_temp_dir"]).exists()


def test_work_whose_processes_die_again_and_again_fails(tmp_path: Path, stand_in: StandIn) -> None:
    stand_in.lost = 1
    cluster = Cluster[str]("local", 1)
    lost = cluster.submit(lambda _: "one", tmp_path)
    kept = cluster.submit(lambda _: "two", tmp_path)
    results = {**dict(cluster.finished(0)), **dict(cluster.finished(None))}
    assert str(results[lost]) == LOST
    assert results[kept] == "two"
    assert cluster.is_idle
    cluster.close()


def test_files_that_work_removes_are_removed_on_the_head(tmp_path: Path, stand_in: StandIn) -> None:
    """Such as the checkpoint of a candidate that continues."""

    def work(folder: Path) -> None:
        (folder / "run" / "run.json").write_bytes(b"{}")
        (folder / "run" / "checkpoint").unlink()

    kept, run = tmp_path / "other", tmp_path / "run"
    run.mkdir()
    for file in (kept, run / "checkpoint", run / "model"):
        file.touch()
    cluster = Cluster[None]("local", 1)
    cluster.submit(work, tmp_path, [run])
    cluster.finished(None)
    assert sorted(file.name for file in run.iterdir()) == ["model", "run.json"]
    assert kept.exists()
    cluster.close()


def test_ctrl_c_cancels_what_runs(tmp_path: Path, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(stand_in, "wait", stop, raising=False)
    with pytest.raises(KeyboardInterrupt):
        run_missing([TINY], tmp_path, 1, lambda *_: None, ray="local")
    assert len(stand_in.cancelled) == 1
    assert stand_in.ended == 1


def test_an_address_at_which_something_else_answers(
    tmp_path: Path, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a cluster whose token this program does not have."""

    def refuse(**_: Any) -> None:
        os.write(2, b"noise of Ray")
        raise ConnectionError

    monkeypatch.setattr(stand_in, "init", refuse, raising=False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(GraphveilError, match=f"^{address} answers, but no Ray cluster accepted") as error:
            run_missing([TINY], tmp_path, 1, lambda *_: None, ray=address)
    assert "RAY_AUTH_TOKEN" in str(error.value)
    with pytest.raises(GraphveilError, match="no Ray cluster runs on this machine"):
        run_missing([TINY], tmp_path, 1, lambda *_: None, ray="auto")


# ----- a real cluster -------------------------------------------------------------------------------------------------

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray, an extra, is not installed")


@pytest.fixture
def short() -> Iterator[Path]:
    """A temporary folder with a short name, for the sockets of Ray."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="t") as name:
        yield Path(name)


def start(folder: Path, *arguments: str, more: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start the program in a session of its own, with a mark that the processes it starts inherit."""
    environment = os.environ | {"TMPDIR": str(folder), "OMP_NUM_THREADS": "1"} | dict(more or {})
    command = [sys.executable, "-m", "graphveil", *arguments]
    return subprocess.Popen(
        command, env=environment, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def marked(folder: Path) -> dict[int, str]:
    """The command lines of the processes with the mark of a folder."""
    found = {}
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdecimal() and f"TMPDIR={folder}\0".encode() in (process / "environ").read_bytes():
                found[int(process.name)] = (process / "cmdline").read_text()
        except OSError:
            continue
    return found


def working(folder: Path) -> list[int]:
    """The processes of the cluster that run a cell."""
    return [process for process, command in marked(folder).items() if command.startswith("ray::_run")]


def cells_of(folder: Path) -> dict[str, bytes]:
    """The contents of all files of results."""
    files = [file for file in folder.rglob("*") if file.is_file() and not file.name.startswith(".")]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


@needs_ray
@pytest.mark.slow
def test_a_cell_whose_worker_is_killed_is_done_again(tmp_path: Path, short: Path) -> None:
    """The files are those of a run without Ray, byte for byte, and no process is left."""
    arguments = ("reproduce", "table2", *FEW, "--out")
    program = start(short, *arguments, str(tmp_path / "ray"), "--ray", "local")
    assert happens(lambda: bool(working(short)), 120)
    os.kill(working(short)[0], signal.SIGKILL)
    output, _ = program.communicate(timeout=500)
    assert program.returncode == 0, output.decode()
    assert happens(lambda: marked(short) == {}, 60)
    assert list(short.iterdir()) == []
    plain = start(short, *arguments, str(tmp_path / "plain"))
    output, _ = plain.communicate(timeout=500)
    assert plain.returncode == 0, output.decode()
    ours, theirs = cells_of(tmp_path / "plain"), cells_of(tmp_path / "ray")
    assert sum(name.startswith("cells/cora") for name in ours) == 3
    assert ours == theirs


@needs_ray
@pytest.mark.slow
def test_a_cluster_at_an_address_that_asks_for_a_token(tmp_path: Path, short: Path) -> None:
    """The token is made for this cluster alone, and given to both sides by their environment."""
    environment = os.environ | {"TMPDIR": str(short), "RAY_USAGE_STATS_ENABLED": "0"}
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    address = f"127.0.0.1:{(port := closed_port())}"
    head = [
        str(Path(sys.executable).parent / "ray"),
        "start",
        "--head",
        f"--port={port}",
        "--num-cpus=1",
        "--include-dashboard=false",
    ]
    folders = [f"--temp-dir={short}/r", f"--object-store-memory={200 << 20}"]
    try:
        subprocess.run([*head, *folders], env=environment | token, check=True, capture_output=True, timeout=120)
        sweep = ("sweep", "karate", "--tradeoff", "0.5", "--seeds", "1", "--rounds", "2", "--out")
        refused = start(short, *sweep, str(tmp_path / "refused"), "--ray", address)
        output, _ = refused.communicate(timeout=300)
        assert refused.returncode == 2
        assert output.decode().count("\n") <= 3, "one sentence, after what was said about the graph"
        assert "no Ray cluster accepted the connection" in output.decode()
        program = start(short, *sweep, str(tmp_path / "ray"), "--ray", address, more=token)
        output, _ = program.communicate(timeout=300)
        assert program.returncode == 0, output.decode()
    finally:
        for process in marked(short):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
    assert happens(lambda: marked(short) == {}, 60)
    plain = start(short, *sweep, str(tmp_path / "plain"))
    plain.communicate(timeout=300)
    ours, theirs = cells_of(tmp_path / "plain" / "cells"), cells_of(tmp_path / "ray" / "cells")
    assert len(ours) >= 2
    assert ours == theirs


@needs_ray
@pytest.mark.slow
def test_candidates_of_a_search_are_those_without_ray(tmp_path: Path, short: Path) -> None:
    found = {}
    for name, ray in (("plain", ()), ("ray", ("--ray", "local"))):
        search = ("tune", "karate", "--encoder", "gcn", "--rounds", "2", "--jobs", "2", "--out", str(tmp_path / name))
        program = start(short, *search, *ray)
        output, _ = program.communicate(timeout=500)
        assert program.returncode in (0, 3), output.decode()
        found[name] = cells_of(tmp_path / name / "candidates")
    assert found["plain"].keys() == found["ray"].keys()
    assert len(found["plain"]) > 20
    for name in found["plain"]:
        if name.endswith((".safetensors", ".parquet")):
            assert found["plain"][name] == found["ray"][name], name


@needs_ray
@pytest.mark.slow
def test_ctrl_c_leaves_nothing_running(tmp_path: Path, short: Path) -> None:
    program = start(short, "reproduce", "table2", *FEW, "--out", str(tmp_path), "--ray", "local")
    assert happens(lambda: bool(working(short)), 120)
    os.killpg(program.pid, signal.SIGINT)
    output, _ = program.communicate(timeout=120)
    assert program.returncode == 130, output.decode()
    assert "run the same command again to continue" in output.decode().replace("\n", " ")
    assert happens(lambda: marked(short) == {}, 60)
    assert list(short.iterdir()) == []
