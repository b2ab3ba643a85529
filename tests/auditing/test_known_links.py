"""The attacks on the known links, and what z adds to them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import graphveil as gv
from graphveil.auditing import Answers, Audit, Context, Effort, Finding, Queries, Utility, known_links, links
from graphveil.auditing.attacks import CLASSES_AND_LINKS, KNOWN_LINKS
from graphveil.auditing.cache import AnswerCache
from graphveil.auditing.controls import known_link_tasks
from graphveil.auditing.finding import signed
from graphveil.auditing.learners import Rows, area
from graphveil.auditing.secret import LinkSecret, link_secret, node_secret
from graphveil.auditing.show import as_text
from graphveil.auditing.tasks import run
from graphveil.errors import GraphveilError
from tests.auditing.made import sentences

KEEPS_LINKS = Context(utility=Utility("links", 0.9, 0.5, 1000))
KEEPS_LABELS = Context(utility=Utility("labels", 0.9, 0.3, 1000))
KITE = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (3, 4)]


def noise(seed: int, nodes: int = 1500, columns: int = 8) -> Rows:
    return np.random.default_rng(seed).normal(size=(nodes, columns)).astype(np.float32)


def secret_of(pairs: list[tuple[int, int]], num_nodes: int) -> LinkSecret:
    """A secret whose known pairs are these links."""
    known = Queries(np.array(pairs).T, np.ones(len(pairs), dtype=np.int64))
    return LinkSecret(num_nodes, known, known, known, None, None, None)


def graph_of(pairs: np.ndarray, num_nodes: int, y: np.ndarray) -> tuple[Data, gv.Split]:
    x = torch.from_numpy(noise(1, num_nodes, 5))
    graph = Data(x=x, edge_index=torch.from_numpy(pairs), y=torch.from_numpy(y))
    return graph, gv.Split.proportional(graph, 0, message_edges="all")


@pytest.fixture(scope="module")
def random_graph() -> tuple[Data, gv.Split]:
    """1,000 nodes and 4,000 uniform links: known links do not predict others."""
    random = np.random.default_rng(0)
    return graph_of(random.integers(0, 1000, (2, 4000)), 1000, random.integers(0, 3, 1000))


@pytest.fixture(scope="module")
def town_links(town: Data, town_split: gv.Split) -> LinkSecret:
    return link_secret(town, town_split, 0)


@pytest.fixture(scope="module")
def town_known(town_links: LinkSecret) -> known_links.KnownLinks:
    return known_links.known_links_of(town_links, 0)


@pytest.fixture(scope="module")
def islands() -> tuple[Data, gv.Split]:
    """80 islands of six nodes, all linked within: only nodes of the same island have common neighbours."""
    u, v = np.triu_indices(6, 1)
    pairs = np.concatenate([np.stack([u, v]) + 6 * start for start in range(80)], axis=1)
    return graph_of(pairs, 480, np.repeat(np.arange(80), 6) % 3)


def audited(z: Rows, secret: LinkSecret) -> Audit:
    """Boosted trees on z, on the known links, on both, and on the true classes and the known links."""
    trees = links.panel(secret)[-1]
    tasks = [task for task in known_link_tasks(secret, z, 0) if "MLP" not in task.attack.name]
    result = [task(secret, 0) for task in tasks]
    assert isinstance(trees, links.ClassifyPairs)
    answers = replace(trees, separate_matched=False)(z, secret, 0)
    on_z = Finding("embeddings", trees.name, trees.needs, secret, answers, 0.0)
    controls = {name: [one for one in result if one.subject == name] for name in (KNOWN_LINKS, CLASSES_AND_LINKS)}
    return Audit(secret, [on_z, *(one for one in result if one.subject == "embeddings")], controls, context=KEEPS_LINKS)


def reasons_beside_links(audit: Audit) -> list[str]:
    return [sentence for sentence in sentences(audit) if "points for attackers with the known links" in sentence]


# ----- rows -----------------------------------------------------------------------------------------------------------


def test_counts_by_hand() -> None:
    """A kite of five nodes with degrees 2, 3, 3, 3, 1; (1, 2) and (3, 4) are known links, which their rows exclude."""
    known = known_links.known_links_of(secret_of(KITE, 6), 0)
    ln2, ln3 = np.log(2), np.log(3)
    expected = {  # common neighbours, Adamic-Adar, resource allocation, product of degrees, paths, both degrees
        (0, 3): (2, 2 / ln3, 2 / 3, 6, 2, 2, 3),
        (0, 4): (0, 0, 0, 2, 2, 1, 2),
        (1, 2): (2, 1 / ln2 + 1 / ln3, 1 / 2 + 1 / 3, 4, 0, 2, 2),
        (3, 4): (0, 0, 0, 0, 0, 0, 2),
        (0, 1): (1, 1 / ln3, 1 / 3, 2, 1, 1, 2),
        (2, 5): (0, 0, 0, 0, 0, 0, 3),
    }
    pairs = np.array(list(expected)).T
    rows = known.rows(pairs)
    np.testing.assert_allclose(rows[:, :7], np.log1p(np.array(list(expected.values()))), atol=1e-6)
    np.testing.assert_array_equal(rows, known.rows(pairs[::-1]))
    assert rows.shape == (6, len(known_links.COLUMNS))
    np.testing.assert_array_equal(rows[5, 7:9], [0, 0])  # node 5 has no known link


def test_the_spectral_columns_by_a_dense_decomposition() -> None:
    adjacency = np.zeros((5, 5))
    for u, v in KITE:
        adjacency[u, v] = adjacency[v, u] = 1
    degree = adjacency.sum(axis=0) + 0.1 * adjacency.sum(axis=0).mean()
    values, vectors = np.linalg.eigh(adjacency / np.sqrt(np.outer(degree, degree)))
    z = np.sqrt(5 * np.maximum(values, 0)) * vectors
    rows = known_links.known_links_of(secret_of(KITE, 6), 0).rows(np.array([[0, 0], [3, 4]]))
    for row, (u, v) in zip(rows, ((0, 3), (0, 4)), strict=True):
        product = z[u] @ z[v]
        cosine = product / np.linalg.norm(z[u]) / np.linalg.norm(z[v])
        np.testing.assert_allclose(row[7:], [cosine, product, np.linalg.norm(z[u] - z[v])], atol=1e-4)


def test_the_row_of_a_known_link_excludes_the_link(small: Data, small_split: gv.Split) -> None:
    """Its counts are those of the graph without it."""
    secret = link_secret(small, small_split, 0)
    known, own = known_links.known_links_of(secret, 0), secret.known.index[:, :5]
    for pair in own.T:
        kept = ~(secret.known.index == pair[:, None]).all(axis=0)
        fewer = replace(secret, known=Queries(secret.known.index[:, kept], secret.known.y[kept]), matched=None)
        without = known_links.known_links_of(fewer, 0)
        np.testing.assert_allclose(known.rows(pair[:, None])[:, :7], without.rows(pair[:, None])[:, :7], atol=1e-6)


def test_no_column_separates_known_links_of_a_random_graph(random_graph: tuple[Data, gv.Split]) -> None:
    """If rows included the own link, a spectral column would separate known links from non-links."""
    secret = link_secret(*random_graph, 0)
    known, y = known_links.known_links_of(secret, 0), secret.known.y
    rows = known.rows(secret.known.index)
    for name, column in zip(known_links.COLUMNS, rows.T, strict=True):
        assert area(column.astype(float), y) == pytest.approx(0.5, abs=0.04), name
    assert secret.matched is not None
    matched = known.rows(secret.matched.known.index)
    for name, column in zip(known_links.COLUMNS, matched.T, strict=True):
        assert area(column.astype(float), secret.matched.known.y) == pytest.approx(0.5, abs=0.04), name
    whole = replace(known, fold=0 * known.fold).rows(secret.known.index)
    assert area(whole[:, known_links.COLUMNS.index("spectral embedding")].astype(float), y) > 0.7


def test_rows_of_known_and_of_queried_pairs_have_the_same_distribution(
    town_links: LinkSecret, town_known: known_links.KnownLinks
) -> None:
    """The means of every column differ by less than 0.2 standard deviations, for links and for non-links."""
    secret, known = town_links, town_known
    train, test = known.rows(secret.known.index), known.rows(secret.test.index)
    for linked in (0, 1):
        one, other = train[secret.known.y == linked], test[secret.test.y == linked]
        shift = (one.mean(axis=0) - other.mean(axis=0)) / test.std(axis=0)
        assert np.abs(shift).max() < 0.2, dict(zip(known_links.COLUMNS, shift, strict=True))


def test_rows_do_not_depend_on_the_blocks(
    town_links: LinkSecret, town_known: known_links.KnownLinks, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_block = town_known.rows(town_links.test.index)
    monkeypatch.setattr(known_links, "BLOCK", 500)
    np.testing.assert_array_equal(town_known.rows(town_links.test.index), one_block)


# ----- attacks --------------------------------------------------------------------------------------------------------


Known = tuple[LinkSecret, known_links.KnownLinks]


@pytest.fixture(scope="module")
def known_of_both(islands: tuple[Data, gv.Split], random_graph: tuple[Data, gv.Split]) -> tuple[Known, Known]:
    """The known links of the islands and of a random graph, whose spectral embeddings take seconds."""
    one, other = (link_secret(*graph, 0) for graph in (islands, random_graph))
    return (one, known_links.known_links_of(one, 0)), (other, known_links.known_links_of(other, 0))


ALONE = [*known_links.SCORES, *(name for name, _ in known_links.WITHOUT_Z), known_links.STACKED[0]]


@pytest.mark.parametrize("name", ALONE)
def test_every_attack_on_known_links_finds_links_within_islands(name: str, known_of_both: tuple[Known, Known]) -> None:
    """And nothing in a random graph. All degrees of an island are similar, so their product is a weak score."""
    for (secret, known), least in zip(known_of_both, (0.9, None), strict=True):
        attack = next(one for one in known_links.links_alone(known) if one.name == name)
        answers = attack(np.zeros((secret.num_nodes, 0), np.float32), secret, 0)
        result = Finding(KNOWN_LINKS, name, attack.needs, secret, answers, 0.0)
        assert attack.needs == ("secrets",)
        if least is None:
            assert result.headline.low < 0.55
        elif name != "preferential attachment":
            assert result.headline.value > least


def test_z_adds_nothing_to_known_links_with_a_higher_auc(islands: tuple[Data, gv.Split]) -> None:
    secret = link_secret(*islands, 0)
    place = np.repeat(noise(3, 80, 4), 6, axis=0)
    audit = audited(place + 1.5 * noise(4, 480, 4), secret)
    assert audit.links_alone is not None
    assert audit.links_alone.headline.low > audit.strongest.headline.high + 0.1
    assert audit.strongest.headline.low > 0.55, "z alone reveals links"
    assert audit.excess_with_links is not None
    assert abs(audit.excess_with_links.value) < 0.01
    assert reasons_beside_links(audit) == []


def test_noise_adds_nothing_to_the_known_links(town: Data, town_split: gv.Split) -> None:
    audit = audited(noise(2, columns=3), link_secret(town, town_split, 0))
    assert audit.with_links is not None
    assert audit.with_links.headline.low > 0.55
    assert audit.excess_with_links is not None
    assert audit.excess_with_links.high > -0.01
    assert audit.excess_with_links.low < 0
    assert reasons_beside_links(audit) == []


def test_planted_links_add_to_the_known_links(random_graph: tuple[Data, gv.Split]) -> None:
    """z is the sum of the neighbours' noise over all links; known links of a random graph do not predict others."""
    secret, (source, target) = link_secret(*random_graph, 0), random_graph[0].edge_index.numpy()
    z = noise(5, 1000, 24).astype(np.float64)
    total = z.copy()
    np.add.at(total, target, z[source])
    np.add.at(total, source, z[target])
    audit = audited(total.astype(np.float32), secret)
    assert audit.with_links is not None
    assert audit.excess_with_links is not None
    assert audit.excess_with_links.low > 0.2
    (sentence,) = reasons_beside_links(audit)
    assert sentence.endswith(f"z adds {signed(audit.excess_with_links)} points for attackers with the known links")
    (sentence,) = reasons_beside_links(replace(audit, context=KEEPS_LABELS))
    assert audit.links_excess_over_classes is not None
    assert sentence.endswith(f", {signed(audit.links_excess_over_classes)} points more than the true classes add")
    written = audit.to_dict()["with_links"]
    assert set(written) == {"attack", "metric", "chance", "value", "ci", "excess"}
    assert written["excess"]["value"] == audit.excess_with_links.value
    line = f"with the known links {audit.with_links.attack}: {audit.with_links.headline}; z adds +"
    assert line in " ".join(as_text(audit, width=400).split())


