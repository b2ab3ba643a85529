"""Codes: hide a class by exact information, without an adversary.

The encoder's output is a distribution q of each node over finitely many codes (`graphveil.models.codes`). In every
round the encoder takes one step on

    lambda * (utility in nats)  -  (1 - lambda) * weight * sum over secrets of (their classes in nats)

where all terms are sums over small tables (`graphveil.training.information`). Links that are kept count as far as they
say more than the secret's classes do: else the codes learn the classes first, because these say most about links, and
have to forget them later. The secret's term is the mean of a plain and a class-balanced table.

A class that the defender may not use, because its node is validated or tested on or it is unknown, is replaced by a
prediction. The map from a node to its code never reads a secret: it is a function of features and links.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name

from graphveil.codes.merge import Counts
from graphveil.models.codes import CodeShape, PairTable, hard_codes, soft_codes
from graphveil.models.sparse import Adjacency, SparseMatrix
from graphveil.randomness import draw, generator
from graphveil.training.counts import (
    allowed_gain,
    code_shares,
    count_classes,
    hidden_counts,
    kept_class,
    kept_links,
    link_scores,
    merged_table,
    merging,
    pair_scores,
    rule_accuracy,
    usable_counts,
)
from graphveil.training.information import (
    balanced,
    class_information,
    class_table,
    link_information,
    link_information_beyond,
    link_table,
)
from graphveil.training.loop import Problem, Readings, gain
from graphveil.training.players import Player, Streams, embed
from graphveil.training.recipes import Recipe
from graphveil.training.targets import Links, NodeClasses, auc, guessing

LINKS_AT_ONCE = 2**15
NODES_AT_ONCE = 2**16
"""Links and nodes that a round looks at; of more, a sample."""
TABLE_SHARE = 0.05
"""How fast the running table of linked codes follows."""
DRAWS = 2
"""How often classes that may not be used are drawn from their prediction, for counts of all nodes."""
PENALTY = 1.0
"""What a point of leakage that validation finds above the limit costs in the gain of the utility."""


@dataclass(frozen=True, eq=False)
class Classes:
    """A target with a class for every node: known, or predicted.

    Args:
        shares: s, (..., n, C), each row a distribution.
        drawn: (draws, ..., n) possible classes of all nodes: the known ones, and draws from the predictions.
        link_pairs: Lambda, how the links join the classes, (..., C, C); None where no links are kept.
    """

    target: NodeClasses
    shares: Tensor
    drawn: Tensor
    link_pairs: Tensor | None = None

    @classmethod
    def of(cls, target: NodeClasses, predicted: Tensor, links: Tensor | None, seeds: Sequence[int]) -> "Classes":
        """Known classes one-hot, the others as predicted (..., n, C)."""
        shares = predicted.clone()
        known = target.train_examples
        one_hot = F.one_hot(known.y, target.num_classes).to(shares.dtype)
        shares.view(-1, target.num_classes)[known.index.flatten()] = one_hot.flatten(0, -2)
        drawn = _drawn(target, predicted, seeds)
        if links is None:
            return cls(target, shares, drawn)
        one, other = (_rows(shares, end) for end in links)
        return cls(target, shares, drawn, link_table(one, other))

    def drawn_of(self, run: int) -> Tensor:
        """The drawn classes of one run, (draws, n) on the CPU."""
        return self.drawn.view(DRAWS, -1, self.shares.size(-2))[:, run].cpu()


class Codes:
    """An encoder whose output is read as codes; a `Method` of the training loop.

    Args:
        secrets: what to hide, in the order of the problem's. utility: what to keep, where it is a class; else the
            problem's links are kept.
    """

    inner_steps = 1

    def __init__(
        self,
        problem: Problem,
        modules: dict[str, nn.Module],
        shape: CodeShape,
        recipe: Recipe,
        streams: Streams,
        secrets: Sequence[Classes],
        utility: Classes | None,
    ) -> None:
        self.problem, self.shape, self.recipe, self.streams = problem, shape, recipe, streams
        self.secrets, self.utility = secrets, utility
        self.encoder = Player(
            "encoder", modules["encoder"], streams, recipe.lr_encoder, recipe.clip, recipe.weight_decay
        )
        self.pairs: PairTable = modules["pairs"]  # type: ignore[assignment]
        self._link_draws, self._node_draws = streams("codes/links"), streams("codes/nodes")
        self._edge_draws = streams("codes/edges")
        self._weights = _ramp(recipe, streams.clock.device)

    @property
    def players(self) -> Sequence[Player]:
        """The encoder alone."""
        return (self.encoder,)

    @property
    def parts(self) -> Mapping[str, nn.Module]:
        """The encoder, and the running table of linked codes."""
        return {"encoder": self.encoder.module, "pairs": self.pairs}

    def embed(self) -> Tensor:
        """The logits of every node, (..., n, groups * size)."""
        return embed(self.encoder.module, self.problem.x, self.problem.adjacency)

    def round(self) -> Tensor:
        """One step of the encoder."""
        if not self.encoder.is_ours:
            self.streams.reseed("encoder")
        logits = self.encoder.module(self.problem.x, self._thinned())
        nodes = self._sample_of_nodes(logits)
        q = soft_codes(_rows(logits, nodes), self.shape) if nodes is not None else soft_codes(logits, self.shape)
        tables = [class_table(q, _at(secret.shares, nodes)) for secret in self.secrets]
        leaked = [(class_information(table) + class_information(balanced(table))) / 2 for table in tables]
        kept = self._kept(logits, q, nodes, tables)
        tradeoff = self.problem.tradeoff.to(kept.dtype)
        weight = self._weights.index_select(0, self.streams.clock).squeeze(0)
        loss = (1 - tradeoff) * weight * torch.stack(leaked).sum(dim=0) - tradeoff * kept
        loss.sum().backward()
        norm = self.encoder.step()
        return torch.stack([part.detach().view(-1) for part in (-kept, *leaked)] + [norm])

    def _thinned(self) -> Adjacency:
        """The links that messages pass along in this round. Without dropout, codes would fit the training links."""
        adjacency, share = self.problem.adjacency, self.recipe.edge_dropout
        if share == 0:
            return adjacency
        count = (adjacency.normalized.pattern.col.numel() - adjacency.normalized.pattern.shape[0]) // 2
        return adjacency.thinned(self._edge_draws.coins(1 - share, count // len(self.streams.seeds)).flatten())

    def _kept(self, logits: Tensor, q: Tensor, nodes: Tensor | None, secrets: Sequence[Tensor]) -> Tensor:
        """The utility in nats, (...)."""
        if self.utility is not None:
            return class_information(class_table(q, _at(self.utility.shares, nodes)))
        table = self._linked_codes(logits, q, nodes)
        self.pairs.add(table, TABLE_SHARE)
        beyond = [
            link_information_beyond(table, classes, secret.link_pairs)
            for classes, secret in zip(secrets, self.secrets, strict=True)
            if secret.link_pairs is not None
        ]
        hidden = self.problem.tradeoff < 1
        return torch.stack(beyond).mean(dim=0).where(hidden, link_information(table, q.mean(dim=-2)))

    def _linked_codes(self, logits: Tensor, q: Tensor, nodes: Tensor | None) -> Tensor:
        """L, from q' (A q) where q is of all nodes: a product with the links costs less than q at all their ends."""
        links, pattern = self._links.sampled_links(self._link_draws, LINKS_AT_ONCE)
        if nodes is not None:
            one, other = (soft_codes(_rows(logits, end), self.shape) for end in links)
            return link_table(one, other)
        ones = q.new_ones(pattern.col.numel())
        table = q.mT @ (SparseMatrix(pattern, ones) @ q) / links.size(-1)
        return (table + table.mT) / 2

    def _sample_of_nodes(self, logits: Tensor) -> Tensor | None:
        """Rows of a sample of the nodes, (..., count); None where all are looked at."""
        runs, count = len(self.streams.seeds), logits.size(-2)
        if count <= NODES_AT_ONCE:
            return None
        drawn = self._node_draws.ascending_integers(count, NODES_AT_ONCE)
        rows = drawn + count * torch.arange(runs, device=drawn.device)[:, None]
        return rows.view(*logits.shape[:-2], -1)

    @property
    def _links(self) -> Links:
        target = self.problem.utility
        assert isinstance(target, Links)
        return target

    # ----- selection --------------------------------------------------------------------------------------------------

    def read(self) -> Readings:
        """Readings of hard codes, as a release would have them: merged until the limit holds.

        The utility is that of the merged codes. A secret is read by a rule that was counted on training nodes, and by
        the best rule there is on all nodes whose classes may be used.
        """
        logits = self.embed()
        codes = hard_codes(logits, self.shape)
        finite = logits.isfinite().flatten(-2).all(dim=-1) & self.pairs.mean.isfinite().flatten(-2).all(dim=-1)
        pairs = self.pairs.mean.double().where(finite[..., None, None], 1 / self.shape.codes**2)
        mapping = self._merging(codes, pairs) if int(self.streams.clock) >= self.recipe.warmup else None
        if mapping is not None:
            codes, pairs = mapping.gather(-1, codes), merged_table(pairs, mapping)
        utility = self._read_utility(codes, pairs).where(finite, torch.nan)
        rules, certificates, excess = [], [], []
        for secret in self.secrets:
            rule, certificate = self._read_secret(codes, secret.target)
            rules.append(rule)
            certificates.append(certificate)
            excess.append(rule - guessing(secret.target, secret.target.val))
        worst = (torch.stack(excess).amax(dim=0) - allowed_gain(self.recipe, self.problem.tradeoff)).clamp(min=0)
        score = gain(self.problem.utility, utility) - PENALTY * worst.where(self.problem.tradeoff < 1, 0.0)
        return Readings(utility, score, rules, certificates)

    def _merging(self, codes: Tensor, pairs: Tensor) -> Tensor:
        """Which code each becomes in a release, (..., M)."""
        size, runs = self.shape.codes, len(self.streams.seeds)
        own, pairs = codes.view(runs, -1), pairs.view(runs, size, size)
        secrets = [
            hidden_counts(codes, one.target, one.drawn, size).view(1 + DRAWS, runs, size, -1) for one in self.secrets
        ]
        gains = allowed_gain(self.recipe, self.problem.tradeoff).view(-1).tolist()
        utility = self.problem.utility
        if isinstance(utility, NodeClasses):
            of_class = count_classes(codes, utility.train_examples, utility, size).view(runs, size, -1)
            kept: list[Counts] = [kept_class(one) for one in of_class]
        else:
            kept = [kept_links(*one) for one in zip(pairs, own, strict=True)]
        found = [merging(own[run], kept[run], [one[:, run] for one in secrets], gains[run]) for run in range(runs)]
        mapping = torch.stack([torch.from_numpy(one.mapping) for one in found])
        return mapping.to(codes.device).view(*codes.shape[:-1], size)

    def _read_utility(self, codes: Tensor, pairs: Tensor) -> Tensor:
        target = self.problem.utility
        if isinstance(target, NodeClasses):
            return rule_accuracy(codes, target, target.val, self.shape.codes)
        scores = link_scores(pairs, code_shares(codes, self.shape.codes))
        return auc(pair_scores(scores, codes, target.val), target.val.y)

    def _read_secret(self, codes: Tensor, target: NodeClasses) -> tuple[Tensor, Tensor]:
        """The counted rule's accuracy on validation nodes, and the best rule's on all nodes that may be used."""
        counts = usable_counts(codes, target, self.shape.codes)
        best = counts.amax(dim=-1).sum(dim=-1) / counts.sum(dim=(-2, -1))
        return rule_accuracy(codes, target, target.val, self.shape.codes), best


