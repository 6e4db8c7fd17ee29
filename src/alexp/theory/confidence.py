"""A band for the reward from a running ALExp's own Lasso estimate.

`ALExp.confidence` certifies through the ridge fits and is usually narrower. This band needs no bound on the
coefficients and speaks of the estimate that actually drives the model selection.
"""

from __future__ import annotations

import numpy as np

from alexp.algorithms.alexp import ALExp
from alexp.algorithms.certified import Band
from alexp.common.validation import fraction
from alexp.estimation.lasso.group_lasso import LassoFit
from alexp.theory.lasso import column_cover, distinct_columns_band, self_normalised_lambda

__all__ = ["lasso_confidence"]


def lasso_confidence(opt: ALExp, x: object, delta: float = 0.1) -> Band:
    """Band of the noiseless reward at the action or actions ``x``, for all t and x at once w.p. 1 - delta.

    `distinct_columns_band` around the current group Lasso estimate, with the lambda_t it was run with and the
    self-normalised one at ``delta``; the features' scale sets the penalty inside the latter. Infinitely wide until the
    actions played span all columns. Models with an unpenalised intercept are not covered by the theorem.

    Returns
    -------
    Lower and upper ends, shape (n,) (n = 1 for a single action), in the user's direction.
    """
    fraction("delta", delta)
    models, fit = opt.models, opt.fit
    if models.intercept:
        raise ValueError("the anytime Lasso theorem does not cover models with an unpenalised intercept")
    if not isinstance(fit, LassoFit):
        raise ValueError("lasso_confidence needs at least one reward, and the GroupLasso oracle")
    features = models.matrix(opt.domain)
    told = [i for i, reward in zip(opt.log.index, opt.log.reward, strict=True) if not np.isnan(reward)]
    groups, scales = list(models.groups), models.scales
    used = np.unique(models.columns_flat)
    played, rows = features[told], models.rows(opt.domain, x)[0]
    gram = played.T @ played
    grams = [gram[np.ix_(g, g)] / s**2 for g, s in zip(groups, scales, strict=True)]
    square = max(float((features[:, g] ** 2).sum(axis=1).max()) / s**2 for g, s in zip(groups, scales, strict=True))
    valid = self_normalised_lambda(grams, len(told), opt.noise_std, delta, penalty=2.0 * square)
    cover = column_cover(groups, models.n_columns, scales)
    seen = gram[np.ix_(used, used)]
    band = distinct_columns_band(rows @ fit.beta, rows[:, used], seen, len(told), fit.lam, valid, cover)
    return band if opt.direction == "maximize" else Band(-band.upper, -band.lower)
