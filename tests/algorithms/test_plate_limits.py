"""Constraints of a plate in memory: never violated, never a dead end, and without effect where they do not bind."""

import itertools
import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import alexp
from alexp.problem.plates import check_plate

LEVELS = {"ligand": list("abcdef"), "base": ["KOAc", "CsOAc"], "celsius": [90, 105, 120]}
FRAME = pd.DataFrame(itertools.product(*LEVELS.values()), columns=list(LEVELS))
ONE_HOT = pd.get_dummies(FRAME.astype(str)).to_numpy(float)
MODELS = alexp.ModelClass.from_matrices({"all": ONE_HOT, "celsius": FRAME[["celsius"]].to_numpy(float) / 100.0})
TABLE = alexp.FiniteSet(FRAME)


def optimiser(kind=alexp.EvidenceMixture, **settings):
    return kind(MODELS, TABLE, **({"random_state": 0, "repeats": False} | settings))


def is_plate(indices, at_most, together):
    rows = FRAME.iloc[list(indices)]
    return (
        len(set(indices)) == len(indices)
        and all(Counter(rows[name]).most_common(1)[0][1] <= most for name, most in at_most.items())
        and all(rows[name].nunique() == 1 for name in together)
    )


def test_a_thousand_random_plates_without_a_violation():
    """Plates of ever new constraints; each is refused only if no plate of that size exists."""
    rng, made, refused = np.random.default_rng(0), 0, 0
    kinds = (alexp.UniformRandom, alexp.EvidenceMixture, alexp.LinUCB)
    run = [optimiser(kind, repeats=repeats) for kind in kinds for repeats in (False, True)]
    while made < 1000:
        opt = run[int(rng.choice(6, p=[0.45, 0.45, 0.025, 0.025, 0.025, 0.025]))]
        for trial in opt.pending():
            opt.abandon(trial)
        if opt.n_told < 20 and rng.random() < 0.1:
            opt.observe(int(rng.integers(len(FRAME))), float(rng.uniform()))
        waiting = [trial.index for trial in opt.ask(int(rng.integers(1, 4)))]
        at_most = {name: int(rng.integers(1, 4)) for name in LEVELS if rng.random() < 0.5}
        together = tuple(name for name in LEVELS if rng.random() < 0.25)
        where = "celsius < 120" if rng.random() < 0.3 else None
        if not at_most and not together:
            continue
        n = int(rng.integers(1, 9))
        asked = {"where": where, "at_most": at_most or None, "together": together or None}
        before = opt.n_asked
        try:
            plate = [trial.index for trial in opt.ask(n, **asked)]
        except ValueError:
            assert opt.n_asked == before, "an ask that is refused must not leave trials behind"
            if refused % 8 == 0:
                free = [i for i in opt.choosable() if where is None or FRAME["celsius"][i] < 120]
                assert largest(free, at_most, together) < n, (asked, n)
            refused += 1
            continue
        made += 1
        assert is_plate(plate, at_most, together), (plate, asked)
        assert not set(plate) & set(waiting), "a pending candidate came again"
        assert where is None or (FRAME["celsius"].iloc[plate] < 120).all()
    assert refused > 50


