"""Rewards: told, observed, corrected and withdrawn."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from math import isnan, nan
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

import numpy as np

from alexp.algorithms.protocol.mending import Mending, looks_like_a_typo, typos_among
from alexp.algorithms.protocol.rounds import Elsewhere, Observation
from alexp.algorithms.protocol.saving import Saved
from alexp.algorithms.protocol.trials import AlreadyToldError, Trial, TrialLog
from alexp.algorithms.protocol.vigilance import Vigilance, warn
from alexp.common.arrays import Action, FloatArray, IntArray
from alexp.common.validation import count, limited, one_of, positive
from alexp.problem.available import Available
from alexp.problem.candidates import CandidateTable
from alexp.problem.contextual.balls import Ball
from alexp.problem.contextual.domains import Arms
from alexp.problem.contextual.offers import Ids, Offer, n_arms_of, offer

if TYPE_CHECKING:
    from alexp.algorithms.protocol.base import Algorithm

_LOOKED_AT = 1_000_000  # numbers in the rows of a contextual run that are looked at for the size of the noise
_FEW = 3  # candidates whose rewards say nothing about those of others

IfTold = Literal["raise", "same", "amend"]
IF_TOLD: tuple[IfTold, ...] = ("raise", "same", "amend")


class Told(NamedTuple):
    """What a tell will do: take in the reward of a pending trial, skip one that is known, or amend one."""

    trial: int
    reward: float
    deed: Literal["tell", "skip", "amend"]


class Telling(Saved):
    """The part of an algorithm that takes in rewards and mends them."""

    _sign: float
    _vigilance: Vigilance
    forget: float | None = None  # weight of a reward for each one that came after it; None where all weigh the same

    @abstractmethod
    def _learn(self, seen: Observation) -> None:
        """Take in a reward."""

    # -- telling -----------------------------------------------------------------------------------------------

    def tell(self, trial: Trial | int | str, reward: float, if_told: IfTold = "raise") -> None:
        """Report the reward of a trial, by the trial or its id, in any order. Wrong input changes nothing.

        Where the trial has a reward already, `if_told` decides: "raise" an error, accept the "same" reward in silence
        and raise at another one, or "amend" it. A reward far outside what was seen so far is taken in with a warning.
        """
        told, seen = self.check_tell(trial, reward, if_told), self._log.seen
        if not (told.deed == "tell" and seen.low <= told.reward <= seen.high):  # which most rewards are
            warn_of(self.suspects([told]).values())
        self.take_in(told)

    def check_tell(self, trial: Trial | int | str, reward: float, if_told: IfTold = "raise") -> Told:
        """What `tell` would do, or the error it would raise; changes nothing."""
        if if_told not in IF_TOLD:
            one_of("if_told", if_told, IF_TOLD)
        trial_id, value = self._log.check_id(trial), check_reward(reward)
        known = self._log.reward[trial_id]
        if isnan(known) or if_told == "raise":
            return Told(self._log.check_waiting(trial_id), value, "tell")
        if value == known:
            return Told(trial_id, value, "skip")
        if if_told == "same":
            raise AlreadyToldError(
                f"trial {trial_id} already has the reward {known}, and was now told {value}; "
                f'if that is a correction, amend({trial_id}, {value}), or tell it with if_told="amend"'
            )
        return Told(trial_id, value, "amend")

    def suspects(self, tells: Sequence[Told]) -> dict[int, str]:
        """Which of some rewards look like typing errors beside all others, by trial, and why."""
        bound = self.stated.reward_bound or 0.0  # what was stated to be possible is no typing error
        new = [told for told in tells if told.deed != "skip" and abs(told.reward) > bound]
        if len(new) == 1:  # the usual case takes no longer for a long run
            found = [looks_like_a_typo(self._log.seen_beside(new[0].trial), new[0].reward)]
        else:
            known = np.array(self._log.reward, dtype=np.float64)
            known[[told.trial for told in new]] = np.nan
            found = typos_among(known[~np.isnan(known)], np.array([told.reward for told in new]))
        reasons = zip(new, self._if_diverse(found), strict=True)
        return {told.trial: f"trial {told.trial}: {reason}" for told, reason in reasons if reason is not None}

    def suspect_observations(self, rewards: Sequence[float]) -> list[str | None]:
        """For each of some measurements from elsewhere, why it looks like a typing error; None where it does not."""
        if len(rewards) == 1:
            found = [looks_like_a_typo(self._log.seen, rewards[0])]
        else:
            known = np.array(self._log.reward, dtype=np.float64)
            found = typos_among(known[~np.isnan(known)], np.array(rewards, dtype=np.float64))
        bound = self.stated.reward_bound or 0.0
        possible = [None if abs(reward) <= bound else why for reward, why in zip(rewards, found, strict=True)]
        return self._if_diverse(possible)

    def _if_diverse(self, found: list[str | None]) -> list[str | None]:
        """Suspicions, unless all rewards are of a few candidates: another one may differ, other rounds do."""
        if not any(found) or self._log.offers is not None or self._log.measured().size + len(found) > _FEW:
            return found
        return [None] * len(found)

    def take_in(self, told: Told) -> None:
        """Do what `check_tell` has let pass."""
        if told.deed == "amend":
            self.mend({told.trial: told.reward})
        if told.deed != "tell":
            return
        index, model = self._log.index[told.trial], self._log.model[told.trial]
        row, note = self._row(told.trial), self._notes.get(told.trial)
        seen = Observation(row, self._sign * told.reward, told.trial, index, None if model < 0 else model, note)
        self._begin()
        self._learn(seen)
        self._log.record(told.trial, told.reward)
        self._known.clear()
        self._notes.pop(told.trial, None)
        self._end()
        self._beware(told.reward)

    def observe(
        self,
        index: int | str,
        reward: float,
        *,
        context: object = None,
        candidates: Action = None,
        features: object = None,
        ids: Ids | None = None,
        available: Available = None,
        propensity: float | None = None,
    ) -> Trial:
        """Take in a reward of candidate `index` that was measured elsewhere, without having asked for it.

        It becomes a trial of its own with no model and a propensity of NaN: no probability was at work, and an
        estimate that weights by propensities must notice. Later asks draw the same random numbers as they would
        after any other trial.

        On a contextual domain the round is passed as it would be to `ask`; `index` is a position in it, or the name of
        an arm, and `propensity` the probability with which whoever played it did so, if that is known.
        """
        presented = {"context": context, "candidates": candidates, "features": features, "ids": ids}
        seen = self.check_observation(index, reward, available, propensity, **presented)
        warn_of(self.suspect_observations([seen.reward]))
        return self.take_observation(*seen)

    def check_observation(
        self,
        index: int | str,
        reward: float,
        available: Available = None,
        propensity: float | None = None,
        **presented: Action,
    ) -> Elsewhere:
        """What `observe` would take in, or the error it would raise; changes nothing."""
        if self._log.offers is not None or any(value is not None for value in presented.values()):
            self._keep_up()
            made = offer(self.models, self.domain, available=available, **presented)
            chance = nan if propensity is None else _chance(propensity)
            return Elsewhere(self._position_in(made, index), check_reward(reward), made, chance)
        if propensity is not None or available is not None:
            raise ValueError("propensity and available are for observations of contextual rounds")
        if count("index", index, 0) >= self.domain.n_candidates:
            raise ValueError(f"index must be below the number of candidates ({self.domain.n_candidates}), got {index}")
        return Elsewhere(int(index), check_reward(reward))

    def _position_in(self, made: Offer, index: int | str) -> int:
        """Position of the candidate that was played in a round."""
        if made.is_whole:
            raise ValueError("candidates= is missing: rewards on a ball are told by observe(0, reward, candidates=[x])")
        if isinstance(index, str) and isinstance(self.domain, Arms):
            index = self.domain.locate(index)
        if count("index", index, 0) >= len(made):
            raise ValueError(f"index must be below the number of candidates of the round ({len(made)}), got {index}")
        if index not in made.choosable:
            raise ValueError(f"index must be one of the available candidates, {made.choosable.tolist()}, got {index}")
        return int(index)

    def take_observation(self, index: int, value: float, made: Offer | None = None, propensity: float = nan) -> Trial:
        """Do what `observe` does, with what has been checked."""
        row, trial_id = self._listed.row(index) if made is None else made.rows[index], len(self._log)
        self._begin()
        self._learn(Observation(row, self._sign * value, trial_id, index))
        self._log.observe(index, value, propensity, made)
        self._known.clear()
        self._end()
        self._beware(value)
        return self._log.trial(trial_id, self.domain)

    def _beware(self, value: float) -> None:
        """Warn, once per cause, if a reward that was just taken in does not look as stated or assumed."""
        vigilance = self._vigilance
        if abs(value) > vigilance.limit:
            vigilance.look_at_reward(value)
        if vigilance.is_time(self._log.n_told) and self.forget is None and not isinstance(self.domain, Ball):
            rewards = np.array(self._log.reward, dtype=np.float64)
            known = np.flatnonzero(~np.isnan(rewards))
            if self.log_features is None or (self.log_features != "none" and self._is_short()):
                vigilance.look_at_noise(self.models, self._rows(known), rewards[known])

    def _is_short(self) -> bool:
        """Whether all rows of a contextual run are few enough to be looked at on the way."""
        return self._log.n_told * self.models.n_columns <= _LOOKED_AT

    def _row(self, trial: int) -> FloatArray:
        """The dictionary at the action of a trial, (P,)."""
        offers = self._log.offers
        return self._listed.row(self._log.index[trial]) if offers is None else offers.row(trial)

    def _rows(self, trials: IntArray) -> FloatArray:
        """The dictionary at the actions of k trials, (k, P)."""
        return rows_of(self._log, self._candidates, trials)

    def abandon(self, trial: Trial | int | str) -> None:
        """Give up a pending trial, for instance a broken vial. It keeps its number and takes no reward any more."""
        trial_id = self._log.check_pending(trial)
        self._begin()
        self._given_up(trial_id)
        self._log.abandon(trial_id)
        self._notes.pop(trial_id, None)
        self._end()

    # -- mending -----------------------------------------------------------------------------------------------

    def amend(self, trial: Trial | int | str, reward: float) -> None:
        """Correct a reward that was told or observed, or give one again to a trial whose reward was retracted.

        The run is then what it would be had the right reward been told at once, with the actions as they were played:
        it is computed by repeating the run, so that nothing of the wrong reward is left, to the last bit. If that
        fails or is interrupted, nothing has changed.
        """
        told = self.check_amend(trial, reward)
        warn_of(self.suspects([told]).values())
        self.take_in(told)

    def retract(self, trial: Trial | int | str) -> None:
        """Withdraw a reward that was told or observed; the run is then what it would be without it.

        The trial counts as given up and takes no reward by `tell`; `amend` gives it one again.
        """
        self.mend({self.check_retract(trial): None})

    def check_amend(self, trial: Trial | int | str, reward: float) -> Told:
        """What `amend` would do, or the error it would raise; changes nothing."""
        trial_id, value = self._log.check_told(trial), check_reward(reward)
        self._check_course()
        return Told(trial_id, value, "skip" if value == self._log.reward[trial_id] else "amend")

    def check_retract(self, trial: Trial | int | str) -> int:
        """Id of a trial whose reward can be withdrawn, or the reason why not; changes nothing."""
        trial_id = self._log.check_told(trial)
        if trial_id in self._log.retracted:
            raise ValueError(f"the reward of trial {trial_id} was retracted already")
        self._check_course()
        return trial_id

    def mend(self, changes: Mapping[int, float | None]) -> None:
        """Correct several rewards at once, by checked ids; None withdraws one."""
        self.become(self.mending(changes))

    def mending(self, changes: Mapping[int, float | None]) -> Mending:
        """Compute what `mend` would make of the run, without changing it; `become` takes it over."""
        self._check_course()
        return Mending(cast("Algorithm", self), changes)

    def become(self, mending: Mending) -> None:
        """Take over what a mending of this run has computed, all of it in one step."""
        self.__dict__ = mending.outcome(cast("Algorithm", self))

    def _end(self) -> None:
        """The deed becomes part of the log: before it, the deed never happened; after it, it has happened."""
        self._log.happened.commit()
        self._changing = False

    def _repair(self) -> None:
        """Repeat what is in the log in place of a state that was left half-way; see `guarding`."""
        if self.log_features == "none":
            raise RuntimeError(
                'the run was interrupted half-way, and log_features="none" keeps too little to repeat it; load the '
                "last state that was saved"
            )
        run = object.__new__(type(self))  # a view that does not ask for repairs
        vars(run).update(vars(self), _torn=False, _changing=False)
        self.__dict__ = Mending(cast("Algorithm", run), {}).outcome(cast("Algorithm", run))

    def _keep_up(self) -> None:
        """Take notice of arms that were added to the domain; the run is repeated if models have columns for arms."""
        n = self.domain.n_candidates
        if n == self._n_arms:
            return
        if n_arms_of(self.models) in (None, n):
            self._take_arms(n)
            return
        self._check_course()
        assert isinstance(self.domain, Arms)
        run, models = cast("Algorithm", self), self.models.with_arms(self.domain)
        self.__dict__ = Mending(run, {}, models).outcome(run)

    def _take_arms(self, n: int) -> None:
        """There are n arms now."""
        self._n_arms, self._fingerprint = n, None

    def _check_course(self) -> None:
        if self.log_features == "none":
            raise ValueError(
                'log_features="none" keeps too little to repeat the run, so that rewards cannot be amended or '
                'retracted, nor arms added to models with columns for each; construct it with log_features="chosen"'
            )
        if self._log.course is None:
            raise ValueError(
                "this run was saved by a version that did not keep the order of asks and tells, so that rewards told "
                "before cannot be amended or retracted; tell all rewards to a new run"
            )


def warn_of(reasons: Iterable[str | None]) -> None:
    """Warn of rewards that look like typing errors."""
    for reason in reasons:
        if reason is not None:
            warn(reason)


def rows_of(log: TrialLog, candidates: CandidateTable | None, trials: IntArray) -> FloatArray:
    """The dictionary at the actions of k trials, (k, P), on fixed domains and of contextual rounds."""
    if log.offers is not None:
        return log.offers.rows(trials.tolist())
    assert candidates is not None
    return candidates.rows(np.array(log.index, dtype=np.int64)[trials])


def _chance(propensity: object) -> float:
    chance = positive("propensity", propensity)
    if chance > 1.0:
        raise ValueError(f"propensity must be a probability, above 0 and at most 1, got {propensity!r}")
    return chance


def check_reward(reward: float) -> float:
    """Return a reward as a float, or raise unless it is finite and at most 1e100 in size."""
    return limited("reward", reward)
