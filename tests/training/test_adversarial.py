"""The facts about one round: who moves, which way, from what, and how its result is scored."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

import graphveil as gv
from graphveil.models.layers import Affine
from graphveil.training.adversarial import Secret
from graphveil.training.loop import Training
from graphveil.training.objectives import ADVERSARIAL, cross_entropy, vclub
from graphveil.training.targets import Examples, Rows
from graphveil.veil import Fitting
from tests.training.made import game, same, training, weights


def test_a_head_step_moves_its_head_and_nothing_else(small: Data, small_split: gv.Split, quick: gv.Recipe) -> None:
    run = training(small, small_split, quick)
    z = game(run).embed()
    hide, keep = (
        game(run).secrets[0].target.train(game(run).secrets[0].noise),
        game(run).problem.utility.train(game(run)._noise),
    )
    for name, step in (
        ("adversary", lambda: game(run)._adversary_step(game(run).secrets[0], Rows(z, hide))),
        ("utility", lambda: game(run)._utility_step(z.clone(), keep)),
    ):
        before = {p.name: weights(p.module) for p in game(run).players}
        step()
        assert [p.name for p in game(run).players if not same(before[p.name], p.module)] == [name]


def test_the_encoder_step_moves_the_encoder_only(small: Data, small_split: gv.Split, quick: gv.Recipe) -> None:
    run = training(small, small_split, quick)
    hide = game(run).secrets[0].target.train(game(run).secrets[0].noise)
    before = {p.name: weights(p.module) for p in game(run).players}
    game(run).encoder.module.train()
    z = game(run)._draw().encode()
    z.backward(game(run)._secret_gradient(game(run).secrets[0], z.detach(), hide))
    game(run).encoder.step()
    assert [p.name for p in game(run).players if not same(before[p.name], p.module)] == ["encoder"]
    assert all(p.grad is None for p in game(run).adversaries[0].parameters), (
        "the adversary gets no gradient from the encoder"
    )


@pytest.mark.parametrize("utility", ["links", "labels"])
@pytest.mark.parametrize("encoder", ["gcn", "gat", "hgcn"])
def test_lambda_one_is_plain_training_bit_for_bit(
    small: Data, small_split: gv.Split, quick: gv.Recipe, utility: str, encoder: str
) -> None:
    """The loop everybody writes: one loss, one backward, one Adam over encoder and head together."""
    secret = "labels" if utility == "links" else "links"
    recipe = quick.but(head="bilinear" if utility == "links" else "linear", weight_decay=0.0, clip=1e9)
    settings = {"utility": utility, "secret": secret, "encoder": encoder, "tradeoff": 1.0, "seed": 7}
    plain = training(small, small_split, recipe, **settings)
    protected = training(small, small_split, recipe, **settings)
    protected.run()

    torch.manual_seed(123)  # whatever the caller's generator holds
    modules = (game(plain).encoder.module, game(plain).utility.module)
    optimizer = torch.optim.Adam([p for m in modules for p in m.parameters()], lr=0.01, fused=True)
    target = game(plain).problem.utility
    for number in range(recipe.rounds):
        game(plain).streams.clock.fill_(number)
        examples = target.train(game(plain)._noise)
        z = game(plain)._draw().encode()
        loss = target.loss(modules[1], Rows(z, examples))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert protected.records[0].history[number].utility_loss == loss.item()
    assert same(weights(modules[0]), game(protected).encoder.module)
    assert same(weights(modules[1]), game(protected).utility.module)


def test_at_lambda_one_the_adversary_cannot_change_a_bit(small: Data, small_split: gv.Split, quick: gv.Recipe) -> None:
    strong = training(small, small_split, quick, tradeoff=1.0)
    weak = training(small, small_split, quick, tradeoff=1.0, adversary=gv.Adversary("linear", 1, "few"))
    strong.run()
    weak.run()
    assert same(weights(game(strong).encoder.module), game(weak).encoder.module)
    assert strong.records[0].best_round == weak.records[0].best_round


class Identity(nn.Module):
    """An encoder whose embeddings are its weights, so that gradients can be written down by hand."""

    def __init__(self, in_channels: int, **_: object) -> None:
        super().__init__()
        self.z = nn.Parameter(torch.tensor([[1.0, -0.5], [0.3, 0.8], [-1.0, 0.2], [0.4, 0.4]]))
        self.in_channels = in_channels

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        del x, edge_index
        return self.z * 1.0


@pytest.mark.parametrize("objective", ADVERSARIAL)
def test_which_way_each_player_moves(objective: str) -> None:
    """Four nodes, two classes, a linear adversary: d CE / d z = (softmax - onehot) W' / n, worked out here by hand."""
    graph = Data(x=torch.ones(4, 1), edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]), y=torch.tensor([0, 0, 1, 1]))
    run = hand_made(graph, objective)
    z = game(run).embed()
    examples = game(run).secrets[0].target.train(game(run).secrets[0].noise)
    nodes, y = examples.index, examples.y
    linear = game(run).adversaries[0].module.linear
    assert isinstance(linear, Affine)
    w, b = linear.weight.detach().t().clone(), linear.bias.detach().clone()

    logits = z[nodes] @ w.t() + b
    share = logits.exp() / logits.exp().sum(dim=1, keepdim=True)
    onehot = torch.eye(2)[y]
    ce_gradient = (share - onehot) @ w / len(y)  # of CE(g(z), y) at z
    prior_gradient = (share - game(run).secrets[0].target.prior) @ w / len(y)  # of CE(g(z), prior) at z
    expected = torch.zeros_like(z)
    expected[nodes] = {
        "published": -ce_gradient,
        "minimax": -ce_gradient,
        "club": prior_gradient - ce_gradient,
        "entropy": prior_gradient,
    }[objective]
    assert torch.allclose(game(run)._secret_gradient(game(run).secrets[0], z, examples), expected, rtol=0, atol=1e-6)

    before = float(-(onehot * share.log()).sum() / len(y))
    game(run).adversaries[0].optimizer = torch.optim.SGD(game(run).adversaries[0].parameters, lr=0.1)
    rows = Rows(z.detach(), examples)
    game(run)._adversary_step(game(run).secrets[0], rows)
    log_q = game(run).secrets[0].target.log_probabilities(game(run).adversaries[0].module, rows)
    after = cross_entropy(log_q, y).item()
    assert (after > before) == (objective == "published"), "published ascends, the others descend"

    sign = 1 if objective == "published" else -1
    assert torch.allclose(
        linear.weight.t(), w + sign * 0.1 * (share - onehot).t() @ z[nodes] / len(y), rtol=0, atol=1e-6
    )


