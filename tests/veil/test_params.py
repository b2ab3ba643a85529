"""A veil follows the conventions of scikit-learn."""

from functools import partial
from typing import Any

import pytest
from sklearn.base import clone
from torch_geometric.data import Data

import graphveil as gv
from graphveil.errors import GraphveilError


def test_parameters_are_the_arguments_of_the_constructor(quick: gv.Recipe) -> None:
    veil = gv.Veil("labels", ["links"], tradeoff=0.3, recipe=quick, seed=4)
    params = veil.get_params()
    assert list(params)[:5] == ["utility", "secret", "encoder", "tradeoff", "objective"]
    assert list(params)[5:] == ["adversary", "recipe", "seed", "device"]
    assert (params["secret"], params["tradeoff"]) == (["links"], 0.3)
    assert (params["recipe"], params["adversary"]) == (quick, None)
    veil.seed = 5
    assert veil.get_params()["seed"] == 5


def test_a_clone_has_the_same_settings_and_is_not_fitted(small: Data, small_split: gv.Split, quick: gv.Recipe) -> None:
    veil = gv.Veil(objective="club", recipe=quick, tradeoff=0.3, device="cpu").fit(small, small_split)
    copy = clone(veil)
    assert copy.config() == veil.config()
    assert not hasattr(copy, "modules_")
    assert copy.fit_transform(small, small_split).equal(veil.transform(small, small_split))


def test_a_default_recipe_follows_the_new_parameters() -> None:
    veil = gv.Veil(encoder="gcn").set_params(encoder="gat", tradeoff=0.2)
    assert veil.config() == gv.Veil(encoder="gat", tradeoff=0.2).config()
    with pytest.raises(GraphveilError, match="unknown parameter 'trade_off'"):
        veil.set_params(trade_off=0.2)


def test_the_repr_is_short(small: Data, small_split: gv.Split, quick: gv.Recipe) -> None:
    assert repr(gv.Veil()) == "Veil()"
    assert repr(gv.Veil("labels", "links", seed=3)) == "Veil(utility='labels', secret='links', seed=3)"
    veil = gv.Veil(objective="club", recipe=quick, device="cpu")
    assert "<caption>Veil, not fitted</caption>" in veil._repr_html_()
    veil.fit(small, small_split)
    assert "<caption>Veil, fitted</caption>" in veil._repr_html_()
    assert repr(small_split) == (
        "Split(nodes: 51 train, 24 val, 75 test, 0 spare; links: 425 train, 25 val, 50 test; messages along train"
        " links)"
    )


def test_a_recipe_that_was_set_later_is_a_parameter(quick: gv.Recipe) -> None:
    """A clone would otherwise train with the default recipe, without a word."""
    veil = gv.Veil("links", "labels")
    assert veil.get_params()["recipe"] is None
    veil.recipe = quick.but(rounds=3)
    veil.secrets = ("labels", "age")
    assert veil.get_params()["recipe"] is veil.recipe
    assert clone(veil).recipe.rounds == 3
    assert clone(veil).secrets == ("labels", "age")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"seed": None}, "seed is None: expected a whole number"),
        ({"seed": "x"}, "seed is 'x': expected a whole number"),
        ({"seed": 1.5}, "seed is 1.5: expected a whole number"),
        ({"tradeoff": "0.5"}, "tradeoff is '0.5': expected a number from 0"),
        ({"tradeoff": 5}, "tradeoff is 5: expected a number from 0"),
        ({"recipe": {"rounds": 3}}, r"recipe is a dict: expected a graphveil.Recipe, such as veil.recipe.but\("),
    ],
)
def test_parameters_of_the_wrong_type_are_refused_before_training(
    wrong: dict[str, Any], sentence: str, small: Data, small_split: gv.Split
) -> None:
    with pytest.raises(gv.GraphveilError, match=f"^{sentence}"):
        gv.Veil(**wrong).fit(small, small_split)


def test_arguments_that_are_no_graph_or_no_split_are_refused(small: Data, small_split: gv.Split) -> None:
    veil, no_graph = gv.Veil(), "^the graph is a Split: expected a torch_geometric Data"
    with pytest.raises(gv.GraphveilError, match=no_graph):
        veil.fit(small_split, small)
    with pytest.raises(gv.GraphveilError, match=no_graph):
        gv.certify([[0.0]], small_split, small)
    calls: list[Any] = [veil.fit, partial(gv.audit, [[0.0]]), partial(gv.certify, [[0.0]])]
    for call in calls:
        with pytest.raises(gv.GraphveilError, match=r"^the split is a NoneType: expected a graphveil.Split, such as"):
            call(small, None)
    with pytest.raises(gv.GraphveilError, match=r"^seed is 'x': expected a whole number"):
        gv.Split.proportional(small, "x")  # type: ignore[arg-type]
