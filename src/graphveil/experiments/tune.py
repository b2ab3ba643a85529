"""`tune`: the most useful embedding that leaks at most as much as stated.

Candidates are runs of `protect` in folders of their own, so that a stopped search continues. These are trained:

1. each encoder at a trade-off of 1/2;
2. the best encoder at other trade-offs or, to keep a smallest utility while classes are hidden, with other limits in
   training;
3. if classes are hidden, candidates that are above the limit but more useful than all within it, with a lower limit in
   training; and if no candidate is within the limit, the nearest one with a limit of 0 in training;
4. the best candidate with further seeds;
5. candidates as in step 3.

Codes hold a limit by themselves. If classes are hidden, `leak_limit` is set to `SHARE` of the limit: it is applied to
known and predicted classes, and the certificate over all nodes is higher, above all on small graphs. It is forecast
(`graphveil.experiments.forecast`), and what the forecast exceeds the limit by is taken from `leak_limit`. If links are
hidden, the trade-off decides the limit, and step 2 solves for it: the AUC above chance is in proportion to
lambda / (1 - lambda).

The choice sees nothing of the test part (`graphveil.experiments.validation`). The chosen run is then audited on it in
full.
"""

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from msgspec import structs

from graphveil.auditing import Audit, Effort
from graphveil.auditing.flags import OVERRULED
from graphveil.data import digest
from graphveil.errors import GraphveilError
from graphveil.experiments.candidates import Candidate, Point, Search, Task, limits_of, opened, run_candidate
from graphveil.experiments.cluster import check_address
from graphveil.experiments.workers import Workers, finishing, wait, workers
from graphveil.files import check_output_folder, hold_lock
from graphveil.formats.audit import AuditRecord
from graphveil.formats.limits import HIDDEN, LimitsRecord
from graphveil.formats.store import write
from graphveil.formats.tune import CandidateRecord, PointRecord, SecretLimit, TuneRecord
from graphveil.runs.audit import audit_run
from graphveil.runs.folder import LEDGER, RECORD, RunFolder
from graphveil.runs.opening import open_source
from graphveil.target import CHANCE_AUC, LINKS, Target, gain_over_chance, without_links

TRADEOFFS = (0.3, 0.7, 0.85)
"""The trade-offs of step 2 if classes are hidden."""
SMALLEST_TRADEOFF = 0.001
"""The smallest one that is tried if links are hidden; at 0 nothing is kept."""
SEEDS = 4
"""The number of seeds of the best candidate."""
SHARE = 0.5
"""The part of a limit that training may use."""
LOWERED = 2
"""At most as many candidates above the limit are trained again at once, with a lower limit in training."""
GAINS = (0.0, 0.005, 0.02, 0.05, 0.1)
"""What training may use if the smallest utility is stated instead of a limit."""
FIRST_GAIN = 0.01
FILE, CANDIDATES, CHOSEN = "tune.json", "candidates", "chosen"
Measure = Callable[[Sequence[Candidate]], list[Point]]
"""Trains candidates, and returns what each keeps and leaks."""


@dataclass(frozen=True)
class Tuned:
    """The result of a search.

    Args:
        points: all candidates, the best first.
        limits: the limits by secret, as accuracy or AUC.
        chance: the chance levels by secret.
        folder: the folder of the chosen run.
        audits: the full audits of the chosen run by secret, on the test part.
        met: whether the chosen run is within all limits and has the smallest utility, if one was stated.
        sentence: the recommendation.
    """

    points: Sequence[Point]
    limits: Mapping[str, float]
    chance: Mapping[str, float]
    folder: Path
    audits: Mapping[str, Audit]
    met: bool
    sentence: str