def hand_made(graph: Data, objective: str) -> Training:
    empty = torch.empty(2, 0, dtype=torch.long)
    split = gv.Split(
        num_nodes=4,
        message_edges="train",
        train_nodes=torch.tensor([0, 2]),
        val_nodes=torch.tensor([1]),
        test_nodes=torch.tensor([3]),
        spare_nodes=torch.empty(0, dtype=torch.long),
        train_links=torch.tensor([[0, 1], [1, 2]]),
        val_links=torch.tensor([[2], [3]]),
        val_nonlinks=torch.tensor([[0], [3]]),
        test_links=empty,
        test_nonlinks=empty,
    )
    recipe = gv.Recipe(hidden_channels=2, out_channels=2, clip=1e9)
    veil = gv.Veil(
        encoder=Identity,
        objective=objective,
        adversary=gv.Adversary("linear"),
        recipe=recipe,
        tradeoff=0.5,
        device="cpu",
    )
    return Fitting([veil], graph, [split]).training


def test_the_encoders_gradient_is_the_weighted_sum(small: Data, small_split: gv.Split, quick: gv.Recipe) -> None:
    """One round with plain SGD moves the encoder by -lr * (lambda * dU + (1 - lambda) * dS)."""
    recipe = quick.but(dropout=0.0, clip=1e9)
    run, twin = (training(small, small_split, recipe, tradeoff=0.3, objective="club", seed=4) for _ in range(2))
    for player in game(run).players:
        player.optimizer = torch.optim.SGD(player.parameters, lr=0.5)
    before = weights(game(run).encoder.module)
    drawn = game(run)._draw()
    keep, (hide,) = drawn.keep, drawn.hide
    game(run)._step(drawn)

    z = game(twin)._draw().encode()
    kept, hidden = Rows(z, keep), Rows(z, hide)
    utility = cross_entropy(game(twin).problem.utility.log_probabilities(game(twin).utility.module, kept), keep.y)
    log_q = (
        game(run).secrets[0].target.log_probabilities(game(run).adversaries[0].module, hidden)
    )  # the adversary after its steps
    secret = vclub(log_q, hide.y, game(run).secrets[0].target.prior)
    (0.3 * utility + 0.7 * secret).backward()
    for old, new, like in zip(
        before, game(run).encoder.module.parameters(), game(twin).encoder.module.parameters(), strict=True
    ):
        assert like.grad is not None
        assert torch.allclose(new, old - 0.5 * like.grad, rtol=1e-4, atol=1e-6)


def test_inner_steps_repeat_on_the_same_examples(small: Data, small_split: gv.Split, quick: gv.Recipe) -> None:
    """I = 3 makes three encoder steps a round: Adam has counted them."""
    run = training(small, small_split, quick.but(inner_steps=3, rounds=2), adversary=gv.Adversary(steps=4))
    run.run()
    steps = {p.name: int(next(iter(p.optimizer.state.values()))["step"]) for p in game(run).players}
    assert steps == {"encoder": 6, "utility": 6, "adversary": 24}


