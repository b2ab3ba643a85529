"""`Veil`, the estimator: train embeddings that keep one target and hide another, one run or many as a batch."""

from graphveil.veil.estimator import Veil, versions
from graphveil.veil.fitting import ALGORITHM, Fitting, fit_together

__all__ = ["ALGORITHM", "Fitting", "Veil", "fit_together", "versions"]
