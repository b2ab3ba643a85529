"""The search: its stages, its choice, and the chosen run."""

import json
import re
import shutil
import socket
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import graphveil as gv
from graphveil import pool
from graphveil.auditing import tasks
from graphveil.auditing.attacks import Answers
from graphveil.auditing.secret import Secret
from graphveil.experiments.candidates import Candidate, Limit, Point, Search, Task
from graphveil.experiments.tune import _next_step, _recommendation, find, judge, on_front, search_stages
from graphveil.formats.audit import AuditRecord
from graphveil.formats.limits import LimitsRecord
from graphveil.formats.store import parse
from graphveil.runs.audit import audit_run
from graphveil.runs.folder import LEDGER, RunFolder
from tests.cheap import InThisProcess
from tests.formats import made
from tests.release.made import drawn, write_tables

Rule = Callable[[Candidate], tuple[float, float]]


def stages(
    rule: Rule, secret: str = "labels", max_leak: str | None = "+2", min_utility: float | None = None
) -> tuple[list[Point], list[list[Candidate]]]:
    """Search with a rule from candidate to (utility, leak) in place of training."""
    measured: list[list[Candidate]] = []
    utility = "links" if secret == "labels" else "labels"
    chance = {secret: 0.5 if secret == "links" else 0.3}
    task = Task.of("cora", utility, (secret,), max_leak, min_utility, Search())
    limits = {secret: 1.0 if task.max_leak is None else task.max_leak.over(chance[secret])}

    def measure(candidates: Sequence[Candidate]) -> list[Point]:
        measured.append(list(candidates))
        return [Point(one, rule(one)[0], {secret: rule(one)[1]}) for one in candidates]

    return search_stages(task, limits, chance, measure), measured


def test_the_most_useful_candidate_within_the_limit_is_chosen() -> None:
    useful = {"gcn": 0.80, "gat": 0.83, "hgcn": 0.9}
    leaks = {"gcn": 0.31, "gat": 0.31, "hgcn": 0.35}

    def rule(one: Candidate) -> tuple[float, float]:
        return useful[one.encoder] + 0.1 * (one.tradeoff == 0.7) + 0.01 * one.seed, leaks[one.encoder]

    points, (first, second, third) = stages(rule)
    assert [one.encoder for one in first] == ["gcn", "gat", "hgcn"]
    assert all(one.gain == pytest.approx(0.5 * 0.02) for one in first)
    assert {one.encoder for one in second} == {"gat"}, "hgcn is above the limit"
    assert {one.tradeoff for one in third} == {0.7}
    assert points[0].candidate == Candidate("gat", 0.7, first[0].gain, 3)


def test_without_a_candidate_within_the_limit_the_nearest_is_chosen() -> None:
    points, _ = stages(lambda one: (one.tradeoff, 0.3 + 0.1 * one.tradeoff + 0.05))
    assert points[0].candidate.tradeoff == 0.3
    assert points[0].excess({"labels": 0.32}) > 0


def test_no_candidate_is_trained_twice() -> None:
    """With a limit at the chance level, every part of it is 0."""
    points, _ = stages(lambda _: (0.8, 0.4), max_leak="+0")
    tried = [point.candidate for point in points]
    assert len(set(tried)) == len(tried)


def test_an_encoder_that_is_named_twice_is_trained_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[Candidate] = []
    planned: list[int] = []

    def settled_at_once(_: int, __: Path, settle: Callable[[Candidate, Point], None], *___: object) -> Any:
        def submit(one: Candidate, *_: object, **__: object) -> None:
            measured.append(one)
            settle(one, Point(one, 0.8, {"labels": 0.3}))

        return SimpleNamespace(submit=submit, is_idle=True, stop=lambda **_: None)

    monkeypatch.setattr("graphveil.experiments.tune.workers", settled_at_once)
    twice = Task.of("karate", "links", ("labels",), "+2", None, Search(encoders=("gcn", "gat", "gcn")))
    find(twice, tmp_path / "out", lambda _, of, __: planned.append(of))
    assert [one.encoder for one in measured[:2]] == ["gcn", "gat"]
    assert planned[0] == len(measured)


