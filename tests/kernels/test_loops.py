"""Every loop against its reference: random numbers and patterns bit for bit, values and gradients within rounding."""

import math
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - its usual name

from graphveil import kernels
from graphveil.data.splits.nonlinks import free_before, nth_free
from graphveil.models import lorentz
from graphveil.models.codes import CodeShape, soft_codes
from graphveil.models.heads import FermiDirac
from graphveil.models.layers import Dropout
from graphveil.models.pair_loss import bilinear_loss, distance_loss, logistic_loss
from graphveil.models.sparse import Pattern, SparseMatrix, attention_shares, weighted_product
from graphveil.randomness import Noise


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """One thread, or three that share even the smallest work."""
    number: int = request.param
    monkeypatch.setattr(torch, "get_num_threads", lambda: number)
    monkeypatch.setattr(kernels.compiling, "WORTH_A_THREAD", 1)
    return number


KINDS = torch.float32, torch.float64


def noise(*seeds: int) -> Noise:
    return Noise(list(seeds), "a", 10, torch.tensor([4]))


def pattern_of(pairs: Sequence[tuple[int, int]], shape: tuple[int, int], symmetric: bool = False) -> Pattern:
    row, col = torch.tensor(sorted(pairs), dtype=torch.long).view(-1, 2).T
    return Pattern.from_rows(row, col, shape, symmetric)


def random_pairs(nodes: int, count: int, last: int, seed: int) -> list[tuple[int, int]]:
    """Distinct pairs (larger, smaller) of nodes below `last`; node `last - 1` is in many of them."""
    made = torch.Generator().manual_seed(seed)
    ends = torch.randint(last - 1, (count, 2), generator=made).tolist()
    hub = [(last - 1, other) for other in range(0, last - 1, 3)]
    assert last < nodes, "the others are in no pair"
    return sorted({(max(a, b), min(a, b)) for a, b in ends if a != b} | set(hub))


def gradients(function: Callable[..., Tensor], *inputs: Tensor) -> tuple[Tensor, ...]:
    """The value and the gradients of a weighted sum of its elements."""
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    value = function(*leaves)
    weights = torch.randn(value.shape, generator=torch.Generator().manual_seed(9)).to(value.dtype)
    return (value.detach(), *torch.autograd.grad((value * weights).sum(), leaves))


def assert_close(ours: Sequence[Tensor], exact: Sequence[Tensor], of_largest: float = 2e-6) -> None:
    assert len(ours) == len(exact)
    for one, other in zip(ours, exact, strict=True):
        assert one.dtype == torch.float32
        assert one.shape == other.shape
        largest = max(float(other.abs().max()), 1e-3)
        assert float((one.double() - other).abs().max()) <= of_largest * largest


# ----- random numbers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 7, 2048, 5001])
@pytest.mark.parametrize("probability", [0.0, 0.3, 0.5, 1.0])
def test_coins_are_those_of_the_reference(threads: int, count: int, probability: float) -> None:
    coins = noise(3, 8).coins(probability, count)
    with kernels.reference():
        assert coins.equal(noise(3, 8).coins(probability, count))


def test_coins_of_places_beyond_32_bits() -> None:
    """The coins of 2k and 2k + 1 are the halves of hash k, which takes 32 bits longer than the place does."""
    first, second, ones = np.uint32(5), np.uint32(9), np.uint32(1 << 15)
    places, out = np.arange(2**32 - 4, 2**32 + 4), np.empty(8, np.float32)
    values = np.ones(8, np.float32), places, first, second, ones, np.float32(1), out
    kernels.elements.kept_values(*values, 0, 8)
    hashes = [int(kernels.noise.hashed(place >> 1, first, second)) for place in places.tolist()]
    halves = [
        (number >> 16 * (place % 2) ^ 0x8000) & 0xFFFF for number, place in zip(hashes, places.tolist(), strict=True)
    ]
    assert out.tolist() == [half < 1 << 15 for half in halves]
    assert 0 < out.sum() < 8