def test_what_kept_classes_add_to_the_known_links_is_not_a_leak(town: Data, town_split: gv.Split) -> None:
    """z with the true classes adds as much as they do: a leak, unless the utility keeps the classes."""
    secret = link_secret(town, town_split, 0)
    z = (np.eye(4)[town.y.numpy()] + 0.01 * noise(6, columns=4)).astype(np.float32)
    audit = audited(z, secret)
    assert audit.excess_with_links is not None
    assert audit.excess_with_links.low > 0
    assert audit.links_excess_over_classes is not None
    assert audit.links_excess_over_classes.covers(0)
    assert abs(audit.links_excess_over_classes.value) < 0.02
    assert len(reasons_beside_links(audit)) == 1
    assert reasons_beside_links(replace(audit, context=KEEPS_LABELS)) == []
    alone = replace(audit, context=KEEPS_LABELS, controls={KNOWN_LINKS: audit.controls[KNOWN_LINKS]})
    assert reasons_beside_links(alone) == [], "without the control there is nothing to compare with"


def test_attackers_with_the_known_links_are_reported_apart(town: Data, town_split: gv.Split) -> None:
    """They are neither the headline nor a reason, and may exceed the certificate of z."""
    secret = link_secret(town, town_split, 0)
    random = np.random.default_rng(0)
    blind = Answers(random.normal(size=len(secret.val.y)), random.normal(size=len(secret.test.y)))
    seeing = Answers(secret.val.y.astype(float), secret.test.y.astype(float))
    on_z = Finding("embeddings", "z", ("z", "secrets"), secret, blind, 0.0)
    held = Finding("embeddings", "both", ("z", "secrets", "known links"), secret, seeing, 0.0)
    alone = Finding(KNOWN_LINKS, "alone", ("secrets",), secret, seeing, 0.0)
    audit = Audit(secret, [on_z, held], {KNOWN_LINKS: [alone]}, context=KEEPS_LINKS, limits={"auc": 0.6})
    assert audit.strongest is on_z
    assert audit.with_links is held
    assert audit.reasons == ()
    assert "attack above certificate" not in {flag.name for flag in audit.flags}


