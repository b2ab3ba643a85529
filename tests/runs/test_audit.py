"""`graphveil audit` on runs and on files."""

import json
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors import safe_open

import graphveil as gv
from graphveil.auditing.attacks import Answers
from graphveil.auditing.secret import NodeSecret, Secret
from graphveil.auditing.tasks import Task
from graphveil.errors import GraphveilError
from graphveil.runs import audit as audits
from graphveil.runs.audit import audit_embeddings_file, audit_run
from graphveil.runs.controls import Controls
from graphveil.runs.folder import CONTROLS, RunFolder
from graphveil.runs.protect import protect


def test_a_run_is_audited_with_what_it_knows(run: Path) -> None:
    ((file, found),) = audit_run(run, attacks="quick").items()
    assert file == run / "audit.json"
    written = json.loads((run / "audit.json").read_text())
    record = RunFolder(run).record()
    assert written["secret"] == "secret"
    assert written["joint_adversary"]["value"] == record.scores.secrets[0].value
    assert written["certificate"] is record.certificates["secret"] is None, "2,000 nodes have 2,000 rows"
    assert found.context.utility is not None
    assert found.context.utility.value == record.scores.utility
    z = RunFolder(run).embeddings().z
    graph = gv.load("synthetic")
    split = gv.Split.paper(graph, 3)
    again = gv.audit(z, graph, split, "secret", attacks="quick", seed=3)
    assert again.strongest.headline == found.strongest.headline, "the run's own split was drawn again"


def test_a_run_of_codes_has_a_certificate_and_no_adversary(tmp_path: Path) -> None:
    graph = gv.load("synthetic")
    recipe = gv.Veil(secret="secret").recipe.but(rounds=60, hidden_channels=16, out_channels=8)
    veil = gv.Veil("links", "secret", tradeoff=0.9, recipe=recipe, seed=3, device="cpu")
    source = {"graph": "synthetic", "split": "paper"}
    run = protect(veil, graph, gv.Split.paper(graph, 3), tmp_path, source=source)
    certificate = run.certificates["secret"]
    assert certificate is not None
    (found,) = audit_run(tmp_path, attacks="quick").values()
    assert found.certificate == certificate
    assert found.gap is None
    assert "table of distinct rows" in [finding.attack for finding in found.findings]
    written = json.loads((tmp_path / "audit.json").read_text())
    recorded = RunFolder(tmp_path).record().to_dict()["certificates"]["secret"]
    assert recorded["sentence"] == certificate.sentence
    assert recorded.items() <= written["certificate"].items()


ATTACK = Task._attack


def note_attacks(monkeypatch: pytest.MonkeyPatch, stop_after: int | None = None) -> list[str]:
    """The attacks that run from now on, and Ctrl-C before one of them."""
    done = list[str]()

    def attack(task: Task, secret: Secret, seed: int) -> Answers:
        if len(done) == stop_after:
            raise KeyboardInterrupt
        done.append(task.title)
        return ATTACK(task, secret, seed)

    monkeypatch.setattr(Task, "_attack", attack)
    return done


def saved(folder: Path) -> tuple[dict[str, Any], bytes]:
    """The files of an audit; seconds differ from audit to audit, and so does the seal."""
    record = json.loads((folder / "audit.json").read_text())
    for attack in (*record["attacks"], *(one for attacks in record["controls"].values() for one in attacks)):
        attack["seconds"] = 0
    return record | {"sha256": None}, (folder / "audit.answers.safetensors").read_bytes()


def kept_seconds(file: Path) -> float:
    with safe_open(file, "np") as kept:
        return float(kept.metadata()["seconds"])


