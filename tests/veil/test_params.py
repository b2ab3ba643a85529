"""A veil follows the conventions of scikit-learn."""

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