def test_what_candidates_exceed_the_limit_by_is_taken_from_their_limit_in_training() -> None:
    """The limit is 0.32; gcn is 0.003 above it, and hgcn so far that a quarter is left."""
    above = {"gcn": 0.313, "gat": 0.309, "hgcn": 0.34}

    def rule(one: Candidate) -> tuple[float, float]:
        return 0.7 + one.gain + 0.1 * (one.encoder != "gat") + 0.01 * one.seed, above[one.encoder] + one.gain

    points, (first, _, lowered, again) = stages(rule)
    assert [one.gain for one in first] == [0.01] * 3
    assert [(one.encoder, one.gain) for one in lowered] == [("gcn", 0.007), ("hgcn", 0.0025)]
    assert {(one.encoder, one.gain) for one in again} == {("gcn", 0.007)}
    assert points[0].candidate == Candidate("gcn", 0.5, 0.007, 3)


def test_seeds_above_the_limit_are_trained_again_with_a_lower_one() -> None:
    def rule(one: Candidate) -> tuple[float, float]:
        return 0.8 + 0.01 * one.seed, 0.31 + one.gain + 0.002 * (one.seed == 3)

    points, (*_, last) = stages(rule)
    assert [(one.seed, one.gain) for one in last] == [(3, 0.008)]
    assert points[0].candidate == last[0]


def test_what_was_lowered_before_takes_no_place_of_another_candidate() -> None:
    """hgcn and gat are useful only far above the limit; gcn with the last seed is 0.002 above it."""

    def rule(one: Candidate) -> tuple[float, float]:
        if one.encoder != "gcn":
            return (0.95, 0.34) if one.gain == 0.01 else (0.5, 0.31)
        return 0.8 + 0.01 * one.seed, 0.305 + one.gain + 0.007 * (one.seed == 3)

    points, (_, _, lowered, _, last) = stages(rule)
    assert [(one.encoder, one.gain) for one in lowered] == [("gat", 0.0025), ("hgcn", 0.0025)]
    assert [(one.encoder, one.gain, one.seed) for one in last] == [("gcn", 0.008, 3)]
    assert points[0].candidate == last[0]


def test_classes_are_not_lowered_for_links_that_are_above_their_limit() -> None:
    limits, chance = {"labels": 0.32, "links": 0.52}, {"labels": 0.3, "links": 0.5}
    task = Task.of("cora", "gender", ("labels", "links"), "+2", None, Search())

    def measure(candidates: Sequence[Candidate]) -> list[Point]:
        return [Point(one, 0.8, {"labels": 0.305, "links": 0.6}) for one in candidates]

    points = search_stages(task, limits, chance, measure)
    assert {point.candidate.gain for point in points} == {0.01}


def test_nothing_may_leak_in_training_if_no_candidate_is_within_the_limit() -> None:
    points, measured = stages(lambda one: (0.8, 0.319 + one.gain))
    assert [one.gain for one in measured[2]] == [0.0025, 0.0025]
    assert [one.gain for one in measured[3]] == [0.0]
    assert {one.gain for one in measured[4]} == {points[0].candidate.gain} == {0.0}


def test_the_tradeoff_of_hidden_links_is_solved_for() -> None:
    """The AUC above chance is in proportion to lambda / (1 - lambda)."""

    def rule(one: Candidate) -> tuple[float, float]:
        return 0.8, 0.5 + 0.3 * one.tradeoff / (1 - one.tradeoff)

    points, (_, second, _) = stages(rule, "links", "0.7")
    assert second[0].tradeoff == pytest.approx(0.4, abs=1e-3)
    assert points[0].excess({"links": 0.7}) <= 1e-3


@pytest.mark.parametrize("limit", ["+0", "0.5005", "0.501"])
def test_limits_of_hidden_links_near_chance_give_different_tradeoffs_above_0(limit: str) -> None:
    _, measured = stages(lambda one: (0.8, 0.5 + 0.3 * one.tradeoff / (1 - one.tradeoff)), "links", limit)
    tradeoffs = [one.tradeoff for one in measured[1]]
    assert tradeoffs == sorted(set(tradeoffs), reverse=True)
    assert tradeoffs[-1] > 0


