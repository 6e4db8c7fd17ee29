"""Molecules in a table: SMILES become Morgan fingerprints and descriptors. Needs RDKit, the extra `chem`."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.table.files import FileError, Lines

_RADIUS, _BITS = 2, 2048
_COMMON = 0.95  # of the molecules that share a value: the descriptor says too little


def check_smiles(lines: Lines, k: int, texts: Sequence[str], blank: Set[int]) -> None:
    """Raise for the first cell that is no molecule, or if RDKit is missing."""
    name = lines.header[k]
    try:
        from rdkit import Chem, rdBase
    except ModuleNotFoundError:
        raise FileError(
            f"{lines.path}, column {name!r} holds SMILES, which need RDKit: pip install 'alexp[chem]', or leave the "
            f"column out: ignore=[{name!r}], or take them as words: kinds={{{name!r}: 'words'}}"
        ) from None
    known: dict[str, bool] = {}
    with rdBase.BlockLogs():
        for row, text in enumerate(texts):
            if row not in blank and text not in known:
                known[text] = ">" not in text and Chem.MolFromSmiles(text) is not None
            if row not in blank and not known[text]:
                what = "a reaction, not a molecule" if ">" in text else "not the SMILES of a molecule"
                raise FileError(
                    f"{lines.at(row, k)}: {text!r} is {what}; correct it, or leave the column out: ignore=[{name!r}]"
                )


def molecules(smiles: Sequence[str]) -> list[Any]:
    """RDKit's molecules, one per distinct text."""
    from rdkit import Chem, rdBase

    with rdBase.BlockLogs():
        return [Chem.MolFromSmiles(text) for text in smiles]


def fingerprints(smiles: Sequence[str]) -> FloatArray:
    """Morgan fingerprints of radius 2, (N, 2048) of 0 and 1, without the bits that no or every molecule has.

    >>> fingerprints(["CCO", "CCN"]).shape[0]
    2
    """
    from rdkit.Chem import rdFingerprintGenerator

    different = list(dict.fromkeys(smiles))
    maker = rdFingerprintGenerator.GetMorganGenerator(radius=_RADIUS, fpSize=_BITS)
    bits = np.stack([maker.GetFingerprintAsNumPy(molecule) for molecule in molecules(different)]).astype(np.float64)
    used = bits.any(axis=0)
    return _spread(bits[:, used], different, smiles)


def descriptors(smiles: Sequence[str]) -> tuple[FloatArray, list[str]]:
    """RDKit's descriptors, (N, d), and their names, without those that nearly all molecules share or some lack."""
    from rdkit import rdBase
    from rdkit.Chem import Descriptors

    different = list(dict.fromkeys(smiles))
    with rdBase.BlockLogs():
        calculate: Any = Descriptors.CalcMolDescriptors
        rows = [calculate(molecule, missingVal=np.nan) for molecule in molecules(different)]
    names = [name for name in rows[0] if name != "Ipc"]  # grows beyond all bounds with the molecule
    values = np.array([[float(row[name]) for name in names] for row in rows])
    kept = [c for c in range(len(names)) if np.abs(values[:, c]).max() < 1e12 and _varies(values[:, c])]
    return _spread(values[:, kept], different, smiles), [names[c] for c in kept]


def _varies(values: FloatArray) -> bool:
    """Whether no value is shared by nearly all molecules; False where some have none (NaN)."""
    if not np.isfinite(values).all():
        return False
    _, counts = np.unique(values, return_counts=True)
    return bool(counts.max() <= _COMMON * len(values) and counts.size > 1)


def _spread(values: FloatArray, different: list[str], smiles: Sequence[str]) -> FloatArray:
    place = {text: k for k, text in enumerate(different)}
    return np.ascontiguousarray(values[[place[text] for text in smiles]])
