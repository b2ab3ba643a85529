"""One candidate of a search: its limit, its folder, and that a finished one is not trained again."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import graphveil as gv
from graphveil.auditing.metrics import Integers
from graphveil.data import UNKNOWN
from graphveil.errors import GraphveilError
from graphveil.experiments import candidates
from graphveil.experiments.candidates import Candidate, Limit, Search, Task, limits_of, run_candidate

QUICK = Search(encoders=("gcn",), rounds=12)


def task(max_leak: str | None = "+5", min_utility: float | None = None, search: Search = QUICK) -> Task:
    return Task.of("karate", "links", ("labels",), max_leak, min_utility, search)


@pytest.mark.parametrize(
    ("word", "limit"), [("+2", Limit(0.02, True)), ("0.6", Limit(0.6)), ("+0", Limit(0.0, True)), ("1", Limit(1.0))]
)
def test_a_limit_is_points_above_chance_or_a_value(word: str, limit: Limit) -> None:
    assert Limit.parsed(word) == limit
    assert limit.over(0.3) == pytest.approx(0.3 + limit.value if limit.above_chance else limit.value)


def test_candidates_have_folders_of_their_own() -> None:
    gains, tradeoffs = (0.0, 0.00001, 0.01, 0.010001, 0.1), (0.001, 0.0011, 0.5)
    found = {str(Candidate("gcn", tradeoff, gain, 0)) for gain in gains for tradeoff in tradeoffs}
    assert len(found) == len(gains) * len(tradeoffs)
    assert str(Candidate("gcn", 0.5, 0.01, 7)) == "gcn-0.5-0.01-7"


@pytest.mark.parametrize("word", ["2", "-1", "two", "", "+200", "nan"])
def test_what_is_no_limit_is_one_sentence(word: str) -> None:
    with pytest.raises(GraphveilError, match=r"is not a limit: expected points above the chance level, such as \+2"):
        Limit.parsed(word)


def test_settings_that_do_not_fit_are_refused() -> None:
    with pytest.raises(GraphveilError, match=r"^max_leak and min_utility \(--max-leak and .* were both given"):
        task("+2", 0.5)
    with pytest.raises(GraphveilError, match="the smallest utility is 2"):
        task(None, 2.0)
    with pytest.raises(GraphveilError, match="unknown encoder 'gnc'"):
        task(search=replace(QUICK, encoders=("gnc",)))
    assert task(None).max_leak == Limit(0.02, True), "the default"


def test_the_limit_of_each_secret_is_above_its_own_chance_level() -> None:
    graph = gv.load("karate")
    limits, chance = limits_of(Task.of("karate", "labels", ("links",), "+5", None, QUICK), graph)
    assert (limits, chance) == ({"links": 0.55}, {"links": 0.5})
    limits, chance = limits_of(task(), graph)
    assert limits["labels"] == pytest.approx(chance["labels"] + 0.05)


def test_a_forecast_has_the_nodes_and_the_chance_level_of_the_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside the test part, the largest class has another share, and the limit is not above that one."""
    given: list[tuple[int, int, float]] = []

    def record(codes: Integers, y: Integers, chance: float, _: int) -> float:
        given.append((len(codes), int((y != UNKNOWN).sum()), chance))
        return 0.5

    monkeypatch.setattr(candidates, "forecast", record)
    graph = gv.load("karate")
    graph.y[[3, 5]] = UNKNOWN
    monkeypatch.setattr(candidates, "open_graph", lambda *_: graph)
    run_candidate(task(), Candidate("gcn", 0.5, 0.01, 7), tmp_path / "out" / "candidates")
    _, split = candidates.opened(task())
    known = graph.y[graph.y != UNKNOWN]
    (nodes, seen, chance) = given[0]
    assert (nodes, seen) == (32, 32 - len(split.test_nodes))
    assert chance == pytest.approx(int(known.bincount().max()) / 32)


def test_a_candidate_is_a_run_folder_that_is_read_again(tmp_path: Path) -> None:
    candidate = Candidate("gcn", 0.5, 0.01, 7)
    first = run_candidate(task(), candidate, tmp_path / "out" / "candidates")
    record = tmp_path / "out" / "candidates" / str(candidate) / "run.json"
    before = record.stat().st_mtime_ns
    assert run_candidate(task(), candidate, tmp_path / "out" / "candidates") == first
    assert record.stat().st_mtime_ns == before


def test_too_many_codes_for_a_certificate_are_not_at_the_chance_level_of_links() -> None:
    """Codes are predicted classes, of which a small graph may have many."""
    hide_links = Task.of("karate", "labels", ("links",), "+5", None, QUICK)
    graph, split = candidates.opened(hide_links)
    veil = SimpleNamespace(utility="labels", secrets=("links",), score=lambda *_: SimpleNamespace(utility=0.8))

    def leak(codes: Integers) -> float:
        z = np.eye(34, dtype=np.float32)[codes]
        return candidates._measured(veil, Candidate("gcn", 0.5, 0.01, 7), graph, split, z).leaks["links"]  # type: ignore[arg-type]

    assert leak(np.arange(34)) == 1, "each node has a code of its own"
    assert 0.5 < leak(np.arange(34) % 12) < 1
    assert leak(np.zeros(34, dtype=np.int64)) == 0.5


def test_the_number_of_threads_is_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one job, candidates are trained in the process of the caller."""
    during = list[int]()

    def fails(*_: object, **__: object) -> None:
        during.append(torch.get_num_threads())
        raise GraphveilError("no")

    monkeypatch.setattr(candidates, "protect", fails)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with pytest.raises(GraphveilError, match="no"):
            run_candidate(task(), Candidate("gcn", 0.5, 0.01, 7), tmp_path, threads=1)
        assert (during, torch.get_num_threads()) == ([1], 3)
    finally:
        torch.set_num_threads(before)


def test_a_finished_candidate_of_another_search_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    candidate = Candidate("gcn", 0.5, 0.01, 7)
    run_candidate(task(), candidate, tmp_path / "out")

    def refused(other: Task) -> str:
        with pytest.raises(GraphveilError, match=f"^the candidate {candidate} in the output folder is of") as error:
            run_candidate(other, candidate, tmp_path / "out")
        return str(error.value).partition("(")[2].partition(")")[0]

    assert refused(task(search=replace(QUICK, rounds=40))) == "other settings"
    assert refused(task(search=replace(QUICK, seed=1))) == "other split"
    assert refused(Task.of("karate", "labels", ("links",), "+5", None, QUICK)) == "other split, other settings"
    monkeypatch.setattr(candidates, "versions", lambda: {"graphveil": "0"})
    assert refused(task()) == "other versions of graphveil or libraries"