@pytest.mark.parametrize("order", [1, -1])
def test_equal_candidates_are_ranked_by_name_and_not_by_who_is_first(order: int) -> None:
    task, limits, chance = (
        Task.of("cora", "links", ("labels",), "+2", None, Search()),
        {"labels": 0.32},
        {"labels": 0.3},
    )

    def measure(candidates: Sequence[Candidate]) -> list[Point]:
        return [Point(one, 0.8, {"labels": 0.3}) for one in candidates][::order]

    assert str(search_stages(task, limits, chance, measure)[0].candidate) == "gat-0.3-0.01-0"


def test_a_smallest_utility_gives_the_least_leak() -> None:
    points, _ = stages(lambda one: (0.75 + 2 * one.gain, 0.3 + one.gain), max_leak=None, min_utility=0.78)
    assert points[0].candidate.gain == 0.02
    points, _ = stages(lambda one: (0.75 + 2 * one.gain, 0.3 + one.gain), max_leak=None, min_utility=0.99)
    assert points[0].candidate.gain == 0.1, "none reaches it, so the nearest"


def test_the_front() -> None:
    one = Candidate("gcn", 0.5, 0.0, 0)
    low, high, bad = Point(one, 0.7, {"s": 0.3}), Point(one, 0.9, {"s": 0.5}), Point(one, 0.6, {"s": 0.4})
    assert [on_front(point, [low, high, bad], {"s": 0.2}) for point in (low, high, bad)] == [True, True, False]


def test_without_a_limit_secrets_are_compared_by_their_gain_over_chance() -> None:
    """The accuracy of town, whose chance level is 90 %, is always the highest; the leak of gender differs."""
    chance, limits = {"town": 0.9, "gender": 0.5}, {"town": 1.0, "gender": 1.0}
    task = Task.of("people", "links", ("town", "gender"), None, 0.7, Search(encoders=("gcn",)))

    def measure(candidates: Sequence[Candidate]) -> list[Point]:
        leaks = {True: {"town": 0.91, "gender": 0.5}, False: {"town": 0.9, "gender": 0.89}}
        return [Point(one, 0.8, leaks[one.gain == 0.02]) for one in candidates]

    points = search_stages(task, limits, chance, measure)
    assert points[0].candidate.gain == 0.02
    assert on_front(points[0], points, chance)
    assert not on_front(points[-1], points, chance)
    said = _recommendation(task, 0.8, points[-1].leaks, limits, chance, met=True)
    assert said.endswith("at most 89.0 % for gender: the least of all candidates with this utility.")


FEW = [{"name": "too few examples", "sentence": "there are 12"}]


def next_step(limits: LimitsRecord, **fields: object) -> str:
    """The last sentence for a chosen run with this audit of its labels."""
    return _next_step(Path("t/chosen"), [parse(made.audit() | fields, AuditRecord)], limits)


def test_without_a_limit_the_recommendation_says_what_export_refuses() -> None:
    no_limit = LimitsRecord({}, 0.8)
    released = "To release it: graphveil export t/chosen --out release"
    assert next_step(no_limit, verdict="traces", flags=[]) == released
    assert next_step(no_limit, verdict="flagged", flags=FEW) == (
        "But its audit is flagged (too few examples), so export refuses it without --max-leak."
    )
    assert next_step(no_limit, verdict="leaks", flags=[]) == (
        "But the verdict for labels is leaks, so export refuses it without --max-leak."
    )
    lost = [*FEW, {"name": "utility at chance", "sentence": "nothing is kept"}]
    assert next_step(LimitsRecord({"labels": 0.4}, None), verdict="flagged", flags=lost) == (
        "But its audit is flagged (utility at chance), so export refuses it."
    )


