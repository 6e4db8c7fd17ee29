"""Runs whose every decision is on record: all algorithms, on several problems, played in several ways.

Only public names are used, so that the same file runs on other versions of the library. Rewards are made of integers
and a table of constants: a golden run depends on the library alone.
"""

from __future__ import annotations

import hashlib
import json
import warnings

import numpy as np

import alexp
from alexp.algorithms import load

ROUNDS = 20
N_CANDIDATES = 36


def _matrices():
    rng = np.random.default_rng(11)
    return {
        "wide": rng.standard_normal((N_CANDIDATES, 6)),
        "narrow": rng.standard_normal((N_CANDIDATES, 2)),
        "other": rng.standard_normal((N_CANDIDATES, 4)) * 3.0,
    }


def problem(name):
    """Models and domain of a problem."""
    line = alexp.Interval(-1.0, 1.0, resolution=N_CANDIDATES)
    items = alexp.FiniteSet([f"item {i}" for i in range(N_CANDIDATES)])
    if name == "shared":
        return alexp.ModelClass.legendre(degree=5, size=2), line
    if name == "intercept":
        return alexp.ModelClass.legendre(degree=4, size=3, intercept=True), line
    if name == "normalized":
        return alexp.ModelClass.legendre(degree=4, size=2).normalized(line), line
    if name == "maps":
        return alexp.ModelClass.from_matrices(_matrices(), intercept=False), items
    if name == "maps-intercept":
        return alexp.ModelClass.from_matrices(_matrices(), intercept=True), items
    raise ValueError(name)


PROBLEMS = ("shared", "intercept", "normalized", "maps", "maps-intercept")

VARIANTS = {
    "alexp": (alexp.ALExp, {}),
    "alexp-explores": (alexp.ALExp, {"exploration": alexp.DOptimal(), "schedules": alexp.Schedules(gamma=0.6)}),
    "alexp-thompson": (alexp.ALExp, {"agents": alexp.ThompsonSampling(draws=3)}),
    "alexp-greedy": (alexp.ALExp, {"agents": alexp.Greedy(), "returns": "retrospective"}),
    "alexp-epsilon": (alexp.ALExp, {"agents": alexp.EpsilonGreedy(0.2), "clip_returns": True}),
    "alexp-theory": (alexp.ALExp, {"agents": alexp.UCB(beta="theory", ridge=0.1)}),
    "alexp-evidence": (alexp.ALExp, {"oracle": alexp.Evidence()}),
    "alexp-released": (alexp.ALExp, {"variant": "released-code", "horizon": 30}),
    "linucb": (alexp.LinUCB, {"model": 1}),
    "linucb-naive": (alexp.LinUCB, {}),
    "etc": (alexp.ETC, {"n_explore": 8}),
    "ets": (alexp.ETS, {"n_explore": 8}),
    "ets-nothing-selected": (alexp.ETS, {"n_explore": 8, "lam": 50.0}),
    "corral": (alexp.Corral, {"horizon": 30}),
    "corral-own": (alexp.Corral, {"horizon": 30, "data_mode": "own"}),
    "corral-released": (alexp.Corral, {"horizon": 30, "variant": "released-code"}),
    "exp4-ix": (alexp.EXP4IX, {}),
    "d3rb": (alexp.D3RB, {"d_min": 0.1, "width": 0.05, "newcomers": 1.0}),
    "d3rb-own": (alexp.D3RB, {"data_mode": "own", "newcomers": 1.0}),
    "ed2rb": (alexp.ED2RB, {"d_min": 0.1, "width": 0.05, "newcomers": 1.0}),
    "evidence-mixture": (alexp.EvidenceMixture, {"noise_std": 0.1, "reward_bound": 1.0}),
    "evidence-mixture-ucb": (
        alexp.EvidenceMixture,
        {"noise_std": 0.1, "reward_bound": 1.0, "rule": "ucb", "light": True},
    ),
    "evidence-mixture-exploring": (
        alexp.EvidenceMixture,
        {"noise_std": 0.1, "reward_bound": 1.0, "gamma": 0.3},
    ),
    "evidence-mixture-unknown": (
        alexp.EvidenceMixture,
        {"noise_std": None, "reward_bound": 1.0, "noise_grid": (0.01, 0.03, 0.1, 0.3, 1.0)},
    ),
    "mixture-thompson": (
        alexp.MixtureThompson,
        {"noise_std": 0.1, "reward_bound": 1.0, "rule": alexp.rules.Thompson(3)},
    ),
    "evidence-sampling": (alexp.EvidenceSampling, {}),
    "lm-ucb": (alexp.LMUCB, {}),
    "o2cs-ew": (alexp.O2CSEW, {"scale": 0.1}),
    "squarecb": (alexp.SquareCB, {}),
    "squarecb-all": (alexp.SquareCB, {"arms": "all", "agents": alexp.ThompsonSampling(draws=2)}),
    "fs-scb": (alexp.FSSCB, {}),
    "uniform": (alexp.UniformRandom, {}),
}  # fmt: skip

