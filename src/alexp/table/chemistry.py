"""Molecules in a table: SMILES become Morgan fingerprints and descriptors. Needs RDKit, the extra `chem`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from functools import lru_cache
from typing import Any

import numpy as np

from alexp.common.arrays import AnyArray, FloatArray
from alexp.common.extras import advice, is_installed
from alexp.table.files import FileError, Lines
from alexp.table.remedies import Remedy

_RADIUS, _BITS = 2, 2048
_LARGE = 1e12  # descriptors are smaller
_COMMON = 0.95  # of the molecules that share a value: the descriptor says too little


_ATOMS_AND_BONDS = re.compile(r"(?:Br|Cl|[BCNOSPFIbcnops]|\[[^\[\]]+\]|[-=#:/\\().%]|\d)+")
_STRUCTURE = re.compile(r"[(=#\[]|[cno]\d")


def look_like_smiles(words: Sequence[str]) -> bool:
    """Whether words consist of atoms and bonds, and half of them have a branch, a ring or a bond of some order.

    >>> look_like_smiles(["CC(C)=O", "c1ccccc1", "O"]), look_like_smiles(["CO", "NO"]), look_like_smiles(["DMF", "THF"])
    (True, False, False)
    """
    own = [word for word in words if word]
    structured = sum(_STRUCTURE.search(word) is not None for word in own)
    return len(own) > 1 and 2 * structured >= len(own) and all(map(_ATOMS_AND_BONDS.fullmatch, own))


def check_smiles(lines: Lines, k: int, texts: Sequence[str], blank: Set[int]) -> None:
    """Raise for the first cell that is no molecule, for molecules in two spellings, or if RDKit is missing."""
    name = lines.header[k]
    if not is_installed("rdkit"):
        raise FileError(
            f"{advice('rdkit', f'{lines.path}: column {name!r} holds SMILES and')}, or leave the column out: ",
            Remedy("ignore", [name]),
            ", or take them as words: ",
            Remedy("kinds", {name: "words"}),
        )
    from rdkit import Chem, rdBase

    known, spelled = set[str](), dict[str, str]()
    with rdBase.BlockLogs():
        for row, text in enumerate(texts):
            if row in blank or text in known:
                continue
            molecule = None if ">" in text else Chem.MolFromSmiles(text)
            if molecule is None:
                what, remedy = "not the SMILES of a molecule", "correct it"
                if ">" in text:
                    what, remedy = "a reaction, not a molecule", "give each of its components a column"
                raise FileError(
                    f"{lines.at(row, k)}: {text!r} is {what}; {remedy}, or leave the column out: ",
                    Remedy("ignore", [name]),
                )
            other = spelled.setdefault(Chem.MolToSmiles(molecule), text)
            if other != text:
                raise FileError(
                    f"{lines.at(row, k)}: {text!r} and {other!r} are one molecule in two spellings, which would count "
                    "as two components; write one of them, or say ",
                    Remedy("replace", {text: other}),
                )
            known.add(text)


def respelled(smiles: Sequence[str], known: Iterable[str]) -> list[str]:
    """Molecules as they are spelled among those that are known.

    >>> respelled(["OCC", "NCC", ""], ["CCO"])
    ['CCO', 'NCC', '']
    """
    spelling = {_canonical(text): text for text in known}
    return [spelling.get(_canonical(text), text) if text else text for text in smiles]


def fingerprints(smiles: Sequence[str]) -> AnyArray:
    """Morgan fingerprints of radius 2, (N, 2048) of 0 and 1 in bytes.

    >>> fingerprints(["CCO", "CCN"]).shape
    (2, 2048)
    """
    from rdkit.Chem import rdFingerprintGenerator

    different = list(dict.fromkeys(smiles))
    maker = rdFingerprintGenerator.GetMorganGenerator(radius=_RADIUS, fpSize=_BITS)
    bits = np.stack([maker.GetFingerprintAsNumPy(_molecule(text)) for text in different])
    return _spread(bits, different, smiles)


def descriptors(smiles: Sequence[str], names: Sequence[str]) -> FloatArray:
    """RDKit's descriptors of these names, (N, d)."""
    different = list(dict.fromkeys(smiles))
    values = np.array([[_descriptors_of(text)[name] for name in names] for text in different])
    return _spread(values.reshape(len(different), len(names)), different, smiles)


def telling_descriptors(smiles: Sequence[str]) -> list[str]:
    """Names of RDKit's descriptors, without those that nearly all molecules share or some lack."""
    rows = [_descriptors_of(text) for text in dict.fromkeys(smiles)]
    names = [name for name in rows[0] if name != "Ipc"]  # grows beyond all bounds with the molecule
    values = np.array([[row[name] for name in names] for row in rows])
    return [name for c, name in enumerate(names) if np.abs(values[:, c]).max() < _LARGE and _varies(values[:, c])]


@lru_cache(maxsize=10_000)
def _canonical(smiles: str) -> str:
    from rdkit import Chem

    return str(Chem.MolToSmiles(_molecule(smiles)))


def _molecule(smiles: str) -> Any:
    from rdkit import Chem, rdBase

    with rdBase.BlockLogs():
        return Chem.MolFromSmiles(smiles)


@lru_cache(maxsize=10_000)
def _descriptors_of(smiles: str) -> dict[str, float]:
    from rdkit import rdBase
    from rdkit.Chem import Descriptors

    with rdBase.BlockLogs():
        calculate: Any = Descriptors.CalcMolDescriptors
        return {name: float(value) for name, value in calculate(_molecule(smiles), missingVal=np.nan).items()}


def _varies(values: FloatArray) -> bool:
    """Whether no value is shared by nearly all molecules; False where some have none (NaN)."""
    if not np.isfinite(values).all():
        return False
    _, counts = np.unique(values, return_counts=True)
    return bool(counts.max() <= _COMMON * len(values) and counts.size > 1)


def _spread(values: AnyArray, different: list[str], smiles: Sequence[str]) -> AnyArray:
    place = {text: k for k, text in enumerate(different)}
    return np.ascontiguousarray(values[[place[text] for text in smiles]])
