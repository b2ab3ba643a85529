"""The controls of an audit."""

import pytest
import torch
from torch_geometric.data import Data

import graphveil as gv
from graphveil.auditing.controls import raw_features
from graphveil.errors import GraphveilError
from tests.auditing.made import noise


def test_controls_run_and_have_no_reserved_names(town: Data, town_split: gv.Split) -> None:
    audit = gv.audit(noise(1), town, town_split, "coin", attacks="quick", controls={"other": noise(2)})
    assert set(audit.controls) == {"other"}
    with pytest.raises(GraphveilError, match="'raw features', which is reserved"):
        gv.audit(noise(1), town, town_split, "coin", attacks="quick", controls={"raw features": noise(2)})


def test_raw_features_are_reduced_only_when_there_are_many(town: Data) -> None:
    assert raw_features(town, 0).shape == (1500, 60)
    wide = Data(x=torch.randn(200, 90))
    assert raw_features(wide, 0).shape == (200, 64)
    sparse = Data(x=torch.randn(200, 90).relu().neg().to_sparse_csr())
    assert raw_features(sparse, 0).shape == (200, 64)
