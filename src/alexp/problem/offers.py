"""Offer: the candidates of one round, their features and actions, and all checks of the arguments of a round."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from alexp.common.arrays import Action, AnyArray, FloatArray, IntArray
from alexp.common.validation import check_sizes
from alexp.problem.candidates import NOTHING, Listing, Pending, Round
from alexp.problem.contextual import Blocks
from alexp.problem.domains import Arms, Available, Ball, ContextualDomain, Domain, check_positions
from alexp.problem.models import ModelClass

Key = Hashable  # what names a candidate: a text, a number, or a tuple of these
Ids = Sequence[Key] | AnyArray  # one per candidate


@dataclass(frozen=True, eq=False)
class Offer:
    """The candidates of one round.

    Attributes
    ----------
    rows : (n, P) the dictionary at the candidates, in the order in which they were passed; no -0.0 among them. None are
        there, n = 0, where the whole of a ball is offered, until an algorithm has narrowed it down to a point.
    actions : n of them, what `trial.x` will be: the arm's name, the candidate, its id, or its position.
    ids : one per candidate, distinct; None where they were not given.
    context : as it was passed; None where there is none.
    allowed : (k,) positions that may be chosen; None for all.
    """

    rows: FloatArray
    actions: Sequence[Action]
    ids: tuple[Key, ...] | None = None
    context: object = None
    allowed: IntArray | None = None

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    @property
    def is_whole(self) -> bool:
        """Whether every point of a ball may be played."""
        return len(self) == 0

    @property
    def choosable(self) -> IntArray:
        """Positions that may be chosen."""
        return np.arange(len(self)) if self.allowed is None else self.allowed

    def only(self, allowed: IntArray) -> Offer:
        """The same candidates, of which these may be chosen."""
        return replace(self, allowed=None if allowed.size == len(self) else allowed)

    def least(self, taken: Sequence[int]) -> Offer:
        """The same without the candidates that were taken; without the most often taken ones, if all were."""
        if not taken or self.is_whole:
            return self
        counts = np.bincount(taken, minlength=len(self))[self.choosable]
        return self.only(self.choosable[counts == counts.min()])


class FrameRows(Sequence[Action]):
    """The rows of a DataFrame as actions."""

    def __init__(self, frame: Action) -> None:
        self._frame = frame

    def __len__(self) -> int:
        return len(self._frame)

    def __getitem__(self, index: int | slice) -> Action:
        return self._frame.iloc[index]


def check_problem(models: ModelClass, domain: Domain) -> None:
    """Raise unless models and domain go together: both contextual, or neither."""
    name = type(domain).__name__
    if not isinstance(domain, ContextualDomain):
        if models.is_contextual:
            raise ValueError(
                f"these models are contextual, and {name} is a fixed domain: pass alexp.Arms([...]) or "
                "alexp.Candidates() as the domain"
            )
        return
    if not models.is_contextual:
        raise ValueError(
            f"{name} is a domain of contextual rounds, and these models are not contextual: use "
            "ModelClass.from_blocks, from_maps(..., contextual=True), per_arm or crossed"
        )
    if models.kernels is not None:
        raise ValueError("kernels are fitted to a table of candidates, and contextual rounds have none: use features")
    if isinstance(domain, Ball):
        _check_coordinates(models, domain)
    wanted = n_arms_of(models)
    if not isinstance(domain, Arms):
        if wanted is not None:
            raise ValueError("models per arm need arms: pass alexp.Arms([...]) as the domain")
        return
    if isinstance(models.dictionary, Blocks):
        raise ValueError("models declared by blocks take features= of fresh candidates: pass alexp.Candidates()")
    if wanted not in (None, len(domain)):
        raise ValueError(f"these models are for {wanted} arms, and the domain has {len(domain)}")


def _check_coordinates(models: ModelClass, ball: Ball) -> None:
    """Raise unless the columns of the models are the coordinates of a ball's points, as they are."""
    if not isinstance(models.dictionary, Blocks) or models.n_columns != ball.dim:
        what = f"got {models!r}" if isinstance(models.dictionary, Blocks) else "and these compute features themselves"
        raise ValueError(
            f"the features of {ball!r} are its {ball.dim} coordinates, {what}: use ModelClass.coordinates({ball.dim}) "
            f'or ModelClass.from_blocks({{"x": {ball.dim}}})'
        )
    if models.intercept or not np.all(models.scales == 1.0):
        raise ValueError("models on a ball are <x, theta>: without an intercept, and coordinates are not scaled")


def n_arms_of(models: ModelClass) -> int | None:
    """How many arms have columns of their own; None where no columns belong to an arm."""
    return getattr(models.dictionary, "n_arms", None)