def tune(
    graph: str | Path,
    out: str | Path,
    utility: str = "links",
    secret: str | Sequence[str] = "labels",
    max_leak: str | float | None = None,
    min_utility: float | None = None,
    search: Search | None = None,
) -> Tuned:
    """Find the most useful embedding within a limit, and audit it.

    Args:
        graph: the name of a graph, a file or a folder.
        out: the folder of the candidates and of the chosen run; a folder with a stopped search continues it.
        utility: the target to keep.
        secret: the target to hide, or several.
        max_leak: the highest attack accuracy or AUC to accept: "+2" is two points above the chance level, 0.6 is 60 %.
            None is "+2", unless `min_utility` is given.
        min_utility: instead of `max_leak`: the accuracy or AUC to keep. The candidate with the least leak is chosen.
        search: the encoders to try, the seed, the number of processes and so on.
    """
    secrets, search = (secret,) if isinstance(secret, str) else tuple(secret), search or Search()
    Task.of(str(graph), utility, secrets, max_leak, min_utility, search)  # check the settings before the graph is read
    opened = open_source(str(graph), search.reading, targets=(utility, *secrets))
    search = replace(search, reading=opened.reading, split=search.split or opened.default_split)
    task = Task.of(opened.name, utility, secrets, max_leak, min_utility, search)
    return judge(task, Path(out), find(task, Path(out)))


def find(task: Task, out: Path, on_done: Callable[[int, int, str | None], None] | None = None) -> list[Point]:
    """Train the candidates, and return what they keep and leak on the validation part, the best first.

    Args:
        task: what to search for.
        out: the folder of the search.
        on_done: called with (done, planned, None) after each candidate.
    """
    check_address(task.search.ray)
    check_output_folder(out, (CANDIDATES,))
    task, limits, chance = _checked(task)
    search, folder = task.search, out / CANDIDATES
    planned = len(search.encoders) + (len(TRADEOFFS) if task.max_leak else len(GAINS)) + SEEDS - 1
    found: list[Point] = []

    def settle(candidate: Candidate, point: Point | GraphveilError) -> None:
        if isinstance(point, GraphveilError):
            raise GraphveilError(f"candidate {candidate}: {point}")
        found.append(point)
        if on_done is not None:
            on_done(len(found), max(planned, len(found)), None)

    def measure(candidates: Sequence[Candidate]) -> list[Point]:
        before = len(found)
        for candidate in candidates:
            work = partial(run_candidate, task, candidate, threads=1)
            pool.submit(candidate, work, needs=[folder / str(candidate)])
        wait(pool)
        return found[before:]

    with _lock(out):
        if on_done is not None:
            on_done(0, planned, None)
        jobs, on_gpu = max(1, min(search.jobs, planned)), search.device != "cpu"
        pool: Workers[Candidate, Point] = workers(jobs, folder, settle, search.ray, on_gpu)
        with finishing(pool):
            return search_stages(task, limits, chance, measure)


def _checked(task: Task) -> tuple[Task, dict[str, float], dict[str, float]]:
    """The task with the digest of its graph, its limits and its chance levels; refused if it cannot be searched."""
    graph, _ = opened(task)
    return replace(task, graph_digest=digest(graph)), *limits_of(task, graph)


def judge(task: Task, out: Path, points: Sequence[Point], effort: Effort | None = None) -> Tuned:
    """Audit the best candidate on the test part, and compare it with the limit.

    An audit that was interrupted continues. If the same candidate was chosen before, its folder is kept.

    Args:
        task: what was searched for.
        out: the folder of the search.
        points: the candidates, the best first.
        effort: how long to try.

    Raises:
        GraphveilError: if another candidate was chosen before and its codes have been released.
    """
    folder, (limits, chance) = out / CHOSEN, limits_of(task, opened(task)[0])
    with _lock(out):
        record = _record(task, points, limits, chance, met=False)  # until it is audited
        _copy_chosen(out / CANDIDATES / str(points[0].candidate), folder, record.limits)
        audits = {one.secret.name: one for one in audit_run(folder, effort=effort, resume=True).values()}
        found = [one.record() for one in audits.values()]
        met = not record.limits.missed(found)
        write(out / FILE, structs.replace(record, met=met))
    leaks = {one.secret: one.bound for one in found}
    score = RunFolder(folder).record().scores.utility or 0.0
    sentence = _recommendation(task, score, leaks, limits, chance, met)
    if met:
        sentence += f" {_next_step(folder, found, record.limits)}"
    return Tuned(points, limits, chance, folder, audits, met, sentence)


