"""A companion for BayBE campaigns: which of several representations explains the measurements, and may one stop.

A campaign has one search space with one computational representation. Search spaces that list the same experiments in
several encodings are several models here; the campaign itself goes on with its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, Unpack

from alexp.algorithms.base import Direction
from alexp.common.arrays import Action
from alexp.integrations.companion import Companion, CompanionOptions, ListLookup
from alexp.problem.domains import FiniteSet
from alexp.problem.kernel_models import AUTO, KernelChoice
from alexp.problem.models import ModelClass

if TYPE_CHECKING:
    import pandas as pd


class Discrete(Protocol):
    """The discrete part of a search space: N experiments, as they are run and as numbers."""

    exp_rep: pd.DataFrame
    comp_rep: pd.DataFrame


class SearchSpace(Protocol):
    """A BayBE search space."""

    discrete: Discrete


class Campaign(Protocol):
    """A BayBE campaign."""

    searchspace: SearchSpace
    targets: tuple[object, ...]
    measurements: pd.DataFrame


def models_from_searchspaces(
    searchspaces: Mapping[str, SearchSpace],
    *,
    kernels: KernelChoice = AUTO,
    intercept: bool | None = None,
    experiments: pd.DataFrame | None = None,
) -> ModelClass:
    """One map per search space: its computational representation of the experiments.

    All of them must list the same experiments, in any order; candidates are in the order of `experiments`, by default
    that of the first.
    """
    if not searchspaces:
        raise ValueError("searchspaces must not be empty")
    if experiments is None:
        experiments = experiments_of(next(iter(searchspaces.values())))
    places = ListLookup(FiniteSet(experiments), None, 1e-9)
    maps = {}
    for name, space in searchspaces.items():
        own = experiments_of(space)
        if len(own) != len(experiments):
            raise ValueError(f"search space {name!r} lists {len(own)} experiments, not {len(experiments)}")
        try:
            order = places.rows(own)
        except ValueError as error:
            raise ValueError(f"search space {name!r} lists other experiments: {error}") from error
        rows = space.discrete.comp_rep.to_numpy(dtype=float)
        maps[name] = rows[sorted(range(len(order)), key=order.__getitem__)]
    return ModelClass.from_matrices(maps, kernels=kernels, intercept=intercept)


def companion(
    campaign: Campaign,
    models: ModelClass | None = None,
    *,
    kernels: KernelChoice = AUTO,
    **settings: Unpack[CompanionOptions],
) -> Companion:
    """A companion that has seen the campaign's measurements; `follow(campaign.measurements)` keeps it up to date.

    Parameters
    ----------
    models : on the experiments of `campaign.searchspace.discrete.exp_rep`, row by row, such as those of
        `models_from_searchspaces`; by default the campaign's own representation, with `kernels` on it.
    settings : as for `Companion`. The direction is that of the campaign's target.
    """
    name, direction = _target(campaign)
    own = models or models_from_searchspaces({"campaign": campaign.searchspace}, kernels=kernels)
    candidates = FiniteSet(experiments_of(campaign.searchspace))
    chosen: CompanionOptions = {"direction": direction, **settings}
    out = Companion(own, candidates, reward=name, **chosen)
    if len(campaign.measurements):
        out.follow(campaign.measurements)
    return out


def experiments_of(space: SearchSpace) -> pd.DataFrame:
    """The experiments as they are run, numbered."""
    continuous = getattr(space, "continuous", None)
    if continuous is not None and not continuous.is_empty:
        raise ValueError("the search space has continuous parameters; the mixture needs a list of all experiments")
    return space.discrete.exp_rep.reset_index(drop=True)


def _target(campaign: Campaign) -> tuple[str, Direction]:
    """The column of the outcome, and its direction."""
    if len(campaign.targets) != 1:
        raise ValueError(f"the campaign must have one target, got {len(campaign.targets)}; choose one in a Companion")
    target: Action = campaign.targets[0]
    mode = str(getattr(getattr(target, "mode", None), "name", ""))  # of versions that have no `minimize`
    changed = type(getattr(target, "transformation", None)).__name__ not in ("NoneType", "IdentityTransformation")
    if changed or mode == "MATCH":
        raise ValueError(
            f"target {target.name!r} is no plain maximum or minimum of what is measured; put the value that counts "
            "into a column of its own and use Companion"
        )
    return str(target.name), "minimize" if getattr(target, "minimize", False) or mode == "MIN" else "maximize"