@pytest.mark.parametrize("high", [1, 1000, 2**52])
def test_integers_are_those_of_the_reference(threads: int, high: int) -> None:
    drawn = noise(3, 8).ascending_integers(high, 1001)
    with kernels.reference():
        assert drawn.equal(noise(3, 8).ascending_integers(high, 1001))


# ----- patterns ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pairs", "shape"),
    [
        ([], (1, 1)),
        ([], (3, 2)),
        ([(0, 0)], (1, 1)),
        ([(1, 0), (1, 4), (3, 0), (3, 3), (3, 4)], (5, 6)),
        (random_pairs(90, 400, 80, 0), (90, 90)),
    ],
)
def test_a_pattern_and_its_transpose_are_those_of_the_reference(
    threads: int, pairs: list[tuple[int, int]], shape: tuple[int, int]
) -> None:
    ours = pattern_of(pairs, shape)
    with kernels.reference():
        exact = pattern_of(pairs, shape)
        assert ours.crow.equal(exact.crow)
        order, transposed = exact.t_order, exact.transposed
    assert ours.t_order.equal(order)
    assert ours.transposed.crow.equal(transposed.crow)
    assert ours.transposed.col.equal(transposed.col)
    assert ours.transposed.shape == transposed.shape


@pytest.mark.parametrize(("nodes", "taken"), [(2, []), (4, [0, 2, 5]), (500, [0, 1, 2, 3, 700, 124_749])])
def test_non_links_are_those_of_the_reference(threads: int, nodes: int, taken: list[int]) -> None:
    before = free_before(torch.tensor(taken, dtype=torch.long))
    free = nodes * (nodes - 1) // 2 - len(taken)
    rank = torch.linspace(0, free - 1, 200, dtype=torch.double).long()
    row, col = torch.empty_like(rank), torch.empty_like(rank)
    arrays = rank.numpy(), before.numpy(), 10, row.numpy(), col.numpy()
    kernels.compiling.over(200, 200, kernels.sparse.nth_free, *arrays)
    assert torch.stack([col, row]).equal(nth_free(rank, before) + 10)


@pytest.mark.parametrize("rows", [3, 6000])
def test_a_matrix_with_dropped_entries_is_that_of_the_reference(threads: int, rows: int) -> None:
    """With 6,000 rows the transpose is in blocks."""
    dense = torch.rand(rows, 5, generator=torch.Generator().manual_seed(0)) * 4
    whole = SparseMatrix.from_csr(dense.where(dense > 0.5, 0).to_sparse_csr())
    w, g = torch.randn(5, 3), torch.randn(rows, 3)

    def product() -> list[Tensor]:
        leaf = w.clone().requires_grad_()
        out = whole.dropped(noise(1), 0.4) @ leaf
        return [out.detach(), *torch.autograd.grad(out, leaf, g)]

    ours = product()
    with kernels.reference():
        exact = product()
    assert all(a.equal(b) for a, b in zip(ours, exact, strict=True))


