"""A cell: one training and its audit. Its result is one file, named by a hash of the configuration."""

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch_geometric.data import Data

from graphveil.auditing import Context, Effort, audit
from graphveil.auditing.cache import REVISION
from graphveil.auditing.flags import NO_REFERENCE
from graphveil.auditing.map import draw
from graphveil.auditing.result import Audit
from graphveil.codes import Certificate, LinkCertificate
from graphveil.data import Split, digest, load
from graphveil.data.datasets.catalog import open_graph
from graphveil.data.origin import ReadOptions
from graphveil.data.splits.split import draw_split
from graphveil.errors import GraphveilError
from graphveil.experiments.peers import PEERS, Task
from graphveil.experiments.spec import Source
from graphveil.formats.audit import Map
from graphveil.formats.experiment import CellRecord, CellSecret, CellWithFeatures, CertifiedCell, Curves, Rounds
from graphveil.formats.store import read_sealed, write_sealed
from graphveil.runs.audit import utility_of
from graphveil.training.history import numbered
from graphveil.training.recipes import Adversary, default_recipe
from graphveil.veil import ALGORITHM, Veil, versions

if TYPE_CHECKING:
    from graphveil.experiments.cell_embeddings import Trained


@dataclass(frozen=True)
class Cell:
    """The configuration of one training and its audit.

    Args:
        dataset: the name of a built-in graph, or a title for the graph of `source`.
        encoder: the name of the encoder.
        utility: the target that is kept.
        secrets: the targets that are hidden.
        objective: the name of the objective, or of a peer if `epsilon` is given.
        tradeoff: the trade-off; a peer ignores it.
        adversary: the head of the adversary; None for the default.
        steps: steps of the adversary in each round.
        knows: the secrets that the defender knows, "few" or "all".
        split: the kind of split.
        message_edges: the links that messages pass along, "train" or "all".
        seed: the seed of the split, the training and the audit.
        device: "cpu" or a GPU. Sums on a GPU are in another order than on a CPU; the number of the GPU does not matter.
        length: a factor for the rounds and the patience of the recipe.
        rounds: the number of rounds for a test run; None for that of the recipe.
        source: the files of a graph that is not built in.
        panel: the attacks of the audit, "quick" or "full".
        settings: changes to the default recipe, as `name=value`.
        epsilon: the epsilon of a peer (`graphveil.experiments.peers`); None for a variant.
    """

    dataset: str
    encoder: str
    utility: str
    secrets: tuple[str, ...]
    objective: str
    tradeoff: float
    adversary: str | None
    steps: int
    knows: str
    split: str
    message_edges: str
    seed: int
    device: str = "cpu"
    length: int = 1
    rounds: int | None = None
    source: Source | None = None
    panel: str = "quick"
    settings: tuple[str, ...] = ()
    epsilon: float | None = None

    def __str__(self) -> str:
        return f"{self.dataset} {self.encoder} {self.objective} {self._level} seed {self.seed}"

    def graph(self) -> Data:
        """Load the graph; a graph from files that have changed since is refused."""
        return _open(self.dataset, self.source)

    def veil(self) -> Veil:
        """The estimator of this cell."""
        recipe = default_recipe(self.utility, self.encoder, self.objective, self.secrets)
        recipe = recipe.but(rounds=self.length * recipe.rounds, patience=self.length * recipe.patience)
        recipe = recipe.parsed(list(self.settings))
        if self.rounds is not None:
            recipe = recipe.but(rounds=self.rounds, warmup=0)
        adversary = Adversary(self.adversary, self.steps, self.knows)  # type: ignore[arg-type]
        return Veil(
            self.utility,
            self.secrets,
            self.encoder,
            self.tradeoff,
            self.objective,
            adversary,
            recipe,
            self.seed,
            self.device,
        )

    def parts(self, graph: Data) -> Split:
        """The split of this cell."""
        return draw_split(self.split, graph, self.seed, self.message_edges, (self.utility, *self.secrets))

    @property
    def task(self) -> Task:
        """The task of a peer."""
        return Task(self.utility, self.secrets, self.rounds)

    @property
    def key(self) -> str:
        """A hash of the training, the audit, and the versions of both."""
        return _hash([CellRecord.SCHEMA, REVISION, self.training_key, self.panel, made_with()])

    @property
    def training_key(self) -> str:
        """A hash of the resolved configuration of the training, and of the versions of its libraries."""
        cell = asdict(self) | {"device": self.device.partition(":")[0], "panel": None}
        peer = None if self.epsilon is None else PEERS[self.objective]
        config = self.veil().config() if peer is None else peer.config(self.seed, self.task)
        return _hash([ALGORITHM, cell, config, versions()])

    def file(self, folder: Path) -> Path:
        """The path of the result."""
        return folder / f"{self._stem}-{self.key[:12]}.json"

    def embeddings_file(self, folder: Path) -> Path:
        """The path of the embeddings."""
        return folder / "embeddings" / f"{self._stem}-{self.training_key[:12]}.npz"

    @property
    def _stem(self) -> str:
        # names from user files may contain any character
        dataset, utility = (re.sub("[^A-Za-z0-9]+", "-", name)[:60] for name in (self.dataset, self.utility))
        words = (dataset, self.encoder, utility, self.objective, self._level.replace(" ", "-"), self.seed)
        return "-".join(map(str, words))

    @property
    def _level(self) -> str:
        return f"{self.tradeoff:g}" if self.epsilon is None else f"epsilon {self.epsilon:g}"


