"""Studies as such: list, create, look at, delete."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from inspect import Parameter, signature
from typing import TYPE_CHECKING

from fastapi import APIRouter
from pydantic import JsonValue
from starlette.responses import Response

from alexp.algorithms.capabilities import Certifies, WeighsModels, offers
from alexp.algorithms.components import component_from_dict
from alexp.algorithms.registry import algorithm_named, spelled_out
from alexp.common.codec import State, jsonable
from alexp.common.warning import gathered
from alexp.estimation.announcing import Cost, expected
from alexp.problem import Arms
from alexp.service.limits import Limits
from alexp.service.problems import translated
from alexp.service.routes.common import Called, StrictRoute, StudyName, answer, fields_of, problems, reply
from alexp.service.schemas.answers import Deleted, Studies, Summary
from alexp.service.schemas.requests import Create
from alexp.service.shelf import Acted, Opened, Shelf
from alexp.study import Study, StudyExistsError, create_study, list_studies
from alexp.study.candidates import column_names
from alexp.study.events import acting_as
from alexp.study.opening import DEFAULT_ALGORITHM
from alexp.study.viewing import explained_settings

if TYPE_CHECKING:
    from alexp.algorithms.base import Algorithm

_MOST_NAMES = 1000


def routes(shelf: Shelf, limits: Limits) -> APIRouter:
    """Routes below /v1/studies."""
    router = APIRouter(prefix="/v1/studies", tags=["studies"], route_class=StrictRoute)

    @router.get("", response_model=Studies, responses=problems(), summary="All studies")
    def list_all() -> Response:
        with translated():
            found = list_studies(shelf.storage)
        counts = ("trials", "told", "pending", "abandoned")
        lines = [
            {"name": one.name, "algorithm": one.algorithm, "created_at": one.created_at, "latest": one.latest}
            | {"counts": {name: getattr(one, name) for name in counts}}
            for one in found
        ]
        return reply({"studies": lines})

    @router.post(
        "",
        response_model=Summary,
        status_code=201,
        responses=problems(409, 413, 415) | {200: {"model": Summary, "description": "It was there already."}},
        summary="Create a study",
    )
    def create(body: Create, caller: Called) -> Response:
        """A new study, which is stored when this returns.

        With `load_if_exists`, or when the call is repeated with the same key, a study that is there already and agrees
        with the request is returned (200); one that differs is a conflict (409).
        """
        key = caller.key(body.key)
        with translated(_places(body)), acting_as(caller.address), gathered() as heard:
            study, is_new = _create(body, key, shelf, limits)
            opened = shelf.put(study)
            return answer(Acted(summary(opened), heard), 201 if is_new else 200)

    @router.get("/{name}", response_model=Summary, responses=problems(404), summary="What a study is")
    def look(name: StudyName) -> Response:
        return answer(shelf.act(name, summary))

    @router.delete("/{name}", response_model=Deleted, responses=problems(404), summary="Delete a study for ever")
    def delete(name: StudyName) -> Response:
        shelf.delete(name)
        return reply({"deleted": name})

    return router


def _places(body: Create) -> Mapping[str, str]:
    """Where in the body what a message names is: the more general field counts."""
    inner = getattr(body.problem, "models", None)
    family = {} if isinstance(inner, dict | None) else fields_of(inner, "body.problem.models")
    settings = {name: f"body.settings.{name}" for name in body.settings}
    return family | fields_of(body.problem, "body.problem") | settings | fields_of(body)


def _create(body: Create, key: str | None, shelf: Shelf, limits: Limits) -> tuple[Study, bool]:
    """The study, and whether it is new."""
    if body.name in (".", ".."):
        raise ValueError("name must be usable in a path, which . and .. are not")
    named = spelled_out(DEFAULT_ALGORITHM if body.algorithm is None else body.algorithm)
    settings = _settings(body.settings, algorithm_named(named[0]), *map(algorithm_named, named[1].values()))
    models, domain = body.problem.build(limits)
    _check_cost(expected(models, domain.n_candidates or 0, algorithm_named(named[0]).ridges_per_model), limits)
    seed = body.random_state
    if seed is None and key is not None:  # the same study when the call is repeated, and another for another key
        seed = int.from_bytes(sha256(f"{body.name}\0{key}".encode()).digest()[:16], "big")

    def made(load_if_exists: bool) -> Study:
        return create_study(
            models,
            domain,
            name=body.name,
            storage=shelf.storage,
            algorithm=body.algorithm,
            direction=body.direction,
            load_if_exists=load_if_exists,
            random_state=seed,
            repeats=body.repeats,
            expired=body.expired,
            **settings,
        )

    try:
        return made(load_if_exists=False), True
    except StudyExistsError:
        if key is None and not body.load_if_exists:
            raise
    return made(load_if_exists=True), False


def _check_cost(cost: Cost, limits: Limits) -> None:
    if cost.bytes > limits.memory or cost.seconds > limits.step:
        raise ValueError(
            f"problem takes about {cost.seconds:.2g} s a step and {cost.bytes / 1e9:.2g} GB; this service takes at "
            f"most {limits.step:g} s and {limits.memory / 1e9:.2g} GB. Take fewer models or candidates"
        )


def _settings(given: Mapping[str, JsonValue], kind: type[Algorithm], *inside: type[Algorithm]) -> State:
    """Arguments of the algorithm and of one inside; those that are objects are given by `kind` and fields."""
    own = signature(create_study).parameters.keys()
    takes = sorted(set().union(*map(_arguments, (kind, *inside))) - own)
    for name in given:
        if name not in takes:
            raise ValueError(f"settings: {name!r} is no setting of {kind.name}, which has {', '.join(takes)}")
    return {name: component_from_dict(value, name, whole=False) for name, value in given.items()}


def _arguments(kind: type[Algorithm]) -> set[str]:
    """Names of all arguments of a constructor, those that it passes on included."""
    names: set[str] = set()
    for base in kind.__mro__:
        if "__init__" in vars(base):
            found = signature(vars(base)["__init__"]).parameters.values()
            names |= {one.name for one in found if one.kind is Parameter.KEYWORD_ONLY}
            if not any(one.kind is Parameter.VAR_KEYWORD for one in found):
                break
    return names


def summary(opened: Opened) -> State:
    """What a study is, and where it stands."""
    study, replica = opened.study, opened.study.refresh()
    algorithm, domain = replica.algorithm, replica.algorithm.domain
    names = algorithm.models.names
    can = {"probabilities": offers(algorithm, WeighsModels), "certificates": offers(algorithm, Certifies)}
    return {
        "name": study.name,
        "algorithm": algorithm.name,
        "direction": algorithm.direction,
        "created_at": study.created_at,
        "library": study.library,
        "n_events": replica.n_events,
        "counts": dict(study.counts),
        "domain": type(domain).__name__,
        "contextual": algorithm.is_contextual,
        "n_models": algorithm.models.n_models,
        "models": [names[j] for j in range(min(len(names), _MOST_NAMES))],
        "n_candidates": domain.n_candidates,
        "columns": column_names(algorithm),
        "arms": list(domain.names) if isinstance(domain, Arms) else None,
        "offers": [name for name, is_there in can.items() if is_there],
        "expired": study.when_expired,
        "settings": jsonable(algorithm.to_dict(problem=False)["settings"]),
        "explained": [vars(line) for line in explained_settings(algorithm)],
    }
