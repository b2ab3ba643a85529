"""What the world does to a run: kills, interrupts, full and read-only disks, torn files, a clock that jumps.

Programs are real processes and faults are real ones, wherever a test may make them.
"""

import ctypes
import itertools
import json
import logging
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from torch_geometric.data import Data

import graphveil as gv
from graphveil.files import hold_lock
from graphveil.runs.protect import protect
from graphveil.training.loop import Training
from tests.cheap import untuned_attacks
from tests.forked import Forks, Program

SMALL = ["--set", "hidden_channels=16", "--set", "out_channels=8", "--adversary-steps", "1", "--device", "cpu"]
CLUB = ["karate", "--split", "proportional"]
FOR_EVER = ["--set", "rounds=100000", "--set", "patience=100000"]
CHECKPOINT = "checkpoint.safetensors"


def is_one_sentence(said: str) -> bool:
    return said.startswith("graphveil: ") and said.count("\n") == 1 and "Traceback" not in said


def training(forks: Forks, out: Path) -> Program:
    """A run that is in the middle of its training."""
    program = forks.start("protect", *CLUB, *SMALL, *FOR_EVER, "--out", out)
    assert program.wait_for((out / CHECKPOINT).exists), program.said
    return program


def test_a_lock_names_its_holder(forks: Forks, tmp_path: Path) -> None:
    first = training(forks, tmp_path)
    code, said = forks("protect", *CLUB, *SMALL, "--out", tmp_path)
    assert code == 2
    assert is_one_sentence(said)
    who = f"It is process {first.process.pid} on {socket.gethostname()}, which has run `protect` since 20"
    assert f"another process is writing to {tmp_path}" in said
    assert who in said
    first.signal(signal.SIGKILL)
    first.process.join()
    assert (tmp_path / ".lock.json").exists(), "nobody was left to remove it"
    with hold_lock(tmp_path / ".lock", 0, "busy."):
        assert json.loads((tmp_path / ".lock.json").read_text())["pid"] == os.getpid()
    assert sorted(file.name for file in tmp_path.iterdir()) == [".lock", CHECKPOINT]


@pytest.fixture(scope="module")
def halted(
    small: Data, small_split: gv.Split, quick: gv.Recipe, tmp_path_factory: pytest.TempPathFactory
) -> tuple[gv.Veil, Path, Path]:
    """A run that was stopped half way, and the same run unbroken."""
    stopped, whole = tmp_path_factory.mktemp("stopped"), tmp_path_factory.mktemp("whole")
    veil = gv.Veil(recipe=quick.but(rounds=45, patience=45), device="cpu")
    protect(veil, small, small_split, whole)

    def stop(run: Training) -> None:
        if run.round == 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        protect(veil, small, small_split, stopped, on_round=stop)
    return veil, stopped, whole


def flipped(data: bytes) -> bytes:
    """One bit of one weight."""
    return data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]


