"""What certificates cost beside a step of the evidence mixture that asks and tells, in CPU time of one process.

``python -m alexp_experiments.certificate_cost`` prints the table of docs/certificates-results.md. `check_models` after
every step keeps the e-values of all models and the alarm up to date; `plausible_models` says in addition, from all
rewards, which models are left.
"""

from __future__ import annotations

import time
from contextlib import suppress

import numpy as np

from alexp.algorithms import EvidenceMixture
from alexp.algorithms.assumptions import NotCertified
from alexp.problem import Interval, ModelClass
from alexp.simulation import SyntheticEnvironment
from alexp_experiments.bench.worker import peak_mb

_PROBLEMS = ((10, 100, 7), (30, 60, 3))  # degree of Legendre polynomials, steps, runs
_STATEMENTS = ("check_models", "plausible_models")


def costs(models: ModelClass, steps: int, seed: int, statement: str) -> tuple[float, float]:
    """CPU seconds of the steps of a run, and of the statement after each of them."""
    domain = Interval(-1.0, 1.0, resolution=2000)
    env = SyntheticEnvironment(models, domain, noise_std=0.1, random_state=seed)
    opt = EvidenceMixture(models, domain, noise="gaussian", random_state=seed)
    step = said = 0.0
    for _ in range(steps):
        start = time.process_time()
        trial = opt.ask()
        opt.tell(trial, env.observe(trial.x))
        between = time.process_time()
        with suppress(NotCertified):
            getattr(opt, statement)()
        step, said = step + between - start, said + time.process_time() - between
    return step, said


def main() -> None:
    """Measure and print."""
    names = ["models", "steps", "step, ms", *(f"`{statement}` after every step" for statement in _STATEMENTS), "MB"]
    print(f"| {' | '.join(names)} |\n|{'---|' * len(names)}")
    for degree, steps, runs in _PROBLEMS:
        models = ModelClass.legendre(degree=degree, size=3)
        for statement in _STATEMENTS:
            costs(models, 15, 99, statement)  # code is compiled, caches are filled
        times = np.array([[costs(models, steps, seed, one) for one in _STATEMENTS] for seed in range(runs)])
        shares = np.median(times[:, :, 1] / times[:, :, 0], axis=0)
        step = 1e3 * float(np.median(times[:, :, 0])) / steps
        cells = [f"{models.n_models:,}", str(steps), f"{step:.2f}", *(f"+{share:.0%}" for share in shares)]
        print(f"| {' | '.join(cells)} | {peak_mb():.0f} |", flush=True)


if __name__ == "__main__":
    main()
