"""Controls by encoders are made once, and stand in the table of the audit."""

from functools import partial
from pathlib import Path

import pytest
import torch
from joblib.externals.loky import get_reusable_executor

import graphveil as gv
from graphveil.auditing import Effort
from graphveil.runs.audit import audit_run
from graphveil.runs.controls import REFITTED, encoder_controls
from graphveil.runs.folder import CONTROLS, RunFolder


def test_the_controls_are_made_once(run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    graph = gv.load("synthetic")
    assert graph.x.layout == torch.sparse_csr
    split = gv.Split.paper(graph, 3)
    made = encoder_controls(RunFolder(run), graph, split)
    controls, notes = made.embeddings, made.notes
    assert notes == ()
    assert set(controls) == {"untrained encoder", "unprotected encoder", REFITTED}
    veil = gv.Veil.load(run)
    plain = gv.Veil("links", "secret", tradeoff=1.0, objective="club", recipe=veil.recipe, seed=3, device="cpu")
    assert controls["unprotected encoder"].equal(plain.fit(graph, split).transform(graph, split))
    assert not controls["untrained encoder"].equal(controls["unprotected encoder"])
    before = (run / CONTROLS).stat().st_mtime_ns
    kept = encoder_controls(RunFolder(run), graph, split)
    again = kept.embeddings
    assert (run / CONTROLS).stat().st_mtime_ns == before
    assert again["untrained encoder"].equal(controls["untrained encoder"])
    (run / CONTROLS).write_bytes(b"torn")
    meanwhile = [partial((tmp_path / name).write_text, "called") for name in ("one", "two", "three")]
    get_reusable_executor().shutdown(wait=True)  # a worker warns once, and to the stderr of its start
    capfd.readouterr()
    once_more = encoder_controls(RunFolder(run), graph, split, jobs=2, meanwhile=lambda: meanwhile)
    assert all((tmp_path / name).exists() for name in ("one", "two", "three")), "called beside the training"
    assert "Warning" not in capfd.readouterr().err
    assert once_more.embeddings.keys() == controls.keys()
    assert all(z.equal(controls[name]) for name, z in once_more.embeddings.items()), "trained side by side"
    assert once_more.utility == made.utility
    (run / "run.json").write_text((run / "run.json").read_text() + " ")
    encoder_controls(RunFolder(run), graph, split)
    assert (run / CONTROLS).stat().st_mtime_ns != before, "another run's controls are not this one's"
    (run / "model.safetensors").write_bytes(b"torn")
    made = encoder_controls(RunFolder(run), graph, split)
    nothing, notes = made.embeddings, made.notes
    assert nothing == {}
    assert "control encoders were skipped" in notes[0]


def test_controls_stand_in_the_table(run: Path) -> None:
    (found,) = audit_run(run, effort=Effort(time_budget=0.0)).values()
    assert "attacks skipped" in {flag.name for flag in found.flags}
    assert any("unprotected encoder" in name for name in found.dropped)
