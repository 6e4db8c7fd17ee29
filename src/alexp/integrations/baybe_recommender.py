"""A recommender for BayBE: the mixture chooses the experiments of a campaign, and the representation with them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from attrs import define, evolve, field
from baybe.objectives.base import Objective
from baybe.parameters import CategoricalParameter, SubstanceParameter
from baybe.recommenders.pure.base import PureRecommender
from baybe.searchspace import SearchSpace, SearchSpaceType
from baybe.utils.dataframe import fuzzy_row_match

from alexp.common.warning import caution
from alexp.integrations.baybe import experiments_of, models_from_searchspaces
from alexp.integrations.companion import next_candidates
from alexp.problem.domains import FiniteSet
from alexp.problem.models import ModelClass

if TYPE_CHECKING:
    import pandas as pd

ONE_HOT = "OHE"  # BayBE's name


def encodings(searchspace: SearchSpace, names: Iterable[str]) -> dict[str, SearchSpace]:
    """The same experiments once per encoding: every substance in that encoding, everything else as it is.

    Names are those of `baybe.parameters.SubstanceEncoding`, such as "ECFP" and "RDKIT2DDESCRIPTORS"; "OHE" takes
    substances for names.
    """
    if not any(isinstance(one, SubstanceParameter) for one in searchspace.parameters):
        raise ValueError("the search space has no SubstanceParameter, which alone has several encodings")

    def encoded(parameter: Any, name: str) -> Any:
        if not isinstance(parameter, SubstanceParameter):
            return parameter
        if name == ONE_HOT:
            return CategoricalParameter(parameter.name, parameter.values)
        return evolve(parameter, encoding=name)

    experiments = experiments_of(searchspace)
    return {
        name: SearchSpace.from_dataframe(experiments, [encoded(one, name) for one in searchspace.parameters])
        for name in names
    }


@define(slots=False)
class MixtureRecommender(PureRecommender):  # type: ignore[misc]
    """Recommends by an `EvidenceMixture`: one model per search space, weighted by its evidence.

    Parameters
    ----------
    searchspaces : the experiments of the campaign in several encodings, by name, in any order; see `encodings`. By
        default the campaign's own representation alone, with several kernels.
    random_state : seed.

    A recommendation follows from the seed, the measurements and the pending experiments: nothing else is remembered, so
    that a campaign can be saved and restored. Batches are chosen jointly: every experiment counts on those before it.
    Which experiments may be recommended is the campaign's decision (`allow_recommending_already_measured`, ...). The
    objective must be one number: a target, to be maximised or minimised or with a transformation, or a desirability.
    """

    compatibility: ClassVar[SearchSpaceType] = SearchSpaceType.DISCRETE

    searchspaces: dict[str, SearchSpace] = field(factory=dict)
    random_state: int = 0
    _last: tuple[Any, ModelClass] | None = field(default=None, init=False, eq=False, repr=False)

    def models(self, searchspace: SearchSpace) -> ModelClass:
        """The models, on the experiments of a search space; for `companion(campaign, models)`."""
        experiments = searchspace.discrete.exp_rep
        if self._last is None or self._last[0] is not experiments:
            spaces = self.searchspaces or {"campaign": searchspace}
            self._last = experiments, models_from_searchspaces(spaces, experiments=experiments_of(searchspace))
        return self._last[1]

    def recommend(
        self,
        batch_size: int,
        searchspace: SearchSpace,
        objective: Objective | None = None,
        measurements: pd.DataFrame | None = None,
        pending_experiments: pd.DataFrame | None = None,
    ) -> pd.DataFrame:
        """The next experiments, rows of `searchspace.discrete.exp_rep`."""
        from baybe.exceptions import NotEnoughPointsLeftError

        models = self.models(searchspace)
        experiments: pd.DataFrame = searchspace.discrete.exp_rep
        places = {label: k for k, label in enumerate(experiments.index)}
        free = [places[label] for label in searchspace.discrete.get_candidates()[0].index]
        if len(free) < batch_size:
            raise NotEnoughPointsLeftError(f"{batch_size} experiments are asked for, and {len(free)} are left")
        told = list[tuple[int, float]]()
        if measurements is not None and len(measurements):
            if objective is None:
                raise ValueError("measurements need an objective that says what to make of them")
            rows, found = _rows(searchspace, measurements)
            told = list(zip(rows, _values(objective, measurements)[found], strict=True))
            told = [(row, value) for row, value in told if value == value]  # not measured yet
        pending = [] if pending_experiments is None else _rows(searchspace, pending_experiments)[0]
        domain = FiniteSet(experiments_of(searchspace))
        chosen = next_candidates(
            models, domain, told, batch_size, pending=pending, available=free, random_state=self.random_state
        )
        return experiments.iloc[chosen]


def _values(objective: Objective, measurements: pd.DataFrame) -> Any:
    """The objective of every measurement, (n,), larger is better; NaN where a target is missing."""
    if objective.is_multi_output:
        raise ValueError(
            f"the objective must be one number, got a {type(objective).__name__} of {len(objective.targets)} targets; "
            "take a DesirabilityObjective"
        )
    names = [target.name for target in objective.targets]
    values = objective.transform(measurements[names].dropna(), allow_extra=False)
    return values.iloc[:, 0].reindex(measurements.index).to_numpy(dtype=float)


def _rows(searchspace: SearchSpace, given: pd.DataFrame) -> tuple[list[int], list[int]]:
    """Places of experiments in the search space, and the rows of the table that have one; warns of others."""
    experiments, parameters = experiments_of(searchspace), searchspace.parameters
    table = given.reset_index(drop=True)
    found = list(fuzzy_row_match(experiments, table, parameters))
    if len(found) == len(table):
        return found, list(range(len(table)))
    each = [list(fuzzy_row_match(experiments, table.iloc[[k]], parameters)) for k in range(len(table))]
    known = [k for k, own in enumerate(each) if own]
    caution(
        f"{len(table) - len(known)} of {len(table)} experiments are not in the search space and are left out, the "
        f"first is {table.iloc[next(k for k, own in enumerate(each) if not own)].to_dict()}",
        UserWarning,
    )
    return [each[k][0] for k in known], known
