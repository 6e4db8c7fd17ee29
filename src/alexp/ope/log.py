"""Logs: what was played, with which propensity, and the reward."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from alexp.common.arrays import Action, BoolArray, FloatArray, IntArray
from alexp.common.validation import matrix, offering
from alexp.common.warning import caution

if TYPE_CHECKING:
    import pandas as pd

    from alexp.problem.domains import Domain

PLAIN = ("rewards", "propensities", "index", "n", "contexts", "ids", "chosen", "available", "models", "explored")
AGREEMENT = 1e-6  # tolerance of sums of probabilities and of the propensities of played actions
FRAME_COLUMNS = ("index", "propensity", "reward")


@dataclass(frozen=True)
class Ragged:
    """Numbers or rows of all candidates, one block per round; rounds may differ in size.

    Attributes
    ----------
    values : (N,) or (N, P), where N is the sum of the lengths of all rounds.
    starts : (n + 1,); round t has values[starts[t] : starts[t + 1]].
    """

    values: FloatArray
    starts: IntArray

    @classmethod
    def of(cls, name: str, blocks: object, lengths: IntArray, rows: bool = False) -> Ragged:
        """From an array (n, K) or (n, K, P), or one array per round: (n_t,), or (n_t, P) if these are `rows`.

        `lengths` are the sizes that the rounds have; NaN and infinities are refused.
        """
        n, starts = lengths.size, _starts(lengths)
        values: FloatArray
        if isinstance(blocks, np.ndarray) and blocks.dtype != object and blocks.ndim == 2 + rows:
            if len(blocks) != n or np.any(lengths != blocks.shape[1]):
                raise ValueError(f"{name} has shape {blocks.shape}; needed is one block for each of the {n} rounds")
            values = np.asarray(blocks, dtype=np.float64).reshape(-1, *blocks.shape[2:])
        else:
            values = _stacked(name, blocks, lengths, rows)
        if not np.all(np.isfinite(values)):
            where = int(np.argwhere(~np.isfinite(values))[0][0])
            number = int(np.searchsorted(starts, where, side="right")) - 1
            raise ValueError(f"{name} of round {number} has {values[where]}; all of them must be finite")
        return cls(values, starts)

    def __len__(self) -> int:
        return self.starts.size - 1

    def __getitem__(self, t: int) -> FloatArray:
        """The block of round t."""
        return self.values[self.starts[t] : self.starts[t + 1]]

    @property
    def lengths(self) -> IntArray:
        """Number of candidates of each round, (n,)."""
        return np.diff(self.starts)

    def at(self, index: IntArray) -> FloatArray:
        """The entry of one candidate per round, (n,) or (n, P)."""
        found: FloatArray = self.values[self.starts[:-1] + index]
        return found

    def sums(self) -> FloatArray:
        """Sum over the candidates of each round, (n,)."""
        found: FloatArray = np.add.reduceat(self.values, self.starts[:-1]) if len(self) else np.zeros(0)
        return found

    def like(self, values: FloatArray) -> Ragged:
        """Other values for the same candidates."""
        return Ragged(values, self.starts)

    def take(self, mask: BoolArray) -> Ragged:
        """Some of the rounds."""
        if mask.all():
            return self
        return Ragged(self.values[np.repeat(mask, self.lengths)], _starts(self.lengths[mask]))


def _starts(lengths: IntArray) -> IntArray:
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)


def _stacked(name: str, blocks: object, lengths: IntArray, rows: bool) -> FloatArray:
    if not isinstance(blocks, Sequence | np.ndarray) or isinstance(blocks, str):
        raise TypeError(f"{name} must be a list with one array per round, got {type(blocks).__name__}")
    if len(blocks) != lengths.size:
        raise ValueError(f"{name} must have one entry for each of the {lengths.size} rounds, got {len(blocks)}")
    found: list[FloatArray] = []
    for t, block in enumerate(blocks):
        try:
            array = np.asarray(block, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{name} of round {t} must be numbers: {error}") from error
        if array.ndim != 1 + rows or len(array) != lengths[t]:
            wanted = f"({lengths[t]}, P)" if rows else f"({lengths[t]},)"
            raise ValueError(f"{name} of round {t} must have shape {wanted}, got {array.shape}")
        if found and array.shape[1:] != found[0].shape[1:]:
            raise ValueError(f"{name} of round {t} have {array.shape[1]} columns, those of round 0 {found[0].shape[1]}")
        found.append(array)
    return np.concatenate(found) if found else np.zeros((0, 0) if rows else 0)


class LogWarning(UserWarning):
    """Part of a log cannot be used, or it contradicts an assumption."""


class NoOverlapError(ValueError):
    """The logger could not have played what the new policy plays, so the log cannot evaluate it."""


@dataclass(frozen=True)
class LoggedRound:
    """The part of a logged round that a policy may use.

    Attributes
    ----------
    number : of the round, from 0 on.
    n : number of candidates.
    context, ids : as logged, or None.
    available : positions that could be played, or None for all.
    features : (n, P) of all candidates, or None.
    """

    number: int
    n: int
    context: Action
    ids: Sequence[Action] | None
    features: FloatArray | None
    available: Sequence[int] | None = None


class Log:
    """A validated log of n rounds in the order in which actions were chosen.

    Parameters
    ----------
    rewards : (n,); NaN while pending, or if abandoned or retracted. Such rounds are left out and counted.
    propensities
        (n,), in (0, 1]: probability with which the logger played the action. NaN where unknown (measurements made
        without a trial); such rounds are left out, counted and warned of.
    index : (n,), the number of the played action among the candidates of its round.
    n : (n,) or one number, the number of candidates of the rounds.
    contexts : one per round, in any form.
    ids : per round, the names of all candidates.
    features : per round (n_t, P), rows of all candidates; or an array (n, K, P).
    chosen : (n, P), the rows of the played actions; taken from `features` if these are given.
    probabilities : per round (n_t,), the logger's probabilities of all candidates, where they are known.
    available : per round the positions that could be played, or None for all.
    models, explored : as in a `Trial`, for the record.
    """

    def __init__(
        self,
        rewards: object,
        propensities: object,
        index: object,
        n: object,
        *,
        contexts: Sequence[Action] | np.ndarray | None = None,
        ids: Sequence[Sequence[Action]] | None = None,
        features: object = None,
        chosen: object = None,
        probabilities: object = None,
        available: Sequence[Sequence[int] | None] | None = None,
        models: Sequence[Action] | None = None,
        explored: Sequence[Action] | None = None,
    ) -> None:
        self.rewards = _numbers("rewards", rewards)
        size = self.rewards.size
        self.propensities = _numbers("propensities", propensities, size)
        sizes = n if isinstance(n, np.ndarray | Sequence) else np.full(size, n)
        self.n = _whole("n", sizes, size)
        self.index = _whole("index", index, size)
        self._check_columns()
        self.contexts = _listed("contexts", contexts, size)
        self.ids = _listed("ids", ids, size)
        self.available = _listed("available", available, size)
        self.models = _listed("models", models, size)
        self.explored = _listed("explored", explored, size)
        for t, names in enumerate(self.ids or ()):
            if len(names) != self.n[t]:
                raise ValueError(f"ids of round {t} must name its {self.n[t]} candidates, got {len(names)}")
        self.features = None if features is None else Ragged.of("features", features, self.n, rows=True)
        if self.features is not None:
            self.chosen: FloatArray | None = self.features.at(self.index)
        else:
            self.chosen = None if chosen is None else matrix("chosen", chosen, rows=size)
        self.probabilities = None if probabilities is None else Ragged.of("probabilities", probabilities, self.n)
        self._check_probabilities()
        self._check_available()
        self.usable: BoolArray = np.isfinite(self.rewards) & np.isfinite(self.propensities)
        self.left_out = {
            "without reward": int(np.isnan(self.rewards).sum()),
            "without propensity": int((np.isnan(self.propensities) & ~np.isnan(self.rewards)).sum()),
        }
        if unknown := self.left_out["without propensity"]:
            caution(
                f"{unknown} of {size} rounds have a reward but no propensity and are left out: the probability of "
                "these actions is unknown",
                LogWarning,
            )

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, *, domain: Domain | None = None, n: object = None) -> Self:
        """From `opt.log_frame()`, or from `opt.trials_dataframe()` with the fixed domain or its size n."""
        return cls(**_frame_columns(frame, domain, n))

    def __len__(self) -> int:
        return self.rewards.size

    def __repr__(self) -> str:
        gone = ", ".join(f"{count} {why}" for why, count in self.left_out.items() if count)
        return f"Log({len(self)} rounds{', ' + gone if gone else ''})"

    @property
    def n_left_out(self) -> int:
        """Number of rounds that cannot be used."""
        return int((~self.usable).sum())

    def presented(self) -> Iterator[LoggedRound]:
        """The rounds in the form that policies take."""
        for t in range(len(self)):
            yield LoggedRound(
                number=t,
                n=int(self.n[t]),
                context=None if self.contexts is None else self.contexts[t],
                ids=None if self.ids is None else self.ids[t],
                features=None if self.features is None else self.features[t],
                available=None if self.available is None else self.available[t],
            )

    def with_features(self, function: Callable[[LoggedRound], object]) -> Log:
        """The same log with features (n_t, P) of all candidates that a function of the round computes."""
        return self._with(features=[function(round_) for round_ in self.presented()], chosen=None)

    def part(self, mask: BoolArray) -> Log:
        """Some of the rounds, in their order."""
        keep = np.flatnonzero(mask).tolist()

        def some(column: Sequence[Action] | None) -> list[Action] | None:
            return None if column is None else [column[t] for t in keep]

        def block(column: Ragged | None) -> list[FloatArray] | None:
            return None if column is None else [column[t] for t in keep]

        return self._with(
            rewards=self.rewards[keep],
            propensities=self.propensities[keep],
            index=self.index[keep],
            n=self.n[keep],
            contexts=some(self.contexts),
            ids=some(self.ids),
            features=block(self.features),
            chosen=None if self.chosen is None else self.chosen[keep],
            probabilities=block(self.probabilities),
            available=some(self.available),
            models=some(self.models),
            explored=some(self.explored),
        )

    def _with(self, **changed: object) -> Log:
        def blocks(column: Ragged | None) -> list[FloatArray] | None:
            return None if column is None else [column[t] for t in range(len(column))]

        columns: dict[str, Action] = {name: getattr(self, name) for name in PLAIN}
        if "features" not in changed:
            columns["features"] = blocks(self.features)
        if "probabilities" not in changed:
            columns["probabilities"] = blocks(self.probabilities)
        return Log(**(columns | changed))

    def _check_columns(self) -> None:
        if np.isinf(self.rewards).any():
            raise ValueError(f"rewards of round {np.flatnonzero(np.isinf(self.rewards))[0]} are infinite")
        wrong = np.flatnonzero((self.propensities <= 0.0) | (self.propensities > 1.0 + AGREEMENT))
        if wrong.size:
            raise ValueError(
                f"propensities must lie in (0, 1], or be NaN where unknown; round {wrong[0]} has "
                f"{self.propensities[wrong[0]]:g}, for an action that was played"
            )
        self.propensities = np.minimum(self.propensities, 1.0)
        if (self.n < 1).any():
            raise ValueError(f"n of round {np.flatnonzero(self.n < 1)[0]} is below 1: a round needs candidates")
        wrong = np.flatnonzero((self.index < 0) | (self.index >= self.n))
        if wrong.size:
            raise ValueError(
                f"index of round {wrong[0]} is {self.index[wrong[0]]}, but its candidates are 0..{self.n[wrong[0]] - 1}"
            )

    def _check_probabilities(self) -> None:
        if self.probabilities is None:
            return
        check_distributions("probabilities", self.probabilities)
        gap = np.abs(self.probabilities.at(self.index) - self.propensities)
        if (wrong := np.flatnonzero(gap > AGREEMENT)).size:
            t = wrong[0]
            raise ValueError(
                f"probabilities of round {t} give {self.probabilities[t][self.index[t]]:g} to the action that was "
                f"played with propensity {self.propensities[t]:g}; these must be the same number"
            )

    def _check_available(self) -> None:
        for t, positions in enumerate(self.available or ()):
            if positions is not None and self.index[t] not in positions:
                raise ValueError(f"available of round {t} does not have the action {self.index[t]} that was played")


def check_distributions(name: str, found: Ragged) -> None:
    """Raise unless the numbers of every round are probabilities."""
    if found.values.size and found.values.min() < 0.0:
        where = int(np.searchsorted(found.starts, found.values.argmin(), side="right")) - 1
        raise ValueError(f"{name} of round {where} has {found.values.min():g}; none may be negative")
    wrong = np.flatnonzero(np.abs(found.sums() - 1.0) > AGREEMENT)
    if wrong.size:
        raise ValueError(f"{name} of round {wrong[0]} sum to {found.sums()[wrong[0]]:.9g}, not to 1")


def _numbers(name: str, values: object, size: int | None = None) -> FloatArray:
    try:
        column = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be one number per round: {error}") from error
    if column.ndim != 1 or (size is not None and column.size != size):
        wanted = "(n,)" if size is None else f"({size},)"
        raise ValueError(f"{name} must have shape {wanted}, got {column.shape}")
    return column


def _whole(name: str, values: object, size: int) -> IntArray:
    column = _numbers(name, values, size)
    if column.size and not np.array_equal(column, np.round(column)):
        raise ValueError(f"{name} must be whole numbers")
    return column.astype(np.int64)


def _listed(name: str, values: Sequence[Action] | np.ndarray | None, size: int) -> list[Action] | None:
    if values is None:
        return None
    if len(values) != size:
        raise ValueError(f"{name} must have one entry for each of the {size} rounds, got {len(values)}")
    return list(values)


def _frame_columns(frame: pd.DataFrame, domain: Domain | None, n: object) -> dict[str, Action]:
    """Arguments of `Log` from a table with one row per trial.

    The columns index, propensity and reward are needed; n, context, ids, model, explored, features (rows of all
    candidates) or row (of the chosen one) and probabilities are used if they exist.
    """
    missing = [name for name in FRAME_COLUMNS if name not in frame]
    if missing:
        raise ValueError(f"frame needs the columns {', '.join(FRAME_COLUMNS)}; {', '.join(missing)} are missing")
    for name in ("ids", "available", "features", "row", "probabilities"):
        if name in frame and any(isinstance(value, str) for value in frame[name]):
            raise TypeError(
                f"column {name!r} of frame holds text, as a CSV file makes of lists: keep the frame with "
                'to_json(orient="records"), or drop the column'
            )
    columns: dict[str, Action] = {
        "rewards": frame["reward"].to_numpy(dtype=np.float64, na_value=np.nan),
        "propensities": frame["propensity"].to_numpy(dtype=np.float64, na_value=np.nan),
        "index": frame["index"].to_numpy(dtype=np.int64),
        "n": _frame_sizes(frame, domain, n),
    }
    for argument, name in (
        ("contexts", "context"),
        ("ids", "ids"),
        ("models", "model"),
        ("explored", "explored"),
        ("probabilities", "probabilities"),
    ):
        columns[argument] = _whole_column(frame, name)
    if "available" in frame and any(positions is not None for positions in _entries(frame, "available")):
        columns["available"] = _entries(frame, "available")
    return columns | _frame_features(frame)


def _frame_sizes(frame: pd.DataFrame, domain: Domain | None, n: object) -> Action:
    if "n" in frame:
        return frame["n"].to_numpy(dtype=np.int64)
    if n is not None:
        return n
    if domain is not None:
        return domain.n_candidates
    raise ValueError("frame has no column n: pass domain=, or n=, the number of candidates that rounds had")


def _frame_features(frame: pd.DataFrame) -> dict[str, Action]:
    """Rows of all candidates if every trial has a matrix, of the chosen ones if it has one row."""
    for name in ("features", "row"):
        found = _whole_column(frame, name)
        if found is not None:
            return {"features": found} if np.ndim(found[0]) == 2 else {"chosen": np.array(found, dtype=np.float64)}
    return {}


def _whole_column(frame: pd.DataFrame, name: str) -> list[Action] | None:
    """A column as a list; None if it does not exist or has gaps."""
    if name not in frame or not len(frame):
        return None
    values = _entries(frame, name)
    return None if any(value is None for value in values) else values


def _entries(frame: pd.DataFrame, name: str) -> list[Action]:
    """A column as a list, with None for what is missing; files bring that back as NaN."""
    return [None if isinstance(value, float) and np.isnan(value) else value for value in frame[name]]


def feed(log: Log, opt: Action) -> int:
    """Tell an algorithm all rewards of a log, in their order, by `opt.observe`; returns their number.

    Rounds are passed as to `ask`: with contexts if the log has them, else with the features of all candidates, else by
    their number in a fixed domain. Propensities are passed where they are known.
    """
    offering("opt", opt, "observe")
    fed = 0
    for round_ in log.presented():
        t = round_.number
        if np.isnan(log.rewards[t]):
            continue
        opt.observe(int(log.index[t]), float(log.rewards[t]), **_observe_arguments(log, round_))
        fed += 1
    return fed


def _observe_arguments(log: Log, round_: LoggedRound) -> dict[str, Action]:
    """Arguments of `observe` beside the action and its reward."""
    if round_.context is not None:
        offered: dict[str, Action] = {"context": round_.context}
    elif round_.features is not None:
        offered = {"features": round_.features, "ids": round_.ids}
    else:
        return {}
    if round_.available is not None:
        offered["available"] = round_.available
    propensity = float(log.propensities[round_.number])
    return offered if np.isnan(propensity) else offered | {"propensity": propensity}