MODES = ("one-by-one", "batches", "restricted", "minimize")


def make(variant, models, domain, **settings):
    """A fresh optimiser of a variant."""
    kind, own = VARIANTS[variant]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(models, domain, **({"noise_std": 0.1, "random_state": 5} | own | settings))


def reward(index, trial):
    """A bumpy reward with something like noise, from integers."""
    return ((index * 37 + 11) % 64) / 64.0 - ((index - 20) / 16.0) ** 2 / 2.0 + ((trial * 29) % 32 - 16) / 320.0


def play(opt, mode, start=0, rounds=ROUNDS, sign=1.0):
    """Play some rounds in the way a mode says; returns what was decided, with floats as hexadecimal text."""
    seen = []

    def tell(trial):
        opt.tell(trial, sign * reward(trial.index, trial.id))

    for step in range(start, start + rounds):
        if mode == "batches":
            batch = opt.ask(3)
            seen += batch
            for trial in reversed(batch[step % 3 :] + batch[: step % 3]):
                if trial.id % 7 != 5:  # one in seven is never told
                    tell(trial)
            continue
        available = None
        if mode == "restricted" and step % 3 != 2:
            available = [i for i in range(N_CANDIDATES) if (i * 7 + step) % 5 < 2]
        trial = opt.ask(available=available)
        seen.append(trial)
        tell(trial)
        if mode == "minimize" and step % 4 == 1:
            opt.observe((step * 5) % N_CANDIDATES, sign * reward((step * 5) % N_CANDIDATES, step))
    return [[t.index, t.model, int(t.explored), float(t.propensity).hex()] for t in seen]


def _hex(values):
    return [float(value).hex() for value in np.ravel(values)]


def beliefs(opt):
    """What an optimiser says after a run: probabilities, recommendation, predictions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = {"best": [opt.best().index, opt.best().model, float(opt.best().value).hex()]}
        q = getattr(opt, "probabilities", None)
        if q is not None:
            out["probabilities"] = _hex(q)
        if hasattr(opt, "cumulative_returns"):
            out["returns"] = _hex(opt.cumulative_returns)
        if hasattr(opt, "predict"):
            out["predict"] = [_hex(part) for part in opt.predict(opt.domain[3])]
    return out


def cases():
    """(variant, problem, mode) of every golden run."""
    for variant in VARIANTS:
        for k, name in enumerate(PROBLEMS):
            for mode in MODES if name in ("shared", "maps") else (MODES[k % len(MODES)],):
                if variant == "corral-released" and mode == "batches":
                    continue  # its first-round rule has no meaning there
                yield variant, name, mode


def record(variant, name, mode):
    """One golden run: what was decided and believed."""
    sign = -1.0 if mode == "minimize" else 1.0
    opt = make(variant, *problem(name), direction="minimize" if sign < 0 else "maximize")
    return {"trials": play(opt, mode, sign=sign), "beliefs": beliefs(opt)}


def saved(variant, name):
    """A state in the middle of a batch, and how the run goes on from it."""
    opt = make(variant, *problem(name))
    play(opt, "batches", rounds=4)
    state = json.loads(json.dumps(opt.to_dict()))
    return {"state": state, "after": play(load(state), "batches", 4, 4)}


def digest(value):
    """Short hash of JSON data."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
