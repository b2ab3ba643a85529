"""Keep a class and hide links: from an encoder's classes to codes that say little about links.

An encoder that passes messages gives linked nodes alike answers. Three steps take that back:

1. A student that sees features only learns the encoder's calibrated probabilities, and keeps their accuracy.
2. Cross-fitting: each node is answered by a student that never saw the encoder's answer for it. `crossfit` is the share
   of that answer in a mixture with the first student's, whose memory of the encoder still says something of links.
3. A channel: the nodes' distributions q over classes are moved by gradient steps on

       - mean over nodes of p . q  +  beyond * J'  +  every * J

   with J what linked codes say about links and J' what they say beyond classes (`graphveil.training.information`). It
   reads the links, so an attacker who holds the features may notice which nodes it changed. So the weights are the
   smallest that hold the limit: at a trade-off of 1/2 the codes say no more about links than comparing the true
   classes of two nodes does. That much is implied by keeping the classes. J' alone costs the least accuracy; J, which
   moves the classes themselves, is added only where J' cannot hold the limit.

The code of a node is its class, drawn once from q by a key and the node's id. Classes that are hidden beside the links
cost the students what they say about them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graphveil.codes.measures import best_auc
from graphveil.codes.tables import link_table, pair_table, unordered
from graphveil.models.layers import Features
from graphveil.models.sparse import Pattern, SparseMatrix
from graphveil.models.student import Student
from graphveil.randomness import draw, generator, global_stream
from graphveil.training.information import (
    class_information,
    class_table,
    link_information,
    link_information_beyond,
)
from graphveil.training.players import Player, Streams
from graphveil.training.replay import recorded

FOLDS = 3
STUDENT_STEPS = 150
CHANNEL_STEPS = 200
CHANNEL_RATE = 0.1
FEWEST_LINKS = 100
"""Links between known classes that are enough to count on."""
WEAKEST, STRONGEST, SEARCHES = 1e-3, 2.0, 6
"""The range of a channel's weight, and how often it is halved."""


@dataclass(frozen=True, eq=False)
class Lesson:
    """What students learn from, on the device that they are taught on.

    Args:
        p: the encoder's calibrated probabilities, (n, C). y: known classes, (n,), -1 where there is none.
        x: features, of `in_channels` columns.
        structural: whether x is made of numbers of links. A student would learn these, so that only the channel is used
            for the nodes of now.
        secrets: the classes of other secrets, (n, classes) each, that answers are to say little about.
        weight: what a nat of such a secret costs. link_weight: what a nat about links beyond classes costs at least.
        channels: the width of a student.
    """

    p: Tensor
    y: Tensor
    x: Features
    in_channels: int
    structural: bool
    secrets: Sequence[Tensor]
    weight: float
    link_weight: float
    channels: int
    seed: int


@dataclass(frozen=True, eq=False)
class Distilled:
    """A student for nodes that come later, and the codes of the nodes of now, (n,); both on the CPU."""

    student: Student
    codes: Tensor


def distil(lesson: Lesson, links: Tensor, tradeoff: float, crossfit: float, uniform: Tensor) -> Distilled:
    """Codes for a run that keeps classes and hides links.

    Args:
        links: (2, links) to hide. crossfit: the share of cross-fitted answers.
        uniform: what the codes are drawn by, (n,) of [0, 1).
    """
    p = lesson.p
    student = _taught(lesson, torch.arange(len(p), device=p.device), "all")
    if tradeoff == 1:
        codes = p.argmax(dim=-1)
    else:
        kept = p if lesson.structural else _mixed(lesson, student, crossfit)
        limit = link_limit(p, lesson.y, links, tradeoff)
        codes = _within(limit, lesson.link_weight, kept, p, links, uniform)
    return Distilled(student.cpu(), codes.cpu())


def _mixed(lesson: Lesson, student: Student, crossfit: float) -> Tensor:
    """A student's answers mixed with cross-fitted ones, (n, C)."""
    crossfitted = torch.empty_like(lesson.p)
    fold = torch.randint(FOLDS, (len(lesson.p),), generator=generator(lesson.seed, "distil", "folds"))
    fold = fold.to(lesson.p.device)
    for number in range(FOLDS):
        learned, held = (fold != number).nonzero().flatten(), (fold == number).nonzero().flatten()
        crossfitted[held] = _answers(_taught(lesson, learned, number), lesson.x)[held]
    return torch.lerp(_answers(student, lesson.x), crossfitted, crossfit)


def link_limit(p: Tensor, y: Tensor, links: Tensor, tradeoff: float) -> float:
    """The AUC that codes may have for links: at 1/2 that of comparing true classes, .5 at 0, anything near 1.

    How often linked nodes have the same class is counted on links between nodes of known classes. Where these are few,
    it is counted on links from such a node to one whose class is predicted, and a standard error is taken off, with as
    many samples as there are such nodes. (Message passing makes the predictions of linked nodes too much alike, and
    errors make them too little; on tuning splits the two cancelled out.) Where such links are few as well, both classes
    are predicted.

    Args:
        p: calibrated class probabilities, (n, C). y: known classes, (n,), -1 where there is none.
    """
    one, other = y[links]
    known = (one >= 0) & (other >= 0)
    half = torch.cat([links, links.flip(0)], dim=1)
    half = half[:, y[half[0]] >= 0]
    if int(known.sum()) >= FEWEST_LINKS:
        alike = float((one == other)[known].double().mean())
    elif half.size(1) >= FEWEST_LINKS:
        share = float((y[half[0]] == p[half[1]].argmax(dim=-1)).double().mean())
        alike = share - math.sqrt(share * (1 - share) / len(half[0].unique()))
    else:
        alike = float((p[links[0]] * p[links[1]]).sum(dim=-1).mean())
    by_chance = float(p.mean(dim=0).square().sum())
    return 0.5 + max(alike - by_chance, 0.0) / 2 * tradeoff / max(1 - tradeoff, 1e-12)


