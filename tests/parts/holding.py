"""Parts in this process that keep their values, as workers do: for tests that need no cluster."""

import numpy as np

import alexp
from alexp.parts.backend import PartedRows
from alexp.parts.candidates import ArrayTable
from alexp.parts.engines import PartEngine
from alexp.parts.program import NODES, CandidatePart, Features


class Holding(PartEngine):
    """An engine with parts of its own; `lose` makes one of them a fresh one."""

    keeps_values, name = True, "holding"

    def __init__(self, n_rows, n_parts=3):
        super().__init__(n_rows, n_parts)
        self.parts, self.lost, self.n_runs = {}, 0, 0

    def lose(self, number):
        self.parts.pop(number, None)
        self.stored[number] = {}
        self.lost += 1

    def run(self, make, parts=None):
        self.n_runs += 1
        return [self._run(k, make(k)) for k in (range(self.edges.size - 1) if parts is None else parts)]

    def _run(self, k, task):
        part = self.parts.setdefault(k, CandidatePart(int(self.edges[k]), int(self.edges[k + 1])))
        for key in task.tables - part.tables.keys():
            part.tables[key] = self.tables[key].given(k, part.low, part.high, None)
        assert task.known <= part.values.keys()
        out = task.run(part)
        for gone in task.dropped:
            self.stored[k].pop(gone, None)
        self.stored[k] |= {number: NODES[number] for number in task.kept}
        assert self.stored[k].keys() == part.values.keys()
        return out


def held(matrices, n_parts=3):
    """Matrices as rows in parts of one engine."""
    engine = Holding(len(next(iter(matrices.values()))), n_parts)
    out = {}
    for name, values in matrices.items():
        table = ArrayTable(values, engine.edges)
        engine.add(table)
        out[name] = PartedRows(engine, Features(((table.key, None),)))
    return out


def tables(n=400, seed=0):
    """Two matrices, one of them in single precision, wide enough for values to be kept in one memory as well."""
    rng = np.random.default_rng(seed)
    return {"a": rng.standard_normal((n, 64)).astype(np.float32), "b": rng.standard_normal((n, 48))}


def linear_rewards(matrices, seed=1):
    rng = np.random.default_rng(seed)
    return matrices["a"] @ rng.standard_normal(matrices["a"].shape[1]) / 8.0


def play(opt, rewards, rounds, noise=0.1, before=lambda t: None):
    """Candidates of the rounds, with rewards that have noise of a fixed seed."""
    rng, out = np.random.default_rng(7), []
    for t in range(rounds):
        before(t)
        trial = opt.ask()
        out.append(trial.index)
        opt.tell(trial, float(rewards[trial.index] + noise * rng.standard_normal()))
    return out


def mixture(matrices, n, kernels="linear", **settings):
    models = alexp.ModelClass.from_matrices(matrices, kernels=kernels)
    return alexp.EvidenceMixture(
        models, alexp.FiniteSet(range(n)), random_state=3, **({"unequal_noise": False} | settings)
    )
