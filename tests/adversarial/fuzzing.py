"""Random sequences of calls of the public interface, on random problems, over all algorithms.

`run(seed)` plays one sequence and returns what went wrong in it. What must hold:

* a call with right arguments succeeds; one with wrong ones raises a `ValueError` or `TypeError` that the library itself
  raised, with a message (not one that escaped from NumPy), and `NotCertified` and `RuntimeError` where documented;
* after an exception, and after a call that only looks, the saved state is what it was;
* probabilities are finite and sum to one, propensities lie in (0, 1], recommendations and bands are numbers;
* a run that is saved and loaded goes on as it would have.
"""

from __future__ import annotations

import json
import linecache
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import alexp
from alexp.algorithms.capabilities import Certifies, Predicts, WeighsModels, offers
from alexp.problem.domains import check_available
from alexp.testing import Kind, on_tables
from tests.adversarial.problems import (
    SHARED,
    WRONG_CHOICES,
    WRONG_NUMBERS,
    WRONG_REWARDS,
    WRONG_SETTINGS,
    WRONG_TRIALS,
    draw_case,
    draw_reward,
)

SEQUENCES = 20_000  # what scale 1 of `soak` means
_STEPS = 14  # calls of a sequence
_LIBRARY = str(Path(alexp.__file__).parent)


class Violation(AssertionError):
    """Something that must hold does not."""


class Unusable(Exception):
    """The problem was refused at construction, with a reason."""


def kinds() -> list[Kind]:
    """Every algorithm of the library that plays on tables, by name."""
    every = [alexp.Algorithm.registry[name] for name in on_tables()]
    return [kind for kind in every if kind.__module__.startswith("alexp.")]


