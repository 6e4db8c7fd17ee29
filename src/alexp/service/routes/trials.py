"""Trials: asking, telling, correcting, sharing, and looking at them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from alexp.common.codec import State
from alexp.problem import Arms
from alexp.service.routes.common import (
    Called,
    StrictRoute,
    StudyName,
    answer,
    fields_of,
    problems,
    trial_answer,
)
from alexp.service.schemas import answers, requests
from alexp.service.shelf import Opened, Shelf
from alexp.study import Study
from alexp.study.candidates import check_columns

Correction = requests.Amend | requests.Retract | requests.Abandon
_MOST_LISTED = 10_000
_WRITES = problems(404, 409, 413, 415)


def routes(shelf: Shelf) -> APIRouter:
    """Routes below /v1/studies/{name} that are about trials."""
    router = APIRouter(prefix="/v1/studies/{name}", tags=["trials"], route_class=StrictRoute)

    @router.post("/ask", response_model=answers.Asked, responses=_WRITES, summary="Ask for trials")
    def ask(name: StudyName, body: requests.Ask, caller: Called) -> Response:
        """One trial, or `n` of them; they are stored when this returns."""
        key = caller.key(body.key)

        def work(opened: Opened) -> State:
            presented, study = body.presented(), opened.study
            if body.n is None:
                trials = [study.ask(None, body.available, body.distinct, key, body.lease, **presented)]
            else:
                trials = study.ask(body.n, body.available, body.distinct, key, body.lease, **presented)
            return {"trials": [trial_answer(opened, trial, lease=body.lease) for trial in trials]}

        done = shelf.act(name, work, caller.worker(body.worker), fields_of(body))
        shelf.meters.asked.inc(len(done.value["trials"]))
        return answer(done)

    @router.post("/tell", response_model=answers.Done, responses=_WRITES, summary="Tell rewards")
    def tell(name: StudyName, body: requests.Tell, caller: Called) -> Response:
        """All of them, or none if any is wrong; they are stored when this returns."""
        key = caller.key(body.key)

        def work(opened: Opened) -> State:
            pairs = [(one.trial, one.reward) for one in body.results]
            with opened.study.counting() as counts:
                did = opened.study.tell_many(pairs, body.if_told, key, sure=body.sure)
                return did._asdict() | {"counts": dict(counts())}

        done = shelf.act(name, work, caller.worker(body.worker), fields_of(body))
        shelf.meters.told.inc(done.value["told"])
        return answer(done)

    def correct(name: str, body: Correction, caller: Called, deed: Callable[[Study, str | None], None]) -> Response:
        """Do something about trials there are, and say how many are what now."""
        key = caller.key(body.key)

        def work(opened: Opened) -> State:
            with opened.study.counting() as counts:
                deed(opened.study, key)
                return {"counts": dict(counts())}

        return answer(shelf.act(name, work, caller.worker(body.worker), fields_of(body)))

    @router.post("/amend", response_model=answers.Counted, responses=_WRITES, summary="Correct a reward")
    def amend(name: StudyName, body: requests.Amend, caller: Called) -> Response:
        """The study then stands where it would had the right reward been told at once."""
        return correct(name, body, caller, lambda study, key: study.amend(body.trial, body.reward, key, sure=body.sure))

    @router.post("/retract", response_model=answers.Counted, responses=_WRITES, summary="Withdraw a reward")
    def retract(name: StudyName, body: requests.Retract, caller: Called) -> Response:
        """The trial then counts as given up; amend gives it a reward again."""
        return correct(name, body, caller, lambda study, key: study.retract(body.trial, key))

    @router.post("/abandon", response_model=answers.Counted, responses=_WRITES, summary="Give up pending trials")
    def abandon(name: StudyName, body: requests.Abandon, caller: Called) -> Response:
        """All of them, or none if any is wrong. They keep their numbers and take no rewards any more."""
        return correct(name, body, caller, lambda study, key: study.abandon(body.trials, key))

    @router.post("/observe", response_model=answers.Observed, responses=_WRITES, summary="Add measurements")
    def observe(name: StudyName, body: requests.Observe, caller: Called) -> Response:
        """What was measured without having been asked for; each becomes a trial that is told at once."""
        import pandas as pd

        key = caller.key(body.key)

        def work(opened: Opened) -> State:
            check_columns(opened.domain, dict.fromkeys(name for one in body.observations for name in one))
            frame = pd.DataFrame(body.observations)  # with a column for every name in any of them
            frame.index.name = "observation"
            with opened.study.counting() as counts:
                trials = opened.study.add_observations(frame, body.nearest, key, sure=body.sure)
                counted = {"counts": dict(counts())}
            return {"trials": [trial_answer(opened, trial, lease=None) for trial in trials]} | counted

        done = shelf.act(name, work, caller.worker(body.worker), fields_of(body))
        shelf.meters.told.inc(len(done.value["trials"]))
        return answer(done)

    @router.post("/heartbeat", response_model=answers.Prolonged, responses=_WRITES, summary="Prolong leases")
    def heartbeat(name: StudyName, body: requests.Heartbeat, caller: Called) -> Response:
        """Their leases run anew, for as long as before or for `lease` seconds. Doing it twice does no harm."""

        def work(opened: Opened) -> State:
            opened.study.heartbeat(body.trials, body.lease)
            return {"trials": body.trials}

        return answer(shelf.act(name, work, caller.worker(body.worker), fields_of(body)))

    @router.post("/take-over", response_model=answers.Asked, responses=_WRITES, summary="Take over trials")
    def take_over(name: StudyName, body: requests.TakeOver, caller: Called) -> Response:
        """Those that are named, or those whose lease has expired. No two workers get the same trial."""

        def work(opened: Opened) -> State:
            taken = opened.study.take_over(body.trials, lease=body.lease, n=body.n)
            return {"trials": [trial_answer(opened, trial, lease=body.lease) for trial in taken]}

        return answer(shelf.act(name, work, caller.worker(body.worker), fields_of(body)))

    @router.post("/arms", response_model=answers.ArmAdded, responses=_WRITES, summary="Add an arm")
    def add_arm(name: StudyName, body: requests.NewArm, caller: Called) -> Response:
        """Later rounds have it, those of all workers."""
        key = caller.key(body.key)

        def work(opened: Opened) -> State:
            arm, domain = opened.study.add_arm(body.name, key), opened.study.algorithm.domain
            return {"arm": arm, "arms": list(domain.names) if isinstance(domain, Arms) else []}

        return answer(shelf.act(name, work, caller.worker(body.worker), fields_of(body)))

    @router.get("/pending", response_model=answers.PendingTrials, responses=problems(404), summary="Who has what")
    def pending(name: StudyName) -> Response:
        """Trials that await their reward, oldest first."""

        def work(opened: Opened) -> State:
            held = opened.study.pending()
            return {"pending": [trial_answer(opened, trial, expired=trial.expired) for trial in held]}

        return answer(shelf.act(name, work))

    @router.get("/trials", response_model=answers.Trials, responses=problems(404), summary="Trials so far")
    def trials(
        name: StudyName,
        since: Annotated[int, Query(ge=0, lt=2**63, description="Number of the first trial wanted.")] = 0,
        limit: Annotated[int, Query(ge=1, le=_MOST_LISTED, description="How many at most.")] = 1000,
    ) -> Response:
        """With rewards and states, oldest first."""

        def work(opened: Opened) -> State:
            found, total = opened.study.trials(since, limit), opened.study.counts["trials"]
            end = since + len(found)
            return {"trials": found, "total": total, "next": end if found and end < total else None}

        return answer(shelf.act(name, work))

    return router
