"""Response bodies, for OpenAPI. Responses are built without these types, for speed; tests compare them."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.config import JsonDict

_TRIAL: JsonDict = {
    "id": 0,
    "x": {"solvent": "water", "celsius": 20},
    "index": 0,
    "model": None,
    "explored": False,
    "propensity": 1.0,
    "label": "water, 20",
    "lease": None,
}


class StudyAnswer(BaseModel):
    """A response, with the warnings of the library."""

    model_config = ConfigDict(extra="forbid")

    warnings: list[str] = Field(description="Statements or assumptions that the data contradict.")


class TrialAnswer(BaseModel):
    """One trial."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [_TRIAL]})

    id: int = Field(description="Counts from 0.")
    x: JsonValue = Field(description="The action: an object by column, a number, a list, or a name.")
    index: int = Field(description="Its number among the candidates.")
    model: int | None = Field(description="Number of the model that proposed it; null if no single one did.")
    explored: bool
    propensity: float | None = Field(description="Probability with which it was played; null for observations.")
    label: str = Field(description="The action in one short line.")
    context: JsonValue = None
    n_candidates: int | None = None


class AskedTrial(TrialAnswer):
    """A trial that was handed out."""

    lease: float | None = Field(description="Seconds for which no other worker gets it; null if it has no end.")


class PendingAnswer(AskedTrial):
    """A pending trial with its worker and lease."""

    worker: str
    age: float = Field(description="Seconds since it was asked for.")
    lease: float | None = Field(description="Seconds that its lease has left; null if it has no end.")
    expired: bool


class ToldTrial(TrialAnswer):
    """A trial with its reward and state."""

    reward: float | dict[str, float] | None = Field(description="An object by objective where several are measured.")
    state: Literal["told", "pending", "abandoned", "failed", "retracted", "observed"]
    note: str = Field(description="What was written about it, such as why it failed.")
    available: list[int] | None = Field(description="Positions that could be chosen in its round; null for all.")


class Numbers(BaseModel):
    """Numbers of trials: all, told (with observations), pending, abandoned (with retracted), and failed."""

    model_config = ConfigDict(extra="forbid")

    trials: int
    told: int
    pending: int
    abandoned: int
    failed: int | None = Field(default=None, description="There where any trial has failed.")


class StudyLine(BaseModel):
    """One line of the list of studies; times in seconds since 1970, UTC."""

    model_config = ConfigDict(extra="forbid")

    name: str
    algorithm: str
    created_at: float
    latest: float | None
    counts: Numbers


class Studies(BaseModel):
    """All studies, by name."""

    model_config = ConfigDict(extra="forbid")

    studies: list[StudyLine]


class ExplainedSetting(BaseModel):
    """A setting as formula and value."""

    model_config = ConfigDict(extra="forbid")

    name: str
    formula: str
    value: str


class ColumnAnswer(BaseModel):
    """A column of a table: what it was taken for, and what models see of it."""

    name: str
    kind: str = Field(examples=["number"])
    example: str = Field(examples=["60 °C"])
    becomes: str = Field(examples=["a number from 60 to 120 °C"])
    description: str = Field(description="The description that it belongs to; empty for the table itself.")


class TableAnswer(StudyAnswer):
    """What a table was understood as."""

    file: str
    n_candidates: int
    columns: list[ColumnAnswer]
    remarks: list[str]


class MoneyAnswer(BaseModel):
    """What experiments have cost."""

    model_config = ConfigDict(extra="forbid")

    spent: float
    budget: float | None
    left: float | None


class Summary(StudyAnswer):
    """A study and its present state."""

    name: str
    algorithm: str
    direction: Literal["maximize", "minimize"]
    created_at: float
    library: str
    n_events: int = Field(description="Number of events in the log.")
    counts: Numbers
    domain: str = Field(description="FiniteSet, Interval, Box, Arms or Candidates.")
    contextual: bool
    n_models: int
    models: list[str] = Field(description="Names of the first 1,000 models.")
    n_candidates: int
    columns: list[str] = Field(description="How candidates are described: columns of their table, x, or x0, x1, ...")
    arms: list[str] | None
    objectives: dict[str, Literal["maximize", "minimize"]] | None = Field(description="Null for one objective.")
    money: MoneyAnswer | None = Field(description="Null where experiments have no cost.")
    offers: list[str] = Field(
        description="What the algorithm can be asked for beyond trials: probabilities, certificates."
    )
    expired: Literal["offer", "abandon"]
    settings: dict[str, JsonValue]
    explained: list[ExplainedSetting]


class Deleted(BaseModel):
    """Name of a deleted study."""

    model_config = ConfigDict(extra="forbid")

    deleted: str


class Asked(StudyAnswer):
    """Trials to measure."""

    trials: list[AskedTrial]


class Done(StudyAnswer):
    """Numbers of rewards and failures that were new, known already and amended, and the counts of trials."""

    told: int
    skipped: int
    amended: int
    counts: Numbers


class ReadResult(BaseModel):
    """A result of a file as `tell` takes it, its trial in words, and what telling it would do."""

    model_config = ConfigDict(extra="forbid")

    trial: int
    label: str
    reward: float | dict[str, float] | list[float] | list[dict[str, float]] | Literal["failed"]
    note: str
    action: Literal["tell", "fail", "amend", "skip"]


