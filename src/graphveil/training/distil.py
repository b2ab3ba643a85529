"""Keep a class and hide links: codes from the predicted classes of an encoder that reveal little about links.

Message passing makes the predictions of linked nodes similar. Codes that reveal less are made in four steps:

1. Distillation: a student that sees only features learns the encoder's calibrated probabilities, at about their
   accuracy.
2. Cross-fitting: each node is predicted by a student that was not trained on the encoder's prediction of it.
   `crossfit` is the weight of this prediction in a mixture with that of the first student, which still memorises
   something about links.
3. Mixing: the encoder's own prediction is more accurate, and gets the weight `teacher_weight`. A small weight gains one
   to two points of accuracy for the same AUC of links after step 4. Attackers who also know the features then predict
   links about as well as from the true classes (see RESULTS.md).
4. A channel: the distributions q of the nodes over classes are moved by gradient steps on

       - mean over nodes of p . q  +  beyond * J'  +  every * J

   where J is the information of linked codes about links, and J' that beyond classes
   (`graphveil.training.information`). The channel uses the links, so an attacker who knows the features may notice
   which nodes it changed. So its weights are the smallest that satisfy the limit: at a trade-off of 1/2, codes predict
   links no better than comparing the true classes of two nodes, which is implied by keeping the classes. J' alone costs
   the least accuracy; J, which changes the classes themselves, is added only if J' alone cannot satisfy the limit.
   The channel changes hubs most, because they have most of the links: hubs then have unusual codes for their classes,
   which reveals links within classes. With `hub_share`, the nodes with the most links get codes that are distributed
   as those of all nodes of their classes. This costs a point of accuracy.

The code of a node is its class, sampled once from q by a key and the id of the node. If classes are hidden besides
links, the loss of the students includes the information about them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from graphveil.codes.measures import best_auc
from graphveil.codes.tables import link_table, pair_table, unordered
from graphveil.models.layers import Features
from graphveil.models.sparse import Pattern, SparseMatrix
from graphveil.models.student import Student
from graphveil.processes import ALONE, current
from graphveil.randomness import draw, generator, global_stream
from graphveil.training.information import (
    TINY,
    class_information,
    class_sums,
    class_table,
    link_information,
    link_information_beyond,
    shares_of,
)
from graphveil.training.inputs import FeatureRows
from graphveil.training.players import Player, Streams
from graphveil.training.replay import recorded
from graphveil.training.sampled import Shuffled

FOLDS = 3
STUDENT_STEPS = 150
CHANNEL_STEPS = 200
CHANNEL_RATE = 0.1
MIN_LINKS = 100
"""The fewest links to estimate a share from."""
WEAKEST, STRONGEST, SEARCHES = 1e-3, 2.0, 6
"""The range of the weight of a channel, and the number of bisection steps."""


@dataclass(frozen=True, eq=False)
class Lesson:
    """The training data of students, on their device.

    Args:
        p: The encoder's calibrated probabilities, (n, C).
        y: Known classes, (n,), -1 where unknown.
        x: Features, (n, in_channels); `FeatureRows` to train students by mini-batches.
        in_channels: The number of features.
        structural: Whether x holds `degree_features`. Students would learn links from these, so only the channel is
            used for the nodes of this graph.
        secrets: The classes of other secrets, (n, classes) each.
        weight: The weight of the information about these secrets.
        link_weight: The smallest weight of the information about links beyond classes.
        crossfit: The weight of cross-fitted predictions.
        teacher_weight: The weight of the encoder's predictions in the mixture with those of students.
        hub_share: The share of nodes, those with the most links, whose codes are typical of their classes.
        channels: The width of a student.
        seed: The seed of the run.
        batch_size: The number of nodes in a mini-batch; used with `FeatureRows` only.
    """

    p: Tensor
    y: Tensor
    x: Features | FeatureRows
    in_channels: int
    structural: bool
    secrets: Sequence[Tensor]
    weight: float
    link_weight: float
    crossfit: float
    teacher_weight: float
    hub_share: float
    channels: int
    seed: int
    batch_size: int | None = None


class Taught:
    """The students of a lesson. They do not depend on the limit for links, so several trade-offs share them.

    Args:
        lesson: The training data.
        student: Predicts the classes of later nodes.
    """

    def __init__(self, lesson: Lesson, student: Student) -> None:
        self.lesson, self.student = lesson, student

    def codes(self, links: Tensor, tradeoff: float, uniform: Tensor) -> Tensor:
        """Return the codes of the nodes of this graph, (n,).

        Args:
            links: The links to hide, (2, links).
            tradeoff: lambda.
            uniform: (n,), numbers in [0, 1) that the codes are sampled by.
        """
        lesson = self.lesson
        if tradeoff == 1:
            return lesson.p.argmax(dim=-1)
        limit = link_limit(lesson.p, lesson.y, links, tradeoff)
        return codes_within(
            limit, lesson.link_weight, Channel(self._mixture, lesson.p, links, uniform, lesson.hub_share)
        )

    @cached_property
    def _mixture(self) -> Tensor:
        """The predictions to keep: the student's mixed with cross-fitted ones and with the encoder's, (n, C).

        Only students hide other classes, so the encoder's predictions are left out if there are any to hide.
        """
        lesson = self.lesson
        if lesson.structural:
            return lesson.p
        crossfitted = torch.empty_like(lesson.p)
        fold = torch.randint(FOLDS, (len(lesson.p),), generator=generator(lesson.seed, "distil", "folds"))
        fold = fold.to(lesson.p.device)
        for number in range(FOLDS):
            learned, held = (fold != number).nonzero().flatten(), (fold == number).nonzero().flatten()
            crossfitted[held] = _predict(_train_student(lesson, learned, number), lesson.x)[held]
        of_students = torch.lerp(_predict(self.student, lesson.x), crossfitted, lesson.crossfit)
        return of_students if lesson.secrets else torch.lerp(of_students, lesson.p, lesson.teacher_weight)


def teach(lesson: Lesson) -> Taught:
    """Train the student of a lesson; those of the folds are trained when they are needed."""
    return Taught(lesson, _train_student(lesson, torch.arange(len(lesson.p), device=lesson.p.device), "all"))


def link_limit(p: Tensor, y: Tensor, links: Tensor, tradeoff: float) -> float:
    """Return the largest AUC that codes may have for links.

    It is 0.5 + (s - c) / 2 * lambda / (1 - lambda), where s is the share of links within a class and c that of all
    pairs: at a trade-off of 1/2, the AUC of comparing true classes.

    s is counted on links between nodes of known classes. If these are few, it is counted on links from a known to a
    predicted class, less a standard error for as many samples as there are nodes of known class. (Message passing makes
    the predictions of linked nodes too similar, and errors make them too different; on tuning splits the two cancelled
    out.) If these links are few as well, both classes are predicted.

    Args:
        p: Calibrated class probabilities, (n, C).
        y: Known classes, (n,), -1 where unknown.
        links: The links to hide, (2, links).
        tradeoff: lambda.
    """
    source, other = y[links]
    known = (source >= 0) & (other >= 0)
    half = torch.cat([links, links.flip(0)], dim=1)
    half = half[:, y[half[0]] >= 0]
    if int(known.sum()) >= MIN_LINKS:
        within = float((source == other)[known].double().mean())
    elif half.size(1) >= MIN_LINKS:
        share = float((y[half[0]] == p[half[1]].argmax(dim=-1)).double().mean())
        within = share - math.sqrt(share * (1 - share) / len(half[0].unique()))
    else:
        within = float((p[links[0]] * p[links[1]]).sum(dim=-1).mean())
    by_chance = float(p.mean(dim=0).square().sum())
    return 0.5 + max(within - by_chance, 0.0) / 2 * tradeoff / max(1 - tradeoff, 1e-12)


class Channel:
    """Moves the distributions of nodes over codes, and samples codes from them.

    Args:
        p: The probabilities to keep, (n, C).
        classes: The probabilities that J' is computed with, (n, C).
        links: The links to hide, (2, links).
        uniform: (n,), numbers in [0, 1) that the codes are sampled by.
        hub_share: The share of nodes whose codes are typical of their classes.
    """

    def __init__(self, p: Tensor, classes: Tensor, links: Tensor, uniform: Tensor, hub_share: float = 0.0) -> None:
        self.p, self.classes, self.links, self.uniform = p, classes, links, uniform
        self._adjacency = _adjacency(links, len(p))
        degree = links.flatten().bincount(minlength=len(p))
        self._hubs = degree.argsort(descending=True, stable=True)[: int(hub_share * len(p))]

    @property
    def has_typical_hubs(self) -> bool:
        """Whether some nodes get codes that are typical of their classes."""
        return len(self._hubs) > 0

    def __call__(self, beyond: float, every: float = 0.0) -> Tensor:
        """Return codes near p that reveal less about links, (n,).

        Args:
            beyond: The weight of J'.
            every: The weight of J.
        """
        count = self._adjacency.values.numel()
        pairs = (self.classes.T @ (self._adjacency @ self.classes)) / count
        logits = (self.p + 1e-6).log().requires_grad_()
        optimizer = torch.optim.Adam([logits], lr=CHANNEL_RATE, capturable=logits.is_cuda)

        def step() -> None:
            q = self._with_typical_hubs(logits.softmax(dim=-1))
            table = q.T @ (self._adjacency @ q) / count
            leaked = beyond * link_information_beyond(table, class_table(q, self.classes), pairs)
            if every > 0:
                leaked = leaked + every * link_information(table, q.mean(dim=0))
            loss = leaked - (self.p * q).sum(dim=-1).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

        once = recorded(step, self.p.device)
        for _ in range(CHANNEL_STEPS):
            once()
        return draw(self._with_typical_hubs(logits.detach().softmax(dim=-1)), self.uniform)

    def _with_typical_hubs(self, q: Tensor) -> Tensor:
        """Replace the rows of hubs by sum over y of s(y) Q(c | y), where Q is the mean of q within a class."""
        if not self.has_typical_hubs:
            return q
        within = class_table(q, self.classes)
        within = within / within.sum(dim=0).clamp(min=TINY)
        return q.index_copy(0, self._hubs, (self.classes[self._hubs] @ within.T).detach())


def codes_within(limit: float, least: float, channel: Channel) -> Tensor:
    """Return codes whose AUC for links is at most `limit`, by the weakest channel that is found.

    At a trade-off near 0, no channel may satisfy the limit. Then as many random nodes as necessary get the most
    frequent class; at a limit of 0.5, all of them.

    Args:
        limit: The largest AUC.
        least: The smallest weight of J'.
        channel: The channel.
    """
    pairs, classes = channel.links.cpu().numpy(), channel.p.size(1)

    def holds(codes: Tensor) -> bool:
        of_node = codes.cpu().numpy()
        table = link_table(of_node, pairs, classes)
        nonlinks = pair_table(of_node, classes) - table
        return best_auc(unordered(table).astype(float), unordered(nonlinks).astype(float)) <= limit

    def weakest(channel: Callable[[float], Tensor], low: float, high: float) -> Tensor:
        """Bisect between `low`, which does not satisfy the limit, and `high`."""
        codes = channel(high)
        for _ in range(SEARCHES):
            middle = math.sqrt(low * high)
            candidate = channel(middle)
            if holds(candidate):
                codes, high = candidate, middle
            else:
                low = middle
        return codes

    codes = channel(least) if least > 0 or channel.has_typical_hubs else channel.p.argmax(dim=-1)
    if holds(codes):
        return codes
    strongest = max(STRONGEST, least)
    if holds(channel(strongest)):
        return weakest(channel, max(WEAKEST, least), strongest)
    codes = channel(strongest, STRONGEST)
    if holds(codes):
        return weakest(lambda weight: channel(max(weight, least), weight), WEAKEST, STRONGEST)
    # the order is independent of the classes
    largest, order = codes.mode().values, (channel.uniform * 2**20).frac().argsort()

    def keeping(share: float) -> Tensor:
        return codes.index_fill(0, order[int(share * len(codes)) :], largest)

    codes_of_few = weakest(keeping, 1.0, 1e-3)
    return codes_of_few if holds(codes_of_few) else keeping(0.0)


def _train_student(lesson: Lesson, nodes: Tensor, *names: str | int) -> Student:
    p, x = lesson.p, lesson.x
    with global_stream(lesson.seed, "distil", *names):
        student = Student(lesson.in_channels, lesson.channels, p.size(1)).to(p.device)
    together = current() if isinstance(x, FeatureRows) else ALONE
    streams = Streams([lesson.seed], STUDENT_STEPS, p.device, together)
    player = Player("/".join(("student", *map(str, names))), student, streams, lr=0.01, clip=5.0, weight_decay=5e-4)

    def step(x: Features, rows: Tensor, p: Tensor, secrets: Sequence[Tensor], share: float = 1.0) -> None:
        log_q = student(x).log_softmax(dim=-1)
        loss = -(p * log_q[rows]).sum(dim=-1).mean() * share
        for shares in secrets:
            table = shares_of(together.total(class_sums(log_q.exp(), shares) * (share > 0)))
            loss = loss + lesson.weight * class_information(table)
        loss.backward()
        player.step()

    def step_on_all() -> None:
        assert not isinstance(x, FeatureRows)
        step(x, nodes, p[nodes], lesson.secrets)

    once = recorded(step_on_all, p.device)
    order = Shuffled(len(nodes), lesson.batch_size or len(nodes), lesson.seed, "/".join(("student", *map(str, names))))
    for number in range(STUDENT_STEPS):
        streams.clock.fill_(number)
        if isinstance(x, FeatureRows):
            places = order.at(number)
            own, share = together.share(len(places))
            some = nodes[places[own].to(nodes.device)]
            rows = torch.arange(len(some), device=p.device)
            step(x[some.cpu()].to(p.device), rows, p[some], [shares[some] for shares in lesson.secrets], share)
        else:
            once()
    return student.eval()


def student_logits(student: Student, x: Features | FeatureRows, device: torch.device) -> Tensor:
    """Return the logits of every node, (n, C), from features on a device or, in blocks, from `FeatureRows`."""
    with torch.no_grad():
        if isinstance(x, FeatureRows):
            return torch.cat([student(part.to(device)) for part in x.blocks()])
        logits: Tensor = student(x)
    return logits


def _predict(student: Student, x: Features | FeatureRows) -> Tensor:
    return student_logits(student, x, student.first.weight.device).softmax(dim=-1)


def _adjacency(links: Tensor, num_nodes: int) -> SparseMatrix:
    """The links as a matrix with ones in both directions."""
    row, col = torch.cat([links, links.flip(0)], dim=1)
    row, order = row.sort(stable=True)
    pattern = Pattern.from_rows(row, col[order], (num_nodes, num_nodes), symmetric=True)
    return SparseMatrix(pattern, torch.ones(len(row), device=row.device))