def make_offer(
    models: ModelClass,
    domain: Domain,
    *,
    context: object = None,
    candidates: Action = None,
    features: object = None,
    ids: Ids | None = None,
    available: Available = None,
) -> Offer:
    """The offer of a round with these arguments; the error for wrong arguments names the right ones."""
    if not isinstance(domain, ContextualDomain):
        raise ValueError(
            "context, candidates, features and ids are for contextual domains, alexp.Arms and alexp.Candidates; the "
            f"candidates of {type(domain).__name__} are known, and available= restricts them"
        )
    if isinstance(domain, Arms):
        result = _of_arms(models, domain, context, candidates, features, ids)
    elif isinstance(domain, Ball):
        result = _of_ball(domain, context, candidates, features, ids, available)
    elif isinstance(models.dictionary, Blocks):
        result = _of_features(models.dictionary, context, candidates, features, ids)
    else:
        result = _of_candidates(models, context, candidates, features, ids)
    if available is None:
        return result
    return result.only(check_positions(available, len(result), lambda names: _by_name(names, result, domain)))


def _of_arms(
    models: ModelClass, arms: Arms, context: object, candidates: object, features: object, ids: object
) -> Offer:
    for name, value in (("candidates", candidates), ("features", features), ("ids", ids)):
        if value is not None:
            raise ValueError(
                f"{name}= is for fresh candidates, alexp.Candidates(); here the arms are the candidates, and a round "
                "takes context="
            )
    if context is None and _needs_context(models):
        raise ValueError("context= is missing: a round of these arms is asked for with ask(context=...)")
    return Offer(_evaluated(models, context, list(arms.names), len(arms)), arms.names, context=context)


def _of_ball(
    ball: Ball, context: object, candidates: Action, features: object, ids: object, available: object
) -> Offer:
    for name, value in (("context", context), ("features", features), ("ids", ids), ("available", available)):
        if value is not None:
            raise ValueError(f"{name}= is not used on a ball, where actions are points: pass candidates= or nothing")
    if candidates is None:
        return Offer(np.empty((0, ball.dim)), ())
    return points_offer(ball.inside(candidates))


def points_offer(points: FloatArray) -> Offer:
    """Points of a ball (n, dim) as candidates."""
    rows = points + 0.0
    return Offer(rows, list(rows))


def _of_features(blocks: Blocks, context: object, candidates: object, features: object, ids: Ids | None) -> Offer:
    for name, value in (("context", context), ("candidates", candidates)):
        if value is not None:
            raise ValueError(f"{name}= is for models that compute features; these are declared by blocks: features=")
    if features is None:
        raise ValueError("features= is missing: a round of these models is asked for with ask(features=...)")
    rows = blocks.rows(features) + 0.0  # a copy: what the caller does with the array later is the caller's
    keys = None if ids is None else check_ids(ids, len(rows))
    return Offer(rows, range(len(rows)) if keys is None else keys, keys)


def _of_candidates(models: ModelClass, context: object, candidates: Action, features: object, ids: Ids | None) -> Offer:
    if features is not None:
        raise ValueError(
            "features= is for models declared by ModelClass.from_blocks; these compute features themselves: pass "
            "candidates=, and context= where they need it"
        )
    if candidates is None:
        raise ValueError("candidates= is missing: a round is asked for with ask(context=..., candidates=...)")
    if isinstance(candidates, str | bytes | dict | set) or not hasattr(candidates, "__len__"):
        raise TypeError(f"candidates must be a list, an array or a DataFrame, got {type(candidates).__name__}")
    if len(candidates) == 0:
        raise ValueError("candidates must not be empty")
    if context is None and _needs_context(models):
        raise ValueError("context= is missing: a round is asked for with ask(context=..., candidates=...)")
    keys = None if ids is None else check_ids(ids, len(candidates))
    actions = FrameRows(candidates) if hasattr(candidates, "iloc") else candidates
    return Offer(_evaluated(models, context, candidates, len(candidates)), actions, keys, context)


def _needs_context(models: ModelClass) -> bool:
    return bool(getattr(models.dictionary, "needs_context", True))


def _evaluated(models: ModelClass, context: object, candidates: Action, n: int) -> FloatArray:
    rows = np.asarray(models.offered(context, candidates), dtype=np.float64) + 0.0
    if rows.shape != (n, models.n_columns) or not np.all(np.isfinite(rows)):
        raise ValueError(
            f"the models must give finite features of shape ({n}, {models.n_columns}) for a round of {n} candidates, "
            f"got shape {rows.shape}" + ("" if np.all(np.isfinite(rows)) else " with numbers that are not finite")
        )
    check_sizes("the features of the round", rows)
    return rows


