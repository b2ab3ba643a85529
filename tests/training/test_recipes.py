"""Recipes: checked, and read from text."""

from typing import Any

import numpy as np
import pytest

import graphveil as gv


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"rounds": 0}, "rounds=0: expected a whole number"),
        ({"lr_encoder": 0.0}, "lr_encoder=0.0: expected a number above 0"),
        ({"dropout": 1.0}, "dropout=1.0: expected a number of at least 0 and below 1"),
        ({"roundz": 3}, "a recipe has no 'roundz'"),
        ({"lr_encoder": float("nan")}, "lr_encoder=nan"),
        ({"weight_decay": float("nan")}, "weight_decay=nan"),
        ({"rounds": float("inf")}, "rounds=inf"),
    ],
)
def test_recipes_are_checked(changes: dict[str, float], says: str) -> None:
    with pytest.raises(gv.GraphveilError, match=says):
        gv.Recipe().but(**changes)


def test_recipes_are_read_from_text() -> None:
    recipe = gv.Recipe().parsed(["rounds=7", "dropout=0.25", "deterministic=true", "head=pair-mlp"])
    assert (recipe.rounds, recipe.dropout, recipe.deterministic, recipe.head) == (7, 0.25, True, "pair-mlp")
    for text, says in [
        ("rounds", "expected name=value"),
        ("rounds=many", "rounds is a whole number"),
        ("round=7", "unknown setting 'round'.*Did you mean 'rounds'"),
        ("encoder_options=x", "unknown setting"),
        ("deterministic=perhaps", "'deterministic=perhaps' is invalid"),
        ("scaling=maximum", "unknown scaling"),
    ]:
        with pytest.raises(gv.GraphveilError, match=says):
            gv.Recipe().parsed([text])
    with pytest.raises(gv.GraphveilError, match="expected 'few' or 'all'"):
        gv.Adversary(knows="most")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"rounds": "x"}, "rounds='x': expected a whole number."),
        ({"rounds": True}, "rounds=True: expected a whole number."),
        ({"rounds": 2.5}, "rounds=2.5: expected a whole number."),
        ({"lr_encoder": "fast"}, "lr_encoder='fast': expected a number."),
        ({"dropout": None}, "dropout=None: expected a number."),
        ({"deterministic": 1}, "deterministic=1: expected true or false."),
        ({"scaling": 3}, "scaling=3: expected a name."),
        ({"batch_size": "many"}, "batch_size='many': expected a whole number."),
    ],
)
def test_values_of_the_wrong_type_are_refused(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(gv.GraphveilError) as error:
        gv.Recipe().but(**change)
    assert str(error.value) == sentence


def test_numbers_of_numpy_are_numbers() -> None:
    recipe = gv.Recipe().but(rounds=np.int64(3), dropout=np.float32(0.5), batch_size=None)
    assert (recipe.rounds, recipe.dropout, recipe.batch_size) == (3, 0.5, None)