# ----- a whole audit --------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("weak_networks")
def test_a_full_audit_of_links_has_the_controls_of_known_links() -> None:
    graph = gv.generate(gv.GraphSpec(num_nodes=200, num_edges=700, num_features=20, num_classes=3), seed=1)
    split = gv.Split.proportional(graph, 0, message_edges="all")
    audit = gv.audit(noise(1, 200, 3), graph, split, "links", context=KEEPS_LABELS)
    assert [one.attack for one in audit.controls[KNOWN_LINKS]] == ALONE
    both = [*(name for name, _ in known_links.WITH_Z), known_links.STACKED[1]]
    assert [one.attack for one in audit.controls[CLASSES_AND_LINKS]] == both
    assert [one.attack for one in audit.findings if "known links" in one.needs] == both
    assert audit.strongest.on_z_alone
    text = " ".join(as_text(audit, width=400).split())
    assert "with the known links " in text
    assert "control: known links (" in text
    assert "control: true classes and known links (" in text
    assert audit.to_dict()["with_links"]["attack"] in both
    with pytest.raises(GraphveilError, match="'known links', which is reserved"):
        gv.audit(noise(1, 200, 3), graph, split, "links", "quick", controls={"known links": noise(2, 200, 3)})
    quick = gv.audit(noise(1, 200, 3), graph, split, "links", "quick")
    assert quick.with_links is None
    assert quick.to_dict()["with_links"] is None
    assert quick.controls == {}


