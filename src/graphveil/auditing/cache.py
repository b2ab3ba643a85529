"""Answers of attacks in files: on controls, which are the same for all embeddings of a graph, and in unfinished audits.

A file is found by a digest of all that decides the answers, so that a file of other embeddings, of another secret or of
other attacks is never used.
"""

import hashlib
import math
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open

import graphveil
from graphveil.auditing.attacks import (
    CLASSES_AND_FEATURES,
    CLASSES_AND_LINKS,
    KNOWN_LINKS,
    Answers,
    Attack,
    check_answers,
)
from graphveil.auditing.embeddings import rows_digest
from graphveil.auditing.learners import Rows
from graphveil.auditing.secret import Secret
from graphveil.errors import GraphveilError
from graphveil.files import write_tensors

SHARED = ("raw features", "public graph", KNOWN_LINKS, CLASSES_AND_FEATURES, CLASSES_AND_LINKS)
"""Controls that do not depend on the embeddings."""
REVISION = 7
"""Increased when attacks are added, answer differently or are chosen differently; results of cells depend on it."""


@dataclass(frozen=True, eq=False)
class CachedAnswers:
    """The answers of an attack that has run before, and how long it took in seconds."""

    answers: Answers
    seconds: float


@dataclass(frozen=True)
class AnswerCache:
    """A folder with one file for each attack of the panel on each control.

    Args:
        folder: the folder of the files.
        about: what the answers depend on besides the attack and its rows: graph, split, secret and seed.
        subjects: what attacks are cached on; None for embeddings and all controls.
    """

    folder: Path
    about: str
    subjects: Collection[str] | None = SHARED

    def covers(self, subject: str) -> bool:
        """Whether the answers of attacks on a subject are cached."""
        return self.subjects is None or subject in self.subjects

    def read(self, subject: str, attack: Attack, rows: Rows, secret: Secret) -> CachedAnswers | None:
        """The answers of an attack; None if there is no usable file."""
        with suppress(OSError, SafetensorError, TypeError, KeyError, ValueError, GraphveilError):
            with safe_open(self._file(subject, attack, rows), "np") as file:
                seconds = float((file.metadata() or {})["seconds"])
                parts = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
            if 0 <= seconds < math.inf:
                return CachedAnswers(check_answers(Answers(**parts), attack, secret), seconds)
        return None

    def write(self, subject: str, attack: Attack, rows: Rows, found: CachedAnswers) -> None:
        """Store the answers of an attack; an error of the disk is ignored, since the audit has them in memory."""
        parts = {name: np.ascontiguousarray(part) for name, part in vars(found.answers).items() if part is not None}
        with suppress(OSError, GraphveilError):
            tensors = {name: torch.from_numpy(part) for name, part in parts.items()}
            write_tensors(self._file(subject, attack, rows), tensors, {"seconds": repr(found.seconds)})

    def _file(self, subject: str, attack: Attack, rows: Rows) -> Path:
        others = [f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn", "torch")]
        made_with = [f"graphveil {graphveil.__version__}", *others]
        seen = rows_digest(np.ascontiguousarray(rows))
        text = "/".join((str(REVISION), *made_with, self.about, subject, attack.name, seen))
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.safetensors"