class ReadResults(StudyAnswer):
    """The results of a file."""

    results: list[ReadResult]


class Counted(StudyAnswer):
    """Counts of trials."""

    counts: Numbers


class Observed(StudyAnswer):
    """Observations as trials."""

    trials: list[AskedTrial]
    counts: Numbers


class Prolonged(StudyAnswer):
    """Trials with prolonged leases."""

    trials: list[int]


class ArmAdded(StudyAnswer):
    """The number of a new arm, and all arms."""

    arm: int
    arms: list[str]


class CandidatesAdded(StudyAnswer):
    """The numbers of new candidates, and how many there are now."""

    candidates: list[int]
    n_candidates: int


class CampaignsLearned(StudyAnswer):
    """How many models there are now."""

    n_models: int


class PendingTrials(StudyAnswer):
    """Pending trials, oldest first."""

    pending: list[PendingAnswer]


class ProgressAnswer(BaseModel):
    """Work that takes long: `done` of `total` steps."""

    what: str
    done: int
    total: int


class Underway(StudyAnswer):
    """How far the view, report or explanation is that another request waits for; null if there is none."""

    progress: ProgressAnswer | None


class Trials(StudyAnswer):
    """Some trials, oldest first; `next` is the first trial of the next page, null at the end."""

    trials: list[ToldTrial]
    total: int
    next: int | None


class Probabilities(StudyAnswer):
    """Probabilities of the listed models, all or the likeliest ones, in the order of their numbers."""

    n_models: int
    models: list[int]
    names: list[str]
    probabilities: list[float]


class PolicyAnswer(StudyAnswer):
    """Probability with which the next ask would play each candidate."""

    policy: list[float]


class BestAnswer(StudyAnswer):
    """The recommended action."""

    x: JsonValue
    index: int
    label: str
    value: float | None = Field(description="Its estimated reward.")
    model: int | None
    model_name: str | None


class Compromise(BaseModel):
    """A measured candidate that no other measured one beats in every objective."""

    model_config = ConfigDict(extra="forbid")

    trial: int = Field(description="The first trial of the candidate.")
    index: int
    x: JsonValue
    label: str
    values: dict[str, float | None] = Field(examples=[{"yield": 81.0, "cost": 12.0}])


class ParetoAnswer(StudyAnswer):
    """The best compromises, sorted by the first objective."""

    objectives: dict[str, Literal["maximize", "minimize"]]
    pareto: list[Compromise]


class FiguresAnswer(StudyAnswer):
    """Figures by kind, as `alexp.plot` draws them, and the state of the study in sentences."""

    figures: dict[str, JsonValue] = Field(description="Data and layout for Plotly, where there is data.")
    summary: dict[str, str] = Field(examples=[{"measured": "3 of 6 candidates measured."}])


class StopAnswer(StudyAnswer):
    """How far the recommended action may be from the best one."""

    x: JsonValue
    index: int
    label: str
    delta: float
    epsilon: float | None = Field(description="No candidate is better by more than this; null if nothing is known.")
    target: float | None
    kind: Literal["certified", "calibrated", "estimate"]
    certified: bool
    reason: str | None = Field(description="Why it is not certified.")
    can_stop: bool
    plausible: list[int]
    disagreeing: list[int]
    between_candidates: float | None
    checked: bool
    rests_on: str | None = Field(description="If no estimate, the condition under which it holds, as a clause.")
    text: str


class CheckAnswer(StudyAnswer):
    """Whether the rewards contradict the assumptions."""

    delta: float
    contradicted: bool
    at: int | None
    e_value: float | None = Field(description="Logarithm of the e-value.")
    rejected: list[int]
    speaks_against: list[str]
    checked: bool
    trials: list[int] = Field(description="With only the shape of the noise stated: those that no model explains.")
    text: str


class Plausible(StudyAnswer):
    """Models that are not ruled out."""

    delta: float
    models: list[int]
    names: list[str]
    rests_on: str = Field(description="The condition under which this holds, as a clause.")


class Health(BaseModel):
    """Whether the service takes requests; "storage" where its SQLite file was moved, removed or overwritten."""

    model_config = ConfigDict(extra="forbid")

    status: Literal["ok", "stopping", "storage"]


class Fault(BaseModel):
    """One wrong field."""

    model_config = ConfigDict(extra="forbid")

    field: str
    detail: str


class ProblemAnswer(BaseModel):
    """Why a request was refused (RFC 9457)."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:alexp:already-told",
                    "title": "Conflict",
                    "status": 409,
                    "detail": "trial 0 already has the reward 0.3; amend(0, ...) corrects it",
                    "instance": "urn:uuid:2f1c6e0e-7d2c-4f7e-9a55-0d6d2f0a4a0b",
                }
            ]
        },
    )

    type: str = Field(description="urn:alexp: and a word for the kind of problem.")
    title: str
    status: int
    detail: str
    instance: str = Field(description="Name of this request in the log of the service.")
    field: str | None = Field(default=None, description="Which part of the request is wrong, such as body.n.")
    key: str | None = Field(default=None, description="Repeat the request with this key.")
    errors: list[Fault] | None = Field(default=None, description="All errors, if there are several.")
