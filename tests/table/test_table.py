"""What a table becomes: columns, descriptions, models, warnings."""

import sys
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest

import alexp
from alexp.table import FileError, Table

REACTIONS = pd.DataFrame(
    {
        "reaction": [f"r{k}" for k in range(12)],
        "solvent": ["DMF", "water", "MeOH"] * 4,
        "T (°C)": [60, 60, 60, 80, 80, 80, 100, 100, 100, 120, 120, 120],
    }
)


def test_words_become_components_as_from_components_makes_them():
    table = Table.from_frame(REACTIONS)
    models = table.models()
    same = alexp.ModelClass.from_components({"solvent": REACTIONS["solvent"], "T (°C)": REACTIONS[["T (°C)"]]})
    assert models.names == same.names
    np.testing.assert_allclose(models.log_prior, same.log_prior)
    assert [column.kind for column in table.understood] == ["id", "words", "number"]


def test_numbers_alone_get_kernels_that_fit():
    frame = REACTIONS.drop(columns="solvent").assign(x=np.arange(12) ** 1.5)
    models = Table.from_frame(frame).models()
    same = alexp.ModelClass.from_matrices({"table": frame[["T (°C)", "x"]]}, kernels="auto")
    assert models.names == same.names
    assert Table.from_frame(frame).models("linear").kernels is None


def test_descriptions_are_matched_by_id_and_all_together_is_one_more_model():
    rng = np.random.default_rng(0)
    described = pd.DataFrame(rng.normal(size=(12, 3)), columns=list("abc"))
    described.insert(0, "reaction", REACTIONS["reaction"])
    table = Table.from_frame(REACTIONS[["reaction"]].copy())
    with pytest.raises(ValueError, match="nothing that tells candidates apart"):
        table.models()
    table.describe("one", described.sample(frac=1.0, random_state=1))
    table.describe("two", rng.normal(size=(12, 2)))
    models = table.models()
    same = alexp.ModelClass.from_matrices(
        {"one": described[list("abc")].to_numpy(), "two": table._descriptions["two"].array}, kernels="auto"
    )
    assert models.names == same.names
    rows = alexp.UniformRandom(models, table.domain, random_state=0).features()
    np.testing.assert_array_equal(rows[:, :3], described[list("abc")])
    assert models.names[-1] == "all maps: sum of kernels"
    assert "description 'one': 3 features, matched by 'reaction'" in str(table.understood)
    assert "description 'two': 2 features, matched by the order of lines" in str(table.understood)


def test_components_and_descriptions_share_the_prior_equally():
    table = Table.from_frame(REACTIONS).describe("random", np.random.default_rng(0).normal(size=(12, 2)))
    models = table.models()
    mass = np.exp(models.log_prior)
    composed = [j for j, name in enumerate(models.names) if name.startswith(("product", "sum,", "joined"))]
    assert mass.sum() == pytest.approx(1.0)
    assert mass[composed].sum() == pytest.approx(1 / 4)  # components, table, random, all together
    opt = alexp.EvidenceMixture(models, table.domain, random_state=0)
    for k in range(6):
        opt.tell(opt.ask(), float(k % 3))
    assert np.isfinite(opt.probabilities).all()


def test_a_description_of_a_component_is_matched_by_its_words(tmp_path):
    path = tmp_path / "solvents.csv"
    path.write_text("solvent;polarity;dipole\nwater;1,0;1,85\nDMF;0,386;3,86\nMeOH;0,762;1,7\n")
    table = Table.from_frame(REACTIONS).describe("physical", path)
    assert any(name.startswith("physical: product") for name in table.models().names)
    path.write_text("solvent;polarity\nwater;1,0\nDMF;0,386\n")
    with pytest.raises(FileError, match="column 'solvent': there is no line for 'MeOH' "):
        Table.from_frame(REACTIONS).describe("physical", path)


