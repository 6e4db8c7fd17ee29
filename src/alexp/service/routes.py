"""Routes of the service below /v1/studies, /healthz, /readyz and /metrics."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from inspect import Parameter, signature
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import quote, unquote

import numpy as np
from fastapi import APIRouter, Depends, Header, Path, Query, Request
from fastapi.routing import APIRoute
from pydantic import BaseModel, JsonValue
from starlette.responses import Response, StreamingResponse

from alexp.algorithms.capabilities import Certifies, WeighsModels, offers
from alexp.algorithms.components import component_from_dict
from alexp.algorithms.log import Recommendation, Trial
from alexp.algorithms.registry import algorithm_named, spelled_out
from alexp.algorithms.several import PER_OBJECTIVE
from alexp.algorithms.statements import described
from alexp.common.arguments import constructor
from alexp.common.cells import to_csv
from alexp.common.codec import Packable, State, jsonable
from alexp.estimation.announcing import Cost, expected
from alexp.plot import pictures, sentences
from alexp.problem import Arms
from alexp.service import answers, requests
from alexp.service.monitoring import METRICS_MEDIA
from alexp.service.problems import INVALID, MEDIA, ProblemError, as_problems
from alexp.service.security import Limits
from alexp.service.studies import CallResult, OpenStudy, StudyCache, gathered
from alexp.study import Study, StudyExistsError, create_study, list_studies
from alexp.study.candidates import check_columns, column_names, labeller, trial_label
from alexp.study.events import acting_as
from alexp.study.opening import DEFAULT_ALGORITHM
from alexp.study.report import render
from alexp.study.study import TrialResult
from alexp.study.tables import as_result, export as lines_of, plate, plate_bytes, plate_sheet, read_results
from alexp.study.viewing import explained_settings, money_of
from alexp.table.arrivals import stated_kinds
from alexp.table.columns import REWARD
from alexp.table.remedies import in_json
from alexp.table.table import Table

if TYPE_CHECKING:
    from alexp.algorithms.base import Algorithm


_REF = {"$ref": "#/components/schemas/ProblemAnswer"}
_STATUSES = {
    401: "No token, or a wrong one.",
    403: "The token may only read; or a page of another site; or, without tokens, another host.",
    404: "There is no such study or trial.",
    409: "Told twice, held by another worker, exists already, looks like a typing error, or not available here.",
    413: "The body is too large.",
    415: "The Content-Type is not application/json.",
    422: "A field is wrong; `field` names it.",
    429: "Too many requests; Retry-After says when to try again.",
    503: "The storage cannot be reached; Retry-After says when to try again.",
}


def problems(*statuses: int) -> dict[int | str, State]:
    """The problems of a route, for OpenAPI."""
    wanted = sorted({401, 403, 422, 429, 503, *statuses})
    return {status: {"description": _STATUSES[status], "content": {MEDIA: {"schema": _REF}}} for status in wanted}


async def _study_name(
    name: Annotated[
        str,
        Path(min_length=1, description="Name of the study, percent-encoded where it must be.", examples=["solvents"]),
    ],
) -> str:
    try:
        return unquote(name, errors="strict")
    except UnicodeDecodeError:
        raise ProblemError(INVALID, "path.name: the name is not UTF-8", more={"field": "path.name"}) from None


StudyName = Annotated[str, Depends(_study_name)]


@dataclass(frozen=True)
class Caller:
    """The address of a caller, and the key of the call if a header has one."""

    address: str
    header_key: str | None

    def worker(self, named: str | None) -> str:
        """The worker of the study's log: the name in the body, or the address."""
        return (named or "").strip() or self.address

    def key(self, given: str | None) -> str | None:
        """The key of the call, from the body or from the header."""
        if given is not None and self.header_key not in (None, given):
            raise ProblemError(INVALID, "body.key: differs from the header Idempotency-Key", more={"field": "body.key"})
        return self.header_key if given is None else given


async def _caller(
    request: Request,
    idempotency_key: Annotated[
        str | None, Header(min_length=1, max_length=100, description="The same as key in the body.")
    ] = None,
) -> Caller:
    return Caller(request.client.host if request.client else "unknown", idempotency_key)


Called = Annotated[Caller, Depends(_caller)]