class Sequence:
    """One run under fuzzing: an algorithm, what it saved last, and the calls so far."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        every = kinds()
        self.kind = every[seed % len(every)]
        self.case = draw_case(self.rng, self.kind)
        self.calls: list[str] = []
        try:
            self.opt = self.kind(self.case.models, self.case.domain, **self.case.arguments)
        except ValueError as error:
            if _own(error):  # such as a design for features that are zero everywhere
                raise Unusable from error
            raise
        self.saved = self._saved()

    def _saved(self) -> str:
        return json.dumps(self.opt.to_dict(problem=False), sort_keys=True)

    def play(self) -> None:
        """Some calls, one after the other; `Violation` at the first that does what it must not."""
        deeds: list[tuple[float, Callable[[], None]]] = [
            (5, self.ask), (6, self.tell), (1.5, self.observe), (1.5, self.amend), (1, self.retract), (1, self.abandon),
            (2, self.wrong_tell), (2, self.wrong_call), (3, self.look), (1.5, self.certificates), (1, self.save),
            (0.5, self.construct),
        ]  # fmt: skip
        chances = np.array([chance for chance, _ in deeds])
        for k in self.rng.choice(len(deeds), _STEPS, p=chances / chances.sum()):
            deeds[k][1]()
        self.certificates()
        self.look()

    # -- calls -------------------------------------------------------------------------------------------------

    def ask(self) -> None:
        n, available = int(self.rng.integers(1, 4)), self._available()
        allowed = None if available is None else check_available(available, self.case.domain)
        left = self.opt.choosable(allowed).size
        enough = self.opt.repeats or left >= n
        trials = self._call("ask", lambda: self.opt.ask(n, available), fails=not enough)
        for trial in trials or []:
            if not 0.0 < trial.propensity <= 1.0:
                raise Violation(f"propensity {trial.propensity}")
            if not 0 <= trial.index < self.case.domain.n_candidates:
                raise Violation(f"index {trial.index}")

    def tell(self) -> None:
        pending = self.opt.pending()
        if not pending:
            self.ask()
            return
        trial = pending[self.rng.integers(len(pending))]
        reward = draw_reward(self.rng, self.case.unit)
        self._call(f"tell {reward!r}", lambda: self.opt.tell(self._spelled(trial), reward))
        if self.opt.log.reward[trial.id] != float(reward):
            raise Violation("the reward is not in the log")

    def observe(self) -> None:
        index = int(self.rng.integers(self.case.domain.n_candidates))
        reward = draw_reward(self.rng, self.case.unit)
        trial = self._call(f"observe {reward!r}", lambda: self.opt.observe(index, reward))
        if not np.isnan(trial.propensity):
            raise Violation("an observation has a propensity")

    def amend(self) -> None:
        told = self._told() + sorted(self.opt.log.retracted)
        if not told:
            self.tell()
            return
        trial, reward = int(self.rng.choice(told)), draw_reward(self.rng, self.case.unit)
        if self.rng.random() < 0.5:
            self._call(f"amend {reward!r}", lambda: self.opt.amend(trial, reward))
        elif trial not in self.opt.log.retracted:
            self._call(f"tell again {reward!r}", lambda: self.opt.tell(trial, reward, if_told="amend"))

    def retract(self) -> None:
        told = self._told()
        if not told:
            self.tell()
            return
        trial = int(self.rng.choice(told))
        self._call("retract", lambda: self.opt.retract(trial))

    def abandon(self) -> None:
        pending = self.opt.pending()
        if pending:
            self._call("abandon", lambda: self.opt.abandon(self._spelled(pending[0])))

    def wrong_tell(self) -> None:
        """Wrong rewards for right trials, right rewards for wrong ones, and both for trials that have theirs."""
        opt, rng = self.opt, self.rng
        wrong = WRONG_REWARDS[rng.integers(len(WRONG_REWARDS))]
        strange = WRONG_TRIALS[rng.integers(len(WRONG_TRIALS))]
        known = int(rng.integers(len(opt.log))) if len(opt.log) else 0
        waiting = list(opt.log.pending)
        calls: list[tuple[str, Callable[[], Any]]] = [
            (f"tell wrong {wrong!r}", lambda: opt.tell(waiting[0] if waiting else known, wrong)),
            (f"observe wrong {wrong!r}", lambda: opt.observe(0, wrong)),
            (f"amend wrong {wrong!r}", lambda: opt.amend(known, wrong)),
            (f"tell {strange!r}", lambda: opt.tell(strange, 1.0)),
            (f"amend {strange!r}", lambda: opt.amend(strange, 1.0)),
            (f"retract {strange!r}", lambda: opt.retract(strange)),
            (f"abandon {strange!r}", lambda: opt.abandon(strange)),
        ]
        if known not in waiting:
            calls += [("tell twice", lambda: opt.tell(known, 1.0)), ("abandon twice", lambda: opt.abandon(known))]
        name, call = calls[rng.integers(len(calls))]
        self._call(name, call, fails=True)

    def wrong_call(self) -> None:
        opt, rng = self.opt, self.rng
        number = WRONG_NUMBERS[rng.integers(len(WRONG_NUMBERS))]
        choices = WRONG_CHOICES[rng.integers(len(WRONG_CHOICES))]
        calls: list[tuple[str, Callable[[], Any]]] = [
            (f"ask {number!r}", lambda: opt.ask(number)),
            (f"ask available {choices!r}", lambda: opt.ask(available=choices)),
            (f"observe at {number!r}", lambda: opt.observe(-1 if number == 0 else number, 1.0)),
            ("observe beyond", lambda: opt.observe(10**6, 1.0)),
            ("if_told", lambda: opt.tell(0, 1.0, if_told="never")),
        ]
        if offers(opt, Certifies):
            delta = [0.0, 1.0, -0.1, float("nan"), "x", None][rng.integers(6)]
            calls += [
                (f"plausible {delta!r}", lambda: opt.plausible_models(delta)),
                (f"stop {delta!r}", lambda: opt.stop_report(delta)),
                (f"stop epsilon {number!r}", lambda: opt.stop_report(0.1, epsilon=-1.0)),
            ]
        name, call = calls[rng.integers(len(calls))]
        self._call(name, call, fails=True)

    def construct(self) -> None:
        """Wrong arguments of the constructor are refused; extreme ones are refused or taken."""
        known = [name for name in (*SHARED, *self.kind.settings) if name != "direction"]
        name = known[self.rng.integers(len(known))]
        value = WRONG_SETTINGS[self.rng.integers(len(WRONG_SETTINGS))]
        if value is None and name in {"noise_std", "reward_bound", "norm_bound", *self.kind.settings}:
            return
        arguments = self.case.arguments | {name: value}
        self._call(
            f"{name}={value!r}",
            lambda: self.kind(self.case.models, self.case.domain, **arguments),
            looks=True,
            may_fail=True,
        )

    def look(self) -> None:
        """What only looks changes nothing, and what it shows are numbers."""
        opt = self.opt
        if offers(opt, WeighsModels):
            q = self._call("probabilities", lambda: opt.probabilities, looks=True)
            if q.shape != (self.case.models.n_models,) or not np.isfinite(q).all() or (q < 0.0).any():
                raise Violation(f"probabilities {q}")
            if abs(q.sum() - 1.0) > 1e-9:
                raise Violation(f"probabilities sum to {q.sum()}")
        best = self._call("best", opt.best, looks=True, fails=opt.n_told == 0, documented=(RuntimeError,))
        if best is not None and not (np.isfinite(best.value) and 0 <= best.index < self.case.domain.n_candidates):
            raise Violation(f"best {best}")
        if offers(opt, Predicts) and self.rng.random() < 0.5:
            x = self.case.domain[int(self.rng.integers(self.case.domain.n_candidates))]
            mean, std = self._call("predict", lambda: opt.predict(x), looks=True)
            if not (np.isfinite(mean) and std >= 0.0 and np.isfinite(std)):
                raise Violation(f"predict {mean} {std}")
        frame = self._call("trials_dataframe", opt.trials_dataframe, looks=True)
        if len(frame) != opt.n_asked or "told" not in repr(opt):
            raise Violation("the table has other trials than the run")

    def certificates(self) -> None:
        opt, rng = self.opt, self.rng
        if not offers(opt, Certifies):
            return
        no = (alexp.NotCertified,)
        plausible = self._call("plausible", opt.plausible_models, looks=True, may_fail=True, documented=no)
        if plausible is not None and not 0 < plausible.size <= self.case.models.n_models:
            raise Violation(f"plausible {plausible}")
        x = self.case.domain[int(rng.integers(self.case.domain.n_candidates))]
        band = self._call("confidence", lambda: opt.confidence(x), looks=True, may_fail=True, documented=no)
        if band is not None and not -np.inf < band.lower <= band.upper < np.inf:
            raise Violation(f"band {band}")
        target = [None, 1e-3, 1e300][rng.integers(3)]
        report = self._call(
            "stop_report",
            lambda: opt.stop_report(0.1, target),
            looks=True,
            fails=opt.n_told == 0,
            documented=(RuntimeError,),
        )
        if report is not None and not (0.0 <= report.epsilon < np.inf and report.plausible.size and str(report)):
            raise Violation(f"report {report}")
        check = self._call("check_models", opt.check_models, looks=True, may_fail=True, documented=no)
        if check is not None and (np.isnan(check.e_value) or not check.text):
            raise Violation(f"check {check}")

    def save(self) -> None:
        """Saved and loaded, it is the same run: saved again, in what it asks next, and in what it makes of a reward."""
        text = json.dumps(self.opt.to_dict())
        again = self._call("from_dict", lambda: self.kind.from_dict(json.loads(text)))
        if json.dumps(again.to_dict()) != text:
            raise Violation("saved and loaded is another state")
        first, self.opt = self.opt, again
        reward = draw_reward(self.rng, self.case.unit)
        if first.repeats or first.choosable().size:
            one, two = first.ask(), again.ask()
            if one.to_dict() != two.to_dict():
                raise Violation(f"saved and loaded asks {two}, not {one}")
            first.tell(one, reward)
            again.tell(two, reward)
        self.saved = self._saved()
        if json.dumps(first.to_dict(problem=False), sort_keys=True) != self.saved:
            raise Violation("saved and loaded learns something else")

    # -- inside ------------------------------------------------------------------------------------------------

    def _available(self) -> Any:
        n = self.case.domain.n_candidates
        if self.rng.random() < 0.6:
            return None
        some = self.rng.choice(n, int(self.rng.integers(1, n + 1)), replace=False)
        form = self.rng.integers(4)
        if form == 0:
            return np.isin(np.arange(n), some)
        if form == 1 and isinstance(self.case.domain[0], str):
            return [self.case.domain[int(i)] for i in some]
        return some.tolist() if form == 2 else some

    def _told(self) -> list[int]:
        return [i for i, reward in enumerate(self.opt.log.reward) if not np.isnan(reward)]

    def _spelled(self, trial: alexp.Trial) -> Any:
        return [trial, trial.id, np.int64(trial.id), str(trial.id), f"#{trial.id}"][self.rng.integers(5)]

    def _call(
        self,
        name: str,
        call: Callable[[], Any],
        fails: bool = False,
        may_fail: bool = False,
        looks: bool = False,
        documented: tuple[type[Exception], ...] = (ValueError, TypeError),
    ) -> Any:
        """What the call returns, None where it fails as it should; `Violation` where it does otherwise."""
        self.calls.append(name)
        failed: Exception | None = None
        out = None
        try:
            out = call()
        except Exception as error:
            failed = error
        now = self._saved()
        if (failed is not None or looks) and now != self.saved:
            raise Violation("the state has changed") from failed
        self.saved = now
        if failed is not None:
            if not (fails or may_fail):
                raise Violation("right input was refused") from failed
            if not isinstance(failed, documented) or not str(failed) or not _own(failed):
                raise Violation("an exception that is not documented") from failed
        elif fails:
            raise Violation("wrong input was taken")
        return out


def _own(error: Exception) -> bool:
    """Whether the library raised it itself, as opposed to something it called."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    assert trace is not None
    file = trace.tb_frame.f_code.co_filename
    return file.startswith(_LIBRARY) and linecache.getline(file, trace.tb_lineno).strip().startswith("raise")