def test_lines_of_a_description_must_match(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("reaction,a\n" + "".join(f"r{k},{k}\n" for k in range(11)))
    with pytest.raises(FileError, match=r"d.csv, column 'reaction': there is no line for 'r11'"):
        Table.from_frame(REACTIONS).describe("d", path)
    path.write_text("a\n" + "".join(f"{k}\n" for k in range(11)))
    with pytest.raises(FileError, match="d.csv has 11 lines, and the table 12; add a column named 'reaction'"):
        Table.from_frame(REACTIONS).describe("d", path)
    path.write_text("reaction,a\n" + "".join(f"r{11 - k},{'' if k == 2 else k}\n" for k in range(12)))
    with pytest.raises(FileError, match="d.csv, line 4, column 'a': the cell is blank"):
        Table.from_frame(REACTIONS).describe("d", path)
    filled = Table.from_frame(REACTIONS).describe("d", path, missing="median")._descriptions["d"].matrix
    assert filled.values[9].tolist() == [6.0, 1.0]
    assert filled.values[11].tolist() == [0.0, 0.0]


def test_columns_of_the_table_may_be_a_description():
    table = Table.from_frame(REACTIONS).describe("solvent", ["solvent"]).describe("both", ["solvent", "T (°C)"])
    assert set(table.features()) == {"solvent", "both"}
    assert table.features()["both"].shape == (12, 4)
    with pytest.raises(ValueError, match="unknown column 'solvnt'"):
        Table.from_frame(REACTIONS).describe("solvent", ["solvnt"])


def test_blank_cells_are_filled_flagged_dropped_or_left_out():
    frame = pd.DataFrame({"x": [1.0, np.nan, 4.0, 9.0], "solvent": ["a", "b", None, "a"], "y": [1, 2, 3, 5]})
    with pytest.raises(FileError, match=r"frame, row 1, column 'x'.*\n.*row 2, column 'solvent'"):
        Table.from_frame(frame)
    median = Table.from_frame(frame, missing="median")
    assert median.features()["table"].tolist()[1] == [4.0, 1.0, 0.0, 0.0, 1.0, 2.0]
    assert "1 blank: the median, and a column that says so" in median.understood["x"].becomes
    dropped = Table.from_frame(frame, missing="drop")
    assert dropped.domain.candidates["y"].tolist() == [1, 5]
    assert "2 candidates with blank cells left out (row 1, 2)" in str(dropped.understood)
    assert list(Table.from_frame(frame, missing="leave out").features()["table"].ravel()) == [1.0, 2.0, 3.0, 5.0]
    with pytest.raises(ValueError, match="missing must be one of 'refuse', 'median'"):
        Table.from_frame(frame, missing="mean")


def test_a_dropped_line_is_dropped_from_arrays_as_well():
    frame = pd.DataFrame({"x": [1.0, np.nan, 4.0]})
    table = Table.from_frame(frame, missing="drop").describe("more", np.arange(3.0))
    assert table.features()["more"].ravel().tolist() == [0.0, 2.0]


def test_two_ids_with_the_same_features_are_named():
    table = Table.from_frame(pd.DataFrame({"name": ["a", "b", "c"], "x": [1, 2, 1]}))
    with pytest.warns(UserWarning, match="frame: 'a' and 'c' have the same features"):
        table.models()


def test_constant_and_nearly_constant_columns_are_named():
    table = Table.from_frame(pd.DataFrame({"same": [5] * 40, "nearly": [1] * 39 + [2], "x": range(40)}))
    assert table.understood["same"].becomes == "left out: the same for all candidates"
    assert "nearly constant: 39 of 40 are 1" in table.understood["nearly"].becomes
    assert table.features()["table"].shape == (40, 2)


def test_molecules_get_fingerprints_and_descriptors():
    smiles = ["CCO", "CCN", "c1ccccc1", "CC(=O)O", "CCCCO", "CC#N", "OCCO", "ClCCl"]
    table = Table.from_frame(pd.DataFrame({"smiles": smiles}))
    matrices = table.features()
    assert set(matrices) == {"smiles fingerprints", "smiles descriptors"}
    assert set(np.unique(matrices["smiles fingerprints"])) == {0.0, 1.0}
    assert all(len(np.unique(column)) > 1 for column in matrices["smiles descriptors"].T)
    assert "smiles fingerprints: Tanimoto" in table.models().names


HALIDES, LIGANDS = ["Clc1ccccc1", "Brc1ccccc1", "Ic1ccncc1"], ["CP(C)C", "CN(C)C", "c1ccccc1P(C)C", "[Na+].[Cl-]"]
COUPLINGS = pd.DataFrame(
    [(h, g, c) for h in HALIDES for g in LIGANDS for c in (60, 80)], columns=["halide", "ligand", "°C"]
)
MOLECULES = {"halide": "SMILES", "ligand": "SMILES"}


def test_components_of_reactions_are_one_map_per_representation():
    table = Table.from_frame(COUPLINGS, kinds=MOLECULES)
    found = table.features()
    assert list(found) == ["table", "SMILES fingerprints", "SMILES descriptors"]
    for form in ("fingerprints", "descriptors"):
        parts = [
            Table.from_frame(COUPLINGS[[name]].assign(id=range(24)), id="id", kinds={name: "SMILES"}).features()
            for name in MOLECULES
        ]
        expected = np.hstack([part[f"{name} {form}"] for part, name in zip(parts, MOLECULES, strict=True)])
        np.testing.assert_array_equal(found[f"SMILES {form}"], expected)
        assert np.isfinite(expected).all()
    names = set(table.models().names)
    assert {"SMILES fingerprints: Tanimoto", "SMILES descriptors: linear", "all maps: sum of kernels"} <= names
    assert not [name for name in names if name.startswith(("halide", "ligand"))]  # no model of one component alone
    assert [name for name in names if name.startswith("product")]  # names of components


def test_reactions_are_optimised_and_take_later_candidates():
    table = Table.from_frame(COUPLINGS[:20], kinds=MOLECULES)
    opt = alexp.EvidenceMixture(table, random_state=0)
    worth = COUPLINGS["halide"].map(HALIDES.index) + COUPLINGS["ligand"].map(len) / 5 + COUPLINGS["°C"] / 40
    for _ in range(8):
        trial = opt.ask()
        opt.tell(trial, float(worth[trial.index]))
    opt.add_candidates(Table.from_frame(COUPLINGS[20:], kinds=MOLECULES))
    for _ in range(8):
        trial = opt.ask()
        opt.tell(trial, float(worth[trial.index]))
    best = opt.best()
    assert worth[best.index] >= worth.nlargest(3).min()


def test_later_candidates_with_a_known_molecule_in_another_spelling_are_refused():
    opt = alexp.EvidenceMixture(Table.from_frame(COUPLINGS[:20], kinds=MOLECULES), random_state=0)
    later = COUPLINGS[20:]
    with pytest.raises(FileError, match=r"row 0, column 'halide': 'c1ccccc1Cl' is 'Clc1ccccc1' of the first table in"):
        opt.add_candidates(Table.from_frame(later.assign(halide="c1ccccc1Cl"), kinds=MOLECULES))


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["CCO", "C1CC", "CCN"], r"row 1, column 'ligand': 'C1CC' is not the SMILES of a molecule; correct it"),
        (["CCO", "CC>>CN", "CCN"], r"'CC>>CN' is a reaction, not a molecule; give each of its components a column"),
        (["CCO", "OCC", "CCN"], r"'OCC' and 'CCO' are one molecule in two spellings.*replace=\{'OCC': 'CCO'\}"),
        (["CCO", "", "CCN"], r"column 'ligand': the cell is blank"),
    ],
)
def test_cells_that_are_no_molecules_are_refused(cells, message):
    frame = pd.DataFrame({"ligand": cells, "x": [1.0, 2.0, 3.0]})
    with pytest.raises(FileError, match=message):
        Table.from_frame(frame, kinds={"ligand": "SMILES"})