class _StrictRequest(Request):
    """A request whose body is strict JSON: no NaN, no numbers of thousands of digits."""

    async def json(self) -> Packable:
        try:
            return json.loads(await self.body(), parse_constant=_no_constant)
        except json.JSONDecodeError:
            raise
        except (ValueError, RecursionError) as error:
            raise json.JSONDecodeError(str(error).partition(";")[0], "", 0) from None


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is not a number in JSON")


class StrictRoute(APIRoute):
    """A route that takes strict JSON only."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Packable, Packable, Response]]:
        """The handler, which reads strict JSON."""
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            return await handle(_StrictRequest(request.scope, request.receive))

        return strictly


def reply(content: Mapping[str, object], status: int = 200) -> Response:
    """A JSON response; NaN raises ValueError."""
    return Response(json.dumps(content, allow_nan=False), status, media_type="application/json")


def answer(outcome: CallResult[State], status: int = 200) -> Response:
    """The result of a call as a response, with the warnings."""
    return reply(outcome.value | {"warnings": outcome.warnings}, status)


def trial_answer(opened: OpenStudy, trial: Trial, **more: object) -> State:
    """A trial as JSON data."""
    return trial.to_dict() | {"label": trial_label(trial, opened.study.domain)} | more


def number(value: float | None) -> float | None:
    """A number for JSON, which has neither NaN nor infinity."""
    return None if value is None else jsonable(float(value))


def fields_of(body: BaseModel, place: str = "body") -> dict[str, str]:
    """The places of the fields of a body, by name."""
    return {name: f"{place}.{name}" for name in type(body).model_fields}


_MOST_NAMES = 1000


def study_routes(studies: StudyCache, limits: Limits) -> APIRouter:
    """Routes below /v1/studies."""
    router = APIRouter(prefix="/v1/studies", tags=["studies"], route_class=StrictRoute)

    @router.get("", response_model=answers.Studies, responses=problems(), summary="All studies")
    def list_all() -> Response:
        with as_problems():
            found = list_studies(studies.storage)
        counts = ("trials", "told", "pending", "abandoned")
        lines = [
            {"name": one.name, "algorithm": one.algorithm, "created_at": one.created_at, "latest": one.latest}
            | {"counts": {name: getattr(one, name) for name in counts} | ({"failed": one.failed} if one.failed else {})}
            for one in found
        ]
        return reply({"studies": lines})

    @router.post(
        "",
        response_model=answers.Summary,
        status_code=201,
        responses=problems(409, 413, 415) | {200: {"model": answers.Summary, "description": "It existed already."}},
        summary="Create a study",
    )
    def create(body: requests.Create, caller: Called) -> Response:
        """A new study, which is stored when this returns.

        With `load_if_exists`, or when the call is repeated with the same key, an existing study that agrees with the
        request is returned (200); one that differs is a conflict (409).
        """
        key = caller.key(body.key)
        with as_problems(_field_places(body)), acting_as(caller.address), gathered() as warnings:
            opened, is_new = _create(body, key, studies, limits)
            return answer(CallResult(summary(opened), warnings), 201 if is_new else 200)

    @router.get("/{name}", response_model=answers.Summary, responses=problems(404), summary="Describe a study")
    def look(name: StudyName) -> Response:
        return answer(studies.use(name, summary))

    @router.delete(
        "/{name}", response_model=answers.Deleted, responses=problems(404), summary="Delete a study permanently"
    )
    def delete(name: StudyName) -> Response:
        studies.delete(name)
        return reply({"deleted": name})

    return router


def _field_places(body: requests.Create) -> Mapping[str, str]:
    """The places of all arguments a message may name; for equal names, the more general field."""
    inner = getattr(body.problem, "models", None)
    family = {} if isinstance(inner, dict | None) else fields_of(inner, "body.problem.models")
    settings = {name: f"body.settings.{name}" for name in body.settings}
    return family | fields_of(body.problem, "body.problem") | settings | fields_of(body)


def _create(body: requests.Create, key: str | None, studies: StudyCache, limits: Limits) -> tuple[OpenStudy, bool]:
    """The study, and whether it is new."""
    if body.name in (".", ".."):
        raise ValueError(f"name must be usable in a path, got {body.name!r}")
    named = spelled_out(DEFAULT_ALGORITHM if body.algorithm is None else body.algorithm)
    settings = _settings(body.settings, algorithm_named(named[0]), *map(algorithm_named, named[1].values()))
    models, domain = body.problem.build(limits)
    cost = expected(models, domain.n_candidates or 0, algorithm_named(named[0]).ridges_per_model)
    _check_cost(cost, limits)
    seed = body.random_state
    if seed is None and key is not None:  # a repeated call creates the same study, another key another one
        seed = int.from_bytes(sha256(f"{body.name}\0{key}".encode()).digest()[:16], "big")

    def create(load_if_exists: bool) -> Study:
        as_then = load_if_exists and isinstance(body.problem, requests.TableProblem) and body.problem.leaves_models
        alone = domain if as_then and isinstance(domain, Table) else None  # it is read as it was at first
        return create_study(
            models if alone is None else alone,
            domain if alone is None else None,
            name=body.name,
            storage=studies.storage,
            algorithm=body.algorithm,
            direction=body.direction,
            load_if_exists=load_if_exists,
            random_state=seed,
            repeats=body.repeats,
            expired=body.expired,
            **settings | body.aims(),
        )

    with studies.room_for(cost.bytes):
        try:
            return studies.put(create(load_if_exists=False)), True
        except StudyExistsError:
            if key is None and not body.load_if_exists:
                raise
        return studies.put(create(load_if_exists=True)), False


def _check_cost(cost: Cost, limits: Limits) -> None:
    if cost.bytes > limits.memory or cost.seconds > limits.step:
        raise ValueError(
            f"problem would need about {cost.seconds:.2g} s a step and {cost.bytes / 1e9:.2g} GB; this service allows "
            f"{limits.step:g} s and {limits.memory / 1e9:.2g} GB. Use fewer models or candidates"
        )


def _check_added(table: Table, algorithm: Algorithm, limits: Limits) -> None:
    n, models = algorithm.domain.n_candidates + table.n_candidates, algorithm.models
    if n > limits.candidates or n * models.n_columns > limits.features:
        raise ValueError(
            f"with {table.n_candidates} more there would be {n} candidates with {models.n_columns} features; this "
            f"service allows {limits.candidates} candidates and {limits.features} features in all"
        )
    _check_cost(expected(models, n, algorithm.ridges_per_model), limits)


def _settings(given: Mapping[str, JsonValue], kind: type[Algorithm], *inside: type[Algorithm]) -> State:
    """Arguments of the algorithm and of those inside it; objects are given by `kind` and fields."""
    own = {*signature(create_study).parameters, *requests.AIMS}
    takes = sorted(set().union(*map(_arguments, (kind, *inside))) - own)
    for name in given:
        if name in requests.Create.model_fields:
            raise ValueError(f"settings: {name!r} is a field of its own, beside settings")
        if name not in takes:
            raise ValueError(f"settings: {name!r} is not a setting of {kind.name}, which has {', '.join(takes)}")
    return {
        name: value if name in PER_OBJECTIVE else component_from_dict(value, name, whole=False)
        for name, value in given.items()
    }


def _arguments(kind: type[Algorithm]) -> set[str]:
    """Names of the keyword arguments of a constructor, including those it passes on."""
    found = constructor(kind).parameters.values()
    return {one.name for one in found if one.kind is Parameter.KEYWORD_ONLY}


def summary(opened: OpenStudy) -> State:
    """The response that describes a study."""
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
        "objectives": algorithm.arguments().get("objectives"),
        "money": None if (money := money_of(algorithm)) is None else vars(money),
        "expired": study.when_expired,
        "settings": jsonable(algorithm.to_dict(problem=False)["settings"]),
        "explained": [vars(line) for line in explained_settings(algorithm)],
    }


def table_routes(limits: Limits) -> APIRouter:
    """The route below /v1/tables."""
    router = APIRouter(prefix="/v1/tables", tags=["tables"], route_class=StrictRoute)

    @router.post("/preview", response_model=answers.TableAnswer, responses=problems(413, 415), summary="Read a table")
    def preview(body: requests.TableProblem) -> Response:
        """What a table would be understood as, column by column; nothing is made."""
        with as_problems(fields_of(body)), gathered() as warnings:
            return answer(CallResult(body.table(limits).understood_in(in_json).to_dict(), warnings))

    return router


Correction = requests.Amend | requests.Retract | requests.Abandon | requests.Fail
_MOST_LISTED = 10_000
_WRITES = problems(404, 409, 413, 415)


def trial_routes(studies: StudyCache, limits: Limits) -> APIRouter:
    """Routes below /v1/studies/{name} that are about trials."""
    router = APIRouter(prefix="/v1/studies/{name}", tags=["trials"], route_class=StrictRoute)

    @router.post("/ask", response_model=answers.Asked, responses=_WRITES, summary="Ask for trials")
    def ask(name: StudyName, body: requests.Ask, caller: Called) -> Response:
        """One trial, or `n` of them; they are stored when this returns."""
        key = caller.key(body.key)

        def work(opened: OpenStudy) -> State:
            arguments, plate, study = body.round_arguments(), body.plate_arguments(), opened.study
            if body.n is None:
                trials = [study.ask(None, body.available, body.distinct, key, body.lease, **plate, **arguments)]
            else:
                trials = study.ask(body.n, body.available, body.distinct, key, body.lease, **plate, **arguments)
            return {"trials": [trial_answer(opened, trial, lease=body.lease) for trial in trials]}

        done = studies.change(name, work, caller.worker(body.worker), fields_of(body))
        studies.metrics.count(name, asked=len(done.value["trials"]))
        return answer(done)

    @router.post("/tell", response_model=answers.Done, responses=_WRITES, summary="Tell rewards")
    def tell(name: StudyName, body: requests.Tell, caller: Called) -> Response:
        """All of them, or none if any is wrong; they are stored when this returns."""
        key = caller.key(body.key)

        def work(opened: OpenStudy) -> State:
            pairs = [TrialResult(one.trial, one.reward, one.candidate, one.note) for one in body.results]
            with opened.study.counting() as counts:
                did = opened.study.tell_many(pairs, body.if_told, key, sure=body.sure)
                return did._asdict() | {"counts": dict(counts())}

        done = studies.change(name, work, caller.worker(body.worker), fields_of(body))
        studies.metrics.count(name, told=done.value["told"])
        return answer(done)

    @router.post(
        "/results/preview", response_model=answers.ReadResults, responses=_WRITES, summary="Read a file of results"
    )
    def read(name: StudyName, body: requests.ResultsFile) -> Response:
        """What a file of results says; nothing is stored. `tell` takes the results as they are."""

        def work(opened: OpenStudy) -> State:
            path, data = body.source()
            found = read_results(path, opened.study, body.terms(), data)
            what = labeller(opened.study.algorithm)
            return {
                "results": [
                    {"trial": one.trial, "label": what(one.trial), "reward": as_result(one).reward}
                    | {"note": as_result(one).note, "action": one.action}
                    for one in found
                ]
            }

        return answer(studies.use(name, work, fields=fields_of(body)))

    def correct(name: str, body: Correction, caller: Called, action: Callable[[Study, str | None], None]) -> Response:
        """Call `action` with the study and the key; respond with the counts after it."""
        key = caller.key(body.key)

        def work(opened: OpenStudy) -> State:
            with opened.study.counting() as counts:
                action(opened.study, key)
                return {"counts": dict(counts())}

        return answer(studies.change(name, work, caller.worker(body.worker), fields_of(body)))

    @router.post("/amend", response_model=answers.Counted, responses=_WRITES, summary="Correct a reward")
    def amend(name: StudyName, body: requests.Amend, caller: Called) -> Response:
        """The state is then that of a run in which the new reward was told at once."""
        return correct(name, body, caller, lambda study, key: study.amend(body.trial, body.reward, key, sure=body.sure))

    @router.post("/retract", response_model=answers.Counted, responses=_WRITES, summary="Withdraw a reward")
    def retract(name: StudyName, body: requests.Retract, caller: Called) -> Response:
        """The trial then counts as abandoned; amend gives it a reward again."""
        return correct(name, body, caller, lambda study, key: study.retract(body.trial, key))

    @router.post("/fail", response_model=answers.Counted, responses=_WRITES, summary="Report a failed experiment")
    def fail(name: StudyName, body: requests.Fail, caller: Called) -> Response:
        """The candidate is not proposed again; amend gives the trial a reward after all, retract takes it back."""
        return correct(
            name,
            body,
            caller,
            lambda study, key: study.fail(body.trial, body.reason, body.if_told, key, candidate=body.candidate),
        )

    @router.post("/abandon", response_model=answers.Counted, responses=_WRITES, summary="Abandon pending trials")
    def abandon(name: StudyName, body: requests.Abandon, caller: Called) -> Response:
        """All of them, or none if any is wrong. They keep their numbers and take no rewards any more."""
        return correct(name, body, caller, lambda study, key: study.abandon(body.trials, key))

    @router.post("/observe", response_model=answers.Observed, responses=_WRITES, summary="Add measurements")
    def observe(name: StudyName, body: requests.Observe, caller: Called) -> Response:
        """Measurements made without an ask; each becomes a trial with its reward."""
        import pandas as pd

        key = caller.key(body.key)

        def work(opened: OpenStudy) -> State:
            given = dict.fromkeys(name for one in body.observations for name in one)
            check_columns(opened.study.domain, given, opened.study.algorithm.log.objectives)
            frame = pd.DataFrame(body.observations)
            frame.index.name = "observation"
            with opened.study.counting() as counts:
                trials = opened.study.add_observations(frame, body.nearest, key, sure=body.sure)
                counted = {"counts": dict(counts())}
            return {"trials": [trial_answer(opened, trial, lease=None) for trial in trials]} | counted

        done = studies.change(name, work, caller.worker(body.worker), fields_of(body))
        studies.metrics.count(name, told=len(done.value["trials"]))
        return answer(done)

    @router.post("/heartbeat", response_model=answers.Prolonged, responses=_WRITES, summary="Prolong leases")
    def heartbeat(name: StudyName, body: requests.Heartbeat, caller: Called) -> Response:
        """Leases restart, for as long as before or for `lease` seconds. The call can be repeated safely."""

        def work(opened: OpenStudy) -> State:
            opened.study.heartbeat(body.trials, body.lease)
            return {"trials": body.trials}

        return answer(studies.change(name, work, caller.worker(body.worker), fields_of(body)))

    @router.post("/take-over", response_model=answers.Asked, responses=_WRITES, summary="Take over trials")
    def take_over(name: StudyName, body: requests.TakeOver, caller: Called) -> Response:
        """The trials listed, or those with an expired lease. No two workers get the same trial."""

        def work(opened: OpenStudy) -> State:
            taken = opened.study.take_over(body.trials, lease=body.lease, n=body.n)
            return {"trials": [trial_answer(opened, trial, lease=body.lease) for trial in taken]}

        return answer(studies.change(name, work, caller.worker(body.worker), fields_of(body)))

    @router.post("/arms", response_model=answers.ArmAdded, responses=_WRITES, summary="Add an arm")
    def add_arm(name: StudyName, body: requests.NewArm, caller: Called) -> Response:
        """The arm is part of all later rounds, for all workers."""
        key = caller.key(body.key)

        def work(opened: OpenStudy) -> State:
            arm, domain = opened.study.add_arm(body.name, key), opened.study.algorithm.domain
            return {"arm": arm, "arms": list(domain.names) if isinstance(domain, Arms) else []}

        return answer(studies.change(name, work, caller.worker(body.worker), fields_of(body)))

    @router.post("/candidates", response_model=answers.CandidatesAdded, responses=_WRITES, summary="Add candidates")
    def add_candidates(name: StudyName, body: requests.NewCandidates, caller: Called) -> Response:
        """New candidates of a study of a table, for all workers: the same columns, other ids."""
        key = caller.key(body.key)

        def work(opened: OpenStudy) -> State:
            study, algorithm = opened.study, opened.study.algorithm
            known = stated_kinds(algorithm.models, algorithm.domain)
            known["reward"], known["reward_elsewhere"] = study.result_column, True
            table = body.table(limits, **known)
            _check_added(table, algorithm, limits)
            added = study.add_candidates(table, key)
            return {"candidates": added, "n_candidates": study.domain.n_candidates}

        return answer(studies.change(name, work, caller.worker(body.worker), fields_of(body)))

    @router.post("/learn", response_model=answers.CampaignsLearned, responses=_WRITES, summary="Learn from campaigns")
    def learn(name: StudyName, body: requests.OldCampaigns, caller: Called) -> Response:
        """Further models for every old campaign, for all workers; the rewards tell what they are worth."""
        key = caller.key(body.key)

        def work(opened: OpenStudy) -> State:
            study = opened.study
            study.learn_from(body.campaigns(limits), body.reward or REWARD, key)
            return {"n_models": study.algorithm.models.n_models}

        return answer(studies.change(name, work, caller.worker(body.worker), fields_of(body)))

    @router.get("/pending", response_model=answers.PendingTrials, responses=problems(404), summary="Pending trials")
    def pending(name: StudyName) -> Response:
        """Pending trials with their workers and leases, oldest first."""

        def work(opened: OpenStudy) -> State:
            held = opened.study.pending()
            return {"pending": [trial_answer(opened, trial, expired=trial.expired) for trial in held]}

        return answer(studies.use(name, work))

    @router.get("/progress", response_model=answers.Underway, responses=problems(404), summary="Progress of long work")
    def progress(name: StudyName) -> Response:
        """How far a view, a report or an explanation is that another request waits for; null if there is none."""

        def work(opened: OpenStudy) -> State:
            now = opened.study.progress
            return {"progress": None if now is None else now._asdict()}

        return answer(studies.use(name, work))

    @router.get("/trials", response_model=answers.Trials, responses=problems(404), summary="Trials so far")
    def trials(
        name: StudyName,
        since: Annotated[int, Query(ge=0, lt=2**63, description="Number of the first trial wanted.")] = 0,
        limit: Annotated[int, Query(ge=1, le=_MOST_LISTED, description="How many at most.")] = 1000,
    ) -> Response:
        """With rewards and states, oldest first."""

        def work(opened: OpenStudy) -> State:
            found, total = opened.study.trials(since, limit), opened.study.counts["trials"]
            end = since + len(found)
            return {"trials": found, "total": total, "next": end if found and end < total else None}

        return answer(studies.use(name, work))

    return router


_MOST_MODELS = 10_000  # in one response
_READS = problems(404, 409)
_POSTS = problems(404, 409, 413, 415)
DeltaWanted = Annotated[float, Query(gt=0.0, lt=1.0, description="Statements hold with probability 1 - delta.")]


def statement_routes(studies: StudyCache) -> APIRouter:
    """Routes below /v1/studies/{name} that change nothing."""
    router = APIRouter(prefix="/v1/studies/{name}", tags=["statements"], route_class=StrictRoute)

    @router.get("/probabilities", response_model=answers.Probabilities, responses=_READS, summary="Model probabilities")
    def probabilities(
        name: StudyName,
        top: Annotated[int, Query(ge=1, le=_MOST_MODELS, description="Only so many, the likeliest.")] = _MOST_MODELS,
    ) -> Response:
        """Probabilities over the models for the next round."""

        def work(opened: OpenStudy) -> State:
            q, names = opened.study.probabilities, opened.study.algorithm.models.names
            listed = np.sort(np.argsort(-q, kind="stable")[:top])
            chosen = {"models": listed.tolist(), "names": [names[j] for j in listed]}
            return {"n_models": int(q.size), **chosen, "probabilities": jsonable(q[listed])}

        return answer(studies.use(name, work))

    @router.post("/policy", response_model=answers.PolicyAnswer, responses=_POSTS, summary="Propensities of an ask")
    def policy(name: StudyName, body: requests.Policy) -> Response:
        """The probability with which an ask with these arguments would play each candidate."""

        def work(opened: OpenStudy) -> State:
            return {"policy": jsonable(opened.study.policy(body.available, **body.round_arguments()))}

        return answer(studies.use(name, work, fields=fields_of(body)))

    @router.get("/best", response_model=answers.BestAnswer, responses=_READS, summary="Recommended action")
    def best(name: StudyName) -> Response:
        """The recommended action, given all rewards so far."""
        return answer(studies.use(name, lambda opened: _recommended(opened, opened.study.best())))

    @router.get("/pareto", response_model=answers.ParetoAnswer, responses=_READS, summary="Best compromises")
    def pareto(name: StudyName) -> Response:
        """Measured candidates that no other measured one beats in every objective, in studies with objectives."""

        def work(opened: OpenStudy) -> State:
            front, objectives = opened.study.pareto(), opened.study.algorithm.arguments()["objectives"]
            found = [
                {"trial": row["id"], "index": row["index"], "x": jsonable(row["x"]), "label": described(row["x"])}
                | {"values": {one: number(row[one]) for one in objectives}}
                for row in front.to_dict("records")
            ]
            return {"objectives": objectives, "pareto": found}

        return answer(studies.use(name, work))

    @router.post("/best", response_model=answers.BestAnswer, responses=_POSTS, summary="Recommended action of a round")
    def best_of(name: StudyName, body: requests.Recommend) -> Response:
        """The recommended action of a round, in contextual studies, or among some candidates."""

        def work(opened: OpenStudy) -> State:
            return _recommended(opened, opened.study.best(available=body.available, **body.round_arguments()))

        return answer(studies.use(name, work, fields=fields_of(body)))

    @router.get("/stop-report", response_model=answers.StopAnswer, responses=_READS, summary="Whether to stop")
    def stop_report(
        name: StudyName,
        delta: DeltaWanted = 0.05,
        epsilon: Annotated[float | None, Query(gt=0.0, description="How far from the best is good enough.")] = None,
    ) -> Response:
        """How far the recommended action may be from the best one, and whether that is certified."""
        return _stop(studies, name, requests.Stop(delta=delta, epsilon=epsilon))

    @router.post(
        "/stop-report", response_model=answers.StopAnswer, responses=_POSTS, summary="Whether to stop, in a round"
    )
    def stop_report_of(name: StudyName, body: requests.Stop) -> Response:
        """The stop report of one round of a contextual study."""
        return _stop(studies, name, body)

    @router.get("/check-models", response_model=answers.CheckAnswer, responses=_READS, summary="Check the assumptions")
    def check_models(name: StudyName, delta: DeltaWanted = 0.05) -> Response:
        """Whether the rewards contradict what was stated about noise, bound and models."""

        def work(opened: OpenStudy) -> State:
            found = opened.study.check_models(delta)
            return jsonable(vars(found)) | {"e_value": number(found.e_value), "text": found.text}  # type: ignore[no-any-return]

        return answer(studies.use(name, work))

    @router.get("/plausible-models", response_model=answers.Plausible, responses=_READS, summary="Models not ruled out")
    def plausible_models(name: StudyName, delta: DeltaWanted = 0.05) -> Response:
        """Models that the rewards do not rule out, given what was stated."""

        def work(opened: OpenStudy) -> State:
            found, algorithm = opened.study.plausible_models(delta)[:_MOST_MODELS], opened.study.algorithm
            subject: object = algorithm
            assert offers(subject, Certifies)
            names = [algorithm.models.names[j] for j in found]
            return {"delta": delta, "models": found.tolist(), "names": names, "rests_on": subject.rests_on}

        return answer(studies.use(name, work))

    return router


def _recommended(opened: OpenStudy, found: Recommendation) -> State:
    names = opened.study.algorithm.models.names
    return {
        "x": jsonable(found.x),
        "index": found.index,
        "label": described(found.x),
        "value": number(found.value),
        "model": found.model,
        "model_name": None if found.model is None else names[found.model],
    }


def _stop(studies: StudyCache, name: str, body: requests.Stop) -> Response:
    def work(opened: OpenStudy) -> State:
        arguments = body.round_arguments()
        found = opened.study.stop_report(
            body.delta,
            body.epsilon,
            available=body.available,
            context=arguments["context"],
            candidates=arguments["candidates"],
            features=arguments["features"],
        )
        facts: State = jsonable(vars(found))
        more = {"label": described(found.x), "certified": found.certified, "can_stop": found.can_stop}
        return facts | more | {"text": str(found)}

    return answer(studies.use(name, work, fields=fields_of(body)))


_LINES = 500  # of CSV that are sent at once
_XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def file_routes(studies: StudyCache) -> APIRouter:
    """Routes below /v1/studies/{name} that return files."""
    router = APIRouter(prefix="/v1/studies/{name}", tags=["files"])

    @router.get(
        "/export",
        response_class=Response,
        responses=problems(404) | {200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
        summary="All trials as CSV",
    )
    def export(name: StudyName) -> Response:
        def work(opened: OpenStudy) -> Iterator[list[str]]:
            lines = lines_of(opened.study)
            return chain([next(lines)], lines)  # errors occur here, before the response begins

        lines = studies.use(name, work).value
        return StreamingResponse(_parts(lines), media_type="text/csv", headers=_download(name, "csv"))

    @router.get(
        "/plate",
        response_class=Response,
        responses=problems(404) | {200: {"content": {"text/csv": {"schema": {"type": "string"}}, _XLSX: {}}}},
        summary="Pending trials as a file to fill in",
    )
    def sheet(
        name: StudyName,
        form: Annotated[Literal["csv", "xlsx"], Query(description="CSV or a workbook.")] = "csv",
        first: Annotated[
            int | None, Query(ge=0, lt=2**53, description="Only of the plate whose first trial this is.")
        ] = None,
        wells: Annotated[int | None, Query(description="Name the wells of a plate of 24, 48, 96 or 384.")] = None,
    ) -> Response:
        """With an empty column for the rewards; `results/preview` reads the file back.

        A plate is what one ask returned. Wells are counted from its first trial, also when that is told already.
        """

        def work(opened: OpenStudy) -> tuple[bytes, str]:
            study = opened.study
            view = study.view(trials=0, history=False, certificates=False, curve=False, explanation=False)
            trials = [trial for trial in view.pending if first in (None, trial.plate)]
            if form == "xlsx":
                return plate_sheet(study, trials, wells, first), _XLSX
            content, encoding = plate_bytes(plate(study, trials, wells, first), study)
            return content, f"text/csv; charset={encoding.removesuffix('-sig')}"

        content, media = studies.use(name, work, fields={"wells": "query.wells"}).value
        return Response(content, media_type=media, headers=_download(f"{name} plate", form))

    @router.get("/figures", response_model=answers.FiguresAnswer, responses=_READS, summary="Figures and a summary")
    def drawn(name: StudyName) -> Response:
        """All figures of `alexp.plot` as data and layout for Plotly, and the sentences of a summary."""

        def work(opened: OpenStudy) -> State:
            return {"figures": pictures(opened.study), "summary": sentences(opened.study)}

        return answer(studies.use(name, work))

    @router.get(
        "/report",
        response_class=Response,
        responses=problems(404) | {200: {"content": {"text/html": {"schema": {"type": "string"}}}}},
        summary="One HTML page about the study",
    )
    def report(name: StudyName) -> Response:
        view = studies.use(name, lambda opened: opened.study.view()).value
        return Response(render(view, time.time()), media_type="text/html", headers=_download(name, "html"))

    return router


def _parts(lines: Iterator[list[str]]) -> Iterator[str]:
    while part := list(islice(lines, _LINES)):
        yield to_csv(part)


def _download(name: str, ending: str) -> dict[str, str]:
    """Headers of a file with the study's name, in ASCII for old programs and exactly for others."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in name)[:100]
    exact = quote(f"{name}.{ending}", safe="")
    return {"Content-Disposition": f"attachment; filename=\"{plain}.{ending}\"; filename*=UTF-8''{exact}"}


def operation_routes(studies: StudyCache) -> APIRouter:
    """Routes for operators: health and metrics."""
    router = APIRouter(tags=["operations"])

    def status(ask_storage: bool) -> Response:
        found = studies.status(ask_storage)
        return reply({"status": found}, 200 if found == "ok" else 503)

    unwell: dict[int | str, State] = {503: {"model": answers.Health, "description": "Stopping, or no storage."}}
    public = {"security": list[object]()}

    @router.get("/healthz", response_model=answers.Health, responses=unwell, summary="Alive", openapi_extra=public)
    async def health() -> Response:
        """Whether the service takes requests and its SQLite file is in its place."""
        return status(ask_storage=False)

    @router.get("/readyz", response_model=answers.Health, responses=unwell, summary="Ready", openapi_extra=public)
    def ready() -> Response:
        """The same, and whether the storage answers a query at this moment."""
        return status(ask_storage=True)

    @router.get(
        "/metrics",
        response_class=Response,
        responses=problems() | {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
        summary="Prometheus metrics",
    )
    def meters() -> Response:
        return Response(studies.metrics.text(), headers={"Content-Type": METRICS_MEDIA})

    return router