def test_an_interrupted_audit_continues_and_gives_the_same_result(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def audit(resume: bool, stop_after: int | None = None) -> list[str]:
        done = note_attacks(monkeypatch, stop_after)
        with suppress(KeyboardInterrupt):
            audit_run(run, attacks="quick", resume=resume)
        return done

    whole, expected, kept = audit(resume=False), saved(run), RunFolder(run).unfinished_audit
    assert not kept.exists(), "nothing is left of an audit that has finished"
    assert audit(resume=False, stop_after=3) == whole[:3]
    assert len(list(kept.iterdir())) == 3
    assert audit(resume=True, stop_after=1) == whole[3:4], "it is interrupted once more"
    seconds = sorted(map(kept_seconds, kept.iterdir()))
    assert audit(resume=True) == whole[4:]
    assert saved(run) == expected
    written = json.loads((run / "audit.json").read_text())["attacks"]
    of_kept = sorted(attack["seconds"] for attack in written if attack["attack"] in whole[:4])
    assert of_kept == [round(value, 3) for value in seconds], "how long the attacks took when they ran"
    assert not kept.exists()
    audit(resume=False, stop_after=3)
    assert audit(resume=False) == whole, "without --resume it starts over"


def test_attacks_that_ran_while_controls_trained_are_not_run_again(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    early, late = list[str](), list[str]()

    def guess(into: list[str]) -> Callable[[Task, NodeSecret, int], Answers]:
        def attack(task: Task, secret: NodeSecret, seed: int) -> Answers:
            into.append(task.title)
            return Answers(*(np.zeros((len(part.y), secret.num_classes)) for part in (secret.val, secret.test)))

        return attack

    def train(*given: Any) -> Controls:
        monkeypatch.setattr(Task, "_attack", guess(early))
        for attack in given[-1]():
            attack()
        monkeypatch.setattr(Task, "_attack", guess(late))
        return Controls({"another encoder": torch.ones(2000, 2)})

    monkeypatch.setattr(audits, "encoder_controls", train)
    audit_run(run)
    assert any("with features" in title for title in early)
    assert any(title.endswith("on raw features") for title in early)
    assert any(title.endswith("on public graph") for title in early)
    assert late
    assert all(title.endswith("on another encoder") for title in late)


def test_kept_answers_of_other_embeddings_are_not_used(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = note_attacks(monkeypatch, stop_after=3)
    with pytest.raises(KeyboardInterrupt):
        audit_run(run, attacks="quick")
    table = pq.read_table(run / "embeddings.parquet")
    changed = table.set_column(1, "z0", pa.array(-table["z0"].to_numpy()))
    pq.write_table(changed, run / "embeddings.parquet")
    again = note_attacks(monkeypatch)
    audit_run(run, attacks="quick", resume=True)
    assert again[:3] == first, "these attacks ran again"


def test_another_secret_has_no_joint_adversary(run: Path) -> None:
    ((file, found),) = audit_run(run, ["labels"], "quick").items()
    assert file == run / "audit.labels.json", "the run's own secret keeps its place"
    assert found.gap is None


def _cut(file: Path, rows: int) -> None:
    pq.write_table(pq.read_table(file).slice(0, rows), file)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda run: (run / "run.json").unlink(), "not a finished run"),
        (lambda run: (run / "run.json").write_text("{"), "not a finished run"),
        (lambda run: (run / "run.json").write_text("[]"), "not a finished run"),
        (lambda run: (run / "embeddings.parquet").write_bytes(b""), "cannot be read as the embeddings of a run"),
        (lambda run: _cut(run / "embeddings.parquet", 3), "3 rows, and their ids are not those of the 2,000 nodes"),
    ],
)
def test_a_run_that_cannot_be_audited_says_why(run: Path, spoil, sentence: str) -> None:  # type: ignore[no-untyped-def]
    spoil(run)
    with pytest.raises(GraphveilError, match=sentence):
        audit_run(run, attacks="quick")
    assert not (run / "audit.json").exists()


def test_a_file_of_anybody_s(tmp_path: Path) -> None:
    graph = gv.load("synthetic")
    z = np.random.default_rng(0).normal(size=(2000, 4))
    z[:, 1] += 3 * graph.secret.numpy()
    np.save(tmp_path / "z.npy", z)
    out = tmp_path / "deep" / "audit.json"
    split = gv.Split.paper(graph, 0)
    found = audit_embeddings_file(tmp_path / "z.npy", graph, split, "secret", 0, out, attacks="quick")
    assert found.strongest.headline.value > 0.9
    assert json.loads(out.read_text())["strongest"]["value"] == found.strongest.headline.value


def test_the_embeddings_are_never_overwritten(tmp_path: Path) -> None:
    graph = gv.load("synthetic")
    split = gv.Split.paper(graph, 0)
    for name, out in (("z.npy", "z.npy"), ("z.answers.safetensors", "z.json")):
        with pytest.raises(GraphveilError, match="would overwrite the embeddings"):
            audit_embeddings_file(tmp_path / name, graph, split, "secret", 0, tmp_path / out)


def test_a_wrong_question_is_refused_before_anything_is_trained(run: Path) -> None:
    for secrets, attacks, sentence in ((["gender"], None, "no 'gender'"), ((), "slow", "unknown panel")):
        with pytest.raises(GraphveilError, match=sentence):
            audit_run(run, secrets, attacks)
    assert not (run / CONTROLS).exists()


def test_every_secret_of_a_run_is_audited(tmp_path: Path) -> None:
    graph = gv.load("synthetic")
    targets = ("links", "secret", "labels")
    split = gv.Split.paper(graph, 1, targets=targets)
    recipe = gv.Recipe(rounds=6, hidden_channels=8, out_channels=4, evaluate_every=3, warmup=0)
    veil = gv.Veil("links", targets[1:], objective="club", recipe=recipe, seed=1, device="cpu")
    protect(veil, graph, split, tmp_path, source={"graph": "synthetic", "split": "paper"})
    found = audit_run(tmp_path, attacks="quick")
    assert [file.name for file in found] == ["audit.json", "audit.labels.json"]
    joint = {score.secret: score.value for score in RunFolder(tmp_path).record().scores.secrets}
    for file, one in found.items():
        written = json.loads(file.read_text())
        assert written["joint_adversary"]["value"] == joint[written["secret"]] == one.context.joint


@pytest.mark.parametrize("name", ["../../etc/passwd", "a b", "A", "\u00fc", "x" * 300, ".."])
def test_a_name_never_leaves_the_folder(name: str, tmp_path: Path) -> None:
    file = RunFolder(tmp_path).audit_file(name, ["labels"])
    assert file.parent == tmp_path
    assert re.fullmatch(r"audit\.[a-z0-9-]+\.json", file.name)
    assert len(file.name) < 100
    assert file != RunFolder(tmp_path).audit_file(f"{name} ", ["labels"]), "two names, two files"
