"""Writing whole files or none, locks that name their holder, and folders that go again."""

import contextlib
import json
import multiprocessing as mp
import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

import graphveil as gv
from graphveil.files import hold_lock, write_text


def dead_process() -> int:
    with subprocess.Popen(["true"]) as process:
        return process.pid


@pytest.mark.parametrize(
    "note",
    [
        None,
        "",
        '{"pid": 1, "hos',
        "[1, 2]",
        "[" * 5000,
        json.dumps({"pid": dead_process(), "host": socket.gethostname(), "verb": "audit", "since": "2026-01-01"}),
        json.dumps({"pid": -1, "host": socket.gethostname(), "verb": "audit", "since": "2026-01-01"}),
        json.dumps({"pid": 10**40, "host": socket.gethostname(), "verb": "audit", "since": "2026-01-01"}),
        json.dumps({"pid": 1, "host": "h", "verb": "audit", "since": "yesterday"}),
        json.dumps({"pid": 1, "host": "h", "verb": 3, "since": "2026-01-01"}),
    ],
    ids=["none", "empty", "torn", "list", "deep", "dead", "negative", "huge", "yesterday", "number"],
)
def test_an_invalid_note_is_not_shown(note: str | None, tmp_path: Path) -> None:
    if note is not None:
        (tmp_path / ".lock.json").write_text(note)
    with (
        FileLock(tmp_path / ".lock"),
        pytest.raises(gv.GraphveilError) as refused,
        hold_lock(tmp_path / ".lock", 0, "busy."),
    ):
        pass
    assert str(refused.value) == "busy."


def test_a_note_cannot_break_the_sentence(tmp_path: Path) -> None:
    words = {"pid": 7, "host": "[red]else\nwhere", "verb": "\x1b[2J" * 100, "since": "2026-01-02T03:04:05"}
    (tmp_path / ".lock.json").write_text(json.dumps(words))
    with (
        FileLock(tmp_path / ".lock"),
        pytest.raises(gv.GraphveilError) as refused,
        hold_lock(tmp_path / ".lock", 0, "busy."),
    ):
        pass
    said = str(refused.value)
    assert said.startswith(r"busy. It is process 7 on [red]else\nwhere, which has run `\x1b[2J")
    assert said.endswith("since 2026-01-02 03:04:05.")
    assert said.isprintable()
    assert len(said) < 500


def test_what_is_being_written_is_not_swept_away(tmp_path: Path) -> None:
    """Two that write without a lock, such as two reports, do not take each other's work for rubbish."""
    (tmp_path / ".a.json.0123.part").write_text("of a killed one")

    def write(temporary: Path) -> None:
        temporary.write_text("mine")
        with hold_lock(tmp_path / ".lock", 0, "busy."):
            assert temporary.read_text() == "mine"
        write_text(tmp_path / "a.json", "another's")

    gv.files.write_atomically(tmp_path / "a.json", write)
    assert (tmp_path / "a.json").read_text() == "mine"
    assert sorted(file.name for file in tmp_path.iterdir()) == [".lock", "a.json"]


@pytest.mark.parametrize("kind", ["folder", "pipe", "link", "device"])
def test_only_plain_files_are_replaced(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "link":
            path.symlink_to(tmp_path / "elsewhere")
        case "device":
            path = Path("/dev/full")
    before = path.lstat()
    with pytest.raises(gv.GraphveilError, match=r"cannot write .*(a\.json|full): it exists and is not a regular file"):
        write_text(path, "text")
    assert path.lstat().st_mode == before.st_mode
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("made", "wrote", "left"),
    [
        (False, [], []),
        (False, ["a"], ["out", "out/.lock", "out/a"]),
        (False, ["z"], []),
        (False, ["z", "a"], ["out", "out/.lock", "out/a", "out/z"]),
        (True, [], ["out"]),
        (True, ["z"], ["out", "out/.lock", "out/z"]),
    ],
)
def test_a_folder_goes_again_if_it_is_new_and_holds_nothing_of_worth(
    made: bool, wrote: list[str], left: list[str], tmp_path: Path
) -> None:
    """In a folder that was there already, a file may be anybody's."""
    out = tmp_path / "new" / "out"
    if made:
        out.mkdir(parents=True)
    with hold_lock(out / ".lock", 0, "busy.", disposable=["z", "y"]):
        for name in wrote:
            (out / name).write_text("something")
    names = sorted(str(file.relative_to(tmp_path / "new")) for file in (tmp_path / "new").rglob("*"))
    assert names == left
    assert (tmp_path / "new").exists() == (made or bool(left))


def contend(folder: Path, seconds: float, results: Any) -> None:
    """Take a lock again and again, fail while it is held, and count how often that was, and how often it was taken."""
    held = doubly = 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(gv.GraphveilError, ZeroDivisionError), hold_lock(folder / "out" / ".lock", 0, "busy."):
            held += 1
            try:
                os.close(os.open(folder / "held", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                doubly += 1
            time.sleep(0.0002)
            (folder / "held").unlink(missing_ok=True)
            raise ZeroDivisionError
    results.put((held, doubly))


def test_a_lock_that_goes_with_its_folder_is_never_held_by_two(tmp_path: Path) -> None:
    """A process that opened it before it was removed holds a void lock, while the next one creates another."""
    context = mp.get_context("fork")
    results = context.SimpleQueue()
    processes = [context.Process(target=contend, args=(tmp_path, 3.0, results)) for _ in range(6)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    counts = [results.get() for _ in processes]
    assert all(held for held, _ in counts), "everybody had a turn"
    assert sum(doubly for _, doubly in counts) == 0
    assert {*tmp_path.rglob("*")} <= {tmp_path / "out"}, "which may stay where the last to leave did not make it"