# ----- activations ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ["relu", "elu"])
@pytest.mark.parametrize("shape", [(1, 1), (700, 33), (2, 300, 8)])
def test_activations_with_dropout(threads: int, activation: str, shape: tuple[int, ...]) -> None:
    runs = shape[0] if len(shape) == 3 else 1
    made = torch.Generator().manual_seed(0)
    x, bias = 2 * torch.randn(shape, generator=made), torch.randn(*shape[:-2], shape[-1], generator=made)
    drop = Dropout(0.3)
    drop.noise = noise(*range(runs))
    coins = drop.noise.coins(0.7, x.numel() // runs).view(shape).double()

    def exact(h: Tensor, b: Tensor) -> Tensor:
        value: Tensor = getattr(F, activation)(h + b[..., None, :])
        return value * coins / 0.7

    ours = gradients(getattr(drop, activation), x, bias)
    assert_close(ours, gradients(exact, x.double(), bias.double()))
    turned = gradients(lambda h, b: getattr(drop, activation)(h.mT, b), x.mT.contiguous(), bias)
    assert turned[0].equal(ours[0]), "an array that is not contiguous"
    assert turned[1].equal(ours[1].mT)
    assert turned[2].equal(ours[2])


def test_elu_has_a_slope_of_one_at_zero_and_relu_of_zero() -> None:
    drop = Dropout(0.5)
    drop.noise = noise(0)
    kept = drop.noise.coins(0.5, 40).view(10, 4).float()
    x, bias = torch.zeros(10, 4), torch.zeros(4)
    for activation, slope in ((drop.elu, 1.0), (drop.relu, 0.0)):
        leaf = x.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(activation(leaf, bias).sum(), leaf)
        assert gradient.equal(slope * kept / 0.5)


@pytest.mark.parametrize("activation", ["relu", "elu"])
def test_a_number_that_is_not_finite_is_not_hidden(activation: str) -> None:
    drop = Dropout(0.3)
    drop.noise = noise(0)
    assert getattr(drop, activation)(torch.full((50, 2), torch.nan), torch.zeros(2)).isnan().any()


# ----- losses of pairs --------------------------------------------------------------------------------------------

NODES = 70
LINKS = random_pairs(NODES, 120, 66, 1)
NONLINKS = random_pairs(NODES, len(LINKS) * 2, 67, 2)[: len(LINKS)]
ONE_PAIR = ([(1, 0)], [(2, 0)])
HUB = ([(1500, other) for other in range(1400)], [(other + 1, other) for other in range(1400)])


def batched(pairs: list[tuple[int, int]], nodes: int, runs: int) -> Pattern:
    """The pairs of several runs: the same ones in each."""
    all_pairs = [(u + run * nodes, v + run * nodes) for run in range(runs) for u, v in pairs]
    return pattern_of(all_pairs, (runs * nodes, runs * nodes))


def exact_loss(head: Callable[[Tensor, Tensor], Tensor], z: Tensor, pairs: Sequence[list[tuple[int, int]]]) -> Tensor:
    """The mean of -log q(y) of the reference, (...), in the type of z."""
    logits = [head(*(z[..., [pair[end] for pair in part], :] for end in (0, 1))) for part in pairs]
    both = torch.cat([-F.logsigmoid(logits[0]), -F.logsigmoid(-logits[1])], dim=-1)
    return both.mean(dim=-1)


@pytest.mark.parametrize("runs", [1, 2])
def test_the_loss_of_logits(threads: int, runs: int) -> None:
    logits = 30 * torch.randn(*[runs] * (runs > 1), 9001, generator=torch.Generator().manual_seed(0))
    logits[..., :3] = torch.tensor([0.0, 200.0, -200.0])

    def exact(x: Tensor) -> Tensor:
        signed = torch.cat([-x[..., :4000], x[..., 4000:]], dim=-1)
        return F.softplus(signed, threshold=1000).mean(dim=-1)

    assert_close(gradients(lambda x: logistic_loss(x, 4000), logits), gradients(exact, logits.double()))


@pytest.mark.parametrize("runs", [1, 2])
@pytest.mark.parametrize(
    ("nodes", "pairs"), [(NODES, (LINKS, NONLINKS)), (NODES, ONE_PAIR), (1502, HUB)], ids=["many", "one", "hub"]
)
def test_the_loss_of_the_bilinear_head(
    threads: int, runs: int, nodes: int, pairs: tuple[list[tuple[int, int]], list[tuple[int, int]]]
) -> None:
    lead = [runs] * (runs > 1)
    made = torch.Generator().manual_seed(0)
    z, weight, bias = (torch.randn([*lead, *shape], generator=made) for shape in ((nodes, 6), (6, 6), ()))
    links, nonlinks = (batched(part, nodes, runs) for part in pairs)

    def ours(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return bilinear_loss(x, (w + w.mT) / 2, b, links, nonlinks)

    def exact(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        phi = (w + w.mT) / 2
        return exact_loss(lambda u, v: ((u @ phi) * v).sum(-1) + b[..., None], x, pairs)

    got = gradients(ours, z, weight, bias)
    assert_close(got, gradients(exact, z.double(), weight.double(), bias.double()), 4e-6)
    assert got[1][..., -1, :].eq(0).all(), "a node without pairs"
    turned = gradients(lambda x, w, b: ours(x.mT, w, b), z.mT.contiguous(), weight, bias)
    assert_close(turned[:1], [got[0].double()], 1e-6)


@pytest.mark.parametrize("runs", [1, 2])
@pytest.mark.parametrize("length", [0.05, 1.0, 9.0])
@pytest.mark.parametrize(
    ("nodes", "pairs"), [(NODES, (LINKS, NONLINKS)), (3, ONE_PAIR), (1501, HUB)], ids=["many", "one", "hub"]
)
def test_the_loss_of_distances(
    threads: int, runs: int, length: float, nodes: int, pairs: tuple[list[tuple[int, int]], list[tuple[int, int]]]
) -> None:
    lead = [runs] * (runs > 1)
    made = torch.Generator().manual_seed(0)
    z = F.normalize(torch.randn(*lead, nodes, 5, generator=made), dim=-1)
    z = z * length * (0.5 + torch.rand(*lead, nodes, 1, generator=made))
    settings = torch.randn([3, *lead], generator=made)
    links, nonlinks = (batched(part, nodes, runs) for part in pairs)

    def fermi_dirac(settings: Tensor) -> FermiDirac:
        head = FermiDirac(5)
        for name in ("radius", "raw_temperature", "raw_curvature"):
            delattr(head, name)
        head.radius, head.raw_temperature, head.raw_curvature = settings.unbind()  # type: ignore[assignment]
        return head

    got = gradients(lambda x, s: distance_loss(x, fermi_dirac(s), links, nonlinks), z, settings)
    exact = gradients(lambda x, s: exact_loss(fermi_dirac(s), x, pairs), z.double(), settings.double())
    assert_close(got, exact, 2e-5)


def test_nodes_in_one_place_have_a_distance_of_zero_and_no_gradient() -> None:
    z = torch.ones(4, 3)
    links, nonlinks = pattern_of([(1, 0)], (4, 4)), pattern_of([(3, 2)], (4, 4))
    head = FermiDirac(3)
    loss, d_z = gradients(lambda x: distance_loss(x, head, links, nonlinks), z)
    r = float(head.radius.detach() / head.temperature().detach())
    assert float(loss) == pytest.approx((F.softplus(torch.tensor(-r)) + F.softplus(torch.tensor(r))).item() / 2)
    assert d_z.abs().max() < 1e-6


# ----- hyperbolic centroids ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("runs", [1, 2])
@pytest.mark.parametrize("length", [0.0, 1e-5, 0.5, 4.0, 30.0])
def test_points_with_a_bias_and_their_tangent_vectors(threads: int, length: float, runs: int) -> None:
    """At the origin, and beyond the largest radius, too, where the bias has a small gradient from large points."""
    made = torch.Generator().manual_seed(0)
    lead = [runs] * (runs > 1)
    v = length * F.normalize(torch.randn(*lead, NODES, 5, generator=made), dim=-1)
    b, c = torch.randn(*lead, 1, 5, generator=made), 0.5 + torch.rand(*lead, 1, 1, generator=made)
    (x, d_v, d_b, d_c), exact = (
        gradients(lorentz.exp0_and_translate, *(y.to(kind) for y in (v, b, c))) for kind in KINDS
    )
    assert_close((x, d_v, d_c), (exact[0], exact[1], exact[3]), 2e-5)
    assert float((d_b - exact[2]).abs().max()) <= 2e-5 * float(exact[2].abs().max()) + 2e-6 * float(x.abs().max())
    assert_close(gradients(lorentz.log0, x, c), gradients(lorentz.log0, x.double(), c.double()), 5e-6)


@pytest.mark.parametrize("runs", [1, 2])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("radius", [0.05, 2.0, 8.0])
def test_centroids(threads: int, radius: float, symmetric: bool, runs: int) -> None:
    """Points far from the origin, too, where the centroid is a small difference of large numbers."""
    loops = [(node, node) for node in range(NODES)]
    pattern = batched([*LINKS, *((v, u) for u, v in LINKS if symmetric), *loops], NODES, runs)
    made = torch.Generator().manual_seed(0)
    weights = torch.rand(pattern.col.numel(), generator=made)
    if symmetric:
        pattern = replace(pattern, symmetric=True)
        weights = weights + weights[Pattern(pattern.crow, pattern.col, pattern.shape).t_order]
    c = 0.5 + torch.rand([runs, 1, 1] if runs > 1 else [1, 1], generator=made)
    lead = [runs] * (runs > 1)
    x = F.normalize(torch.randn(*lead, NODES, 5, generator=made), dim=-1) * math.sinh(radius)
    x = (x * (0.5 + torch.rand(*lead, NODES, 1, generator=made)) / c.sqrt()).detach()

    def centers(x: Tensor, c: Tensor) -> Tensor:
        return lorentz.centroid(SparseMatrix(pattern, weights.to(x.dtype)), x, c)

    got, exact = gradients(centers, x, c), gradients(centers, x.double(), c.double())
    assert_close(got[:1], exact[:1])
    for one, other in zip(got[1:], exact[1:], strict=True):
        size = other.norm()
        assert float((one.double() - other).norm()) <= 2e-5 * float(size)


# ----- attention and codes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize(("nodes", "pairs"), [(1, []), (NODES, LINKS), (1502, [*HUB[0], *HUB[1]])])
def test_shares_of_attention(threads: int, heads: int, nodes: int, pairs: list[tuple[int, int]]) -> None:
    """The last nodes have no neighbour but themselves, and a hub has more than a block of entries."""
    links = sorted(set(pairs))
    loops = [(node, node) for node in range(nodes)]
    pattern = pattern_of([*links, *((v, u) for u, v in links), *loops], (nodes, nodes), symmetric=True)
    made = torch.Generator().manual_seed(0)
    sender, receiver = (3 * torch.randn(nodes, heads, generator=made) for _ in range(2))
    some = torch.rand(pattern.col.numel(), generator=made) < 0.6
    for present in (None, some | (pattern.row == pattern.col)):

        def shares(s: Tensor, r: Tensor, present: Tensor | None = present) -> Tensor:
            return attention_shares(s, r, pattern, present=present)

        ours = gradients(shares, sender, receiver)
        with kernels.reference():
            assert_close(ours, gradients(shares, sender.double(), receiver.double()), 4e-6)
        turned = gradients(lambda s, r: shares(s.T, r.T), sender.T.contiguous(), receiver.T.contiguous())
        assert all(a.equal(b) for a, b in zip(turned, (ours[0], ours[1].T, ours[2].T), strict=True))


def of_every_loop() -> dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...]]]:
    """Functions with a compiled loop, and their inputs: for pairs, some rows that are longer than a block."""
    made = torch.Generator().manual_seed(0)
    nodes = 1502
    z, bias, weight = (torch.randn(*shape, generator=made) for shape in ((nodes, 6), (6,), (6, 6)))
    links, nonlinks = (pattern_of(part, (nodes, nodes)) for part in HUB)
    loops = [(node, node) for node in range(nodes)]
    both = pattern_of([*HUB[0], *((v, u) for u, v in HUB[0]), *loops], (nodes, nodes), symmetric=True)
    drop = Dropout(0.3)
    drop.noise = noise(0)
    matrix = SparseMatrix(both, torch.ones(both.col.numel()))
    scores = torch.randn(nodes, 3, generator=made), torch.randn(nodes, 3, generator=made)
    c = torch.ones(1, 1)
    return {
        "relu": (drop.relu, (z, bias)),
        "elu": (drop.elu, (z, bias)),
        "logits": (lambda x: logistic_loss(x.flatten(), 4001), (z,)),
        "bilinear": (lambda x, w: bilinear_loss(x, w + w.mT, bias[0], links, nonlinks), (z, weight)),
        "distances": (lambda x: distance_loss(x, FermiDirac(6), links, nonlinks), (z,)),
        "points": (lorentz.exp0_and_translate, (z, bias[None], c)),
        "tangents": (lorentz.log0, (z, c)),
        "centroids": (lambda x: lorentz.centroid(matrix, x, c), (lorentz.exp0_and_translate(z, bias[None], c),)),
        "shares": (lambda s, r: attention_shares(s, r, both), scores),
        "product": (
            lambda w, x: weighted_product(w, both, x[:, None]),
            (torch.rand(both.col.numel(), 1, generator=made), z),
        ),
        "codes": (lambda x: soft_codes(x, CodeShape(2, 3)), (z,)),
    }


