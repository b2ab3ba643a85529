"""`gv.protect`, `gv.embed` and `gv.export`: the verbs as functions, with the results of the command line."""

import json
from pathlib import Path

import pytest

import graphveil as gv
from tests.program import CommandLine
from tests.release.made import drawn, write_tables

SHORT = {"rounds": 4, "hidden_channels": 8, "out_channels": 4}


def veil(**changes: object) -> gv.Veil:
    plain = gv.Veil("links", "tribe", objective="club", device="cpu", **changes)  # type: ignore[arg-type]
    return plain.set_params(recipe=plain.recipe.but(**SHORT))


def test_a_run_is_that_of_the_command_line(
    tmp_path: Path, graphveil: CommandLine, capfd: pytest.CaptureFixture[str]
) -> None:
    people = write_tables(tmp_path / "people", *drawn(0))
    words = [word for name, value in SHORT.items() for word in ("--set", f"{name}={value}")]
    words += [
        "--secret",
        "tribe",
        "--objective",
        "club",
        "--seed",
        "2",
        "--device",
        "cpu",
        "--out",
        str(tmp_path / "a"),
    ]
    assert graphveil("protect", str(people), *words).returncode == 0
    made = gv.protect(people, tmp_path / "b", veil(seed=2))
    assert capfd.readouterr() == ("", ""), "a library is quiet"
    one, other = (json.loads((tmp_path / run / "run.json").read_text()) | {"seconds": 0} for run in "ab")
    assert one == other
    assert made.score.utility == other["scores"]["utility"]
    embedded = gv.embed(str(tmp_path / "b"), str(people), str(tmp_path / "c"), device="cpu")
    assert (embedded.known, len(embedded.z)) == (160, 160)
    with pytest.raises(gv.GraphveilError, match="the secret 'tribe' has not been audited"):
        gv.export(str(tmp_path / "b"), str(tmp_path / "release"))
    released = gv.export(tmp_path / "b", tmp_path / "release", "npy", max_leak={"tribe": 0.9}, force=True)
    assert "embeddings.npy" in released.files


def test_settings_are_checked_before_a_graph_is_read(tmp_path: Path) -> None:
    with pytest.raises(gv.GraphveilError, match="tradeoff is 7"):
        gv.protect("nowhere", tmp_path / "a", gv.Veil(tradeoff=7))


def test_progress_is_on_stderr(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    karate = gv.Veil(device="cpu", recipe=gv.Veil().recipe.but(rounds=3))
    gv.protect("karate", tmp_path / "a", karate, progress=True)
    assert capfd.readouterr() == ("", "karate: round 1 of 3\n")