def largest(free, at_most, together):
    """Size of the largest plate, by the integer program on candidates one by one."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    best = 0
    rows = FRAME.iloc[list(free)]
    parts = [part for _, part in rows.groupby(list(together))] if together else [rows]
    for part in parts:
        limits = [
            ((part[name] == value).to_numpy(float), most) for name, most in at_most.items() for value in set(part[name])
        ]
        shares = [LinearConstraint(np.array([row]), ub=[most]) for row, most in limits]
        one = np.ones(len(part))
        best = max(best, round(-milp(-one, integrality=one, bounds=Bounds(0, 1), constraints=shares).fun))
    return best


def test_choices_are_exactly_those_that_a_plate_can_go_on_with():
    """Against all subsets of a few candidates: nothing is left out without need, and no choice is a dead end."""
    rng, tight = np.random.default_rng(1), 0
    for _ in range(60):
        free = rng.choice(len(FRAME), 7, replace=False)
        at_most = {name: int(rng.integers(1, 3)) for name in LEVELS if rng.random() < 0.8} or {"ligand": 1}
        together = ("base",) if rng.random() < 0.2 else ()
        limits = check_plate(TABLE, at_most, together or None)
        for n in range(1, 5):
            plates = [set(p) for p in itertools.combinations(free.tolist(), n) if is_plate(p, at_most, together)]
            expected = set().union(*plates)
            assert set(limits.choices(free, [], n).tolist()) == expected
            if plates and n > 1:
                first = sorted(expected)[0]
                follow = set().union(*(plate for plate in plates if first in plate)) - {first}
                assert set(limits.choices(free, [first], n - 1).tolist()) == follow
                tight += len(follow) < len(expected) - 1
    assert tight > 20


def test_propensities_are_those_of_what_is_allowed():
    opt = optimiser(alexp.UniformRandom)
    plate = opt.ask(4, where="celsius = 90", at_most={"ligand": 1}, together="base")
    # 12 at 90 degrees; then one base and no ligand twice: 5, 4 and 3 are left
    assert [round(1.0 / trial.propensity) for trial in plate] == [12, 5, 4, 3]
    assert FRAME.iloc[[trial.index for trial in plate]]["base"].nunique() == 1


@pytest.mark.parametrize("kind", [alexp.EvidenceMixture, alexp.ALExp])
def test_saving_loading_and_amending_after_plates(kind):
    """ALExp repeats its asks when a reward is amended: the restriction of every trial is in its log."""
    opt = optimiser(kind, noise_std=0.1, reward_bound=1.0)
    asked = {"where": "celsius <= 105", "at_most": {"ligand": 2}, "together": ("base",)}
    trials = []
    for k in range(3):
        trials += opt.ask(3, **asked)
        for trial in trials[-3:]:
            opt.tell(trial, float(np.sin(trial.index + k)))
    again = kind.from_dict(json.loads(json.dumps(opt.to_dict())))
    opt.amend(trials[4], 0.25)
    again.amend(again.trial(4), 0.25)
    assert [t.index for t in opt.ask(3, **asked)] == [t.index for t in again.ask(3, **asked)]
    assert opt.to_dict() == again.to_dict()


def rewards(seed):
    rng = np.random.default_rng(seed)
    return ONE_HOT @ rng.normal(size=ONE_HOT.shape[1]) + 0.3 * rng.normal(size=len(FRAME))


def regret(seed, **asked):
    """Summed distance to the best of four plates of four, and the candidates."""
    truth, opt, out = rewards(seed), optimiser(random_state=seed, goal="best"), []
    for _ in range(4):
        for trial in opt.ask(4, **asked):
            out.append(trial.index)
            opt.tell(trial, float(truth[trial.index]))
    return float(np.sum(truth.max() - truth[out])), out


def test_what_does_not_bind_changes_nothing_and_what_hardly_does_costs_little():
    """Limits that no plate reaches leave every trial as it is; two of a plate of four with one ligand cost little."""
    plain = [regret(seed) for seed in range(20)]
    assert [regret(seed, at_most={"ligand": 4}, where="celsius > 0")[1] for seed in range(6)] == [
        out for _, out in plain[:6]
    ]
    limited = np.array([regret(seed, at_most={"ligand": 3})[0] for seed in range(20)])
    free = np.array([total for total, _ in plain])
    ratio, error = limited.mean() / free.mean(), np.std(limited - free, ddof=1) / np.sqrt(20) / free.mean()
    print(f"regret with at most 3 of 4 per ligand / without: {ratio:.3f} +- {1.96 * error:.3f}")
    assert ratio < 1.05


@pytest.mark.parametrize(
    ("asked", "kind", "why"),
    [
        ({"at_most": {"ligant": 2}}, ValueError, r"at_most: 'ligant' is no column; did you mean 'ligand'\?; columns"),
        ({"together": ("temp",)}, ValueError, "together: 'temp' is no column.*'celsius'"),
        ({"at_most": {"ligand": 0}}, ValueError, r"at_most\['ligand'\] must be"),
        ({"at_most": {"ligand": 1.5}}, (TypeError, ValueError), r"at_most\['ligand'\] must be"),
        ({"at_most": {}}, TypeError, "such as {'ligand': 2}"),
        ({"at_most": [("ligand", 2)]}, TypeError, "at_most must say"),
        ({"together": ()}, TypeError, "together must hold names"),
        ({"together": (3,)}, TypeError, "together must hold names"),
        ({"where": "celsius = 90 and ligand = 'a'"}, ValueError, "at most 2, every other available candidate with "),
        ({"at_most": {"base": 3}}, ValueError, r"n must be at most 6: at_most=\{'base': 3\} leaves no larger plate"),
        ({"at_most": {"base": 3}, "together": "celsius"}, ValueError, r"at most 6: .* and together=\('celsius',\)"),
        ({"together": ("ligand",), "where": "celsius > 100"}, ValueError, r"at most 4: together=\('ligand',\)"),
        ({"where": "celsius > 500"}, ValueError, "holds for none of the 36 candidates"),
        ({"where": "celsius > 105", "available": [0, 1]}, ValueError, "holds for none of the available"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_before_anything_is_asked(asked, kind, why):
    opt = optimiser()
    with pytest.raises(kind, match=why):
        opt.ask(7, **asked)
    assert opt.n_asked == 0


def test_constraints_need_columns():
    models = alexp.ModelClass.from_matrices({"a": np.eye(5)})
    opt = alexp.LinUCB(models, alexp.FiniteSet(list("abcde")))
    for asked, name in (
        ({"at_most": {"a": 1}}, "at_most"),
        ({"together": "a"}, "together"),
        ({"where": "a = 1"}, "where"),
    ):
        with pytest.raises(ValueError, match=f"{name} needs candidates with named columns.*available="):
            opt.ask(2, **asked)
    arms = alexp.LinUCB(alexp.ModelClass.per_arm({"all": [0, 1]}, arms=2), alexp.Arms(["x", "y"]))
    with pytest.raises(ValueError, match="where needs a table of candidates with named columns"):
        arms.ask(context=np.ones(2), where="a = 1")
