"""Train codes: hide classes by their exact mutual information with the code, without an adversary.

The output of the encoder is a distribution q of each node over finitely many codes (`graphveil.models.codes`). In every
round the encoder takes one step on

    lambda * I(code; utility)  -  (1 - lambda) * weight * sum over secrets of I(code; secret)

in nats, where all terms are sums over small tables (`graphveil.training.information`). If links are the utility, only
information about them beyond the secret classes counts. Otherwise the codes first learn the classes, which are the most
informative about links, and have to forget them later. A secret's term is the mean over a plain and a class-balanced
table.

Classes that the defender may not use (of validation and test nodes) or does not know are replaced by predictions. The
code of a node is a function of features and links, and never of a secret.

In several processes, each adds its part of a mini-batch to every table, so all processes have the same loss.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name

from graphveil.codes.merge import Counts
from graphveil.models.blocks import ends, rows_of
from graphveil.models.codes import CodeShape, PairTable, hard_codes, soft_codes
from graphveil.models.sparse import Adjacency
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
from graphveil.training.graphs import WholeGraph
from graphveil.training.information import (
    balanced,
    class_information,
    class_sums,
    link_information,
    link_information_beyond,
    link_table,
    shares_of,
)
from graphveil.training.linked_codes import LinkedCodes
from graphveil.training.loop import Evaluation, Problem, gain
from graphveil.training.players import Player, Streams
from graphveil.training.recipes import Recipe
from graphveil.training.sampled import Batches, SampledGraph, Shuffled
from graphveil.training.targets import Examples, LearnedTarget, Links, ListedExamples, NodeClasses, auc, chance_level

NODES_AT_ONCE = 2**16
"""The largest number of nodes in a round; of more, a sample is used."""
TABLE_SHARE = 0.05
"""The weight of a new table in the running mean of the tables of linked codes."""
FEWEST_DRAWS, MOST_DRAWS, DRAWN_NODES = 2, 6, 20_000
"""How often predicted classes are sampled, for counts over all nodes: so often that about `DRAWN_NODES` are sampled.