def _copy_chosen(candidate: Path, folder: Path, limits: LimitsRecord) -> None:
    """Copy a candidate, unless the folder holds it already, and keep the limits of this search with it.

    `run.json` is removed first and copied last, so that a folder with it is complete.
    """
    record = folder / RECORD
    if record.is_file() and RunFolder(folder).record_digest == RunFolder(candidate).record_digest:
        RunFolder(folder).write_limits(limits)
        return
    if RunFolder(folder).has_releases:
        raise GraphveilError(
            f"{folder} has released codes ({LEDGER}), and the search now chooses another candidate, {candidate.name}:"
            f" move {folder} to another place, run the same command again, and export with --released-before."
        )
    record.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(candidate, folder, ignore=shutil.ignore_patterns(".lock", RECORD))
    RunFolder(folder).write_limits(limits)
    shutil.copy2(candidate / RECORD, record)


def _lock(out: Path) -> AbstractContextManager[None]:
    return hold_lock(out / ".lock", 0, f"another process is writing to {out}: wait for it, or choose another folder.")


def search_stages(
    task: Task, limits: Mapping[str, float], chance: Mapping[str, float], measure: Measure
) -> list[Point]:
    """Run all steps, and return all points, the best first.

    Args:
        task: what to search for.
        limits: the limits by secret, as accuracy or AUC.
        chance: the chance levels by secret.
        measure: trains candidates.
    """
    classes = without_links(task.secrets)
    gain = FIRST_GAIN
    if task.max_leak is not None and classes:
        gain = SHARE * max(0.0, min(limits[secret] - chance[secret] for secret in classes))
        gain = round(gain, 6)  # it is in the names of folders

    def ranked(points: Iterable[Point]) -> list[Point]:
        return sorted(points, key=lambda point: (_rank(task, point, limits, chance), str(point.candidate)))

    def tried(points: Sequence[Point], candidates: Iterable[Candidate]) -> list[Point]:
        untried = _untried(candidates, points)
        return ranked([*points, *measure(untried)]) if untried else list(points)

    points = tried([], [Candidate(encoder, 0.5, gain, task.search.seed) for encoder in task.search.encoders])
    first = points[0].candidate
    if task.min_utility is not None:
        others = [replace(first, gain=other) for other in GAINS] if classes else []
        others += [replace(first, tradeoff=other) for other in (0.2, 0.3, 0.4)] if LINKS in task.secrets else []
    elif LINKS in task.secrets:
        others = [replace(first, tradeoff=other) for other in _solved(points[0], limits[LINKS])]
    else:
        others = [replace(first, tradeoff=other) for other in TRADEOFFS]
    points = tried(points, others)
    lowers = task.max_leak is not None
    if lowers:
        points = tried(points, _lowered(points, limits))
        if points[0].excess({secret: limits[secret] for secret in classes}) > 0:
            points = tried(points, [replace(points[0].candidate, gain=0.0)])
    again = [replace(points[0].candidate, seed=task.search.seed + 1 + number) for number in range(SEEDS - 1)]
    points = tried(points, again)
    return tried(points, _lowered(points, limits)) if lowers else points


def _lowered(points: Sequence[Point], limits: Mapping[str, float]) -> list[Candidate]:
    """The most useful candidates in which only classes are above their limit, with a lower limit for these in training.

    It is lower by as much as they are above the limit, and at least a quarter of it is kept.
    """
    of_classes = {secret: limits[secret] for secret in without_links(limits)}
    of_links = {secret: limit for secret, limit in limits.items() if secret not in of_classes}
    within = max((point.utility for point in points if point.excess(limits) <= 0), default=-1.0)
    over = [point for point in points if point.excess(of_classes) > 0 >= point.excess(of_links)]
    over = sorted((point for point in over if point.utility > within), key=lambda point: -point.utility)
    gains = [max(point.candidate.gain - point.excess(of_classes), point.candidate.gain / 4) for point in over]
    lowered = [replace(point.candidate, gain=round(gain, 6)) for point, gain in zip(over, gains, strict=True)]
    return _untried(lowered, points)[:LOWERED]


def _untried(candidates: Iterable[Candidate], points: Sequence[Point]) -> list[Candidate]:
    """Each candidate once, without those that were measured."""
    tried = {point.candidate for point in points}
    return [candidate for candidate in dict.fromkeys(candidates) if candidate not in tried]


