"""Run attacks: each on one thread, several in parallel, within a time budget, with cached answers."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from threadpoolctl import threadpool_limits

from graphveil.auditing.attacks import Answers, Attack, check_answers
from graphveil.auditing.cache import AnswerCache, CachedAnswers
from graphveil.auditing.finding import Finding
from graphveil.auditing.information import calibrate
from graphveil.auditing.learners import Rows
from graphveil.auditing.secret import NodeSecret, Secret
from graphveil.pool import parallel
from graphveil.randomness import stream


@dataclass(frozen=True)
class Effort:
    """How much time and how many processes an audit may use.

    Args:
        jobs: the number of parallel processes.
        time_budget: seconds; an attack that is not expected to end in time is skipped, unless its answers are
            cached. Costly attacks run last.
        on_attack: called with (name, done, total) before each attack.
        started: the start of the time budget, by `time.perf_counter`; by default, now.
        cache: a folder for the answers of the panel on controls that are the same for all embeddings of a graph.
        unfinished: a folder for the answers of all attacks, from which an interrupted audit continues; it replaces
            `cache`.
    """

    jobs: int = 1
    time_budget: float | None = None
    on_attack: Callable[[str, int, int], None] | None = None
    started: float | None = None
    cache: Path | None = None
    unfinished: Path | None = None


@dataclass(frozen=True, eq=False)
class Task:
    """One attack on one subject.

    Args:
        subject: "embeddings", or the name of a control.
        attack: the attack.
        rows: what the attack sees, (num_nodes, columns).
        one_fold: whether only one fold of a node secret is held out for validation, to save time.
    """

    subject: str
    attack: Attack
    rows: Rows
    one_fold: bool = False

    @property
    def title(self) -> str:
        """The attack and, for a control, its name."""
        return self.attack.name if self.subject == "embeddings" else f"{self.attack.name} on {self.subject}"

    def __call__(self, secret: Secret, seed: int, cache: AnswerCache | None = None) -> Finding:
        """Run the attack, or take its answers from the cache.

        The answers to node secrets are calibrated on the validation part. Without it, a heavily regularised learner
        predicts the largest class wherever it is uncertain, and a learner that found nothing predicts at random.
        """
        secret, found = self._folded(secret), self.cached(secret, cache)
        if found is None:
            started = time.perf_counter()
            answers = check_answers(self._attack(secret, seed), self.attack, secret)
            if isinstance(secret, NodeSecret) and "secrets" in self.attack.needs:
                calibrated = calibrate(answers.val, secret.val.y)
                answers = Answers(calibrated(answers.val), calibrated(answers.test))
            found = CachedAnswers(answers, time.perf_counter() - started)
            if cache is not None:
                cache.write(self.subject, self.attack, self.rows, found)
        return Finding(self.subject, self.attack.name, self.attack.needs, secret, found.answers, found.seconds)

    def keep(self, secret: Secret, seed: int, cache: AnswerCache) -> None:
        """Run the attack and keep its answers in the cache; without them after an error, which its next run raises."""
        with suppress(Exception):
            self(secret, seed, cache)

    def cached(self, secret: Secret, cache: AnswerCache | None) -> CachedAnswers | None:
        """The answers of the attack in the cache; None if it has none."""
        return None if cache is None else cache.read(self.subject, self.attack, self.rows, self._folded(secret))

    def _folded(self, secret: Secret) -> Secret:
        """The secret with as many folds as this task holds out."""
        return replace(secret, val_folds=1) if self.one_fold and isinstance(secret, NodeSecret) else secret

    def _attack(self, secret: Secret, seed: int) -> Answers:
        """On one thread of BLAS and torch, so that the answers do not depend on the number of threads."""
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with threadpool_limits(1, user_api="blas"):
                return self.attack(self.rows, secret, stream(seed, "audit", self.attack.name) % 2**32)
        finally:
            torch.set_num_threads(threads)


def run(
    tasks: Sequence[Task], secret: Secret, seed: int, effort: Effort, cache: AnswerCache | None = None
) -> tuple[list[Finding], list[str]]:
    """Run all tasks, as far as the time budget allows.

    Args:
        tasks: the tasks in the order in which they run.
        secret: the secret that is attacked.
        seed: the seed of all attacks.
        effort: the time budget and the number of processes.
        cache: where answers are cached; None to cache none.

    Returns:
        The findings, and the names of the attacks that the time budget skipped.
    """
    started, dropped = effort.started or time.perf_counter(), list[str]()
    finished: list[tuple[float, float]] = []  # cost and seconds of each finished attack, also of an earlier audit

    def in_time() -> Iterator[Callable[[], Finding]]:
        for number, task in enumerate(tasks):
            own_cache = cache if cache is not None and cache.covers(task.subject) else None
            elapsed = time.perf_counter() - started
            cost, seconds = (sum(part) for part in zip(*finished, strict=True)) if finished else (1.0, 0.0)
            expected = task.attack.cost * seconds / cost
            late = number > 0 and effort.time_budget is not None and elapsed + expected > effort.time_budget
            if late and task.cached(secret, own_cache) is None:
                dropped.append(task.title)
                continue
            if effort.on_attack is not None:
                effort.on_attack(task.title, number, len(tasks))
            yield partial(task, secret, seed, own_cache)

    costs = {(task.subject, task.attack.name): task.attack.cost for task in tasks}
    findings: list[Finding] = []
    jobs = min(effort.jobs, len(tasks))  # every process is started, even one without work
    for finding in parallel(in_time(), jobs):
        finished.append((costs[finding.subject, finding.attack], finding.seconds / jobs))
        findings.append(finding)
    return findings, dropped