def _drawn(target: NodeClasses, predicted: Tensor, seeds: Sequence[int]) -> Tensor:
    """Classes of all nodes, (draws, ..., n): those that may be used as they are, the others drawn from a prediction."""
    nodes = predicted.size(-2)
    uniform = [torch.rand(DRAWS, nodes, generator=generator(seed, "codes", "drawn", target.name)) for seed in seeds]
    places = torch.stack(uniform, dim=1).view(DRAWS, *predicted.shape[:-1]).to(predicted.device)
    drawn = draw(predicted, places)
    for part in (target.train_examples, target.val):
        drawn.view(DRAWS, -1)[:, part.index.flatten()] = part.y.flatten()
    return drawn


def _rows(x: Tensor, index: Tensor) -> Tensor:
    """Rows of (..., n, channels) by numbers that count through all runs, (..., count, channels)."""
    return x.flatten(0, -2).index_select(0, index.flatten()).view(*index.shape, x.size(-1))


def _at(x: Tensor, nodes: Tensor | None) -> Tensor:
    return x if nodes is None else _rows(x, nodes)


def _ramp(recipe: Recipe, device: torch.device) -> Tensor:
    """The secret's weight in each round: raised by equal factors to its full size, then kept, (rounds,)."""
    progress = (torch.arange(recipe.rounds, device=device) / max(1, recipe.ramp)).clamp(max=1)
    return recipe.secret_weight * (recipe.first_weight / recipe.secret_weight) ** (1 - progress)
