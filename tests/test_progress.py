"""The live line: values of the last evaluated round, failures, and nothing without a terminal."""

import io

import pytest
from rich.console import Console
from torch_geometric.data import Data

import graphveil as gv
from graphveil.progress import describe, show_attacks, show_cells, show_rounds
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


def test_without_a_terminal_nothing_is_shown() -> None:
    console = Console(file=io.StringIO())
    with show_rounds(console, "a") as on_round, show_attacks(console) as on_attack, show_cells(console, "b") as on_done:
        assert (on_round, on_attack, on_done) == (None, None, None)


def test_a_terminal_shows_rounds_attacks_and_cells(training: Training) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100)
    training.records[0].history.append(Round(1, 0.5, (SecretMetrics(0.25, 0.4),), utility=0.75))
    with show_rounds(console, "protect") as on_round:
        assert on_round is not None
        on_round(training)
    with show_attacks(console) as on_attack:
        assert on_attack is not None
        on_attack("k nearest neighbours " + "x" * 200, 2, 9)
    with show_cells(console, "table2") as on_done:
        assert on_done is not None
        on_done(1, 4, None)
        on_done(2, 4, "diverged")
    shown = screen.getvalue()
    assert "protect utility 75.0% attack 40.0% loss 0.500/0.250" in shown
    assert "k nearest neighbours" in shown
    assert "x" * 60 not in shown, "a long name is cut"
    assert "2/9" in shown
    assert "table2, 1 failed" in shown
    assert "2/4" in shown
