"""Policies in the forms in which users have them, turned into probabilities of all candidates of all rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.warning import caution
from alexp.evaluation.log import AGREEMENT, Log, LoggedRound, LogWarning, NoOverlapError, check_distributions
from alexp.evaluation.ragged import Ragged


@runtime_checkable
class Frozen(Protocol):
    """An algorithm or a study as it is now: it says how it would play and takes no note of being asked."""

    def policy(self, **offered: object) -> FloatArray:
        """Probability of every candidate, (n,)."""


Policy = Sequence[object] | np.ndarray | Callable[[LoggedRound], object] | Frozen


def probabilities(name: str, policy: Policy, log: Log) -> Ragged:
    """Probabilities of all candidates of all rounds of the log, those without a reward included.

    `policy` is an array (n, K), a list with one vector per round, a function of `LoggedRound`, or an object with a
    method `policy`, which is called as the logger was: with `context=` where the log has contexts, with `features=`
    where it has those of all candidates, with nothing on a fixed domain; `available=` is added where it was restricted.
    """
    blocks: object = policy
    if isinstance(policy, Frozen):
        _warn_of_hindsight(name, policy, log)
        blocks = _asked(policy, log)
    elif callable(policy):
        blocks = [policy(round_) for round_ in log.presented()]
    elif isinstance(policy, np.ndarray) and policy.ndim == 3 and policy.shape[2] == 1:
        blocks = policy[:, :, 0]  # as Open Bandit Pipeline has them
    found = Ragged.of(name, blocks, log.n)
    check_distributions(name, found)
    return found


def check_overlap(name: str, found: Ragged, log: Log) -> None:
    """Raise if the log shows that it could not have played what the policy plays."""
    open_ = log.usable & (log.n > 1)
    sure = open_ & (log.propensities >= 1.0)
    if not log.usable.any():
        raise ValueError("the log has no round with both a reward and a propensity: there is nothing to evaluate with")
    if sure.any() and np.array_equal(sure, open_):
        raise NoOverlapError(
            "every propensity is 1: the logger left nothing to chance, so the log says nothing about other actions. "
            "Log with a rule that explores (Thompson sampling, or gamma > 0)"
        )
    elsewhere = sure & (found.at(log.index) < 1.0 - 1e-9)
    if elsewhere.any():
        t = int(np.flatnonzero(elsewhere)[0])
        raise NoOverlapError(
            f"{name} plays what the log could not: in {int(elsewhere.sum())} rounds (the first is {t}) the logger "
            "played its action with propensity 1, and the policy would have played something else. Leave these rounds "
            "out (`log.part`) if they can be told by their contexts, and evaluate on the others"
        )
    _check_available(name, found, log)
    if log.probabilities is not None:
        never = (log.probabilities.values <= 0.0) & (found.values > 1e-12)
        if never.any():
            t = int(np.searchsorted(found.starts, np.flatnonzero(never)[0], side="right")) - 1
            raise NoOverlapError(f"{name} plays in round {t} an action that the logger could not play (probability 0)")


def _check_available(name: str, found: Ragged, log: Log) -> None:
    for t, positions in enumerate(log.available or ()):
        if positions is not None and log.usable[t] and found[t][list(positions)].sum() < 1.0 - AGREEMENT:
            raise NoOverlapError(f"{name} plays in round {t} an action that was not available")


def _asked(policy: Frozen, log: Log) -> list[FloatArray]:
    def ask(round_: LoggedRound) -> FloatArray:
        restricted = {} if round_.available is None else {"available": round_.available}
        return policy.policy(**_offered(round_), **restricted)

    if log.features is None and log.contexts is None and log.available is None:  # the same in every round
        return [policy.policy()] * len(log)
    return [ask(round_) for round_ in log.presented()]


def _offered(round_: LoggedRound) -> dict[str, object]:
    if round_.context is not None:
        return {"context": round_.context}
    return {} if round_.features is None else {"features": round_.features}


def _warn_of_hindsight(name: str, policy: object, log: Log) -> None:
    """A policy that has learnt from this very log looks better on it than it is."""
    own = getattr(getattr(policy, "algorithm", policy), "log", None)
    rewards = np.asarray(getattr(own, "reward", ()), dtype=np.float64)[: len(log)]
    index = np.asarray(getattr(own, "index", ()), dtype=np.int64)[: len(log)]
    if rewards.size and np.array_equal(index, log.index) and np.array_equal(rewards, log.rewards, equal_nan=True):
        caution(
            f"{name} has learnt from the rewards of this very log: its value on it is too good, and the interval does "
            "not hold. Evaluate a policy that was frozen before the log began, or on a log of its own",
            LogWarning,
        )
