"""Direct arylation: the yields of 1,728 reactions, what fifty chemists reached among them, and what EDBO did.

B. J. Shields et al., Bayesian reaction optimization as a tool for chemical synthesis, Nature 590 (2021); the tables are
from https://github.com/b-shields/edbo, MIT licence (`data/direct_arylation.LICENSE`).
"""

from __future__ import annotations

from functools import cache, cached_property
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.extras import require
from alexp.problem.domains import FiniteSet
from alexp.problem.kernel_models import Component
from alexp.problem.models import ModelClass

if TYPE_CHECKING:
    import pandas as pd

_DESCRIBED = ("base", "ligand", "solvent")


class DirectArylation:
    """4 bases x 12 ligands x 4 solvents x 3 concentrations x 3 temperatures, and the yield of every combination.

    Attributes
    ----------
    rewards : (1728,) yields in percent; the largest is 100.
    chemists_yields : (50, 100) what each chemist measured, one after the other; nan where they had stopped.
    edbo_yields : (50, 100) the same for 50 runs of EDBO (Gaussian process, expected improvement, batches of five).
    licence : the text under which the table is shared.
    """

    def __init__(self, arrays: dict[str, FloatArray], licence: str) -> None:
        self._arrays, self.licence = arrays, licence
        self.rewards: FloatArray = arrays["yields"]
        self.chemists_yields: FloatArray = arrays["chemists"].astype(np.float64)
        self.edbo_yields: FloatArray = arrays["edbo"].astype(np.float64)

    def __repr__(self) -> str:
        return f"DirectArylation({self.rewards.size} reactions)"

    @property
    def chemists(self) -> FloatArray:
        """Mean best yield of the chemists after 1, 2, ... 100 experiments; after stopping, the best one found."""
        return np.asarray(np.fmax.accumulate(self.chemists_yields, axis=1).mean(axis=0))

    @property
    def edbo(self) -> FloatArray:
        """Mean best yield of EDBO after 1, 2, ... 100 experiments."""
        return np.asarray(np.maximum.accumulate(self.edbo_yields, axis=1).mean(axis=0))

    def _codes(self, component: str) -> IntArray:
        return self._arrays[f"{component}_codes"].astype(np.int64)

    @cached_property
    def candidates(self) -> pd.DataFrame:
        """The reactions: names of base, ligand and solvent, concentration in mol/l, temperature in degrees Celsius."""
        require("pandas")
        import pandas as pd

        named = {c: self._arrays[f"{c}_names"][self._codes(c)].tolist() for c in _DESCRIBED}
        concentration = self._arrays["concentration"].astype(np.float64).round(6)
        return pd.DataFrame({**named, "concentration": concentration, "temperature": self._arrays["temperature"]})

    @cached_property
    def domain(self) -> FiniteSet:
        """The reactions as a domain."""
        return FiniteSet(self.candidates)

    @cached_property
    def components(self) -> dict[str, Component]:
        """What `ModelClass.from_components` takes: molecules by name, DFT and Mordred descriptors; two numbers."""
        out: dict[str, Component] = {
            component: {
                "names": self.candidates[component].tolist(),
                "DFT": self._arrays[f"{component}_dft"].astype(np.float64)[self._codes(component)],
                "Mordred": self._arrays[f"{component}_mordred"].astype(np.float64)[self._codes(component)],
            }
            for component in _DESCRIBED
        }
        return out | {name: self.candidates[name].to_numpy(np.float64) for name in ("concentration", "temperature")}

    @cached_property
    def matrices(self) -> dict[str, FloatArray]:
        """What `ModelClass.from_matrices` takes: the reactions as names (one-hot), DFT and Mordred descriptors.

        Descriptors are standardised; concentration and temperature are in every matrix.
        """
        codes = {component: self._codes(component) for component in _DESCRIBED}
        numbers = {name: self._arrays[name].astype(np.float64) for name in ("concentration", "temperature")}
        levels = [*codes.values(), *(np.unique(own, return_inverse=True)[1] for own in numbers.values())]
        scaled = [((own - own.mean()) / own.std())[:, None] for own in numbers.values()]
        out = {"names": np.hstack([np.eye(int(own.max()) + 1)[own] for own in levels])}
        for word, title in (("dft", "DFT"), ("mordred", "Mordred")):
            parts = [self._arrays[f"{component}_{word}"].astype(np.float64)[own] for component, own in codes.items()]
            out[title] = np.hstack([*parts, *scaled])
        return out

    @cached_property
    def models(self) -> ModelClass:
        """Products and sums of kernels over the five components, for each of the three descriptions."""
        return ModelClass.from_components(self.components)


@cache
def direct_arylation() -> DirectArylation:
    """The table of direct arylation reactions; see `DirectArylation`.

    >>> table = direct_arylation()
    >>> table.rewards.shape, float(table.rewards.max()), table.models.n_models
    ((1728,), 100.0, 168)
    >>> table.chemists[[9, 24]].round(1).tolist(), table.edbo[[9, 24]].round(1).tolist()
    ([79.8, 91.7], [74.1, 95.6])
    """
    folder = files("alexp.datasets") / "data"
    with (folder / "direct_arylation.npz").open("rb") as file, np.load(file, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    for array in arrays.values():
        array.flags.writeable = False
    return DirectArylation(arrays, (folder / "direct_arylation.LICENSE").read_text(encoding="utf-8"))
