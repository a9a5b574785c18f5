"""A linear classifier on fixed vectors: multinomial logistic regression."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def fit(
    vectors: NDArray[np.float64],
    labels: NDArray[np.int64],
    classes: int,
    l2: float,
    start: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Minimise the mean cross-entropy plus l2 / 2 times the squared weights (not of the bias) by L-BFGS.

    `vectors` are (n, d), `labels` (n,) from 0 to classes - 1; l2 > 0 makes the minimum unique. `start` are initial
    weights, such as those of another l2.

    Returns:
        Weights (classes, d + 1), the last column the bias.
    """
    from scipy.optimize import minimize

    n, d = vectors.shape
    truth = np.zeros((n, classes))
    truth[np.arange(n), labels] = 1.0

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights = flat.reshape(classes, d + 1)
        logits = vectors @ weights[:, :-1].T + weights[:, -1]
        logits -= logits.max(1, keepdims=True)
        normaliser = np.log(np.exp(logits).sum(1, keepdims=True))
        off = (np.exp(logits - normaliser) - truth) / n
        gradient = np.empty_like(weights)
        gradient[:, :-1] = off.T @ vectors + l2 * weights[:, :-1]
        gradient[:, -1] = off.sum(0)
        own = (normaliser[:, 0] - logits[np.arange(n), labels]).mean()
        return own + l2 / 2 * (weights[:, :-1] ** 2).sum(), gradient.ravel()

    begin = np.zeros((classes, d + 1)) if start is None else start
    found = minimize(
        loss,
        begin.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 2000, "ftol": 1e-12, "gtol": 1e-7},
    )
    return np.asarray(found.x).reshape(classes, d + 1)


def predict(weights: NDArray[np.float64], vectors: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the most probable class of each row of vectors (n, d), (n,) int64; ties go to the first."""
    return np.argmax(vectors @ weights[:, :-1].T + weights[:, -1], axis=1)