def test_the_selection_score_by_hand(small: Data, small_split: gv.Split, quick: gv.Recipe) -> None:
    """Validation has a majority share m: accuracy a gains (a - m) / (1 - m), AUC a gains 2a - 1."""
    keep_links = training(small, small_split, quick, tradeoff=0.6)
    y = small.y[small_split.val_nodes]
    m = float(torch.bincount(y).max() / y.numel())
    assert score(keep_links, 0.9, m) == pytest.approx(0.6 * 0.8)
    assert score(keep_links, 0.9, 1.0) == pytest.approx(0.6 * 0.8 - 0.4)
    assert score(keep_links, 0.9, 0.0) == pytest.approx(0.6 * 0.8), "below the majority share there is no gain"
    hide_links = training(small, small_split, quick.but(head="linear"), utility="labels", secret="links", tradeoff=0.6)
    assert score(hide_links, 1.0, 0.9) == pytest.approx(0.6 - 0.4 * 0.8)
    assert score(hide_links, 1.0, 0.1) == pytest.approx(0.6 - 0.4 * 0.8), "reliably wrong is as good as right"
    assert score(hide_links, 0.0, 0.5) == pytest.approx(0.6 * -m / (1 - m))


def test_the_better_of_the_two_readers_selects(small: Data, small_split: gv.Split, quick: gv.Recipe) -> None:
    run = training(small, small_split, quick, tradeoff=0.6)
    assert score(run, 0.9, 0.0, probe=1.0) == score(run, 0.9, 1.0, probe=0.0) == pytest.approx(0.6 * 0.8 - 0.4)
    for tradeoff in (0.6, 0.0):
        ascending = training(small, small_split, quick, objective="published", tradeoff=tradeoff)
        assert score(ascending, 0.9, 1.0) == pytest.approx(0.8), "an adversary that ascends its loss does not count"


def test_a_run_that_hides_nothing_is_not_probed_and_not_hurt_in_a_batch(small: Data, quick: gv.Recipe) -> None:
    """Whatever the secret's gradient is, infinite for one, it is none of the affair of a run at trade-off 1."""
    splits = [gv.Split.proportional(small, seed) for seed in (0, 1)]
    batch = [
        gv.Veil(objective="club", recipe=quick, seed=seed, tradeoff=tradeoff, device="cpu")
        for seed, tradeoff in ((0, 1.0), (1, 0.5))
    ]
    run = Fitting(batch, small, splits).training
    real = game(run)._secret_gradient

    def broken(secret: Secret, z: Tensor, examples: Examples, share: float = 1.0) -> Tensor:
        return real(secret, z, examples, share) * torch.tensor([torch.nan, 1.0])[:, None, None]

    game(run)._secret_gradient = broken  # type: ignore[method-assign]
    run.run()
    assert [record.diverged for record in run.records] == [None, None]
    probes = [
        [done.secrets[0].probe for done in record.history if not math.isnan(done.utility)] for record in run.records
    ]
    assert all(math.isnan(value) for value in probes[0])
    assert not any(math.isnan(value) for value in probes[1])


def score(run: Training, utility: float, adversary: float, probe: float | None = None) -> float:
    kept, read, probed = (
        torch.tensor(one).double() for one in (utility, adversary, adversary if probe is None else probe)
    )
    return float(game(run)._score(kept, [read], [probed]))


def test_every_secret_counts_in_full(small: Data, small_split: gv.Split, quick: gv.Recipe) -> None:
    """The gradient at z of two secrets is the sum of what each has alone, and the first trains as if it were alone."""
    arguments = {"objective": "club", "tradeoff": 0.0, "seed": 3}
    alone, other = (training(small, small_split, quick, secret=name, **arguments) for name in ("labels", "secret"))
    both = training(small, small_split, quick, secret=["labels", "secret"], **arguments)
    game(other).secrets[0].adversary.module.load_state_dict(game(both).adversaries[1].module.state_dict())
    z = game(both).embed()
    gradients = [
        game(run)._secret_gradient(secret, z.clone(), secret.target.train(secret.noise))
        for run in (both, alone, other)
        for secret in game(run).secrets
    ]
    assert gradients[0].equal(gradients[2])
    assert gradients[1].equal(gradients[3])
    before = weights(game(both).encoder.module)
    gained: list[Tensor] = []

    def watch(module: nn.Module, given: object, z: Tensor) -> None:
        z.register_hook(gained.append)

    game(both).encoder.module.register_forward_hook(watch)
    game(both).adversary_steps = 1
    for player in game(both).adversaries:
        player.optimizer = torch.optim.SGD(player.parameters, lr=0.0)
    game(both).encoder.module.eval()  # no dropout, so that z is the z above
    game(both)._step(game(both)._draw())
    assert torch.allclose(gained[0], gradients[0] + gradients[1], rtol=1e-5, atol=1e-8)
    assert not same(before, game(both).encoder.module)


def test_of_several_secrets_the_strongest_attack_selects(small: Data, small_split: gv.Split, quick: gv.Recipe) -> None:
    run = training(
        small, small_split, quick.but(head="linear"), utility="labels", secret=["links", "secret"], tradeoff=0.6
    )
    kept, chance = torch.tensor(1.0).double(), torch.tensor(0.5).double()
    y = small.secret[small_split.val_nodes]
    m = float(torch.bincount(y).max() / y.numel())
    for links, secret in ((0.9, m), (0.5, m + 0.8 * (1 - m))):
        adversaries = [torch.tensor(links).double(), torch.tensor(secret).double()]
        assert float(game(run)._score(kept, adversaries, [chance, torch.tensor(m).double()])) == pytest.approx(
            0.6 - 0.4 * 0.8
        )