@pytest.mark.parametrize("name", of_every_loop())
def test_the_number_of_threads_changes_no_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, inputs = of_every_loop()[name]
    monkeypatch.setattr(kernels.compiling, "WORTH_A_THREAD", 1)
    results = []
    for threads in (1, 2, 3, 5):
        monkeypatch.setattr(torch, "get_num_threads", lambda number=threads: number)
        results.append(gradients(function, *inputs))
    for other in results[1:]:
        assert all(a.equal(b) for a, b in zip(results[0], other, strict=True))


def test_a_thread_that_outlives_the_main_thread_runs_loops() -> None:
    """The pool of threads takes no work then."""
    code = """
import threading, time, torch
from graphveil import kernels
from graphveil.models.codes import CodeShape, soft_codes
torch.get_num_threads = lambda: 2
kernels.compiling.WORTH_A_THREAD = 1
def train():
    main = threading.main_thread()
    first = soft_codes(torch.zeros(100, 4), CodeShape(2, 2))
    main.join()
    print(soft_codes(torch.zeros(100, 4), CodeShape(2, 2)).equal(first))
threading.Thread(target=train).start()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("place", [0, 1])
def test_shares_of_scores_that_are_not_finite_are_not_numbers(bad: float, place: int) -> None:
    """So that a training that diverges is noticed."""
    pattern = pattern_of([(0, 0), (1, 1), (0, 1), (1, 0), (2, 2)], (3, 3), symmetric=True)
    scores = torch.zeros(2, 3, 1)
    scores[place, 1] = bad
    ours = attention_shares(scores[0], scores[1], pattern)
    with kernels.reference():
        assert ours.isnan().equal(attention_shares(scores[0], scores[1], pattern).isnan())
    assert ours.isnan().any()
    assert ours[-1] == 1, "the last node has no such neighbour"


@pytest.mark.parametrize("shape", [CodeShape(1, 4), CodeShape(2, 3), CodeShape(3, 5)])
@pytest.mark.parametrize("rows", [(1,), (300,), (2, 40)])
def test_soft_codes(threads: int, shape: CodeShape, rows: tuple[int, ...]) -> None:
    logits = 5 * torch.randn(*rows, shape.channels, generator=torch.Generator().manual_seed(0))
    ours = gradients(lambda x: soft_codes(x, shape), logits)
    with kernels.reference():
        assert_close(ours, gradients(lambda x: soft_codes(x, shape), logits.double()), 8e-6)
    turned = gradients(lambda x: soft_codes(x.mT, shape), logits.mT.contiguous()) if len(rows) == 2 else ours
    assert turned[0].equal(ours[0])
