"""Encoders of one's own: their width is checked, and no file makes the program import one."""

import json
from pathlib import Path

import pytest
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GraphSAGE

import graphveil as gv
from tests.veil.made import veil


class Doubler(nn.Module):
    """An encoder of somebody's own."""

    def __init__(self, in_channels: int, out_channels: int, **_: object) -> None:
        super().__init__()
        self.linear = nn.Linear(in_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        del edge_index
        out: Tensor = 2 * self.linear(x)
        return out


@pytest.mark.parametrize("spec", [Doubler, "tests.veil.test_modules:Doubler", Doubler(40, 4), GraphSAGE(40, 8, 2, 4)])
def test_encoders_of_ones_own(
    small: Data, small_split: gv.Split, quick: gv.Recipe, tmp_path: Path, spec: str | type[nn.Module] | nn.Module
) -> None:
    trained = veil(quick, encoder=spec).fit(small, small_split)
    trained.save(tmp_path)
    with pytest.raises(gv.GraphveilError, match="the run's encoder is not graphveil's own"):
        gv.Veil.load(tmp_path)
    assert gv.Veil.load(tmp_path, encoder=spec).transform(small).equal(trained.transform(small))


def test_an_encoder_of_another_width_is_one_sentence(small: Data, small_split: gv.Split) -> None:
    with pytest.raises(gv.GraphveilError, match=r"shape \(150, 4\) where \(150, 32\) was expected: set out_channels"):
        gv.Veil(encoder=GraphSAGE(40, 8, 2, 4), device="cpu").fit(small, small_split)


def test_a_file_never_makes_the_program_import_code(
    small: Data, small_split: gv.Split, quick: gv.Recipe, tmp_path: Path
) -> None:
    veil(quick).fit(small, small_split).save(tmp_path)
    record = json.loads((tmp_path / "run.json").read_text())
    record["config"]["encoder"] = "antigravity:Class"
    (tmp_path / "run.json").write_text(json.dumps(record))
    with pytest.raises(gv.GraphveilError, match="pass it as encoder="):
        gv.Veil.load(tmp_path)