def test_a_node_secret_has_no_known_links(town: Data, town_split: gv.Split) -> None:
    assert known_link_tasks(node_secret(town, town_split, "coin", 0), noise(1), 0) == []


def test_controls_of_known_links_are_cached(small: Data, small_split: gv.Split, tmp_path: Path) -> None:
    secret, cache = link_secret(small, small_split, 0), AnswerCache(tmp_path, "this graph")
    seconds = []
    for seed in (1, 2):
        tasks = [task for task in known_link_tasks(secret, noise(seed, 150), 0) if "MLP" not in task.attack.name]
        seconds.append({(one.subject, one.attack): one.seconds for one in run(tasks, secret, 0, Effort(), cache)[0]})
    assert all(took > 0 for took in seconds[0].values())
    again = {task[0] for task, took in seconds[1].items() if took != seconds[0][task]}
    assert again == {"embeddings"}


def test_attackers_with_z_are_not_misled_by_links_that_z_was_computed_from(town: Data, town_split: gv.Split) -> None:
    """z is the sum of the neighbours' noise over known links only: it predicts these and no others."""
    secret = link_secret(town, town_split, 0)
    linked = secret.known.index[:, secret.known.y == 1]
    z = noise(7, 1500, 12).astype(np.float64)
    total = z.copy()
    np.add.at(total, linked[0], 3 * z[linked[1]])
    np.add.at(total, linked[1], 3 * z[linked[0]])
    audit = audited(total.astype(np.float32), secret)
    assert audit.excess_with_links is not None
    assert audit.excess_with_links.value > -0.01


