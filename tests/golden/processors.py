"""Decisions to be compared between kinds of processors: `python -m tests.golden.processors` prints them as JSON.

OpenBLAS, NumPy and Numba choose code for the processor they run on, and can be told to take that of another; see
`KINDS`. Beside the golden runs there are problems in which many choices tie, as in tables of words.
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_info

import alexp
from tests.golden import cases

# What stands for another processor: what NumPy does without, by the names of several of its versions, and what OpenBLAS
# then says it computes for.
_AVX512 = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR X86_V4"
_NO_AVX512 = {"NPY_DISABLE_CPU_FEATURES": _AVX512}
_NO_AVX2 = {"NPY_DISABLE_CPU_FEATURES": f"AVX2 FMA3 X86_V3 {_AVX512}"}
KINDS = {
    "SkylakeX": ({}, "SkylakeX"),
    "Haswell": (_NO_AVX512, "Haswell"),
    "Prescott": (_NO_AVX2, "Katmai"),  # as OpenBLAS calls all that have no newer instructions than SSE3
}

BASES, LIGANDS, SOLVENTS = ("KOAc", "KOPiv", "CsOAc"), tuple(f"L{k}" for k in range(8)), ("DMAc", "BuCN", "water")
HEAT = (90.0, 105.0, 120.0)


def features():
    """Names of the instructions that NumPy has code for and that can be switched off."""
    from numpy._core._multiarray_umath import __cpu_dispatch__

    return list(__cpu_dispatch__)


def reactions():
    """A table of words and numbers, in which most candidates look alike at first: 216 of them, and their yields."""
    rows = [(b, k, s, t) for b in BASES for k in LIGANDS for s in SOLVENTS for t in HEAT]
    table = [{"base": b, "ligand": k, "solvent": s, "celsius": t} for b, k, s, t in rows]
    yields = [
        50.0 + 20.0 * np.sin(3.0 * BASES.index(b) + LIGANDS.index(k)) + 10.0 * SOLVENTS.index(s) + (t - 105.0) / 3.0
        for b, k, s, t in rows
    ]
    return table, np.round(yields, 1)


def plates(seed, size=4, n=5, told=None, **settings):
    """Plates on the table of reactions."""
    table, own = reactions()
    opt = alexp.EvidenceMixture(alexp.Table.from_frame(pd.DataFrame(table)), random_state=seed, **settings)
    out = []
    for _ in range(n):
        plate = opt.ask(size)
        for trial in plate:
            out.append([trial.index, trial.model, trial.explored, trial.propensity])
            opt.tell(trial, told(own[trial.index], table[trial.index]) if told else own[trial.index])
    best = opt.best() if not settings.get("objectives") else None
    return [out, best and [best.index, best.model, best.value]]


def words():
    """The same reactions as ones and zeros."""
    table, yields = reactions()
    one_hot = {
        name: np.array([[row[name] == value for value in values] for row in table], dtype=np.float64)
        for name, values in (("base", BASES), ("ligand", LIGANDS), ("solvent", SOLVENTS))
    }
    one_hot["both"] = np.hstack([one_hot["base"], one_hot["ligand"]])
    return one_hot, yields


def one_by_one(kind, models, domain, reward, n=20, **settings):
    """Rounds with one trial each."""
    opt, out = kind(models, domain, random_state=3, **settings), []
    for _ in range(n):
        trial = opt.ask()
        out.append([trial.index, trial.model, trial.explored, trial.propensity])
        opt.tell(trial, reward(trial.index))
    best = opt.best()
    return [out, [best.index, best.model, best.value]]


def ties():
    """Problems in which choices tie, by name: functions that play them."""
    out = {}
    for rule in ("ids", "ucb", "ei", "ei+ucb", "thompson", "matching"):
        out[f"words/{rule}"] = lambda rule=rule: plates(1, rule=rule)
    for seed in range(3):
        out[f"words/default/{seed}"] = lambda seed=seed: plates(seed, reward_range=(0.0, 100.0))
    out["words/sum"] = lambda: plates(4, size=1, n=12, goal="sum", repeats=True)
    out["words/several"] = lambda: plates(
        5,
        objectives={"yield": "maximize", "celsius": "minimize"},
        told=lambda y, row: {"yield": y},
    )
    one_hot, yields = words()
    models = alexp.ModelClass.from_matrices(one_hot)
    items = alexp.FiniteSet([f"r{k}" for k in range(len(yields))])
    for variant, (kind, own) in cases.VARIANTS.items():
        out[f"one-hot/{variant}"] = lambda kind=kind, own=own: one_by_one(
            kind, models, items, lambda k: yields[k] / 100.0, **({"noise_std": 0.05} | own)
        )
    line = alexp.Interval(-1.0, 1.0, resolution=400)
    legendre = alexp.ModelClass.legendre(degree=8, size=2)
    for variant, (kind, own) in cases.VARIANTS.items():
        out[f"line/{variant}"] = lambda kind=kind, own=own: one_by_one(
            kind, legendre, line, lambda k: float(np.cos(k / 80.0)), **({"noise_std": 0.05} | own)
        )
    for name in ("EOptimal", "DOptimal", "HOptimal", "AOptimal", "GOptimal"):
        if hasattr(alexp, name):
            for where, (m, d) in {"line": (legendre, line), "one-hot": (models, items)}.items():
                out[f"design/{name}/{where}"] = lambda name=name, m=m, d=d: [
                    np.asarray(getattr(alexp, name)().design(m, d).weights).tolist()
                ]
    return out


def decisions(part):
    """What was decided, and the numbers beside it, by run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if part == "golden":
            return {"/".join(case): cases.record(*case) for case in cases.cases()}
        return {name: play() for name, play in ties().items()}


if __name__ == "__main__":
    blas = sorted({one["architecture"] for one in threadpool_info() if one["internal_api"] == "openblas"})
    json.dump({"blas": blas, "runs": {part: decisions(part) for part in sys.argv[1:]}}, sys.stdout)