def _rank(task: Task, point: Point, limits: Mapping[str, float], chance: Mapping[str, float]) -> tuple[float, float]:
    """The smallest is the best: within the limit and useful, or as near to the limit as possible."""
    if task.min_utility is not None:
        short = max(0.0, task.min_utility - point.utility)
        return (short, point.worst_leak(chance))
    return (max(0.0, point.excess(limits)), -point.utility)


def _solved(point: Point, limit: float) -> list[float]:
    """Trade-offs at which links should have this AUC, from their AUC at another trade-off."""
    odds = point.candidate.tradeoff / (1 - point.candidate.tradeoff)
    wanted = odds * max(limit - CHANCE_AUC, 0.0) / max(point.leaks[LINKS] - CHANCE_AUC, 1e-3)
    solved = [round(factor * wanted / (1 + factor * wanted), 3) for factor in (1.0, 0.95, 0.9)]
    return [max(tradeoff, SMALLEST_TRADEOFF) for tradeoff in solved]


# ----- the result -----------------------------------------------------------------------------------------------------


def on_front(point: Point, points: Sequence[Point], chance: Mapping[str, float]) -> bool:
    """Whether no other point has at least as much utility at less leak, or more at no more leak."""
    leak = point.worst_leak(chance)
    return not any(
        (other.utility >= point.utility and other.worst_leak(chance) < leak)
        or (other.utility > point.utility and other.worst_leak(chance) <= leak)
        for other in points
    )


def _record(
    task: Task, points: Sequence[Point], limits: Mapping[str, float], chance: Mapping[str, float], met: bool
) -> TuneRecord:
    return TuneRecord(
        graph=task.graph,
        utility=task.utility,
        secrets=tuple(SecretLimit(secret, chance[secret], limits[secret]) for secret in task.secrets),
        min_utility=task.min_utility,
        points=tuple(
            PointRecord(
                candidate=CandidateRecord(**asdict(point.candidate)),
                folder=str(point.candidate),
                utility=point.utility,
                leaks=tuple(point.leaks[secret] for secret in task.secrets),
                codes=tuple(point.codes[secret] for secret in task.secrets),
                within=point.excess(limits) <= 0,
                on_front=on_front(point, points, chance),
            )
            for point in points
        ),
        chosen=str(points[0].candidate),
        met=met,
    )


def _next_step(folder: Path, audits: Sequence[AuditRecord], limits: LimitsRecord) -> str:
    """How to release a run that is within its limits, or why export refuses it."""
    limited = limits.max_leak
    flags = {
        flag.name for one in audits for flag in one.flags if one.secret not in limited or flag.name not in OVERRULED
    }
    if flags:
        without = " without --max-leak" if flags <= {*OVERRULED} else ""
        return f"But its audit is flagged ({', '.join(sorted(flags))}), so export refuses it{without}."
    for one in audits:
        if one.secret not in limited and one.verdict not in HIDDEN:
            return f"But the verdict for {one.secret} is {one.verdict}, so export refuses it without --max-leak."
    return f"To release it: graphveil export {folder} --out release"


def _recommendation(
    task: Task,
    score: float,
    leaks: Mapping[str, float],
    limits: Mapping[str, float],
    chance: Mapping[str, float],
    met: bool,
) -> str:
    kept = f"It keeps {task.utility} at {100 * score:.1f} % ({Target.of(task.utility).metric_name} on the test part)."
    if task.max_leak is None:
        compared = {secret: gain_over_chance(leak, chance[secret]) for secret, leak in leaks.items()}
    else:
        compared = {secret: leak - limits[secret] for secret, leak in leaks.items()}
    worst = max(compared, key=lambda secret: compared[secret])
    leak = f"attacks on the embeddings alone reach at most {100 * leaks[worst]:.1f} % for {worst}"
    if task.max_leak is None:
        if met:
            return f"{kept} For its nodes, {leak}: the least of all candidates with this utility."
        return f"{kept} That is less than {100 * (task.min_utility or 0):.1f} %, which no candidate keeps."
    limit = f"the limit is {100 * limits[worst]:.1f} %"
    if met:
        return f"{kept} For its nodes, {leak}; {limit}."
    return f"The limit is not met: {leak}, {100 * compared[worst]:.1f} points above the limit. {kept}"