def test_stacked_scores_are_stronger_than_each_and_find_nothing_in_noise(town: Data, town_split: gv.Split) -> None:
    """Scores with independent errors; cross-fitting keeps the validation part unbiased."""
    secret = replace(link_secret(town, town_split, 0), matched=None)

    class Drawn:
        name, needs, cost = "drawn", ("z",), 1.0

        def __init__(self, seed: int, signal: float) -> None:
            self.random, self.signal = np.random.default_rng(seed), signal

        def __call__(self, z: Rows, secret: LinkSecret, seed: int) -> Answers:  # noqa: ARG002
            return Answers(*(self.signal * a.y + self.random.normal(size=len(a.y)) for a in (secret.val, secret.test)))

    def stacked(signal: float, count: int) -> tuple[float, float]:
        parts = [Drawn(seed, signal) for seed in range(count)]
        answers = known_links.Stack("stack", parts, 1.0, ("z",))(noise(1), secret, 0)  # type: ignore[arg-type]
        return area(answers.val, secret.val.y), area(answers.test, secret.test.y)

    assert stacked(1.0, 1)[1] == pytest.approx(0.760, abs=0.03), "Phi(1 / sqrt(2))"
    assert stacked(1.0, 2) == pytest.approx((0.841, 0.841), abs=0.04), "Phi(sqrt(2) / sqrt(2))"
    assert stacked(0.0, 30) == pytest.approx((0.5, 0.5), abs=0.06)