def test_the_recommendation_names_the_command_of_the_export() -> None:
    task = Task.of("cora", "links", ("labels",), "0.4", None, Search())
    limits = LimitsRecord({"labels": 0.4}, None)
    assert next_step(limits, verdict="leaks", flags=FEW) == "To release it: graphveil export t/chosen --out release"
    said = _recommendation(task, 0.8, {"labels": 0.31}, {"labels": 0.4}, {"labels": 0.3}, met=True)
    assert said.endswith("at most 31.0 % for labels; the limit is 40.0 %.")
    said = _recommendation(task, 0.8, {"labels": 0.45}, {"labels": 0.4}, {"labels": 0.3}, met=False)
    assert said.startswith("The limit is not met: attacks on the embeddings alone reach at most 45.0 % for labels, 5.0")


@pytest.mark.usefixtures("one_process")
def test_the_chosen_run_is_an_ordinary_run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphveil.experiments.tune.TRADEOFFS", (0.7,))
    monkeypatch.setattr("graphveil.experiments.tune.SEEDS", 2)
    quickly = partial(audit_run, attacks="quick", controls=False)
    monkeypatch.setattr("graphveil.experiments.tune.audit_run", quickly)
    search = Search(encoders=("gcn",), rounds=12)
    result = gv.tune("karate", tmp_path / "out", max_leak="+40", search=search)
    assert result.folder == tmp_path / "out" / "chosen"
    assert len(result.points) == 3
    record = RunFolder(result.folder).record()
    assert record.split_seed == 0
    assert set(result.audits) == {"labels"}
    saved = json.loads((tmp_path / "out" / "tune.json").read_text())
    assert saved["schema"] == "graphveil/tune/2"
    assert saved["chosen"] == str(result.points[0].candidate)
    assert saved["met"] == result.met
    again = gv.tune("karate", tmp_path / "out", max_leak="+40", search=search)
    assert [point.candidate for point in again.points] == [point.candidate for point in result.points]