def test_blank_molecules_have_no_median_and_spellings_can_be_settled():
    frame = pd.DataFrame({"ligand": ["CCO", None, "CCN", "OCC"], "x": [1.0, 2.0, 3.0, 4.0]})
    options = {"kinds": {"ligand": "SMILES"}, "replace": {"OCC": "CCO"}}
    with pytest.raises(FileError, match="no median of molecules"):
        Table.from_frame(frame, missing="median", **options)
    assert Table.from_frame(frame, missing="drop", **options).n_candidates == 3


def test_equal_reactions_are_named():
    with pytest.warns(UserWarning, match="have the same features"):
        Table.from_frame(pd.concat([COUPLINGS, COUPLINGS[:1]], ignore_index=True), kinds=MOLECULES).models()


def test_words_that_look_like_smiles_get_a_remark():
    found = Table.from_frame(COUPLINGS.assign(solvent=["DMF", "THF", "water"] * 8)).understood
    assert found["ligand"].kind == "words"
    assert found["ligand"].becomes.endswith("; kinds={'ligand': 'SMILES'} takes them for molecules")
    assert "molecules" not in found["solvent"].becomes


def test_without_rdkit_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdkit", None)
    frame = pd.DataFrame({"smiles": ["CCO", "CCN"], "x": [1, 2]})
    with pytest.raises(FileError, match=r"pip install 'alexp\[chem\]'.*ignore=\['smiles'\]"):
        Table.from_frame(frame)
    assert Table.from_frame(frame, ignore=["smiles"]).understood["smiles"].kind == "label"