def check_ids(ids: Ids, n: int) -> tuple[Key, ...]:
    """Names of n candidates, or an error: distinct texts, numbers, or tuples of these, because logs store them."""
    if isinstance(ids, str | bytes | dict | set) or not hasattr(ids, "__len__"):
        raise TypeError(f"ids must be a list, one entry per candidate, got {type(ids).__name__}")
    keys = tuple(_key(one) for one in ids)
    if len(keys) != n:
        raise ValueError(f"ids must have one entry per candidate ({n}), got {len(keys)}")
    if len(set(keys)) != n:
        twice = next(key for k, key in enumerate(keys) if key in keys[:k])
        raise ValueError(f"ids must be distinct, {twice!r} is used more than once")
    return keys


def _key(one: object) -> Key:
    if isinstance(one, np.generic):
        one = one.item()
    if isinstance(one, tuple):
        return tuple(_key(part) for part in one)
    if not isinstance(one, str | int | float) or one != one:
        raise TypeError(
            f"ids must be texts, numbers or tuples of these, because the log stores them, got {one!r:.80}; str(id) "
            "makes a text of anything"
        )
    return one


def _by_name(names: Sequence[object], presented: Offer, domain: ContextualDomain) -> IntArray:
    """Positions of arms by their names, or of candidates by their ids."""
    if isinstance(domain, Arms):
        return np.array([domain.locate(name) for name in names], dtype=np.int64)
    places = {} if presented.ids is None else {key: k for k, key in enumerate(presented.ids)}
    unknown = [name for name in names if name not in places]
    if unknown:
        known = (
            "candidates have no ids" if presented.ids is None else f"ids are {', '.join(map(repr, presented.ids[:5]))}"
        )
        raise ValueError(f"available holds {unknown[0]!r}, which is no candidate of this round: {known}")
    return np.array([places[name] for name in names], dtype=np.int64)


def contexts_of(context: Action, n: int | None) -> Iterator[object] | None:
    """The n contexts of `ask(context=Z, n=n)`, one by one; None where it is one context.

    Without `n` it is always one. With `n`, rows of a DataFrame or of an array of two dimensions and the items of a list
    or tuple are contexts, and there must be n of them; anything else, a dict, a text, a number, a vector, a row of a
    table, is one. A list of n plain numbers could be either, and is refused; a list of another length of numbers is one
    context.

    >>> [one.tolist() for one in contexts_of(np.eye(2), 2)], contexts_of({"age": 7}, 2), contexts_of(np.ones(2), 2)
    ([[1.0, 0.0], [0.0, 1.0]], None, None)
    """
    if n is None or not (isinstance(context, list | tuple) or _has_rows(context)):
        return None
    if isinstance(context, list | tuple) and all(isinstance(one, int | float | np.number) for one in context):
        if len(context) != n:
            return None
        raise ValueError(
            f"context={context!r:.80} with n={n} may be one context of {n} numbers or {n} contexts of one: pass "
            f"np.array({list(context)!r:.60}) for one, or an array of shape ({n}, 1) for {n} of them"
        )
    if len(context) != n:
        raise ValueError(
            f"context holds {len(context)} contexts, and n is {n}: one trial is asked for in each, n must be the same"
        )
    return (context.iloc[k] for k in range(n)) if hasattr(context, "iloc") else iter(context)


def _has_rows(context: Action) -> bool:
    return (isinstance(context, np.ndarray) and context.ndim == 2) or hasattr(context, "columns")


# -- offers in the form that algorithms use ----------------------------------------------------------------------


class OfferTable(Listing):
    """An offer in a visiting order of its own; `mark` tells it apart from all other rounds of a run."""

    def __init__(self, rows: FloatArray, order: IntArray, mark: bytes) -> None:
        table = np.ascontiguousarray(rows[order].T)
        table.flags.writeable = False  # like that of a fixed domain; sweeps would be compiled again for one that is
        self._table = table
        super().__init__(order, mark)

    @property
    def table(self) -> FloatArray:
        return self._table


class Reference:
    """Rows (E, P) that stand in for the candidates where these are not known: typical ones, or those seen so far."""

    def __init__(self, rows: FloatArray) -> None:
        self.rows = rows

    def mean_squares(self, centred: bool) -> FloatArray:
        """Mean square of every column, or its variance, shape (P,); zero without rows."""
        if not len(self.rows):
            return np.zeros(self.rows.shape[1])
        return np.asarray(np.var(self.rows, axis=0) if centred else np.mean(np.square(self.rows), axis=0))


def open_round(offer: Offer, order: IntArray, mark: bytes, pending: Pending = NOTHING) -> Round:
    """The round in which one of the offer's candidates is chosen."""
    return OfferTable(offer.rows, order, mark).round(offer.allowed, pending)
