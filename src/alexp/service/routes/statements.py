"""What a study says: probabilities, recommendations, when to stop, whether the models can be true."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query
from starlette.responses import Response

from alexp.algorithms.capabilities import Certifies, offers
from alexp.algorithms.certified import described
from alexp.algorithms.log import Recommendation
from alexp.common.codec import State, jsonable
from alexp.service.routes.common import StrictRoute, StudyName, answer, fields_of, number, problems
from alexp.service.schemas import answers, requests
from alexp.service.shelf import Opened, Shelf

_MOST_MODELS = 10_000  # listed in one answer
_READS = problems(404, 409)
_POSTS = problems(404, 409, 413, 415)
DeltaWanted = Annotated[float, Query(gt=0.0, lt=1.0, description="Statements hold with probability 1 - delta.")]


def routes(shelf: Shelf) -> APIRouter:
    """Routes below /v1/studies/{name} that change nothing."""
    router = APIRouter(prefix="/v1/studies/{name}", tags=["statements"], route_class=StrictRoute)

    @router.get("/probabilities", response_model=answers.Probabilities, responses=_READS, summary="Which model")
    def probabilities(
        name: StudyName,
        top: Annotated[int, Query(ge=1, le=_MOST_MODELS, description="Only so many, the likeliest.")] = _MOST_MODELS,
    ) -> Response:
        """Probabilities over the models for the next round."""

        def work(opened: Opened) -> State:
            q, names = opened.study.probabilities, opened.study.algorithm.models.names
            listed = np.sort(np.argsort(-q, kind="stable")[:top])
            chosen = {"models": listed.tolist(), "names": [names[j] for j in listed]}
            return {"n_models": int(q.size), **chosen, "probabilities": jsonable(q[listed])}

        return answer(shelf.act(name, work))

    @router.post("/policy", response_model=answers.PolicyAnswer, responses=_POSTS, summary="What would be played")
    def policy(name: StudyName, body: requests.Policy) -> Response:
        """The probability with which an ask with these arguments would play each candidate."""

        def work(opened: Opened) -> State:
            return {"policy": jsonable(opened.study.policy(body.available, **body.presented()))}

        return answer(shelf.act(name, work, fields=fields_of(body)))

    @router.get("/best", response_model=answers.BestAnswer, responses=_READS, summary="What to stop with")
    def best(name: StudyName) -> Response:
        """The action to stop with, judged by what is known now."""
        return answer(shelf.act(name, lambda opened: _recommended(opened, opened.study.best())))

    @router.post("/best", response_model=answers.BestAnswer, responses=_POSTS, summary="What to stop with in a round")
    def best_of(name: StudyName, body: requests.Recommend) -> Response:
        """The best action of a round, in contextual studies, or among some candidates."""

        def work(opened: Opened) -> State:
            return _recommended(opened, opened.study.best(available=body.available, **body.presented()))

        return answer(shelf.act(name, work, fields=fields_of(body)))

    @router.get("/stop-report", response_model=answers.StopAnswer, responses=_READS, summary="Whether to stop")
    def stop_report(
        name: StudyName,
        delta: DeltaWanted = 0.05,
        epsilon: Annotated[float | None, Query(gt=0.0, description="How far from the best is good enough.")] = None,
    ) -> Response:
        """How far the recommended action may be from the best one, and whether that is certified."""
        return _stop(shelf, name, requests.Stop(delta=delta, epsilon=epsilon))

    @router.post("/stop-report", response_model=answers.StopAnswer, responses=_POSTS, summary="Whether to stop, here")
    def stop_report_of(name: StudyName, body: requests.Stop) -> Response:
        """The same in one round of a contextual study."""
        return _stop(shelf, name, body)

    @router.get("/check-models", response_model=answers.CheckAnswer, responses=_READS, summary="Can it all be true?")
    def check_models(name: StudyName, delta: DeltaWanted = 0.05) -> Response:
        """Whether the rewards contradict what was stated about noise, bound and models."""

        def work(opened: Opened) -> State:
            found = opened.study.check_models(delta)
            return jsonable(vars(found)) | {"e_value": number(found.e_value), "text": found.text}  # type: ignore[no-any-return]

        return answer(shelf.act(name, work))

    @router.get("/plausible-models", response_model=answers.Plausible, responses=_READS, summary="Models not ruled out")
    def plausible_models(name: StudyName, delta: DeltaWanted = 0.05) -> Response:
        """Models that the rewards do not rule out, given what was stated."""

        def work(opened: Opened) -> State:
            found, algorithm = opened.study.plausible_models(delta)[:_MOST_MODELS], opened.study.algorithm
            subject: object = algorithm
            assert offers(subject, Certifies)
            names = [algorithm.models.names[j] for j in found]
            return {"delta": delta, "models": found.tolist(), "names": names, "rests_on": subject.rests_on}

        return answer(shelf.act(name, work))

    return router


def _recommended(opened: Opened, found: Recommendation) -> State:
    names = opened.study.algorithm.models.names
    return {
        "x": jsonable(found.x),
        "index": found.index,
        "label": described(found.x),
        "value": number(found.value),
        "model": found.model,
        "model_name": None if found.model is None else names[found.model],
    }


def _stop(shelf: Shelf, name: str, body: requests.Stop) -> Response:
    def work(opened: Opened) -> State:
        presented = body.presented()
        found = opened.study.stop_report(
            body.delta,
            body.epsilon,
            available=body.available,
            context=presented["context"],
            candidates=presented["candidates"],
            features=presented["features"],
        )
        facts: State = jsonable(vars(found))
        return facts | {"label": described(found.x), "can_stop": found.can_stop, "text": str(found)}

    return answer(shelf.act(name, work, fields=fields_of(body)))