Merges that are chosen for a few samples of a small graph overfit these: on Citeseer, six samples instead of two lowered
the certificate by half a point at the same AUC.
"""
PENALTY = 1.0
"""How much a validation accuracy above the limit costs in the gain of the utility."""


@dataclass(frozen=True, eq=False)
class CodesOfRound:
    """The soft codes of a round.

    Args:
        q: Of nodes, (..., n, M).
        nodes: Which nodes these are, counted through all runs; None means all.
        linked: Computes the table of linked codes, (..., M, M); None unless links are the utility.
        share: How much of the nodes of all processes these are.
    """

    q: Tensor
    nodes: Tensor | None
    linked: Callable[[], Tensor] | None
    share: float = 1.0


@dataclass(frozen=True, eq=False)
class Classes:
    """A target with a known or predicted class for every node.

    Args:
        target: The target.
        shares: s, (..., n, C), each row a distribution.
        drawn: (draws, ..., n), possible classes of all nodes: known ones, and samples of the predictions.
        link_pairs: Lambda, how often links join classes, (..., C, C); None if links are not the utility.
    """

    target: NodeClasses
    shares: Tensor
    drawn: Tensor
    link_pairs: Tensor | None = None

    @classmethod
    def of(cls, target: NodeClasses, predicted: Tensor, links: Tensor | None, seeds: Sequence[int]) -> "Classes":
        """Combine known classes, one-hot, with predictions.

        Args:
            target: The target.
            predicted: Predictions for all nodes, (..., n, C).
            links: The links that are kept, (2, ..., links); None if links are not the utility.
            seeds: The seeds of the runs.
        """
        shares = predicted.clone()
        known = target.train_examples
        one_hot = F.one_hot(known.y, target.num_classes).to(shares.dtype)
        shares.view(-1, target.num_classes)[known.index.flatten()] = one_hot.flatten(0, -2)
        drawn = _drawn(target, predicted, seeds)
        if links is None:
            return cls(target, shares, drawn)
        return cls(target, shares, drawn, link_table(*ends(shares, links)))

    def drawn_of(self, run: int) -> Tensor:
        """Return the sampled classes of one run, (draws, n) on the CPU."""
        return self.drawn.view(len(self.drawn), -1, self.shares.size(-2))[:, run].cpu()


class Codes:
    """Training of an encoder of codes; a `Method` of the training loop.

    Args:
        problem: What is trained.
        modules: The modules "encoder" and "pairs".
        shape: The shape of the codes.
        recipe: The hyperparameters.
        streams: The random numbers of the training.
        secrets: The classes to hide, in the order of the problem.
        utility: The class to keep; None if links are the utility.
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
        self._node_draws = streams("codes/nodes")
        self._edge_draws = streams("codes/edges")
        self._weights = _ramp(recipe, streams.clock.device)
        self._linked: LinkedCodes | None = None
        self._batches: Batches | None = None
        if not isinstance(problem.graph, WholeGraph):
            draw = _Draw(problem.utility, problem.graph, streams.seeds[0])
            self._batches = problem.graph.batches(
                self.encoder.module, draw, streams.seeds[0], recipe.rounds, recipe.edge_dropout
            )
        elif isinstance(problem.utility, Links):
            num_nodes = secrets[0].shares.size(-2)
            self._linked = LinkedCodes(problem.utility.links, num_nodes, shape, streams("codes/links"))

    @property
    def players(self) -> Sequence[Player]:
        """The encoder."""
        return (self.encoder,)

    @property
    def parts(self) -> Mapping[str, nn.Module]:
        """The encoder, and the running table of linked codes."""
        return {"encoder": self.encoder.module, "pairs": self.pairs}

    def embed(self) -> Tensor:
        """Return the logits of every node, (..., n, groups * size)."""
        return self.problem.graph.embed(self.encoder.module)

    def close(self) -> None:
        """End the thread that prepares mini-batches."""
        if self._batches is not None:
            self._batches.close()

    def round(self) -> Tensor:
        """Run one step of the encoder."""
        if not self.encoder.is_batched:
            self.streams.reseed("encoder")
        graph = self.problem.graph
        codes = self._of_graph(graph) if isinstance(graph, WholeGraph) else self._of_batch()
        tables = [self._class_table(codes, secret) for secret in self.secrets]
        leaked = [(class_information(table) + class_information(balanced(table))) / 2 for table in tables]
        kept = self._kept_information(codes, tables)
        tradeoff = self.problem.tradeoff.to(kept.dtype)
        weight = self._weights.index_select(0, self.streams.clock).squeeze(0)
        loss = (1 - tradeoff) * weight * torch.stack(leaked).sum(dim=0) - tradeoff * kept
        loss.sum().backward()
        norm = self.encoder.step()
        return torch.stack([part.detach().view(-1) for part in (-kept, *leaked)] + [norm])

    def _of_graph(self, graph: WholeGraph) -> CodesOfRound:
        """The soft codes of all nodes, or of a sample."""
        logits = self.encoder.module(graph.x, self._thinned(graph.adjacency))
        nodes = self._sample_of_nodes(logits)
        q = soft_codes(rows_of(logits, nodes), self.shape) if nodes is not None else soft_codes(logits, self.shape)
        known = q if nodes is None else None
        linked = None if self._linked is None else partial(self._linked.table, logits, known)
        return CodesOfRound(q, nodes, linked)

    def _of_batch(self) -> CodesOfRound:
        """The soft codes of the nodes of a batch.

        Its tables are used as they are. Running means of tables were tried: their gradients lag behind the encoder, and
        with a weight of 0.2 of the new table all nodes got the same code. Batches of 128 trained well without them.
        """
        assert self._batches is not None
        batch = self._batches.at(int(self.streams.clock))
        logits = batch.encode(self.encoder.module)
        nodes, *links = batch.examples
        q = soft_codes(rows_of(logits, nodes.index), self.shape)
        linked = partial(self._linked_in_batch, logits, links[0].index, batch.shares[1]) if links else None
        return CodesOfRound(q, nodes.y, linked, batch.shares[0])

    def _linked_in_batch(self, logits: Tensor, links: Tensor, share: float) -> Tensor:
        table = link_table(*(soft_codes(end, self.shape) for end in ends(logits, links)))
        return self.streams.processes.total(table * share)

    def _class_table(self, codes: CodesOfRound, classes: Classes) -> Tensor:
        """T(c, y) of the nodes of a round."""
        sums = class_sums(codes.q, _at(classes.shares, codes.nodes))
        return shares_of(self.streams.processes.total(sums if codes.share > 0 else 0 * sums))

    def _thinned(self, adjacency: Adjacency) -> Adjacency:
        """The adjacency of this round, with edge dropout: without it, codes overfit the training links."""
        share = self.recipe.edge_dropout
        if share == 0:
            return adjacency
        count = (adjacency.normalized.pattern.col.numel() - adjacency.normalized.pattern.shape[0]) // 2
        return adjacency.thinned(self._edge_draws.coins(1 - share, count // len(self.streams.seeds)).flatten())

    def _kept_information(self, codes: CodesOfRound, secrets: Sequence[Tensor]) -> Tensor:
        """The information of the codes about the utility in nats, (...)."""
        if self.utility is not None:
            return class_information(self._class_table(codes, self.utility))
        assert codes.linked is not None
        table = codes.linked()
        self.pairs.add(table, TABLE_SHARE)
        beyond = [
            link_information_beyond(table, classes, secret.link_pairs)
            for classes, secret in zip(secrets, self.secrets, strict=True)
            if secret.link_pairs is not None
        ]
        kept = torch.stack(beyond).mean(dim=0)
        if self.problem.hides_in_every_run:
            return kept
        shares = self.streams.processes.total(codes.q.mean(dim=-2) * codes.share)
        return kept.where(self.problem.tradeoff < 1, link_information(table, shares))

    def _sample_of_nodes(self, logits: Tensor) -> Tensor | None:
        """Rows of a sample of the nodes, (..., count); None if all nodes are used."""
        runs, count = len(self.streams.seeds), logits.size(-2)
        if count <= NODES_AT_ONCE:
            return None
        drawn = self._node_draws.ascending_integers(count, NODES_AT_ONCE)
        rows = drawn + count * torch.arange(runs, device=drawn.device)[:, None]
        return rows.view(*logits.shape[:-2], -1)

    # ----- selection --------------------------------------------------------------------------------------------------

    def evaluate(self) -> Evaluation:
        """Evaluate hard codes on the validation part, merged until the limit holds as in a release.

        For each secret, the value of the adversary is the accuracy of a rule that was counted on training nodes, and
        that of the probe is the accuracy of the best rule on all nodes whose classes may be used.
        """
        logits = self.embed()
        codes = hard_codes(logits, self.shape)
        finite = logits.isfinite().flatten(-2).all(dim=-1) & self.pairs.mean.isfinite().flatten(-2).all(dim=-1)
        pairs = self.pairs.mean.double().where(finite[..., None, None], 1 / self.shape.codes**2)
        mapping = self._merging(codes, pairs) if int(self.streams.clock) >= self.recipe.warmup else None
        if mapping is not None:
            codes, pairs = mapping.gather(-1, codes), merged_table(pairs, mapping)
        utility = self._utility_value(codes, pairs).where(finite, torch.nan)
        rules, certificates, excess = [], [], []
        for secret in self.secrets:
            rule, certificate = self._secret_accuracies(codes, secret.target)
            rules.append(rule)
            certificates.append(certificate)
            excess.append(rule - chance_level(secret.target, secret.target.val))
        worst = (torch.stack(excess).amax(dim=0) - allowed_gain(self.recipe, self.problem.tradeoff)).clamp(min=0)
        score = gain(self.problem.utility, utility) - PENALTY * worst.where(self.problem.tradeoff < 1, 0.0)
        return Evaluation(utility, score, rules, certificates)

    def _merging(self, codes: Tensor, pairs: Tensor) -> Tensor:
        """The released code of each code, (..., M)."""
        size, runs = self.shape.codes, len(self.streams.seeds)
        of_run, pairs = codes.view(runs, -1), pairs.view(runs, size, size)
        hidden = [
            hidden_counts(codes, secret.target, secret.drawn, size).view(1 + len(secret.drawn), runs, size, -1)
            for secret in self.secrets
        ]
        gains = allowed_gain(self.recipe, self.problem.tradeoff).view(-1).tolist()
        utility = self.problem.utility
        if isinstance(utility, NodeClasses):
            of_class = count_classes(codes, utility.train_examples, utility, size).view(runs, size, -1)
            kept: list[Counts] = [kept_class(counts) for counts in of_class]
        else:
            kept = [kept_links(*run) for run in zip(pairs, of_run, strict=True)]
        mappings = [
            merging(of_run[run], kept[run], [counts[:, run] for counts in hidden], gains[run]).mapping
            for run in range(runs)
        ]
        mapping = torch.stack([torch.from_numpy(of_one) for of_one in mappings])
        return mapping.to(codes.device).view(*codes.shape[:-1], size)

    def _utility_value(self, codes: Tensor, pairs: Tensor) -> Tensor:
        """The AUC or accuracy of codes for the utility on validation, (...)."""
        target = self.problem.utility
        if isinstance(target, NodeClasses):
            return rule_accuracy(codes, target, target.val, self.shape.codes)
        scores = link_scores(pairs, code_shares(codes, self.shape.codes))
        return auc(pair_scores(scores, codes, target.val), target.val.y)

    def _secret_accuracies(self, codes: Tensor, target: NodeClasses) -> tuple[Tensor, Tensor]:
        """The accuracy of the majority class per code on validation nodes, and of the best rule on all usable nodes."""
        counts = usable_counts(codes, target, self.shape.codes)
        best = counts.amax(dim=-1).sum(dim=-1) / counts.sum(dim=(-2, -1))
        return rule_accuracy(codes, target, target.val, self.shape.codes), best


class _Draw:
    """Draws for each round a batch of nodes, whose `y` are their numbers, and of links if these are the utility."""

    def __init__(self, utility: LearnedTarget, graph: SampledGraph, seed: int) -> None:
        size, self._links = graph.batch_size, utility.links.cpu() if isinstance(utility, Links) else None
        self._of_nodes = Shuffled(graph.num_nodes, size, seed, "nodes")
        self._of_links = Shuffled(utility.num_examples, size, seed, "links")

    def __call__(self, number: int) -> list[Examples]:
        nodes = self._of_nodes.at(number)
        examples: list[Examples] = [ListedExamples(nodes, nodes)]
        if self._links is not None:
            links = self._links[:, self._of_links.at(number)]
            examples.append(ListedExamples(links, torch.ones_like(links[0])))
        return examples


def _drawn(classes: NodeClasses, predicted: Tensor, seeds: Sequence[int]) -> Tensor:
    """Classes of all nodes, (draws, ..., n): usable ones, and samples of the predictions for the others."""
    nodes = predicted.size(-2)
    draws = min(MOST_DRAWS, max(FEWEST_DRAWS, DRAWN_NODES // nodes))
    uniform = [
        torch.rand(draws, nodes, generator=generator(seed, "codes", "drawn", classes.target.name)) for seed in seeds
    ]
    places = torch.stack(uniform, dim=1).view(draws, *predicted.shape[:-1]).to(predicted.device)
    drawn = draw(predicted, places)
    for part in (classes.train_examples, classes.val):
        drawn.view(draws, -1)[:, part.index.flatten()] = part.y.flatten()
    return drawn


def _at(x: Tensor, nodes: Tensor | None) -> Tensor:
    return x if nodes is None else rows_of(x, nodes)


def _ramp(recipe: Recipe, device: torch.device) -> Tensor:
    """The secret's weight in each round, (rounds,): raised by equal factors to its full size, then constant."""
    progress = (torch.arange(recipe.rounds, device=device) / max(1, recipe.ramp)).clamp(max=1)
    return recipe.secret_weight * (recipe.first_weight / recipe.secret_weight) ** (1 - progress)