@pytest.mark.usefixtures("one_process")
def test_the_secret_of_an_own_graph_is_read_as_a_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in `gv.protect` and `gv.sweep`, nobody has to name its column twice."""
    monkeypatch.setattr("graphveil.experiments.tune.TRADEOFFS", ())
    monkeypatch.setattr("graphveil.experiments.tune.SEEDS", 1)
    monkeypatch.setattr("graphveil.experiments.tune.audit_run", partial(audit_run, attacks="quick", controls=False))
    tables = write_tables(tmp_path / "tables", *drawn(0))
    search = Search(encoders=("gcn",), rounds=2)
    result = gv.tune(tables, tmp_path / "out", secret="tribe", max_leak="+40", search=search)
    assert set(result.limits) == {"tribe"}
    assert (RunFolder(result.folder).record().reading or {})["attributes"] == ["tribe"]


KARATE = Task.of("karate", "links", ("labels",), "+40", None, Search(encoders=("gcn",), rounds=2))
ATTACK = tasks.Task._attack


@pytest.fixture(scope="module")
def candidates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Point]]:
    """The folder and the points of a search with two candidates."""
    out = tmp_path_factory.mktemp("tune") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graphveil.experiments.tune.TRADEOFFS", (0.7,))
        patch.setattr("graphveil.experiments.tune.SEEDS", 1)
        patch.setattr(pool, "ProcessPoolExecutor", lambda **_: InThisProcess())
        return out, find(KARATE, out)


@pytest.fixture
def searched(
    candidates: tuple[Path, list[Point]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, list[Point]]:
    quickly = partial(audit_run, attacks="quick", controls=False)
    monkeypatch.setattr("graphveil.experiments.tune.audit_run", quickly)
    shutil.copytree(candidates[0], tmp_path / "out")
    return tmp_path / "out", candidates[1]


def note_attacks(monkeypatch: pytest.MonkeyPatch, stop_after: int | None = None) -> list[str]:
    """The attacks that run from now on, and Ctrl-C before one of them."""
    done = list[str]()

    def attack(task: tasks.Task, secret: Secret, seed: int) -> Answers:
        if len(done) == stop_after:
            raise KeyboardInterrupt
        done.append(task.title)
        return ATTACK(task, secret, seed)

    monkeypatch.setattr(tasks.Task, "_attack", attack)
    return done


def test_an_interrupted_audit_of_the_chosen_run_continues(
    searched: tuple[Path, list[Point]], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, points = searched
    first = note_attacks(monkeypatch, stop_after=2)
    with pytest.raises(KeyboardInterrupt):
        judge(KARATE, out, points)
    second = note_attacks(monkeypatch)
    judge(KARATE, out, points)
    whole = note_attacks(monkeypatch)
    judge(KARATE, out, points)
    assert [*first, *second] == whole, "no attack ran twice"


def test_a_chosen_run_with_releases_is_kept_or_another_choice_is_refused(searched: tuple[Path, list[Point]]) -> None:
    out, points = searched
    chosen = judge(KARATE, out, points).folder
    others = [chosen / LEDGER, chosen / "audit.club.json", chosen / "releases" / "1.parquet"]
    (chosen / "releases").mkdir()
    for file in others:
        file.write_text(file.name)
    judge(KARATE, out, points)
    assert [file.read_text() for file in others] == [file.name for file in others]
    with pytest.raises(
        gv.GraphveilError, match=f"has released codes .* chooses another candidate, {points[1].candidate}"
    ):
        judge(KARATE, out, points[::-1])
    assert [file.read_text() for file in others] == [file.name for file in others]
    assert RunFolder(chosen).record().config.tradeoff == points[0].candidate.tradeoff
    chosen.rename(out.parent / "elsewhere")
    judge(KARATE, out, points[::-1])
    assert RunFolder(chosen).record().config.tradeoff == points[1].candidate.tradeoff
    judge(KARATE, out, points)
    assert RunFolder(chosen).record().config.tradeoff == points[0].candidate.tradeoff, "without releases it is replaced"


def test_a_chosen_run_that_was_copied_in_part_is_copied_again(
    searched: tuple[Path, list[Point]], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, points = searched

    def fails(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("graphveil.experiments.tune.shutil.copy2", fails)
        with pytest.raises(KeyboardInterrupt):
            judge(KARATE, out, points)
    (out / "chosen" / "embeddings.parquet").unlink(missing_ok=True)
    assert judge(KARATE, out, points).folder == out / "chosen"


def test_the_limits_of_the_last_search_are_kept_with_the_chosen_run(searched: tuple[Path, list[Point]]) -> None:
    out, points = searched
    chosen = RunFolder(judge(KARATE, out, points).folder)
    chance = json.loads((chosen.path / "audit.json").read_text())["chance"]
    assert chosen.limits() == LimitsRecord({"labels": chance + 0.4}, None)
    stricter, none = replace(KARATE, max_leak=Limit(0.3)), replace(KARATE, max_leak=None, min_utility=1.0)
    assert not judge(stricter, out, points).met
    assert chosen.limits() == LimitsRecord({"labels": 0.3}, None)
    assert not judge(none, out, points).met
    assert chosen.limits() == LimitsRecord({}, 1.0)


def test_a_chosen_run_is_never_without_its_limits(
    searched: tuple[Path, list[Point]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupted audit leaves a run, which could be audited by hand and exported."""
    out, points = searched
    note_attacks(monkeypatch, stop_after=0)
    with pytest.raises(KeyboardInterrupt):
        judge(KARATE, out, points)
    assert RunFolder(out / "chosen").limits() is not None


@pytest.mark.usefixtures("one_process")
def test_a_worker_with_another_graph_under_the_same_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as another file on a machine of a Ray cluster."""
    other = gv.load("karate")
    other.y = 1 - other.y.clamp(max=1)
    graphs = chain([gv.load("karate")], repeat(other))
    monkeypatch.setattr("graphveil.experiments.candidates.open_graph", lambda *_: next(graphs))
    said = f"^karate on the machine {re.escape(socket.gethostname())} is another graph than when the search was"
    with pytest.raises(gv.GraphveilError, match=said):
        find(KARATE, tmp_path / "out")
    assert not (tmp_path / "out" / "candidates").exists()
