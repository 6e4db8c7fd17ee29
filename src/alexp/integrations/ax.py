"""Ax: a node that lets the mixture choose trials, and a companion beside Ax's own choice."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Unpack, cast

from alexp.algorithms.base import Direction
from alexp.algorithms.statements import DELTA
from alexp.common.arrays import Action
from alexp.integrations.companion import Companion, CompanionOptions
from alexp.problem.domains import Box, FiniteSet
from alexp.problem.models import ModelClass

if TYPE_CHECKING:
    import pandas as pd

_MOST = 200_000  # combinations of choices that are listed
_TABLES = ("summarize", "get_trials_data_frame", "to_df")  # of a Client, an AxClient, an Experiment


def companion(
    source: Action,
    models: ModelClass,
    domain: FiniteSet | Box | None = None,
    *,
    metric: str | None = None,
    **settings: Unpack[CompanionOptions],
) -> Companion:
    """A companion that has seen the completed trials; `follow(completed(source))` keeps it up to date.

    Parameters
    ----------
    source : an Experiment, an AxClient or a Client.
    models : on the candidates of `domain`.
    domain : by default `domain_of` the experiment's search space; a Client does not show it, so that it needs one. A
        Box has a coordinate for each parameter, in the order of `keys`.
    metric : the outcome; by default the experiment's objective, with its direction.
    settings : as for `Companion`.
    """
    experiment: Action = getattr(source, "experiment", source)
    if not hasattr(experiment, "search_space") and (domain is None or metric is None):
        raise ValueError(f"a {type(source).__name__} does not show its search space and objective: pass domain, metric")
    own = domain_of(experiment.search_space) if domain is None else domain
    chosen: CompanionOptions = {}
    if domain is None and isinstance(own, Box):
        chosen["keys"] = list(experiment.search_space.parameters)
    if metric is None:
        metric, chosen["direction"] = _objective(experiment)
    chosen |= settings
    out = Companion(models, own, reward=metric, **chosen)
    done = completed(source)
    if metric in done.columns:
        out.follow(done)
    return out


def completed(source: Action) -> pd.DataFrame:
    """The completed trials of an Experiment, an AxClient or a Client, or of the table that one of them gave."""
    table = source
    if not hasattr(source, "columns"):
        methods = [getattr(source, name) for name in _TABLES if hasattr(source, name)]
        if not methods:
            raise TypeError(f"source must be an Experiment, an AxClient or a Client, got {type(source).__name__}")
        table = methods[0]()
    if "trial_status" not in table.columns:  # there are no trials yet
        return cast("pd.DataFrame", table.iloc[:0])
    status = table["trial_status"].map(lambda value: str(getattr(value, "name", value)))
    return cast("pd.DataFrame", table[status == "COMPLETED"])


def on_trial_complete(companion: Companion, parameters: Mapping[str, object], raw_data: object) -> None:
    """Tell a companion of one trial, with the arguments of `complete_trial`.

    `raw_data` is a number, a pair (mean, standard error), or a dict of those by metric; the standard error is not used.
    """
    outcome = raw_data
    if isinstance(outcome, Mapping):
        if companion.reward not in outcome:
            raise ValueError(f"raw_data has no {companion.reward!r}, only {', '.join(map(repr, outcome))}")
        outcome = outcome[companion.reward]
    value = outcome[0] if isinstance(outcome, tuple) else outcome
    companion.tell(parameters, cast(float, value))


def domain_of(search_space: Action) -> FiniteSet | Box:
    """All combinations of choices and whole numbers as a FiniteSet, or ranges of real numbers as a Box."""
    parameters = dict(search_space.parameters)
    if all(_is_real(parameter) for parameter in parameters.values()):
        if search_space.parameter_constraints:
            raise ValueError("the search space has constraints, which a Box has not: list candidates in a FiniteSet")
        ends = [(parameter.lower, parameter.upper) for parameter in parameters.values()]
        return Box([low for low, _ in ends], [high for _, high in ends])
    import pandas as pd

    values = {name: _values(parameter) for name, parameter in parameters.items()}
    size = 1
    for name, own in values.items():
        size *= len(own)
        if size > _MOST or not own:
            why = f"{name!r} is a range of real numbers" if not own else f"there are more than {_MOST} combinations"
            raise ValueError(f"the search space cannot be listed: {why}; list candidates of your own in a FiniteSet")
    listed = [dict(zip(values, row, strict=True)) for row in product(*values.values())]
    if search_space.parameter_constraints:
        listed = [row for row in listed if search_space.check_membership(row)]
    return FiniteSet(pd.DataFrame(listed))


def _is_real(parameter: Action) -> bool:
    return hasattr(parameter, "lower") and parameter.parameter_type.name == "FLOAT"


def _values(parameter: Action) -> list[object]:
    """What a parameter may be; nothing if that cannot be listed."""
    if hasattr(parameter, "lower"):
        return [] if _is_real(parameter) else list(range(int(parameter.lower), int(parameter.upper) + 1))
    return list(parameter.values) if hasattr(parameter, "values") else [parameter.value]  # choices, or a fixed one


def _objective(experiment: Action) -> tuple[str, Direction]:
    """The metric that counts, and its direction."""
    config = experiment.optimization_config
    if config is None:
        raise ValueError("the experiment has no objective; pass metric and direction")
    names = list(getattr(config.objective, "metric_names", ()))
    if len(names) != 1:
        raise ValueError(f"the objective must be one metric, got {names}; pass metric and direction")
    return str(names[0]), "minimize" if config.objective.minimize else "maximize"


def generation_node(
    models: ModelClass, domain: FiniteSet | Box | None = None, **settings: Unpack[CompanionOptions]
) -> Action:
    """A node of a GenerationStrategy: the mixture of the models chooses the trials.

    Parameters
    ----------
    models, domain, settings : as for `companion`. Objective and direction are the experiment's.

    Pending trials are counted on; no arm of the experiment, failed ones included, is proposed again. The choice follows
    from the experiment alone. Afterwards `node.companion` knows the models' probabilities.
    """
    from ax.generation_strategy.external_generation_node import ExternalGenerationNode

    class MixtureNode(ExternalGenerationNode):  # type: ignore[misc]
        """Proposes what the mixture proposes."""

        companion: Companion
        _experiment: Action

        def update_generator_state(self, experiment: Action, data: Action) -> None:
            self.companion, self._experiment = companion(experiment, models, domain, **settings), experiment

        def get_next_candidate(self, pending_parameters: list[Mapping[str, object]]) -> dict[str, object]:
            arms = [arm.parameters for arm in self._experiment.arms_by_name.values()]
            (x,) = self.companion.next(pending=pending_parameters, exclude=arms)
            space = self._experiment.search_space.parameters
            names = settings.get("keys") or list(space)
            values = x.to_dict() if hasattr(x, "to_dict") else dict(zip(names, x, strict=True))
            return {name: parameter.cast(values[name]) for name, parameter in space.items()}

    return MixtureNode(name="EvidenceMixture")


def stopping_strategy(
    companion: Companion, epsilon: float, *, delta: float = DELTA, min_trials: int = 5, certified: bool = True
) -> object:
    """A global stopping strategy for Ax: stop once the best candidate is within `epsilon` of the best one.

    Parameters
    ----------
    certified : whether that must be certified; if not, the companion's estimate will do.
    min_trials : completed trials before it looks at all.
    """
    from ax.global_stopping.strategies.base import BaseGlobalStoppingStrategy

    class StopWithinEpsilon(BaseGlobalStoppingStrategy):  # type: ignore[misc]
        """Stops on what the companion reports."""

        def _should_stop_optimization(self, experiment: Action) -> tuple[bool, str]:
            companion.follow(completed(experiment))
            report = companion.stop_report(delta, epsilon)
            return report.can_stop or (not certified and report.epsilon <= epsilon), str(report)

    return StopWithinEpsilon(min_trials=min_trials, inactive_when_pending_trials=False)
