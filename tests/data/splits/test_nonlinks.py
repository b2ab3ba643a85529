import pytest
import torch

from graphveil.data.graph import encode_pairs
from graphveil.data.splits.nonlinks import count_free, distinct_nonlinks, free_before, nth_free
from graphveil.errors import GraphveilError
from graphveil.randomness import generator


@pytest.mark.parametrize("taken", [[], [0], [5], [0, 1, 2], [1, 4, 5, 27], list(range(0, 28, 2)), list(range(27))])
def test_the_nth_free_pair_is_the_nth_that_is_not_taken(taken: list[int]) -> None:
    free = [code for code in range(28) if code not in taken]
    rank = torch.arange(len(free))
    pairs = nth_free(rank, free_before(torch.tensor(taken, dtype=torch.long)))
    assert encode_pairs(pairs).tolist() == free
    assert (pairs[0] < pairs[1]).all()


def test_a_batch_of_taken_pairs_is_looked_up_run_by_run() -> None:
    taken = torch.tensor([[0, 3, 7], [1, 2, 27]])
    rank = torch.tensor([[0, 1, 24], [0, 1, 24]])
    one_by_one = torch.stack([nth_free(r, free_before(t)) for r, t in zip(rank, taken, strict=True)], dim=1)
    assert torch.equal(nth_free(rank, free_before(taken)), one_by_one)


@pytest.mark.parametrize("taken_share", [0.0, 0.2, 0.9])
def test_drawn_pairs_are_free_and_uniform(taken_share: float) -> None:
    """On 8 nodes every one of the 28 pairs can be counted: free ones equally often, taken ones never."""
    everything = torch.arange(28)
    taken, free = everything[: int(28 * taken_share)], everything[int(28 * taken_share) :]
    counts = torch.zeros(28)
    draws, size = 4000, 2
    for seed in range(draws):
        counts[encode_pairs(distinct_nonlinks(size, taken, 8, generator(seed, "test")))] += 1
    assert counts.sum() == draws * size
    expected = draws * size / free.numel()
    chi_squared = ((counts[free] - expected) ** 2 / expected).sum()
    assert chi_squared < free.numel() - 1 + 5 * (2 * free.numel()) ** 0.5, "five standard deviations"


def test_distinct_pairs_are_distinct_up_to_the_last_free_one() -> None:
    n, taken = 30, encode_pairs(torch.tensor([[0, 1, 2], [5, 6, 7]])).sort().values
    pairs = distinct_nonlinks(30 * 29 // 2 - 3, taken, n, generator(0))
    assert encode_pairs(pairs).unique().numel() == 30 * 29 // 2 - 3
    with pytest.raises(GraphveilError, match=r"too dense: 433 non-links .* 432 are left"):
        distinct_nonlinks(433, taken, n, generator(0))


def test_a_complete_graph_has_no_pair_to_draw() -> None:
    with pytest.raises(GraphveilError, match="too dense"):
        count_free(1, 10, 5)
