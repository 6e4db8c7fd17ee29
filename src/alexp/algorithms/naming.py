"""Results by name: the trial that a result is about, from its number, the name of its candidate, or both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alexp.algorithms.log import Trial, TrialLog, UnknownTrialError
from alexp.problem.domains import FiniteSet

if TYPE_CHECKING:
    from alexp.problem.domains import Domain

Name = str | int | float  # of a candidate


def find_trial(log: TrialLog, domain: Domain, trial: Trial | int | str | None, candidate: Name | None = None) -> int:
    """Id of the trial; where only its candidate is named, of the pending trial, or else the only one, of it.

    On a table, a text that is no number of a trial is the name of a candidate. If both are given they must agree.
    """
    is_table = isinstance(domain, FiniteSet)
    if is_table and isinstance(trial, str) and candidate is None and not trial.removeprefix("#").isdecimal():
        trial, candidate = None, trial
    if candidate is None:
        if trial is None:
            raise ValueError("a result must name its trial or its candidate")
        return log.check_id(trial)
    if not isinstance(domain, FiniteSet):
        raise ValueError(f"candidate {candidate!r}: results by name are for a table of candidates; name the trial")
    index = domain.named(candidate)
    if trial is not None:
        trial_id = log.check_id(trial)
        if log.index[trial_id] != index:
            own = domain.name_of(log.index[trial_id])
            raise UnknownTrialError(f"trial {trial_id} is candidate {own!r}, not {str(candidate)!r}: which is right?")
        return trial_id
    pending = [k for k, waiting in log.pending.items() if waiting == index]
    own_trials = pending or [int(k) for k in log.proposed() if log.index[k] == index]
    if len(own_trials) == 1:
        return own_trials[0]
    if not own_trials:
        raise UnknownTrialError(
            f"candidate {candidate!r} was not asked for; measurements without an ask are added by observe"
        )
    listed = ", ".join(map(str, own_trials[:10]))
    what = "pending trials" if pending else "trials, none of them pending"
    raise ValueError(f"candidate {candidate!r} has {len(own_trials)} {what}: {listed}; name the trial")