@pytest.mark.parametrize(
    "damage",
    [lambda data: data[: len(data) // 2], lambda _: b"", lambda data: b"\0" * len(data), flipped, None],
    ids=["half", "empty", "zeros", "one bit", "none"],
)
def test_a_torn_checkpoint_costs_time_and_nothing_else(
    damage: Callable[[bytes], bytes] | None,
    halted: tuple[gv.Veil, Path, Path],
    small: Data,
    small_split: gv.Split,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    veil, stopped, whole = halted
    out = tmp_path / "run"
    shutil.copytree(stopped, out)
    if damage is not None:
        (out / CHECKPOINT).write_bytes(damage((out / CHECKPOINT).read_bytes()))
    rounds: list[int] = []
    with caplog.at_level(logging.WARNING):
        protect(veil, small, small_split, out, resume=True, on_round=lambda run: rounds.append(run.round))
    assert rounds[0] == (21 if damage is None else 1)
    messages = [] if damage is None else [f"{out / CHECKPOINT} is damaged: the run starts over."]
    assert caplog.messages == messages
    assert differences(whole, out) == []


def test_a_run_that_diverged_while_killed_leaves_no_rubbish(
    small: Data, small_split: gv.Split, quick: gv.Recipe, tmp_path: Path
) -> None:
    (tmp_path / "last_good").mkdir()
    (tmp_path / "last_good" / ".model.safetensors.0123.part").write_bytes(b"half")

    def poison(run: Training) -> None:
        next(iter(run.method.players[0].module.parameters())).data.fill_(float("inf"))

    with pytest.raises(gv.DivergedError):
        protect(gv.Veil(recipe=quick, device="cpu"), small, small_split, tmp_path, on_round=poison)
    assert sorted(file.name for file in (tmp_path / "last_good").iterdir()) == ["model.safetensors", "run.json"]


RUN = ["embeddings.parquet", "history.parquet", "model.safetensors", "run.json"]


def differences(whole: Path, other: Path) -> list[str]:
    """The files in which two folders differ, but for seconds and seals of them; what is left over is one too."""
    names = [
        {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()} for folder in (whole, other)
    ]
    odd = {name for name in names[0] ^ names[1] if Path(name).name != ".lock"}
    return sorted(
        odd | {name for name in names[0] & names[1] if without_time(whole / name) != without_time(other / name)}
    )


def without_time(file: Path) -> Any:
    if file.name not in ("run.json", "audit.json"):
        return file.read_bytes()
    timed = ("seconds", "sha256")
    return json.loads(file.read_text(), object_hook=lambda found: {k: v for k, v in found.items() if k not in timed})


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True, check=False
    ).returncode:
        pytest.skip("this user may not mount")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def remount(disk: Path, option: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{option}", disk], check=True)


ENDS = ["protect", *CLUB, *SMALL, "--objective", "club", "--set", "rounds=40", "--set", "patience=40"]
"""An adversary makes the checkpoint large, and a row of its own for every node makes the audit whole."""
CODED = ["protect", "synthetic", *SMALL, "--utility", "labels", "--secret", "secret", "--set", "rounds=5"]
"""Under the default objective; so few rounds leave several codes where a class is kept."""


@pytest.fixture(scope="module")
def unbroken(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("unbroken") / "run"
    assert forks(*ENDS, "--out", out) == (0, "")
    return out


@pytest.fixture(scope="module")
def unreleased(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("unreleased") / "run"
    assert forks(*CODED, "--out", out) == (0, "")
    return out


@pytest.fixture
def coded(unreleased: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of its own, since a release is recorded in the folder of its run."""
    out = tmp_path_factory.mktemp("coded") / "run"
    shutil.copytree(unreleased, out)
    return out


def test_a_full_disk(forks: Forks, disk: Path, unbroken: Path) -> None:
    """64 KiB are enough to begin with, and not for the checkpoint; with more room it goes on."""
    out = disk / "run"
    code, said = forks(*ENDS, "--out", out)
    assert code == 2
    assert is_one_sentence(said)
    assert said.startswith(f"graphveil: cannot write {out / CHECKPOINT}: No space left on device. Free some space")
    assert list(disk.iterdir()) == [], "nothing of worth, so nothing"
    remount(disk, "size=16m")
    assert forks(*ENDS, "--out", out, "--resume") == (0, "")
    assert differences(unbroken, out) == []


def test_a_read_only_disk(forks: Forks, disk: Path, unbroken: Path, coded: Path) -> None:
    """Codes are not released where the ledger of their run cannot be written, even if the release itself could be."""
    remount(disk, "size=16m")
    shutil.copytree(unbroken, disk / "run")
    shutil.copytree(coded, disk / "coded")
    before = sorted(disk.rglob("*"))
    remount(disk, "ro")
    for words in (
        [*ENDS, "--out", str(disk / "new")],
        ["audit", str(disk / "run"), "--panel", "quick"],
        ["report", str(disk / "run")],
        ["export", str(disk / "coded"), "--force", "--out", str(disk.parent / "release")],
        ["sweep", *CLUB, "--rounds", "1", "--out", str(disk / "new")],
    ):
        code, said = forks(*words)
        assert code == 2, words
        assert is_one_sentence(said)
        assert "Read-only file system" in said
    assert sorted(disk.rglob("*")) == before
    assert list(disk.parent.iterdir()) == [disk]


def small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


def test_a_limit_on_files(forks: Forks, tmp_path: Path, unbroken: Path) -> None:
    """As a quota does: what is too large is refused half way through the writing."""
    out = tmp_path / "run"
    code, said = forks(*ENDS, "--out", out, before=small_files)
    assert code == 2
    assert is_one_sentence(said)
    assert said.startswith(f"graphveil: cannot write {out / CHECKPOINT}: File too large.")
    assert list(tmp_path.iterdir()) == []
    assert forks(*ENDS, "--out", out, "--resume") == (0, "")
    assert differences(unbroken, out) == []


@dataclass
class Largest:
    """A limit on the size of files."""

    size: int

    def __call__(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.size, self.size))


def files_of(verb: str, run: Path, out: Path) -> list[str | Path]:
    """Commands that write several files into a folder that is not there yet, or a file into one."""
    of_anybody: list[str | Path] = [
        "--embeddings",
        run / "embeddings.parquet",
        "--graph",
        "karate",
        "--secret",
        "labels",
    ]
    commands: dict[str, list[str | Path]] = {
        "protect": ["protect", *CLUB, *SMALL, "--set", "rounds=4", "--out", out],
        "embed": ["embed", run, "karate", "--no-audit", "--device", "cpu", "--out", out],
        "export": ["export", run, "--force", "--format", "npy,word2vec", "--out", out],
        "export of codes": ["export", run, "--force", "--out", out],
        "audit": ["audit", *of_anybody, *CLUB[1:], "--panel", "quick", "--out", out / "audit.json"],
        "report": ["report", run, "--out", out / "report.html"],
    }
    return commands[verb]


@pytest.mark.parametrize("verb", ["protect", "embed", "export", "export of codes", "audit", "report"])
def test_what_fails_at_any_of_its_files_leaves_no_new_folder(
    verb: str, forks: Forks, unbroken: Path, coded: Path, tmp_path: Path
) -> None:
    whole, run = tmp_path / "whole", coded if verb == "export of codes" else unbroken
    assert forks(*files_of(verb, run, whole)) == (0, "")
    assert (whole / "codes.parquet").exists() == (verb == "export of codes")
    sizes = {file.stat().st_size for file in whole.rglob("*") if file.is_file()}
    shutil.rmtree(whole)
    for size in (size for size in sizes if size > 600):  # what is said goes into a file too
        code, said = forks(
            *files_of(verb, run, tmp_path / "new" / "out"), before=Largest(size - 100)
        )  # seconds in it vary
        assert code == 2
        assert is_one_sentence(said)
        assert "File too large" in said
        assert list(tmp_path.iterdir()) == []
    if verb == "export of codes":
        assert len(json.loads((run / "releases.json").read_text())["releases"]) == 1, "the one that did not fail"


REFUSED: dict[str, list[str]] = {
    "a trade-off": ["protect", *CLUB, "--tradeoff", "7"],
    "links that are scored": ["protect", *CLUB, "--message-edges", "all"],
    "an encoder": ["protect", *CLUB, "--encoder", "gcnn"],
    "an adversary": ["protect", *CLUB, "--objective", "club", "--adversary", "bilinear"],
    "no run to embed by": ["embed", "nowhere", "karate"],
    "no run to export": ["export", "nowhere"],
    "a sweep": ["sweep", *CLUB, "--tradeoff", "7"],
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_leaves_no_new_folder(what: str, forks: Forks, tmp_path: Path) -> None:
    code, said = forks(*REFUSED[what], "--out", tmp_path / "new" / "out")
    assert code == 2
    assert is_one_sentence(said)
    assert list(tmp_path.iterdir()) == []


def without_privileges() -> None:
    """Root gives up all that sets it above the permissions of files."""
    if os.getuid() == 0:
        version, nothing = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
        assert ctypes.CDLL(None).capset(version, nothing) == 0


def test_a_folder_that_may_not_be_written_to(forks: Forks, tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    for out in (tmp_path, tmp_path / "run"):
        code, said = forks(*ENDS, "--out", out, before=without_privileges)
        assert code == 2
        assert is_one_sentence(said)
        assert "Permission denied" in said
    tmp_path.chmod(0o755)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_vanishes_is_not_made_again(forks: Forks, tmp_path: Path) -> None:
    """By then it may belong to another run, which was started after the folder was removed."""
    out = tmp_path / "run"
    program = training(forks, out)
    shutil.rmtree(out)
    out.mkdir()
    (out / "other").write_text("of another run")
    assert program.wait() == 2
    assert is_one_sentence(program.said)
    assert f"{out} was removed while it was being written to" in program.said
    assert [file.name for file in out.iterdir()] == ["other"]


def no_room_to_speak() -> None:
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)


def test_output_to_a_full_disk(forks: Forks) -> None:
    code, said = forks("data", "list", before=no_room_to_speak)
    assert code == 2
    assert is_one_sentence(said)
    assert "No space left on device" in said


@dataclass
class Jump:
    """A clock that runs on from another time, and back again at every second look."""

    seconds: float
    real: Callable[[], float] = field(default=time.time)
    looks: int = 0

    def __call__(self) -> None:
        time.time = self.now

    def now(self) -> float:
        self.looks += 1
        return self.real() + (self.seconds if self.looks % 2 else -self.seconds)


@pytest.mark.parametrize("seconds", [365 * 86400.0, -86400.0])
def test_a_clock_that_jumps(seconds: float, forks: Forks, tmp_path: Path, unbroken: Path) -> None:
    """Backwards and ahead, within the program and in the dates of its files."""
    out = tmp_path / "run"
    program = forks.start(*ENDS, "--out", out, before=Jump(seconds))
    program.wait_for((out / CHECKPOINT).exists)
    program.signal(signal.SIGKILL)
    program.process.join()
    assert (out / CHECKPOINT).exists()
    for file in out.iterdir():
        os.utime(file, (time.time() - 2 * seconds, time.time() - 2 * seconds))
    assert forks(*ENDS, "--out", out, "--resume", before=Jump(-seconds)) == (0, "")
    assert differences(unbroken, out) == []
    os.utime(out / "embeddings.parquet", (time.time() + abs(seconds), time.time() + abs(seconds)))
    assert forks("audit", out, "--panel", "quick", before=Jump(seconds)) == (0, "")


@pytest.mark.parametrize("torn", ["", "{", "[]", '{"schema": "graphveil/run/9"}', "[" * 100_000, "\0" * 100])
def test_a_torn_record_is_one_sentence(torn: str, forks: Forks, unbroken: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    shutil.copytree(unbroken, out)
    (out / "run.json").write_text(torn)
    for verb in ("audit", "report"):
        code, said = forks(verb, out)
        assert code == 2, verb
        assert is_one_sentence(said)
        assert str(out) in said
    shutil.copy(unbroken / "run.json", out)
    (out / "audit.json").write_text(torn)
    code, said = forks("report", out)
    assert code == 2
    assert is_one_sentence(said)
    assert forks("audit", out, "--panel", "quick", before=untuned_attacks) == (0, "")
    assert json.loads((out / "audit.json").read_text())["secret"] == "labels"


@dataclass
class StuckDisk:
    """The file with this number is not written to its end before something else happens.

    Args:
        number: 1 is the first file.
        here: A file that says that the program has come so far.
    """

    number: int
    here: Path

    def __call__(self) -> None:
        real, files = os.fsync, itertools.count(1)

        def sync(fd: Any) -> None:
            if next(files) == self.number:
                self.here.touch()
                threading.Event().wait(60)
            real(fd)

        os.fsync = sync


@pytest.mark.parametrize(
    ("kind", "formats"),
    [("unbroken", "parquet,npy,safetensors,word2vec,projector"), ("coded", "codes,parquet,npy,safetensors,word2vec")],
    ids=["embeddings", "codes"],
)
def test_an_interrupted_export_releases_nothing(
    kind: str, formats: str, forks: Forks, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    run = tmp_path / "run"
    shutil.copytree(request.getfixturevalue(kind), run)
    assert forks("audit", run, "--panel", "quick", before=untuned_attacks) == (0, "")
    out = tmp_path / "release"
    words: list[str | Path] = ["export", run, "--out", out, "--force", "--format", formats]
    here = tmp_path / "here"
    program = forks.start(*words, before=StuckDisk(1, here))
    assert program.wait_for(here.exists)
    here.unlink()
    program.signal(signal.SIGINT)
    assert program.wait(20) == 130
    assert is_one_sentence(program.said)
    assert "nothing was released" in program.said
    assert sorted(file.name for file in tmp_path.iterdir()) == ["run"]
    assert not (run / "releases.json").exists()
    assert forks(*words) == (0, "")
    assert (run / "releases.json").exists() == (kind == "coded")


INTERRUPTS: dict[str, tuple[list[str], str, str]] = {
    "protect": ([*CLUB, *SMALL, *FOR_EVER], CHECKPOINT, "run the same command with --resume to continue in"),
    "sweep": (
        [*CLUB, "--jobs", "2", "--tradeoff", "0.5,1", "--seeds", "9"],
        ".lock",
        "run the same command again to continue in",
    ),
}


@pytest.mark.parametrize("verb", INTERRUPTS)
def test_an_interrupt_says_how_to_go_on(verb: str, forks: Forks, tmp_path: Path) -> None:
    words, sign, says = INTERRUPTS[verb]
    program = forks.start(verb, *words, "--out", tmp_path)
    assert program.wait_for((tmp_path / sign).exists)
    program.signal(signal.SIGINT)
    assert program.wait(20) == 130
    assert is_one_sentence(program.said)
    assert says in program.said
    assert not list(tmp_path.rglob("*.part"))
    assert not (tmp_path / ".lock.json").exists()


@pytest.mark.parametrize("seed", range(4))
def test_an_interrupt_before_anything_is_written(seed: int, forks: Forks, tmp_path: Path) -> None:
    """While a graph is loaded and split, say."""
    program = forks.start("protect", "synthetic", *SMALL, *FOR_EVER, "--out", tmp_path / "run")
    program.process.join(random.Random(seed).uniform(0.02, 0.15))
    program.signal(signal.SIGINT)
    assert program.wait(20) == 130
    assert is_one_sentence(program.said)
    assert "the same command" in program.said
    kept = (tmp_path / "run" / CHECKPOINT).exists()
    assert ("--resume" in program.said) == kept
    assert list(tmp_path.iterdir()) == ([tmp_path / "run"] if kept else [])


VERBS = {
    "protect": (["protect", "synthetic", *SMALL, "--set", "rounds=60", "--set", "patience=60"], ["--resume"]),
    "audit": (["audit", "--panel", "quick"], []),
    "full audit": (["audit", "--jobs", "1"], []),
    "sweep": (["sweep", *CLUB, "--tradeoff", "0.5,1", "--seeds", "2", "--rounds", "20", "--jobs", "1"], []),
}


@dataclass
class Killer:
    """Kills programs at random moments, lets the last of them end, and holds the result against an undisturbed one."""

    forks: Forks
    folder: Path
    pick: random.Random
    chains: int = 0
    kills: int = 0
    half_written: int = 0
    lost: list[str] = field(default_factory=list)
    whole: dict[str, tuple[Path, float]] = field(default_factory=dict)

    def chain(self, verb: str, kills: int) -> None:
        """So many kills in one folder, one after the other."""
        whole, length = self.undisturbed(verb)
        self.chains += 1
        out = self.fresh(verb, f"{verb} {self.chains}")
        before: dict[Path, Any] = {}
        for _ in range(kills):
            program = self.one(verb, out, length)
            code = program.wait()
            if code == 0 or "holds a finished run" in program.said:  # it had ended by then
                break
            assert code == -signal.SIGKILL, program.said
            self.kills += 1
            self.half_written += any(out.rglob("*.part"))
            self.lost += [
                f"{verb}: {file.name} was there before" for file, state in before.items() if worth(file) != state
            ]
            before = {file: worth(file) for file in out.rglob("*") if file.is_file() and worth(file) is not None}
        else:
            code, said = self.forks(*self.command(verb, out), *VERBS[verb][1])
            if (code, said) != (0, "") and "holds a finished run" not in said:
                self.lost.append(f"{verb} left with {code}: {said}")
        self.lost += [f"{verb}: {name} differs" for name in differences(whole, out)]

    def one(self, verb: str, out: Path, length: float) -> Program:
        """Start a program and kill it, at any moment, at one of its work, or while it writes."""
        when = self.pick.choice(["ever", "work", "work", "write"])
        here = self.folder / f"{out.name} writes"
        here.unlink(missing_ok=True)
        before = StuckDisk(self.pick.randrange(1, 6), here) if when == "write" else None
        program = self.forks.start(*self.command(verb, out), *VERBS[verb][1], before=before)
        if when == "work":
            program.wait_for((out / ".lock.json").exists)
        if when == "write":
            program.wait_for(here.exists)
        else:
            program.process.join(self.pick.uniform(0, length))
        program.signal(signal.SIGKILL)
        return program

    def undisturbed(self, verb: str) -> tuple[Path, float]:
        """The result of a run that nothing happens to, and how long it takes."""
        if verb not in self.whole:
            out = self.fresh(verb, f"{verb} whole")
            self.forks("--version")  # all is imported by then
            started = time.monotonic()
            assert self.forks(*self.command(verb, out)) == (0, "")
            self.whole[verb] = out, time.monotonic() - started
        return self.whole[verb]

    def fresh(self, verb: str, name: str) -> Path:
        """A folder to work in; an audit begins with a run."""
        out = self.folder / name
        if "audit" in verb:
            if not (self.folder / "run").exists():
                assert self.forks(*ENDS, "--out", self.folder / "run") == (0, "")
            shutil.copytree(self.folder / "run", out)
        return out

    @staticmethod
    def command(verb: str, out: Path) -> list[str | Path]:
        """An audit has its folder as an argument."""
        words = VERBS[verb][0]
        return [words[0], out, *words[1:]] if "audit" in verb else [*words, "--out", out]


def worth(file: Path) -> Any:
    """Of what a kill has left: that which may not be lost any more, or nothing."""
    if file.name == CHECKPOINT:  # it goes when the run is finished, and not before
        return "there" if file.exists() or (file.parent / "run.json").exists() else None
    is_cell = file.suffix == ".json" and file.parent.name == "cells" and not file.name.startswith(".")
    return file.read_bytes() if is_cell and file.exists() else None


def test_killed_at_a_few_moments(forks: Forks, tmp_path: Path) -> None:
    killer = Killer(forks, tmp_path, random.Random(1))
    for verb, kills in (("protect", 3), ("audit", 4)):
        while killer.kills < kills:  # one that comes too late does not count
            killer.chain(verb, kills - killer.kills)
    assert not killer.lost, "\n".join(killer.lost)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_killed_at_a_hundred_moments(forks: Forks, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """protect, audit and sweep; GRAPHVEIL_SEED draws other moments, GRAPHVEIL_KILLS more of them."""
    killer = Killer(forks, tmp_path, random.Random(int(os.environ.get("GRAPHVEIL_SEED", "0"))))
    started, count = time.monotonic(), dict.fromkeys(VERBS, 0)
    wanted = int(os.environ.get("GRAPHVEIL_KILLS", "100"))
    shares = {"protect": 0.4, "audit": 0.3, "full audit": 0.04, "sweep": 0.26}
    for verb, share in shares.items():
        while count[verb] < round(share * wanted):
            before = killer.kills
            killer.chain(verb, min(4, round(share * wanted) - count[verb]))
            count[verb] += killer.kills - before
    counted = ", ".join(f"{number} of {verb}" for verb, number in count.items())
    with capsys.disabled():
        sys.stdout.write(
            f"\n{killer.kills} kills ({counted}; {killer.half_written} while a file was being written), lost"
            f" {len(killer.lost)}, {time.monotonic() - started:.0f} s\n"
        )
    assert not killer.lost, "\n".join(killer.lost)
    assert killer.kills >= wanted
