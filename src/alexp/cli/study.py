"""`alexp study`: durable studies on the command line."""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from alexp.cli.errors import SafeGroup
from alexp.cli.tables import (
    CandidatesFile,
    DecimalSign,
    FeatureFiles,
    HeaderLine,
    IdColumn,
    Ignore,
    KindOf,
    Missing,
    Replace,
    Sheet,
    Skip,
    pair,
    pairs,
    preview as shown,
    read_table,
    swaps,
)
from alexp.common.redaction import printable

if TYPE_CHECKING:
    from alexp.algorithms.base import Direction
    from alexp.algorithms.log import Trial
    from alexp.problem.objectives import Measurements
    from alexp.study import HeldTrial, Study
    from alexp.study.leases import WhenExpired
    from alexp.study.study import Checked
    from alexp.table.numbers import Decimal

app = typer.Typer(
    cls=SafeGroup,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    help="Durable experiments: ask for trials, tell rewards; everything is stored.",
)

DEFAULT = "sqlite:///alexp.db"
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def _seconds(text: str) -> float:
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([smhd]?)\s*", text)
    if found is None or float(found[1]) == 0.0:
        raise typer.BadParameter(
            f"must be a positive number of seconds, or with a unit: 90s, 15m, 8h, 2d; got {text!r}"
        )
    return float(found[1]) * _UNITS[found[2]]