def _within(limit: float, least: float, p: Tensor, classes: Tensor, links: Tensor, uniform: Tensor) -> Tensor:
    """Codes whose AUC for links is at most `limit`, by the weakest channel that is found.

    At a trade-off near 0 no channel may hold the limit. Then some nodes, drawn at random, get the most frequent class
    instead of theirs, as many as it takes: at a limit of one half all of them.

    Args:
        least: the smallest weight of J'.
    """
    adjacency = _adjacency(links, len(p))

    def channel(beyond: float, every: float) -> Tensor:
        return _channel(p, classes, adjacency, beyond, every, uniform)

    def holds(codes: Tensor) -> bool:
        own, pairs = codes.cpu().numpy(), links.cpu().numpy()
        table = link_table(own, pairs, p.size(1))
        nonlinks = pair_table(own, p.size(1)) - table
        return best_auc(unordered(table).astype(float), unordered(nonlinks).astype(float)) <= limit

    def weakest(channel: Callable[[float], Tensor], low: float, high: float) -> Tensor:
        """By bisection between `low`, which does not hold the limit, and `high`."""
        codes = channel(high)
        for _ in range(SEARCHES):
            tried = math.sqrt(low * high)
            found = channel(tried)
            if holds(found):
                codes, high = found, tried
            else:
                low = tried
        return codes

    codes = channel(least, 0.0) if least > 0 else p.argmax(dim=-1)
    if holds(codes):
        return codes
    strongest = max(STRONGEST, least)
    if holds(channel(strongest, 0.0)):
        return weakest(lambda weight: channel(weight, 0.0), max(WEAKEST, least), strongest)
    codes = channel(strongest, STRONGEST)
    if holds(codes):
        return weakest(lambda weight: channel(max(weight, least), weight), WEAKEST, STRONGEST)
    largest, order = codes.mode().values, (uniform * 2**20).frac().argsort()  # an order that no class depends on

    def keeping(share: float) -> Tensor:
        return codes.index_fill(0, order[int(share * len(codes)) :], largest)

    codes_of_few = weakest(keeping, 1.0, 1e-3)
    return codes_of_few if holds(codes_of_few) else keeping(0.0)


def _channel(
    p: Tensor, classes: Tensor, adjacency: SparseMatrix, beyond: float, every: float, uniform: Tensor
) -> Tensor:
    """Codes near p that say less about links, (n,).

    Args:
        p: the answers to keep, (n, C). classes: what links are matched by, (n, C).
        beyond, every: the weights of what codes say about links beyond classes, and of all they say.
    """
    count = adjacency.values.numel()
    pairs = (classes.T @ (adjacency @ classes)) / count
    logits = (p + 1e-6).log().requires_grad_()
    optimizer = torch.optim.Adam([logits], lr=CHANNEL_RATE, capturable=logits.is_cuda)

    def step() -> None:
        q = logits.softmax(dim=-1)
        table = q.T @ (adjacency @ q) / count
        leaked = beyond * link_information_beyond(table, class_table(q, classes), pairs)
        if every > 0:
            leaked = leaked + every * link_information(table, q.mean(dim=0))
        loss = leaked - (p * q).sum(dim=-1).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    once = recorded(step, p.device)
    for _ in range(CHANNEL_STEPS):
        once()
    return draw(logits.detach().softmax(dim=-1), uniform)


def _taught(lesson: Lesson, nodes: Tensor, *names: str | int) -> Student:
    p, x = lesson.p, lesson.x
    with global_stream(lesson.seed, "distil", *names):
        student = Student(lesson.in_channels, lesson.channels, p.size(1)).to(p.device)
    streams = Streams([lesson.seed], STUDENT_STEPS, p.device)
    player = Player("/".join(("student", *map(str, names))), student, streams, lr=0.01, clip=5.0, weight_decay=5e-4)

    def step() -> None:
        log_q = student(x).log_softmax(dim=-1)
        loss = -(p[nodes] * log_q[nodes]).sum(dim=-1).mean()
        for shares in lesson.secrets:
            loss = loss + lesson.weight * class_information(class_table(log_q.exp(), shares))
        loss.backward()
        player.step()

    once = recorded(step, p.device)
    for number in range(STUDENT_STEPS):
        streams.clock.fill_(number)
        once()
    return student.eval()


def _answers(student: Student, x: Features) -> Tensor:
    with torch.no_grad():
        probabilities: Tensor = student(x).softmax(dim=-1)
    return probabilities


def _adjacency(links: Tensor, num_nodes: int) -> SparseMatrix:
    """Ones in both directions."""
    row, col = torch.cat([links, links.flip(0)], dim=1)
    row, order = row.sort(stable=True)
    pattern = Pattern.from_rows(row, col[order], (num_nodes, num_nodes), symmetric=True)
    return SparseMatrix(pattern, torch.ones(len(row), device=row.device))
