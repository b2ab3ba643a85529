"""Answers of attacks on controls, kept for the next audit: controls of a graph are the same for all its embeddings."""

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file

import graphveil
from graphveil.audit.attacks import CLASSES_AND_FEATURES, Answers
from graphveil.audit.embeddings import rows_digest
from graphveil.audit.learners import Rows
from graphveil.files import write_tensors

SHARED = ("raw features", CLASSES_AND_FEATURES)
"""Controls that do not depend on the embeddings."""


@dataclass(frozen=True)
class Remembered:
    """A folder with one file for each attack on each control.

    Args:
        about: all that decides the answers besides the attack and what it sees: graph, split, secret and seed.
    """

    folder: Path
    about: str

    def read(self, subject: str, attack: str, rows: Rows) -> Answers | None:
        """What an attack answered; None if it has not been run, or its file cannot be read."""
        with suppress(OSError, SafetensorError, TypeError):
            return Answers(**load_file(self._file(subject, attack, rows)))
        return None

    def write(self, subject: str, attack: str, rows: Rows, answers: Answers) -> None:
        """Keep what an attack answered."""
        told = {name: np.ascontiguousarray(part) for name, part in vars(answers).items() if part is not None}
        write_tensors(self._file(subject, attack, rows), {name: torch.from_numpy(part) for name, part in told.items()})

    def _file(self, subject: str, attack: str, rows: Rows) -> Path:
        text = "/".join((graphveil.__version__, self.about, subject, attack, rows_digest(np.ascontiguousarray(rows))))
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.safetensors"