def _hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@lru_cache(maxsize=1)
def _open(name: str, source: Source | None) -> Data:
    if source is None:
        return load(name)
    graph = open_graph(source.path, ReadOptions(**json.loads(source.reading)))
    if digest(graph) != source.digest:
        raise GraphveilError(
            f"{source.path} has changed since the sweep was started: start a new sweep in another folder."
        )
    return graph


def made_with() -> dict[str, str]:
    """The versions of the libraries that training and audit depend on."""
    return versions() | {name: version(name) for name in ("scikit-learn", "scipy")}


def read_result(cell: Cell, folder: Path) -> CellRecord | None:
    """Read the result of a cell; None if its file is missing, incomplete, edited or of another cell."""
    try:
        result = read_sealed(cell.file(folder), CellRecord)
    except (OSError, ValueError):
        return None
    return result if result.key == cell.key else None


def finish(trained: "Trained", folder: Path) -> None:
    """Audit each secret of a trained cell, and write the result into the folder."""
    cell, score, curves = trained.cell, trained.score, trained.curves
    graph = cell.graph()
    split = cell.parts(graph)
    utility = utility_of(cell.utility, score.utility, graph, split)
    effort = Effort(cache=folder / "controls")
    secrets = {}
    for number, joint in enumerate(score.secrets):
        context = Context(joint.value, utility)
        found = audit(trained.z, graph, split, joint.secret, cell.panel, cell.seed, None, context, effort)
        own = [tuple(curves[numbered(name, number)]) for name in ("adversary", "probe")]
        drawn = draw(found.secret, trained.z) if cell.seed == 0 else None
        secrets[joint.secret] = summary(found, joint.rounded, Curves(*own), drawn)
    record = CellRecord(
        key=cell.key,
        cell=asdict(cell),
        versions=made_with(),
        utility=utility.value,
        utility_chance=utility.chance,
        history=Rounds(tuple(at for at in curves["round"] if at is not None), tuple(curves["utility"])),
        secrets=secrets,
    )
    write_sealed(cell.file(folder), record)


def summary(found: Audit, joint_rounded: float, history: Curves, drawn: Map | None) -> CellSecret:
    """The values of an audit that the tables and the report need."""
    matched, balanced = found.class_matched, found.most_balanced
    return CellSecret(
        joint=found.context.joint,
        fresh=found.strongest.headline.value,
        fresh_attack=found.strongest.attack,
        attacks={finding.attack: finding.headline.value for finding in found.findings},
        chance=found.secret.chance,
        floor=found.floor.value if found.floor else None,
        equal_classes=found.equal_classes.value if found.equal_classes else None,
        class_matched=matched.matched.value if matched and matched.matched else None,
        balanced=balanced.balanced.value if balanced else None,
        certificate=_certified(found.certificate),
        with_features=_with_features(found),
        flags=tuple(flag.name for flag in found.flags if flag.name not in ("not the full panel", NO_REFERENCE)),
        joint_rounded=joint_rounded,
        history=history,
        map=drawn,
    )


def _certified(certificate: Certificate | None) -> CertifiedCell | None:
    """The best accuracy or AUC of any rule on this release, its chance level, and the limit for other nodes."""
    if certificate is None:
        return None
    if isinstance(certificate, LinkCertificate):
        limit = None if certificate.calibration is None else certificate.calibration.auc_limit
        return CertifiedCell(certificate.auc, 0.5, limit, certificate.class_matched_auc)
    limit = None if certificate.calibration is None else certificate.calibration.accuracy_limit
    return CertifiedCell(certificate.accuracy, certificate.majority, limit, None)


def _with_features(found: Audit) -> CellWithFeatures | None:
    """The strongest attack on z and the features, the same without z, and with the true classes in place of z.

    None for the quick panel, which has no such attacks.
    """
    attack, alone, adds = found.with_features, found.features_alone, found.excess_with_features
    if attack is None or alone is None or adds is None:
        return None
    classes, over = found.classes_and_features, found.excess_over_classes
    return CellWithFeatures(
        attack=attack.attack,
        value=attack.headline.value,
        alone=alone.headline.value,
        z_adds=adds.value,
        true_classes=classes.headline.value if classes else None,
        over_true_classes=over.value if over else None,
    )