def run(seed: int) -> str | None:
    """Play one sequence; what went wrong, or None."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)  # NumPy's: what overflows is to be foreseen
        sequence = None
        try:
            sequence = Sequence(seed)
            sequence.play()
        except Unusable:
            return None
        except Exception as error:
            cause = error.__cause__
            why = f"{error}" if isinstance(error, Violation) else f"{type(error).__name__}: {error}"
            why += f" <- {type(cause).__name__}: {cause}" if cause is not None else ""
            where = "constructor" if sequence is None else f"{sequence.kind.name}, {' / '.join(sequence.calls[-3:])}"
            return f"seed {seed}, {where}: {why}"
    return None


def soak(scale: float, seed: int) -> dict[str, int | float | str]:
    """Play `scale` times 20,000 sequences; how many were tried and in how many something was wrong."""
    tried = max(1, round(scale * SEQUENCES))
    wrong = [found for k in range(tried) if (found := run(seed * 1_000_000 + k)) is not None]
    causes = Counter(text.split(": ", 1)[1][:80] for text in wrong)
    figures: dict[str, int | float | str] = {
        "tried": tried,
        "algorithms": len(kinds()),
        "violations": len(wrong),
    }
    if wrong:
        figures["first"] = wrong[0]
        figures["causes"] = "; ".join(f"{n} x {cause}" for cause, n in causes.most_common(5))
    return figures
