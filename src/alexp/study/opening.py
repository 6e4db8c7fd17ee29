"""Creating, finding, listing and deleting studies."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from pathlib import Path

from sqlalchemy.engine import URL, Connection

from alexp.algorithms import Algorithm, EvidenceMixture
from alexp.algorithms.base import Direction, RandomState, Streams
from alexp.algorithms.components import check_arguments, component_from_dict
from alexp.algorithms.registry import algorithm_named, spelled_out
from alexp.common.codec import State
from alexp.common.redaction import redact
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass
from alexp.study import logbook, problem, records
from alexp.study.errors import (
    ProblemMismatchError,
    StorageError,
    StudyExistsError,
    StudyNotFoundError,
    UnknownOutcomeError,
)
from alexp.study.events import LIBRARY
from alexp.study.leases import CHOICES, WhenExpired
from alexp.study.logbook import query_after_loss
from alexp.study.problem import Probe, Problem
from alexp.study.records import StudyRow
from alexp.study.storage import DEFAULT, Storage
from alexp.study.study import Study
from alexp.study.view import StudySummary
from alexp.table.posed import posed
from alexp.table.table import Table

DEFAULT_ALGORITHM = "evidence-mixture"
Location = str | Path | URL | Storage


def create_study(
    models: ModelClass | Table | None = None,
    domain: Domain | Table | None = None,
    *,
    name: str,
    storage: Location = DEFAULT,
    algorithm: str | None = None,
    direction: Direction = "maximize",
    load_if_exists: bool = False,
    random_state: RandomState = None,
    repeats: bool | None = None,
    expired: WhenExpired | None = None,
    **settings: object,
) -> Study:
    """Start a durable study.

    Parameters
    ----------
    models, domain
        The problem: a `Table` alone, a `Table` as domain with models of your own, or models and another domain.
        Built-in families, matrices, plain tables and arms are stored with the study; code and objects of your own are
        not, and must be passed to `load_study` again. A study has its own list of `Arms`, to which `Study.add_arm`
        adds.
    name
        Distinct within the storage.
    storage
        `sqlite:///file.db` for processes on one host, `postgresql://host/database` for many hosts.
    algorithm
        Name of a registered algorithm, such as "alexp" or "linucb", or "doubling:estc" for `Doubling` of another. By
        default "evidence-mixture" for a new study, and the stored algorithm for an existing one.
    load_if_exists
        Open the study if it exists. The arguments must then agree with it.
    repeats
        Whether a candidate that has been measured may be proposed again; by default not those of a `Table`.
    expired
        What the next ask does with trials whose lease has expired (see `Study.ask`): "offer", the default, hands them
        out again unchanged; "abandon" abandons them, and their candidates may be proposed again.
    settings
        Further arguments of the algorithm, such as `noise_std`. The mixture's goal for a `Table` is "best", one large
        reward soon, and for models on a domain "sum".
    """
    where = storage_at(storage)
    if expired is not None and expired not in CHOICES:
        raise ValueError(f"expired must be 'offer' or 'abandon', got {expired!r}")
    _check_name(name)
    if not name.isprintable():
        raise ValueError(f"name must have no line breaks or control characters, got {_shown(name)}")
    known = _find(where, name) if load_if_exists else None
    named, spelled = spelled_out(algorithm or (DEFAULT_ALGORITHM if known is None else known.algorithm))
    kind, settings = algorithm_named(named), settings | spelled
    check_arguments("create_study", settings, kind._takes(settings), *signature(create_study).parameters)
    if load_if_exists and models is None and domain is None:
        return load_study(name, where)
    if models is None or (domain is None and not isinstance(models, Table)):
        missing = "models" if models is None else "domain"
        raise ValueError(f"a new study needs a Table, or both models and domain; {missing} is missing")
    models, domain, is_table = posed(models, domain)
    _check_sized(models)
    domain, seed = problem.private_copy(domain), Streams(random_state).entropy
    stored = {} if known is None else json.loads(known.settings)
    settings["repeats"] = stored.get("repeats", not is_table) if repeats is None else repeats
    if issubclass(kind, EvidenceMixture) and "goal" not in settings:
        improves = is_table or "objectives" in settings or ("cost" in settings and not models.is_contextual)
        settings["goal"] = stored.get("goal", "best" if improves else "sum")
    construct: Callable[..., Algorithm] = kind
    new = construct(models, problem.private_copy(domain), direction=direction, random_state=seed, **settings)
    draft = _draft(new)
    where.prepare()
    row = None
    try:
        with where.writing() as connection:
            where.lock(connection)
            row = records.find_study(connection, name)
            created = row is None
            if row is None:
                row = _insert(connection, name, draft, expired)
    except UnknownOutcomeError as error:
        if row is None or _find_after_loss(where, name, error) != row:
            raise StorageError(f"study {name!r} was not created: {error}. Nothing was changed; try again") from error
    if not created:
        if not load_if_exists:
            raise StudyExistsError(
                f"study {name!r} exists already in {where.describe()}; choose another name, or pass "
                "load_if_exists=True to open it"
            )
        _check_agreement(row, new, None if random_state is None else seed, expired)
        more = {key: settings[key] for key in settings.keys() - {"repeats", "goal"}}  # these two are stored
        return _open(where, row, models, domain, more)

    def make() -> Algorithm:
        return construct(models, problem.private_copy(domain), direction=direction, random_state=seed, **settings)

    return Study(where, row, make, first=new)


def load_study(
    name: str,
    storage: Location = DEFAULT,
    models: ModelClass | None = None,
    domain: Domain | None = None,
    **settings: object,
) -> Study:
    """Open an existing study.

    `models` and `domain` are needed only if they hold code or objects of your own; they are checked against the
    features the study was created with. Keywords replace settings that could not be stored, such as agents of
    your own.
    """
    where = storage_at(storage)
    return _open(where, find_row(where, name), models, domain, settings)


def list_studies(storage: Location = DEFAULT) -> list[StudySummary]:
    """All studies of a storage, by name."""
    where = storage_at(storage)
    if not where.exists():
        return []
    where.prepare()
    with where.reading() as connection:
        return records.all_studies(connection)


def delete_study(name: str, storage: Location = DEFAULT) -> None:
    """Remove a study with its log, permanently."""
    where = storage_at(storage)
    row = find_row(where, name)
    try:
        with where.writing() as connection:
            logbook.head(connection, row.id, lock=True)
            records.delete_study(connection, row.id)
    except UnknownOutcomeError as error:
        if _find_after_loss(where, name, error) == row:
            raise StorageError(f"study {name!r} was not deleted: {error}. Nothing was changed; try again") from error


def _check_sized(models: ModelClass) -> None:
    """Raise if the number of features is not known before the first round; a study is identified by its features."""
    if models.awaits_round:
        raise ValueError("models must have a known number of features; create them with example=")
    if models.is_in_parts:
        raise ValueError(
            "studies need the features of all candidates in one memory, and those of Parquet files, Dask arrays and "
            "Combinations are in parts: use EvidenceMixture(models, domain) and keep its to_dict(), which "
            "EvidenceMixture.from_dict(state, models=models, domain=domain) continues"
        )


def _find_after_loss(where: Storage, name: str, lost: StorageError) -> StudyRow | None:
    """The study of that name, after the connection was lost during a commit."""

    def found(connection: Connection) -> StudyRow | None:
        where.lock(connection)
        return records.find_study(connection, name)

    def unknown(why: str) -> UnknownOutcomeError:
        return UnknownOutcomeError(
            f"unknown whether the change of study {name!r} was stored: {lost}, and it cannot be looked up: {why}. Call "
            "`list_studies` when the storage is back"
        )

    return query_after_loss(where, found, unknown)


def _find(where: Storage, name: str) -> StudyRow | None:
    """The row of the study of that name; None if there is none."""
    if not where.exists():
        return None
    where.prepare()
    with where.reading() as connection:
        return records.find_study(connection, name)


def storage_at(storage: Location) -> Storage:
    """The storage itself, or the one at a URL or path."""
    return storage if isinstance(storage, Storage) else Storage(storage)


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not name.strip() or len(name) > 200:
        raise ValueError(f"name must be a text of 1 to 200 characters, got {_shown(name)}")


def _shown(name: object) -> str:
    """A name for messages: short, on one line, redacted in case a URL was passed as the name."""
    text = redact(repr(name))
    return text if len(text) <= 120 else text[:117] + "..."


def find_row(where: Storage, name: str) -> StudyRow:
    """The row of the study of that name; the error for a missing one lists the studies."""
    _check_name(name)
    row = _find(where, name)
    if row is None:
        known = [summary.name for summary in list_studies(where)]
        there = f"; it has {', '.join(map(repr, known[:10]))}" if known else "; it has no studies"
        raise StudyNotFoundError(f"there is no study {_shown(name)} in {where.describe()}{there}")
    return row


@dataclass(frozen=True)
class _Draft:
    """What is stored of a new study, computed before the database is locked."""

    algorithm: str
    settings: str
    entropy: str
    described: Problem
    probe: Probe


def _draft(algorithm: Algorithm) -> _Draft:
    saved = algorithm.to_dict(problem=False)
    described, probe = problem.describe(algorithm.models, algorithm.domain), problem.probe(algorithm)
    return _Draft(algorithm.name, json.dumps(saved["settings"]), saved["entropy"], described, probe)


def _insert(connection: Connection, name: str, draft: _Draft, expired: WhenExpired | None) -> StudyRow:
    facts = (draft.algorithm, draft.settings, draft.entropy, LIBRARY, time.time(), expired or "offer")
    study = records.insert_study(connection, name, *facts)
    described = problem.encode(connection, study, draft.described)
    return records.set_problem(connection, study, described, problem.encode(connection, study, draft.probe))


def _open(where: Storage, row: StudyRow, models: ModelClass | None, domain: Domain | None, settings: State) -> Study:
    with where.reading() as connection:
        stored: Problem = problem.decode(connection, row.id, row.problem)
        probe: Probe = problem.decode(connection, row.id, row.probe)
    with where.in_use():
        models, domain = problem.rebuild(stored, row.name, models, domain)
        _check_sized(models)
        make = _maker(row, models, domain, settings)
        first = make()
        problem.check_probe(probe, first, row.name)
    return Study(where, row, make, first)


def _maker(row: StudyRow, models: ModelClass, domain: Domain, settings: State) -> Callable[[], Algorithm]:
    kind, domain = algorithm_named(row.algorithm), problem.private_copy(domain)
    saved = kind.formerly | json.loads(row.settings)
    try:
        stored = {key: component_from_dict(value, key) for key, value in saved.items() if key not in settings}
    except ValueError as error:
        raise ProblemMismatchError(f"study {row.name!r}: {str(error).replace('from_dict', 'load_study')}") from None

    def make() -> Algorithm:
        arguments = stored | settings
        algorithm: Algorithm = kind(models, problem.private_copy(domain), random_state=int(row.entropy), **arguments)
        return algorithm

    return make


def _agree(given: object, saved: object) -> bool:
    """Whether a setting is as it was saved, apart from fields that were not saved."""
    if isinstance(given, dict) and isinstance(saved, dict):
        return all(key in given and _agree(given[key], value) for key, value in saved.items())
    return given == saved


def _check_agreement(row: StudyRow, new: Algorithm, seed: int | None, expired: WhenExpired | None) -> None:
    saved, given = json.loads(row.settings), new.to_dict(problem=False)["settings"]
    # Settings that the study does not store are newer than the study.
    differing = [key for key in given if key in saved and not _agree(given[key], saved[key])]
    if row.algorithm != new.name:
        what = f"algorithm {row.algorithm!r}, not {new.name!r}"
    elif differing:
        what = "; ".join(f"{key} = {saved.get(key)}, not {given[key]}" for key in differing)
    elif seed is not None and str(seed) != row.entropy:
        what = f"random_state {row.entropy}, not {seed}"
    elif expired not in (None, row.when_expired):
        what = f"expired={row.when_expired!r}, not {expired!r}"
    else:
        return
    raise StudyExistsError(f"study {row.name!r} exists already with {what}")
