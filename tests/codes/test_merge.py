"""Merging codes: no value of a certificate rises, limits are met, and the loss of utility is right."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.codes import class_certificate, link_certificate
from graphveil.codes.measures import best_accuracy, class_information, link_information
from graphveil.codes.merge import ClassCounts, Counts, LinkCounts, _state, merge
from graphveil.codes.tables import Integers, class_table, code_sizes, link_table, pair_table, unordered
from graphveil.errors import GraphveilError
from tests.codes.made import random_release


def link_counts(codes: Integers, links: Integers, num_codes: int) -> LinkCounts:
    return LinkCounts(link_table(codes, links, num_codes), pair_table(codes, num_codes))


def statistics(codes: Integers, y: Integers, links: Integers) -> list[float]:
    """All values of a certificate; minus the size of the rarest code, which must not fall."""
    named = class_certificate(codes, y, np.arange(20), {"half": (np.arange(len(y)) % 2).astype(np.int64)})
    linked = link_certificate(codes, links, y)
    assert named.calibration is not None
    assert linked.class_matched_auc is not None
    assert linked.within_class_auc is not None
    return [
        named.accuracy,
        named.balanced_accuracy,
        named.information,
        named.maximal_leakage,
        named.worst.share,
        named.bits_per_node,
        -named.smallest_code,
        named.calibration.accuracy_limit,
        named.calibration.balanced_limit,
        *(stratum.accuracy for stratum in named.strata),
        linked.auc,
        linked.class_matched_auc,
        linked.within_class_auc,
        linked.information,
    ]


@pytest.mark.parametrize("seed", range(40))
def test_merging_two_codes_raises_no_statistic(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphveil.codes.link_auc.RESAMPLES", 1)
    codes, y, links = random_release(seed)
    now = statistics(codes, y, links)
    for code in (5, 4, 3, 2, 1):  # merge a chain of random pairs, down to one code
        codes = np.where(codes == code, np.random.default_rng(seed).integers(code), codes)
        merged = statistics(codes, y, links)
        assert (np.array(merged) <= np.array(now) + 1e-12).all()
        now = merged


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**6), slack=st.floats(0, 0.3), auc=st.floats(0.5, 0.7), keep_links=st.booleans())
def test_every_limit_at_or_above_chance_is_met(seed: int, slack: float, auc: float, keep_links: bool) -> None:
    codes, y, links = random_release(seed)
    kind = np.random.default_rng(seed).integers(0, 2, len(y))
    linked, labels = link_counts(codes, links, 6), ClassCounts(class_table(codes, y, 6, 3))
    limit = class_certificate(codes, y).majority + slack
    utility: Counts = linked if keep_links else ClassCounts(class_table(codes, kind, 6, 2))
    secrets: list[tuple[Counts, float]] = [(labels, limit)] if keep_links else [(labels, limit), (linked, auc)]
    result = merge(code_sizes(codes, 6), utility, secrets)
    new = result.mapping[codes]
    assert sorted(set(new.tolist())) == list(range(result.num_codes))
    after = class_certificate(new, y)
    assert after.accuracy <= limit + 1e-9
    assert result.statistics_after[0] == pytest.approx(after.accuracy)
    if not keep_links:
        assert link_certificate(new, links).auc <= auc + 1e-9
        assert result.statistics_after[1] == pytest.approx(link_certificate(new, links).auc)
    before_and_after = [_information(utility, mapping) for mapping in (np.arange(6), result.mapping)]
    assert (result.utility_before, result.utility_after) == pytest.approx(tuple(before_and_after), abs=1e-9)
    assert result.price >= -1e-12


@pytest.mark.parametrize("seed", range(5))
def test_the_loss_of_every_merge_agrees_with_the_counts(seed: int) -> None:
    """Before the first merge and after each merge, because losses are updated incrementally."""
    codes, y, links = random_release(seed)
    for counts in (link_counts(codes, links, 6), ClassCounts(class_table(codes, y, 6, 3))):
        state, mapping = _state(counts, 6, np.arange(6)), np.arange(6)
        for other in (4, 2, 2, 1):
            now = _information(counts, mapping)
            for pair in combinations(range(mapping.max() + 1), 2):
                merged = np.where(mapping == pair[1], pair[0], mapping - (mapping > pair[1]))
                assert state.losses()[pair] == pytest.approx(now - _information(counts, merged), abs=1e-12)
            state.merge(other - 1, other)
            mapping = np.where(mapping == other, other - 1, mapping - (mapping > other))
        assert state.information() == pytest.approx(_information(counts, mapping), abs=1e-12)


def test_nothing_is_merged_if_all_limits_are_met() -> None:
    codes, y, links = random_release(0)
    result = merge(
        code_sizes(codes, 6), link_counts(codes, links, 6), [(ClassCounts(class_table(codes, y, 6, 3)), 1.0)]
    )
    assert result.mapping.tolist() == [0, 1, 2, 3, 4, 5]
    assert result.price == 0
    assert result.statistics_before == result.statistics_after == (class_certificate(codes, y).accuracy,)


def test_codes_that_differ_only_in_the_secret_are_merged() -> None:
    """Codes 0 and 1 have the same utility and different secrets, and so do 2 and 3; nothing is lost."""
    utility = np.array([[9, 1], [9, 1], [1, 9], [1, 9]])
    secret = np.array([[10, 0], [0, 10], [10, 0], [0, 10]])
    result = merge(np.full(4, 10), ClassCounts(utility), [(ClassCounts(secret), 0.5)])
    assert result.mapping.tolist() == [0, 0, 1, 1]
    assert result.price == pytest.approx(0, abs=1e-12)
    assert result.statistics_before == (1.0,)
    assert result.statistics_after == (0.5,)


def test_a_leak_that_no_single_merge_lowers_is_removed() -> None:
    secret = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]])  # 3 of 6; any two codes together still 2 of 4
    utility = np.array([[2, 0], [0, 2], [1, 1]])
    result = merge(np.full(3, 2), ClassCounts(utility), [(ClassCounts(secret), 1 / 3)])
    assert result.statistics_after == (1 / 3,)
    assert result.num_codes == 1


@pytest.mark.parametrize("links_kept", [True, False])
def test_small_codes_are_merged_into_the_cheapest_partner(links_kept: bool) -> None:
    codes, y, links = random_release(8, num_nodes=60)
    codes[codes == 3] = 2
    codes[0], y[0] = 3, 1  # one node alone
    kept: Counts = link_counts(codes, links, 6) if links_kept else ClassCounts(class_table(codes, y, 6, 3))
    result = merge(code_sizes(codes, 6), kept, [], min_size=2)
    partner = [code for code in range(6) if code != 3 and result.mapping[code] == result.mapping[3]]
    after = {other: _information(kept, np.where(np.arange(6) == 3, other, np.arange(6))) for other in (0, 1, 2, 4, 5)}
    assert partner == [max(after, key=lambda other: after[other])]
    assert result.utility_after == pytest.approx(after[partner[0]])
    assert np.bincount(result.mapping[codes]).min() >= 2


def test_codes_without_nodes_get_the_largest_code() -> None:
    table = np.array([[3, 1], [0, 0], [5, 5]])
    result = merge(np.array([4, 0, 10]), ClassCounts(table), [])
    assert result.mapping.tolist() == [0, 1, 1]
    assert result.num_codes == 2


def test_greedy_merging_loses_less_than_random_merging() -> None:
    greedy, at_random = [], []
    for seed in range(20):
        codes, y, links = random_release(seed, num_nodes=80, num_codes=10)
        kept, secret = link_counts(codes, links, 10), class_table(codes, y, 10, 3)
        limit = class_certificate(codes, y).majority + 0.05
        greedy.append(merge(code_sizes(codes, 10), kept, [(ClassCounts(secret), limit)]).utility_after)
        random, mapping = np.random.default_rng(seed), np.arange(10)
        while best_accuracy(class_table(mapping[codes], y, 10, 3)) > limit:
            one, other = random.choice(np.unique(mapping), 2, replace=False)
            mapping = np.where(mapping == other, one, mapping)
        at_random.append(_information(kept, mapping))
    assert np.mean(greedy) > 1.3 * np.mean(at_random)


def test_hundreds_of_codes_are_merged() -> None:
    """The incrementally updated losses are still exact after 200 merges."""
    random = np.random.default_rng(0)
    codes, y = random.integers(0, 216, 5000), random.integers(0, 7, 5000)
    pairs = np.unique(np.sort(random.integers(0, 5000, (2, 20_000)), axis=0), axis=1)
    pairs = pairs[:, pairs[0] < pairs[1]]
    kept = link_counts(codes, pairs, 216)
    result = merge(code_sizes(codes, 216), kept, [(ClassCounts(class_table(codes, y, 216, 7)), 0.16)])
    assert result.statistics_after[0] <= 0.16
    assert result.num_codes > 1
    assert result.utility_after == pytest.approx(_information(kept, result.mapping), abs=1e-9)


@pytest.mark.parametrize(
    ("limit", "sizes", "sentence"),
    [
        (0.4, np.full(2, 10), "the limit 0.4000 is below the chance level, 0.5000"),
        (0.6, np.zeros(2, dtype=np.int64), "no code has a node"),
        (0.6, np.full(3, 10), r"a table has shape \(2, 2\): expected one row for each of 3 codes"),
    ],
)
def test_invalid_limits_and_tables_raise_an_error(limit: float, sizes: Integers, sentence: str) -> None:
    table = ClassCounts(np.array([[8, 2], [2, 8]]))
    with pytest.raises(GraphveilError, match=sentence):
        merge(sizes, table, [(table, limit)])


def _information(counts: Counts, mapping: Integers) -> float:
    """The information of counts whose codes are merged, computed from the counts."""
    to_new = np.eye(mapping.max() + 1, dtype=np.int64)[mapping]
    if isinstance(counts, ClassCounts):
        return class_information(to_new.T @ counts.table)
    links, pairs = (unordered(to_new.T @ table @ to_new) for table in (counts.links, counts.pairs))
    return link_information(links, pairs, int(pairs.sum()))