Name = Annotated[str, typer.Argument(help="Name of the study.")]
Where = Annotated[
    str,
    typer.Option("--storage", envvar="ALEXP_STORAGE", help="sqlite:///file.db or postgresql://user@host/database."),
]
OneTrial = Annotated[str, typer.Argument(help="Number of the trial.")]
Out = Annotated[Path | None, typer.Option(help="File to write, plates as .csv or .xlsx; printed if absent.")]
Force = Annotated[bool, typer.Option(help="Write over an existing file.")]
LeaseFor = Annotated[
    float | None,
    typer.Option("--lease", parser=_seconds, metavar="TIME", help="Reserve them for this worker: 90s, 15m, 8h, 2d."),
]
Worker = Annotated[
    str | None, typer.Option("--worker", envvar="ALEXP_WORKER", help="Name of this worker; host:process if absent.")
]
RewardColumn = Annotated[str, typer.Option("--reward", help="Column of the results in files of old campaigns.")]
ResultColumn = Annotated[
    str | None, typer.Option("--reward", help="Column of the results; by default that of the study, or reward.")
]
ReplaceResult = Annotated[
    list[str] | None,
    typer.Option(help="CELL=VALUE, what to read as a result: a number, failed or nothing; repeat."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Accept rewards far outside those so far.")]


@app.command()
def create(
    name: Name,
    candidates: CandidatesFile,
    features: FeatureFiles = None,
    id: IdColumn = None,
    sheet: Sheet = None,
    kind: KindOf = None,
    ignore: Ignore = None,
    missing: Missing = None,
    decimal: DecimalSign = None,
    replace: Replace = None,
    header: HeaderLine = None,
    skip: Skip = None,
    memory: Annotated[
        list[str] | None, typer.Option(help="NAME=FILE, results of an old campaign with columns of the table; repeat.")
    ] = None,
    reward: Annotated[
        str | None,
        typer.Option(help="Column of results, here and in old campaigns; what is filled in counts as measured."),
    ] = None,
    preview: Annotated[bool, typer.Option("--preview", help="Say what the columns are, and make nothing.")] = False,
    noise_std: Annotated[float | None, typer.Option(help="Standard deviation of the noise, if it is known.")] = None,
    reward_bound: Annotated[
        float | None, typer.Option(help="Largest size of a noiseless reward, if known; certificates need it.")
    ] = None,
    norm_bound: Annotated[
        float | None, typer.Option(help="Largest norm of the true model's coefficients, if known instead.")
    ] = None,
    noise: Annotated[
        str | None,
        typer.Option(
            help="gaussian: errors are bell-shaped with the same spread everywhere; certificates need no number."
        ),
    ] = None,
    algorithm: Annotated[str, typer.Option(help="Name of the algorithm.")] = "evidence-mixture",
    direction: Annotated[str, typer.Option(help="maximize or minimize.")] = "maximize",
    goal: Annotated[
        str | None, typer.Option(help="best: one large reward soon, the mixture's default; sum: large ones always.")
    ] = None,
    intercept: Annotated[bool, typer.Option(help="Give every model a free constant.")] = True,
    kernels: Annotated[
        list[str] | None,
        typer.Option(help="auto (default), linear, or NAME=KERNEL+KERNEL:LENGTHSCALE; repeat for every description."),
    ] = None,
    repeats: Annotated[bool, typer.Option(help="Let a measured candidate be proposed again.")] = False,
    normalize: Annotated[bool, typer.Option(help="Scale every model's features to norm at most one.")] = False,
    expired: Annotated[
        str | None, typer.Option(help="Trials whose lease has expired: offer them again (default), or abandon them.")
    ] = None,
    reward_range: Annotated[
        tuple[float, float] | None, typer.Option("--range", help="Lowest and highest possible reward: --range 0 100.")
    ] = None,
    objective: Annotated[
        list[str] | None,
        typer.Option(help="NAME=maximize or NAME=minimize, two or three of them; a column of the candidates is known."),
    ] = None,
    cost: Annotated[str | None, typer.Option(help="Column of the candidates with the cost of an experiment.")] = None,
    budget: Annotated[float | None, typer.Option(help="What all experiments together may cost.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed; a random one if absent.")] = None,
    setting: Annotated[list[str] | None, typer.Option(help="NAME=VALUE, a further argument of the algorithm.")] = None,
    storage: Where = DEFAULT,
) -> None:
    """Start a study from a table of candidates; says first what it took every column for.

    Example: alexp study create arylation --candidates reactions.xlsx --range 0 100
    """
    from alexp.study import create_study
    from alexp.study.declared import kernels_from_words

    reading = (id, sheet, kind, ignore, missing, decimal, replace, header, skip)
    table = read_table(candidates, features, *reading, reward, reward_elsewhere=bool(memory))
    table = table.with_memory(pairs(memory, "--memory"), reward or "reward") if memory else table
    for line in shown(table):
        typer.echo(line)
    if preview:
        return
    models = table.models(kernels_from_words(kernels or ["auto"]), intercept=intercept)
    more = {key: _value(text) for key, text in (pair(text, "--setting") for text in setting or [])}
    if taken := more.keys() & signature(create_study).parameters.keys():
        raise ValueError(
            f"--setting is for arguments of the algorithm, got {min(taken)!r}; it has an option of its own"
        )
    more |= {} if goal is None else {"goal": goal}
    stated = {"reward_range": reward_range, "cost": cost, "budget": budget, "noise": noise}
    more |= {key: value for key, value in stated.items() if value is not None}
    if objective:
        more["objectives"] = dict(pair(text, "--objective") for text in objective)
    study = create_study(
        models.normalized(table.domain) if normalize else models,
        table,
        name=name,
        storage=storage,
        algorithm=algorithm,
        direction=cast("Direction", direction),  # other words are refused there
        random_state=seed,
        noise_std=noise_std,
        reward_bound=reward_bound,
        norm_bound=norm_bound,
        repeats=repeats,
        expired=_choice(expired),
        **more,
    )
    of = ", ".join(f"{key} ({values.shape[1]} features)" for key, values in table.features().items())
    where, n = study.storage.describe(), table.n_candidates
    typer.echo(printable(f"created {name!r} in {where}: {n} candidates; {models.n_models} models of {of}"))
    if table.results:
        typer.echo(f"added {len(table.results)} results that the table has")


@app.command()
def ask(
    name: Name,
    n: Annotated[int, typer.Option("-n", "--number", min=1, help="How many trials.")] = 1,
    out: Out = None,
    repeats: Annotated[bool, typer.Option(help="Let a candidate come twice in a list.")] = False,
    new: Annotated[bool, typer.Option(help="Only candidates that were never asked for nor measured.")] = False,
    available: Annotated[list[str] | None, typer.Option(help="Only this candidate, by its name; repeat.")] = None,
    where: Annotated[
        str | None,
        typer.Option(help="Only candidates that meet a condition: \"celsius <= 105 and base != 'KOAc'\"."),
    ] = None,
    at_most: Annotated[
        list[str] | None, typer.Option(help="COLUMN=NUMBER: so many trials may share a value of the column; repeat.")
    ] = None,
    together: Annotated[
        list[str] | None, typer.Option(help="A column that has one value for all trials; repeat.")
    ] = None,
    plate_map: Annotated[
        int | None, typer.Option(help="Name a well for every trial, on a plate of 24, 48, 96 or 384.")
    ] = None,
    force: Force = False,
    lease: LeaseFor = None,
    worker: Worker = None,
    storage: Where = DEFAULT,
) -> None:
    """Ask for trials; fill in the rewards and pass the file to `tell`.

    Example: alexp study ask arylation -n 8 --out plate.csv
    """
    from alexp.study.events import new_key
    from alexp.study.tables import check_map

    with _opened(name, storage, worker) as study:
        if study.algorithm.is_contextual:
            raise ValueError(f"rounds of study {name!r} are contextual: ask in Python with study.ask(context=...)")
        _check_out(out, force)
        check_map(study, plate_map, n)
        trials = study.ask(
            n,
            available=_named(study, available, new),
            distinct=not repeats,
            key=None if plate_map is None else new_key(),  # expired trials have wells on another plate
            lease=lease,
            where=where,
            at_most=dict(_limit(text) for text in at_most) if at_most else None,
            together=together or None,
        )
        _write_plate(out, study, trials, "trials", plate_map)


@app.command()
def tell(
    name: Name,
    results: Annotated[
        Path,
        typer.Argument(help="CSV or .xlsx file: trial, or the candidates' id column, and reward (71.2; 72.9, failed)."),
    ],
    reward: Annotated[
        list[str] | None,
        typer.Argument(help="With the number of a trial in place of a file: its reward, or yield=81 cost=12."),
    ] = None,
    partial: Annotated[bool, typer.Option("--partial", help="Leave lines without a reward for later.")] = False,
    column: ResultColumn = None,
    replace: ReplaceResult = None,
    amend: Annotated[
        bool, typer.Option("--amend", help="Where study and file differ, take the file's reward.")
    ] = False,
    decimal: Annotated[str | None, typer.Option(help="Decimal sign of the rewards, where they do not tell.")] = None,
    yes: Yes = False,
    worker: Worker = None,
    storage: Where = DEFAULT,
) -> None:
    """Tell rewards: the whole file, or nothing if any line is wrong. Rewards that are known already are skipped.

    Example: alexp study tell arylation plate.csv
    """
    from alexp.algorithms.base import CheckedTell
    from alexp.study.tables import Terms, as_result, read_results

    with _opened(name, storage, worker) as study:
        found: Sequence[Checked]
        if reward:
            found = [study.refresh().check_tell(str(results), _told(reward), "amend" if amend else "same")]
        else:
            found = read_results(results, study, Terms(column, swaps(replace), partial, _sign(decimal), amend))
        tells = [one for one in found if isinstance(one, CheckedTell)]
        with _sure(study.algorithm.suspects(tells).values(), yes):
            did, counts = study.tell_many(map(as_result, found), "amend" if amend else "same"), study.counts
        known = f", {did.skipped} already known" if did.skipped else ""
        amended = f", {did.amended} amended" if did.amended else ""
        lost = sum(one.action != "skip" for one in found if not isinstance(one, CheckedTell))
        failed = f", {lost} failed" if lost else ""
        total = f"{counts['told']} in all, {counts['pending']} pending"
        typer.echo(f"told {did.told - lost} rewards{known}{amended}{failed}; {total}")


@app.command()
def fail(
    name: Name,
    trial: OneTrial,
    reason: Annotated[str, typer.Option(help="Why it failed; kept in log, export and report.")] = "",
    amend: Annotated[bool, typer.Option("--amend", help="The trial has a reward, and failed after all.")] = False,
    worker: Worker = None,
    storage: Where = DEFAULT,
) -> None:
    """Report a failed experiment: its candidate is not proposed again, and the models learn where failures lie.

    Example: alexp study fail arylation 3 --reason "precipitated"
    """
    with _opened(name, storage, worker) as study:
        study.fail(trial, reason, "amend" if amend else "raise")
        counts = study.counts
        typer.echo(
            f"trial {trial.removeprefix('#')} failed; {counts.get('failed', 0)} failed, {counts['pending']} pending"
        )


@app.command(context_settings={"ignore_unknown_options": True})  # rewards may be negative
def amend(
    name: Name,
    trial: OneTrial,
    reward: Annotated[list[str], typer.Argument(help="The right reward, or yield=81 cost=12.")],
    yes: Yes = False,
    storage: Where = DEFAULT,
) -> None:
    """Correct the reward of a trial; the study continues as if the first reward had been this one.

    Example: alexp study amend arylation 3 72.4
    """
    with _opened(name, storage) as study:
        told = study.refresh().check_amend(trial, _told(reward))
        before, measured = study.algorithm.log.entry(told.trial), study.algorithm.log.measurements(told.trial)
        with _sure(study.algorithm.suspects([told]).values(), yes):
            study.amend(told.trial, _told(reward))
        had = "; ".join(map(str, measured)) or ("no reward" if before is None else "a failure")
        typer.echo(f"trial {told.trial}: {had} became {told.reward}")


@app.command()
def retract(name: Name, trial: OneTrial, storage: Where = DEFAULT) -> None:
    """Withdraw the reward of a trial, or its failure; it then counts as abandoned. `amend` gives it a reward again.

    Example: alexp study retract arylation 3
    """
    with _opened(name, storage) as study:
        what = "failure" if study.algorithm.log.check_id(trial) in study.algorithm.log.failed else "reward"
        study.retract(trial)
        typer.echo(f"retracted the {what} of trial {trial.removeprefix('#')}; {study.counts['told']} rewards are left")


@app.command()
def observe(
    name: Name,
    data: Annotated[
        Path, typer.Argument(help="CSV or .xlsx file with columns of the candidates, or index, and reward.")
    ],
    reward: ResultColumn = None,
    partial: Annotated[bool, typer.Option("--partial", help="Leave out lines without a result.")] = False,
    replace: ReplaceResult = None,
    amend: Annotated[
        bool, typer.Option("--amend", help="Where a result has changed since the file was read, take the file's.")
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="All results are new, also those that look known.")] = False,
    sheet: Sheet = None,
    header: HeaderLine = None,
    decimal: Annotated[str | None, typer.Option(help="Decimal sign of the numbers, where they do not tell.")] = None,
    yes: Yes = False,
    storage: Where = DEFAULT,
) -> None:
    """Add measurements that were made without an ask. Results of a file that was read before are skipped.

    Example: alexp study observe arylation reactions.xlsx --reward yield --partial
    """
    from alexp.study.candidates import observations
    from alexp.study.tables import Terms, check_unchanged, read_observations

    with _opened(name, storage) as study:
        algorithm = study.refresh().algorithm
        frame = read_observations(data, study, Terms(reward, swaps(replace), partial, _sign(decimal)), sheet, header)
        found = observations(algorithm.domain, frame, objectives=algorithm.log.objectives)
        measured = [(index, algorithm.check_reward(reward)) for index, reward in found]
        new = study.new_results(data.name, measured, again)
        if not amend:
            check_unchanged(study, data, frame, new)
        amended = [algorithm.check_amend(trial, measured[k][1]) for k, trial in new.changed.items()]
        frame, rewards = frame.iloc[new.positions], [measured[k][1] for k in new.positions]
        strange = zip(frame.index, algorithm.suspect_observations(rewards), strict=True)
        reasons = [f"{data}, line {line}: {reason}" for line, reason in strange if reason]
        with _sure([*reasons, *algorithm.suspects(amended).values()], yes):
            if amended:
                study.tell_many([(one.trial, one.reward) for one in amended], "amend")
            trials = study.add_observations(frame, key=new.key) if new.positions else []
        n_known = len(found) - len(trials) - len(amended)
        known = f", {n_known} already known" if n_known else ""
        corrected = f", {len(amended)} amended" if amended else ""
        typer.echo(f"added {len(trials)} observations{known}{corrected}; {study.counts['told']} rewards in all")


@app.command()
def add(
    name: Name,
    candidates: Annotated[Path, typer.Argument(help="CSV, .xlsx or Parquet file with the columns of the first table.")],
    features: FeatureFiles = None,
    sheet: Sheet = None,
    missing: Missing = None,
    decimal: DecimalSign = None,
    replace: Replace = None,
    header: HeaderLine = None,
    skip: Skip = None,
    preview: Annotated[bool, typer.Option("--preview", help="Say what would be added, and add nothing.")] = False,
    worker: Worker = None,
    storage: Where = DEFAULT,
) -> None:
    """Add candidates, which later asks may propose; --features brings their descriptions, if the first have any.

    Example: alexp study add arylation more.xlsx
    """
    from alexp.table.arrivals import stated_kinds, understood

    with _opened(name, storage, worker) as study:
        problem = study.algorithm.models, study.algorithm.domain
        known = stated_kinds(*problem)
        read = (sheet, known["kinds"], None, missing, decimal, replace, header, skip, study.result_column)
        table = read_table(candidates, features, known["id"], *read, reward_elsewhere=True)
        if preview:
            study.refresh().check_candidates(table)
        else:
            added = study.add_candidates(table)
        for line in shown(understood(*problem, table)):
            typer.echo(line)
        if not preview:
            what = f"candidate {added[0]}" if len(added) == 1 else f"candidates {added[0]} to {added[-1]}"
            typer.echo(f"added {what}; {study.algorithm.domain.n_candidates} in all")


@app.command()
def learn(
    name: Name,
    campaigns: Annotated[
        list[str], typer.Argument(help="NAME=FILE, results of an old campaign, CSV, .xlsx or Parquet.")
    ],
    reward: RewardColumn = "reward",
    worker: Worker = None,
    storage: Where = DEFAULT,
) -> None:
    """Learn from old campaigns: further models, whose worth the rewards tell; `create --memory` does so at first.

    Example: alexp study learn arylation 2023=old.csv --reward yield
    """
    with _opened(name, storage, worker) as study:
        before = study.algorithm.models.n_models
        study.learn_from(pairs(campaigns, "campaigns"), reward)
        models = study.algorithm.models
        typer.echo(printable(f"learned from {', '.join(campaigns)}: {models.n_models - before} more models"))


@app.command()
def abandon(
    name: Name,
    trials: Annotated[list[str], typer.Argument(help="Numbers of pending trials.")],
    storage: Where = DEFAULT,
) -> None:
    """Abandon pending trials, which will have no reward.

    Example: alexp study abandon arylation 3 4
    """
    with _opened(name, storage) as study:
        for trial in trials:
            study.abandon(trial)
        typer.echo(f"abandoned {len(trials)} trials; {study.counts['pending']} pending")


@app.command()
def status(name: Name, storage: Where = DEFAULT) -> None:
    """Print the state of the study: counts, leading models, recommendation.

    Example: alexp study status arylation
    """
    from alexp.study.report import compromise_sentences

    with _opened(name, storage) as study:
        view = study.view(trials=0, leaders=5, history=False, certificates=False, curve=False, explanation=False)
        aims = {} if view.pareto is None else view.pareto.directions
        aim = ", ".join(f"{direction} {name}" for name, direction in aims.items()) or view.direction
        typer.echo(printable(f"{view.name}: {view.algorithm}, {aim}, in {view.where}"))
        typer.echo(", ".join(f"{value} {key}" for key, value in view.counts.items()))
        if view.standing is not None:
            leading = (f"{leader.name}: {leader.q:.3f}" for leader in view.standing.leaders)
            typer.echo(printable("models: " + "; ".join(leading)))
            for memory in view.standing.memories:
                typer.echo(printable(memory.sentence))
        if view.best is not None:
            what = f"{view.best.label} (candidate {view.best.index})"
            typer.echo(printable(f"best: {what}, estimated {view.best.value:.4g}"))
            for sentence in _statements(study):
                typer.echo(printable(sentence))
        elif view.stopping is not None:
            typer.echo(printable(view.stopping))
        for sentence in compromise_sentences(view):
            typer.echo(printable(sentence))


@app.command()
def pareto(name: Name, out: Out = None, storage: Where = DEFAULT) -> None:
    """The best compromises of several objectives: measured candidates that no other one beats in all, as CSV.

    Example: alexp study pareto arylation --out compromises.csv
    """
    from alexp.study.tables import pareto_lines

    with _opened(name, storage) as study:
        _write_lines(out, pareto_lines(study), "candidates")


@app.command()
def heartbeat(
    name: Name,
    trials: Annotated[list[str], typer.Argument(help="Numbers of pending trials.")],
    lease: LeaseFor = None,
    worker: Worker = None,
    storage: Where = DEFAULT,
) -> None:
    """Restart the leases of trials that this worker still measures, for as long as before or for --lease.

    Example: alexp study heartbeat arylation 3 4 --lease 2h
    """
    with _opened(name, storage, worker) as study:
        study.heartbeat(trials, lease)
        typer.echo(f"prolonged {len(trials)} leases")


@app.command("take-over")
def take_over(
    name: Name,
    trials: Annotated[list[str] | None, typer.Argument(help="Numbers of trials; those that expired if absent.")] = None,
    n: Annotated[int | None, typer.Option("-n", "--number", min=1, help="At most so many.")] = None,
    lease: LeaseFor = None,
    worker: Worker = None,
    out: Out = None,
    force: Force = False,
    storage: Where = DEFAULT,
) -> None:
    """Take over expired trials of other workers, as a file for `tell`.

    Example: alexp study take-over arylation --out plate.csv
    """
    with _opened(name, storage, worker) as study:
        _check_out(out, force)
        taken = study.take_over(trials or None, lease=lease, n=n)
        _write_plate(out, study, taken, "trials")


@app.command()
def pending(
    name: Name,
    out: Out = None,
    workers: Annotated[
        bool, typer.Option("--workers", help="Print worker, age and lease of every pending trial.")
    ] = False,
    storage: Where = DEFAULT,
) -> None:
    """Pending trials, as a file for `tell`.

    Example: alexp study pending arylation --out plate.csv
    """
    from alexp.study.candidates import labeller

    with _opened(name, storage) as study:
        trials = study.pending()
        if not workers:
            _write_plate(out, study, trials, "pending trials")
            return
        what = labeller(study.algorithm)
        for trial in trials:
            line = f"{trial.id}\t{what(trial.id)}\t{trial.worker}\tasked {_span(trial.age)} ago\t{_lease(trial)}"
            typer.echo(printable(line.replace("\t", "  ")))


@app.command()
def export(name: Name, out: Out = None, storage: Where = DEFAULT) -> None:
    """All trials as CSV.

    Example: alexp study export arylation --out trials.csv
    """
    from alexp.study.tables import export as lines

    with _opened(name, storage) as study:
        _write_lines(out, lines(study), "trials")


@app.command()
def report(
    name: Name,
    out: Annotated[Path, typer.Option(help="HTML file to write.")] = Path("report.html"),
    storage: Where = DEFAULT,
) -> None:
    """Write one self-contained HTML page about the study.

    Example: alexp study report arylation --out arylation.html
    """
    with _opened(name, storage) as study:
        typer.echo(f"report written to {study.report(out, progress=True)}")


@app.command("list")
def list_all(storage: Where = DEFAULT) -> None:
    """All studies of a storage.

    Example: alexp study list
    """
    from alexp.study import list_studies

    found = list_studies(storage)
    for study in found:
        created = datetime.fromtimestamp(study.created_at, UTC)
        facts = f"{study.algorithm}\tcreated {created:%Y-%m-%d}\t{study.told} told, {study.pending} pending"
        typer.echo(f"{printable(study.name)}\t{facts}")
    if not found:
        typer.echo("no studies", err=True)


@app.command()
def delete(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    storage: Where = DEFAULT,
) -> None:
    """Delete a study with all its trials, after asking.

    Example: alexp study delete arylation
    """
    from alexp.study import delete_study, list_studies

    trials = next((study.trials for study in list_studies(storage) if study.name == name), 0)
    if not yes:
        typer.confirm(f"Delete study {name!r} with {trials} trials permanently?", abort=True)
    delete_study(name, storage)
    typer.echo(f"deleted {name!r}")


@app.command()
def check(
    name: Annotated[str | None, typer.Argument(help="Name of the study; all of them if absent.")] = None,
    storage: Where = DEFAULT,
) -> None:
    """Verify everything that is stored, replay the log from its start, and compare; exit status 1 if it is damaged.

    Example: alexp study check arylation
    """
    from alexp.study import check as check_study, list_studies

    names = [study.name for study in list_studies(storage)] if name is None else [name]
    reports = [check_study(each, storage, progress=True) for each in names]
    for report in reports:
        typer.echo(printable(str(report)))
    if not all(report.ok for report in reports):
        raise typer.Exit(1)


@app.command()
def salvage(
    source: Annotated[str, typer.Argument(help="The damaged storage: a file, or postgresql://user@host/database.")],
    target: Annotated[str, typer.Argument(help="A new storage for what is intact.")],
) -> None:
    """Copy the intact parts of all studies into a new storage, and report what was lost.

    Example: alexp study salvage damaged.db sqlite:///rescued.db
    """
    from alexp.study import salvage as salvage_studies

    for report in salvage_studies(source, target):
        typer.echo(printable(str(report)))


@contextmanager
def _opened(name: str, storage: str, worker: str | None = None) -> Iterator[Study]:
    """The study, opened for one command under a worker's name."""
    from alexp.study import load_study
    from alexp.study.events import acting_as

    with acting_as(worker), load_study(name, storage) as study:
        yield study


def _check_out(out: Path | None, force: bool) -> None:
    """Raise, before asking for trials, if the file exists, or if it cannot be written."""
    from alexp.study.sheets import check_excel

    if out is not None and out.exists() and not force:
        raise FileExistsError(f"{out} exists and may hold rewards; choose another file, or --force to replace it")
    if out is not None and not out.parent.is_dir():
        raise FileNotFoundError(f"the folder {out.parent} does not exist")
    if out is not None:
        check_excel(out)


def _write_plate(out: Path | None, study: Study, trials: Sequence[Trial], what: str, wells: int | None = None) -> None:
    """Write trials to a file to fill in, .xlsx or CSV, or print them."""
    from alexp.study.tables import plate, plate_text, write_plate

    if out is None:
        typer.echo(plate_text(plate(study, trials, wells), study), nl=False)
    else:
        typer.echo(f"{write_plate(out, study, trials, wells)} {what} written to {out}")


def _write_lines(out: Path | None, lines: Iterator[list[str]], what: str) -> None:
    """Write lines to a file, or print them."""
    from alexp.common.cells import to_csv
    from alexp.study.tables import write_csv

    if out is None:
        typer.echo(to_csv(lines), nl=False)
    else:
        typer.echo(f"{write_csv(out, lines)} {what} written to {out}")


@contextmanager
def _sure(reasons: Iterable[str], yes: bool) -> Iterator[None]:
    """Ask for confirmation of rewards that look like typing errors."""
    from alexp.algorithms.assumptions import AssumptionWarning

    text = "\n".join(reason.replace("; if it is a typing error, amend it", "") for reason in reasons)
    if text and not yes:
        if not sys.stdin.isatty():
            raise ValueError(f"{text}\nnothing was written; if this is right, pass --yes")
        typer.confirm(f"{text}\nIs this right?", abort=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*is far outside", AssumptionWarning)  # confirmed above
        yield


def _choice(expired: str | None) -> WhenExpired | None:
    from alexp.study.leases import CHOICES

    if expired is not None and expired not in CHOICES:
        raise typer.BadParameter(f"must be one of {', '.join(CHOICES)}, got {expired!r}", param_hint="--expired")
    return expired


def _sign(decimal: str | None) -> Decimal | None:
    from alexp.common.validation import one_of

    signs: tuple[Decimal, Decimal] = (".", ",")
    return None if decimal is None else one_of("--decimal", decimal, signs)


def _limit(text: str) -> tuple[str, int]:
    column, number = pair(text, "--at-most")
    if not number.strip().isdecimal():
        raise ValueError(f"--at-most must look like COLUMN=NUMBER with a whole number, got {text!r}")
    return column, int(number)


def _told(words: Sequence[str]) -> Measurements:
    """A reward as it is typed: a number, or NAME=NUMBER for every objective."""
    if len(words) == 1 and "=" not in words[0]:
        return _number(words[0])
    return {name: _number(text) for name, text in (pair(word, "reward") for word in words)}


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        what = "a number with a decimal point, or NAME=NUMBER for every objective"
        raise ValueError(f"reward must be {what}, got {text!r}") from None


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:  # not JSON, or a number of thousands of digits
        return text


def _statements(study: Study) -> Iterator[str]:
    """The stop report and the model check, a sentence each."""
    from alexp.algorithms.assumptions import NotCertified
    from alexp.algorithms.capabilities import Certifies, offers

    algorithm: object = study.algorithm
    if not offers(algorithm, Certifies) or study.counts["told"] == 0:
        return
    yield f"stopping: {study.stop_report()}"
    if algorithm.certifies:
        try:
            yield f"models: {study.check_models()}"
        except NotCertified as error:
            yield f"models: not checked: {error}"


def _named(study: Study, available: Sequence[str] | None, new: bool) -> list[int] | None:
    """The candidates that may be asked for, by number; None for all."""
    if available and new:
        raise ValueError("--new and --available cannot be combined; name the candidates with --available alone")
    if not available:
        return _unseen(study) if new else None
    named = getattr(study.algorithm.domain, "named", None)
    if named is None:
        raise ValueError("--available names candidates of a table, and these have no names")
    return [named(name) for name in available]


def _unseen(study: Study) -> list[int]:
    from alexp.problem.domains import FiniteSet

    seen, domain = set(study.algorithm.log.index), study.algorithm.domain
    seen |= set(domain.withheld.tolist() if isinstance(domain, FiniteSet) else [])
    unseen = [index for index in range(domain.n_candidates) if index not in seen]
    if not unseen:
        raise ValueError("every candidate has been asked for or measured; drop --new")
    return unseen


def _lease(trial: HeldTrial) -> str:
    if trial.lease is None:
        return "no lease"
    return f"lease expired {_span(-trial.lease)} ago" if trial.expired else f"lease has {_span(trial.lease)} left"


def _span(seconds: float) -> str:
    for unit, size in (("d", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
