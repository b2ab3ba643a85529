"""Answers of attacks in files: on controls, which are the same for all embeddings of a graph, and in unfinished audits.

A file is found by a digest of all that decides the answers, so that a file of other embeddings, of another secret or of
other attacks is never used.
"""

import hashlib
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file

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

    def read(self, subject: str, attack: Attack, rows: Rows, secret: Secret) -> Answers | None:
        """The answers of an attack; None if there is no usable file."""
        with suppress(OSError, SafetensorError, TypeError, GraphveilError):
            return check_answers(Answers(**load_file(self._file(subject, attack, rows))), attack, secret)
        return None

    def write(self, subject: str, attack: Attack, rows: Rows, answers: Answers) -> None:
        """Store the answers of an attack; an error of the disk is ignored."""
        parts = {name: np.ascontiguousarray(part) for name, part in vars(answers).items() if part is not None}
        with suppress(OSError):
            tensors = {name: torch.from_numpy(part) for name, part in parts.items()}
            write_tensors(self._file(subject, attack, rows), tensors)

    def _file(self, subject: str, attack: Attack, rows: Rows) -> Path:
        others = [f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn", "torch")]
        made_with = [f"graphveil {graphveil.__version__}", *others]
        seen = rows_digest(np.ascontiguousarray(rows))
        text = "/".join((str(REVISION), *made_with, self.about, subject, attack.name, seen))
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.safetensors"