def test_without_openpyxl_the_remedy_is_named(monkeypatch):
    from tests.table.cases import workbook

    data = workbook([["name", "x"], ["a", 1], ["b", 2]])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ModuleNotFoundError, match=r"t.xlsx needs openpyxl, .* pip install 'alexp\[lab\]'"):
        Table.from_bytes(data, "t.xlsx")


def test_a_frame_keeps_its_index_as_ids():
    table = Table.from_frame(pd.DataFrame({"x": [1, 2]}, index=pd.Index(["a", "b"], name="compound")))
    assert table.id.cells == ["a", "b"]
    with pytest.raises(TypeError, match="frame must be a pandas DataFrame"):
        Table.from_frame({"x": [1]})


def test_preflight_speaks_about_a_table():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(60, 3))
    x[7] = x[3] + 1e-6
    frame = pd.DataFrame(x, columns=list("abc")).assign(same=1, nearly=[2] + [1] * 59)
    frame.insert(0, "name", [f"m{k}" for k in range(60)])
    frame["nearly"] = 1
    frame.loc[[3, 7], "nearly"] = 2
    table = Table.from_frame(frame).describe("other units", x[:, :3] * [10.0, 2.0, 5.0] + 3.0)
    table.describe("random", rng.normal(size=(60, 4)) + 0.0)
    found = alexp.preflight(Table.from_frame(frame))
    assert found.constant == ["same"]
    assert found.nearly_constant == ["nearly"]
    assert found.near_duplicates == [["'m3'", "'m7'"]]
    assert "'m3' and 'm7' hardly differ" in str(found)
    alike = alexp.preflight(Table.from_frame(frame[["name"]]).describe("a", x).describe("b", x * 2.5 + 1.0))
    assert alike.alike == [["a", "b"]]
    assert alexp.preflight(table).alike == []
    assert alexp.preflight(table).near_duplicates == []
    random = np.random.default_rng(0)
    hits = [random.permutation(60)[: found.experiments].min() < 3 for _ in range(4000)]
    assert np.mean(hits) == pytest.approx(0.95, abs=0.025)


def test_strange_files_end_in_one_error_and_in_time():
    """Long cells, damaged workbooks, encodings that are none: nothing hangs, nothing but a FileError."""
    from tests.table.cases import workbook

    spaces = "1" + " " * 200_000 + "\nx"
    table = Table.from_bytes(f'name,a,b\nu,"{spaces}",1\nv,"{spaces}",2\nw,y,3\n', "long.csv")
    assert table.understood["a"].kind == "words"
    whole = workbook([["name", "x"], *([f"c{k}", k] for k in range(200))])
    for cut in (30, 200, len(whole) // 2, len(whole) - 40):
        with pytest.raises(FileError, match="t.xlsx"):
            Table.from_bytes(whole[:cut], "t.xlsx")
    rng = np.random.default_rng(0)
    for _ in range(40):
        broken = bytearray(whole)
        for place in rng.integers(40, len(whole), 30):
            broken[place] = int(rng.integers(256))
        with suppress(FileError):
            Table.from_bytes(bytes(broken), "t.xlsx")
    for encoding in ("idna", "zlib", "nothing", "utf-7x"):
        with pytest.raises(FileError, match="is not a text in encoding"):
            Table.from_bytes(b"name,x\na,1\n", "t.csv", encoding=encoding)
    for data in (b"", b"\n\n", b"\xff\xfe", b"\0" * 100, b"PAR1abc", b"PK\x03\x04"):
        with pytest.raises(FileError):
            Table.from_bytes(data, "t.csv")
