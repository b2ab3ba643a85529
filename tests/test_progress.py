"""Progress: a live line on a terminal, a line in ten seconds without one, and an estimate of the time for cells."""

import io

import pytest
from rich.console import Console
from torch_geometric.data import Data

import graphveil as gv
from graphveil.progress import Estimate, describe, show_attacks, show_cells, show_rounds
from graphveil.training.history import Round, SecretMetrics
from graphveil.training.loop import Training
from graphveil.veil import Fitting


@pytest.fixture
def training(small: Data, small_split: gv.Split, quick: gv.Recipe) -> Training:
    return Fitting([gv.Veil(objective="club", recipe=quick, device="cpu")], small, [small_split]).training


def test_the_last_evaluated_round_is_described(training: Training) -> None:
    assert describe(training, wide=True) == ""
    evaluated = Round(3, 0.5, (SecretMetrics(0.25, 0.4), SecretMetrics(1.0, 0.6)), utility=0.75)
    training.records[0].history[:] = [evaluated, Round(4, 9.0, (SecretMetrics(9.0), SecretMetrics(9.0)))]
    assert describe(training, wide=False) == "utility 75.0% attack 40.0%/60.0%"
    assert describe(training, wide=True) == "utility 75.0% attack 40.0%/60.0% loss 0.500/0.250/1.000"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which passes only if a test says so."""
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_without_a_terminal_there_is_a_line_at_the_start_and_one_in_ten_seconds(
    training: Training, clock: list[float]
) -> None:
    screen = io.StringIO()
    console = Console(file=screen, width=20)
    with show_rounds(console, "karate") as on_round, show_attacks(console) as on_attack:
        for step in range(5):  # 0, 4, 8, 12 and 16 s
            training.round = step + 1
            on_round(training)
            on_attack(f"[attack] {step}", step, 9)
            clock[0] += 4
    assert screen.getvalue().splitlines() == [
        "karate: round 1 of 12",
        "audit: 0 of 9 attacks done, now [attack] 0",
        "karate: round 4 of 12",
        "audit: 3 of 9 attacks done, now [attack] 3",
    ]


@pytest.mark.parametrize("terminal", [False, True])
def test_a_sweep_says_how_many_cells_there_are_and_how_long_they_will_take(clock: list[float], terminal: bool) -> None:
    screen = io.StringIO()
    with show_cells(Console(file=screen, force_terminal=terminal, width=100), "sweep", "cell", jobs=2) as on_done:
        on_done(1, 10, None)
        clock[0] += 60
        on_done(2, 10, None)  # the remaining 8 cells take four times as long on two processes
        clock[0] += 15
        on_done(3, 10, "diverged")
        clock[0] += 1
        on_done(4, 10, None)
    said = screen.getvalue()
    assert "sweep: 10 cells, 1 of them finished before\n" in said
    assert "sweep: the remaining 8 cells will take about 4 min\n" in said
    assert ("sweep, 1 failed: 3 of 10 cells done" in said) is not terminal
    assert said.count("will take") == 1
    assert "4 of 10" not in said, "ten seconds have not passed"


@pytest.mark.parametrize(("seconds", "words"), [(0.2, "1 s"), (99, "99 s"), (100, "2 min"), (11_000, "3 h 3 min")])
def test_an_estimate_is_rounded(seconds: float, words: str, clock: list[float]) -> None:
    estimate = Estimate("sweep", "cell", 1)
    assert estimate.after(0, 2) == "sweep: 2 cells"
    clock[0] += seconds
    assert estimate.after(1, 2) == f"sweep: the remaining 1 cell will take about {words}"


def test_a_terminal_shows_rounds_attacks_and_cells(training: Training) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100)
    training.records[0].history.append(Round(1, 0.5, (SecretMetrics(0.25, 0.4),), utility=0.75))
    with show_rounds(console, "protect") as on_round:
        on_round(training)
    with show_attacks(console) as on_attack:
        on_attack("k nearest neighbours " + "x" * 200, 2, 9)
    with show_cells(console, "table2", "cell", 1) as on_done:
        on_done(1, 4, None)
        on_done(2, 4, "diverged")
    shown = screen.getvalue()
    assert "protect utility 75.0% attack 40.0% loss 0.500/0.250" in shown
    assert "k nearest neighbours" in shown
    assert "x" * 60 not in shown, "a long name is cut"
    assert "2/9" in shown
    assert "table2, 1 failed" in shown
    assert "2/4" in shown
