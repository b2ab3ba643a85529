"""`certify` on any embedding: the right nodes and links are counted, and continuous embeddings raise an error."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier
from torch_geometric.data import Data

import graphveil as gv
from graphveil.auditing.certify import degree_terciles
from graphveil.codes import ClassCertificate, LinkCertificate, class_certificate, distinct_codes, link_certificate
from graphveil.codes.tables import Floats, Integers
from graphveil.data.graph import undirected_pairs


def codes_of(town: Data, seed: int = 0) -> Integers:
    """12 codes that depend on the labels and on chance."""
    random = np.random.default_rng(seed)
    y = town.y.numpy()
    return np.asarray(np.where(random.random(len(y)) < 0.4, 3 * y, random.integers(0, 12, len(y))))


def rows_of(codes: Integers) -> Floats:
    """A random row for each code."""
    return np.random.default_rng(1).normal(size=(codes.max() + 1, 3))[codes]


def test_a_class_secret(town: Data, town_split: gv.Split) -> None:
    codes = codes_of(town)
    certificate = gv.certify(rows_of(codes), town, town_split, "labels")
    assert isinstance(certificate, ClassCertificate)
    terciles = degree_terciles(undirected_pairs(town.edge_index).numpy(), 1500)
    in_order, _ = distinct_codes(codes[:, None])
    expected = class_certificate(
        in_order, town.y.numpy(), town_split.test_nodes.numpy(), {"degree tercile": terciles}, secret="labels"
    )
    assert certificate == expected
    assert certificate.calibration is not None
    assert certificate.calibration.nodes == len(town_split.test_nodes)
    assert [stratum.value for stratum in certificate.strata] == [1, 2, 3]
    assert sum(stratum.nodes for stratum in certificate.strata) == 1500


def test_an_attacker_who_knows_all_classes_has_the_accuracy_of_the_certificate(
    town: Data, town_split: gv.Split
) -> None:
    z, y = rows_of(codes_of(town)), town.y.numpy()
    certificate = gv.certify(z, town, town_split)
    assert isinstance(certificate, ClassCertificate)
    assert DecisionTreeClassifier(random_state=0).fit(z, y).score(z, y) == pytest.approx(
        certificate.accuracy, abs=1e-12
    )


def test_links(town: Data, town_split: gv.Split) -> None:
    codes = codes_of(town)
    certificate = gv.certify(rows_of(codes), town, town_split, "links")
    assert isinstance(certificate, LinkCertificate)
    links = undirected_pairs(town.edge_index).numpy()
    u, v = np.triu_indices(1500, 1)
    linked = np.isin(u * 1500 + v, links[0] * 1500 + links[1])
    cell = np.minimum(codes[u], codes[v]) * 12 + np.maximum(codes[u], codes[v])
    score = np.bincount(cell, weights=linked, minlength=144) / np.maximum(np.bincount(cell, minlength=144), 1)
    assert certificate.auc == pytest.approx(roc_auc_score(linked, score[cell]), abs=1e-9)
    assert certificate.calibration is not None
    test = town_split.test_links.numpy()
    held_out = np.flatnonzero(np.isin(links[0] * 1500 + links[1], test[0] * 1500 + test[1]))
    assert certificate.calibration.links == test.shape[1] == len(held_out)
    expected = link_certificate(codes, links, calibration=held_out).calibration
    assert expected is not None
    assert certificate.calibration.auc == pytest.approx(expected.auc, abs=1e-12)
    assert certificate.class_matched_auc is not None
    assert certificate.class_matched_auc < certificate.auc  # the codes depend on the labels, and so do the links


def test_links_of_a_graph_without_labels(town: Data, town_split: gv.Split) -> None:
    bare = Data(x=town.x, edge_index=town.edge_index)
    certificate = gv.certify(rows_of(codes_of(town)), bare, town_split, "links")
    assert isinstance(certificate, LinkCertificate)
    assert certificate.class_matched_auc is None


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int64])
def test_tensors_of_every_type(town: Data, town_split: gv.Split, kind: torch.dtype) -> None:
    codes = torch.from_numpy(codes_of(town))
    certificate = gv.certify(codes[:, None].to(kind).requires_grad_(kind.is_floating_point), town, town_split)
    assert certificate.codes == 12


def test_rows_that_differ_below_float32_precision_are_two_codes(town: Data, town_split: gv.Split) -> None:
    """The coin is in the last digits of z."""
    z = 1 + 1e-12 * town.coin.double()[:, None].numpy()
    certificate = gv.certify(np.concatenate([z, town.y.double()[:, None].numpy()], axis=1), town, town_split, "coin")
    assert isinstance(certificate, ClassCertificate)
    assert certificate.codes == 8
    assert certificate.accuracy == 1.0


def test_unknown_values_are_left_out_and_hundreds_of_classes_work(town: Data, town_split: gv.Split) -> None:
    graph = town.clone()
    graph.job = torch.from_numpy(np.random.default_rng(0).integers(-1, 300, 1500))
    certificate = gv.certify(rows_of(codes_of(town)), graph, town_split, "job")
    assert isinstance(certificate, ClassCertificate)
    assert certificate.known == int((graph.job >= 0).sum()) < 1500
    assert certificate.classes > 290
    assert certificate.accuracy == pytest.approx(certificate.accuracy_by_chance, abs=0.02)
    graph.rare = torch.full((1500,), -1)
    graph.rare[town_split.train_nodes[:2]] = torch.tensor([0, 1])
    few = gv.certify(rows_of(codes_of(town)), graph, town_split, "rare")
    assert isinstance(few, ClassCertificate)
    assert few.known == 2
    assert few.calibration is None


def continuous(town: Data) -> Floats:
    return np.random.default_rng(0).normal(size=(1500, 4))


def attribute(value: int) -> Callable[[Data], Data]:
    def change(town: Data) -> Data:
        graph = town.clone()
        graph.coin = torch.full((1500,), value)
        return graph

    return change


@pytest.mark.parametrize(
    ("z", "change", "secret", "sentence"),
    [
        (continuous, None, "coin", "z has 1,500 distinct rows for 1,500 nodes: .* at least 5 nodes per distinct row"),
        (lambda _: np.arange(1500)[:, None] % 301, None, "links", "z has 301 distinct rows for 1,500 nodes"),
        (lambda town: rows_of(codes_of(town))[:-1], None, "coin", "1499 rows and the graph has 1500 nodes"),
        (lambda _: np.full((1500, 1), np.nan), None, "coin", "nan in row 0, column 0"),
        (lambda town: rows_of(codes_of(town)), None, "age", "the graph has no 'age'"),
        (lambda town: rows_of(codes_of(town)), attribute(-1), "coin", "'coin' is known for none of the 1,500 nodes"),
        (lambda town: rows_of(codes_of(town)), attribute(1), "coin", "'coin' has only one class"),
    ],
)
def test_what_has_no_certificate_raises_an_error_in_one_line(
    z: Callable[[Data], Floats],
    change: Callable[[Data], Data] | None,
    secret: str,
    sentence: str,
    town: Data,
    town_split: gv.Split,
) -> None:
    with pytest.raises(gv.GraphveilError, match=sentence) as error:
        gv.certify(z(town), change(town) if change else town, town_split, secret)
    assert "\n" not in str(error.value)


def test_as_many_codes_as_allowed(town: Data, town_split: gv.Split) -> None:
    assert gv.certify(np.arange(1500)[:, None] % 300, town, town_split, "coin").codes == 300


def test_a_split_of_another_graph_raises_an_error(town: Data, town_split: gv.Split, small_split: gv.Split) -> None:
    z = rows_of(codes_of(town))
    with pytest.raises(gv.GraphveilError, match="the split is for 150 nodes and the graph has 1500"):
        gv.certify(z, town, small_split)
    fewer = Data(x=town.x, y=town.y, edge_index=undirected_pairs(town.edge_index)[:, 1:])
    with pytest.raises(gv.GraphveilError, match="links of the split are not the"):
        gv.certify(z, fewer, town_split, "links")


def test_degree_terciles_by_hand() -> None:
    star = np.array([[0, 0, 0, 0, 1], [1, 2, 3, 4, 2]])  # degrees 4, 2, 2, 1, 1, 0
    assert degree_terciles(star, 6).tolist() == [3, 2, 2, 1, 1, 1]
