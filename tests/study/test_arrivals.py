"""New compounds arrive: in memory, in studies, on the command line, over HTTP and through the client."""

import json
from itertools import product

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import alexp
from alexp.cli import app
from alexp.study import check, create_study, load_study, replay as replay_module
from alexp.study.tables import export
from alexp.table import FileError, Table

pytestmark = pytest.mark.filterwarnings("ignore:.*new here:UserWarning")

SOLVENTS, LIGANDS, CELSIUS = ("DMF", "water", "MeOH"), ("XPhos", "SPhos", "dppf"), (60, 80, 100)
FIRST = pd.DataFrame(
    [(f"r{k}", *one) for k, one in enumerate(product(SOLVENTS, LIGANDS, CELSIUS))],
    columns=["reaction", "solvent", "ligand", "T (°C)"],
)
MORE = pd.DataFrame(
    [("n0", "THF", "SPhos", 60), ("n1", "DMF", "BINAP", 90), ("n2", "THF", "BINAP", 100), ("n3", "water", "dppf", 75)],
    columns=FIRST.columns,
)
STERIC = {"XPhos": 7.1, "SPhos": 6.2, "dppf": 3.3, "BINAP": 5.0}
WORTH = {"DMF": 5.0, "water": 10.0, "MeOH": 0.0, "THF": 15.0}


def reward(trial):
    x = trial.x
    return WORTH[x["solvent"]] + 3.0 * STERIC[x["ligand"]] + x["T (°C)"] / 20.0


def plain(frame, kernels):
    table = Table.from_frame(frame)
    return table, table.models(kernels)


def own_columns(frame, kernels):
    table = Table.from_frame(frame).describe("solvent", ["solvent"]).describe("both", ["solvent", "T (°C)"])
    return table, table.models(kernels)


def described(frame, kernels):
    ligands = pd.DataFrame({"ligand": list(STERIC), "steric": STERIC.values(), "bulky": [1, 1, 0, 1]})
    numbers = np.stack([frame["T (°C)"] ** 2, frame["T (°C)"] / 7.0], axis=1)
    lines = pd.DataFrame({"reaction": frame["reaction"], "pka": 0.1 * frame["T (°C)"], "lab": frame["solvent"].str[:1]})
    table = Table.from_frame(frame).describe("props", ligands).describe("array", numbers).describe("lines", lines)
    return table, table.models(kernels)


def normalized(frame, kernels):
    table, models = plain(frame, kernels)
    return table, models.normalized(table.domain)


KINDS = [
    (plain, "auto"), (plain, "linear"), (plain, {"table": "auto"}), (own_columns, "auto"), (own_columns, "linear"),
    (described, "auto"), (described, "linear"), (normalized, "auto"), (plain, [alexp.kernels.Matern(), "linear"]),
]  # fmt: skip


def means(opt):
    return opt.belief.moments(opt._everything).mean[opt._listed.position]


@pytest.mark.parametrize(("make", "kernels"), KINDS, ids=lambda one: getattr(one, "__name__", str(one))[:20])
@pytest.mark.parametrize("goal", ["best", "sum"])
def test_what_is_believed_of_the_first_candidates_stays(make, kernels, goal):
    table, models = make(FIRST, kernels)
    opt = alexp.EvidenceMixture(models, table, random_state=1, goal=goal)
    for trial in opt.ask(9):
        opt.tell(trial, reward(trial))
    opt.fail(opt.ask(), "tar")
    pending = opt.ask(3)
    before, order = means(opt), opt._listed.order.copy()
    assert opt.add_candidates(make(MORE, kernels)[0]) == [27, 28, 29, 30]
    assert opt.domain.n_candidates == 31
    assert [trial.id for trial in opt.pending()] == [trial.id for trial in pending]
    np.testing.assert_allclose(means(opt)[:27], before, rtol=1e-9)
    np.testing.assert_array_equal(opt._listed.order[:27], order)
    opt.tell(pending[0], reward(pending[0]))
    again = alexp.EvidenceMixture.from_dict(json.loads(json.dumps(opt.to_dict())))
    for one in (opt, again):
        one.amend(0, 40.0)
        one.add_candidates(make(MORE.assign(reaction=["m0", "m1", "m2", "m3"], solvent="MeCN"), kernels)[0])
        assert one.n_told == 10
    assert opt.state() == again.state()
    found = opt.ask(8)
    assert [trial.index for trial in found] == [trial.index for trial in again.ask(8)]
    assert {trial.index for trial in found} & set(range(27, 35))  # new words promise most


def test_a_new_word_is_as_far_from_every_word_as_these_are_from_each_other():
    table, models = plain(FIRST, "auto")
    opt = alexp.EvidenceMixture(models, table, random_state=0)
    opt.add_candidates(plain(MORE, "auto")[0])
    rows = opt.features()
    names = list(opt.models.names)
    place = {name: k for k, name in enumerate([*FIRST["reaction"], *MORE["reaction"]])}
    known, other, new = place["r0"], place["r9"], place["n0"]  # DMF XPhos 60, water XPhos 60, THF SPhos 60
    for name in ("product, 1/1/1", "sum, 2", "joined, 0.5"):
        j = names.index(name)
        gram = opt.models.gram(j, rows, rows)
        assert gram[known, place["r3"]] > gram[known, place["r12"]]  # one component differs, or two
        np.testing.assert_allclose(gram[place["r3"], new], gram[place["r3"], place["r12"]], rtol=1e-9)
        np.testing.assert_allclose(gram[known, new], gram[known, place["r12"]], rtol=1e-9)
        assert gram[known, other] == pytest.approx(gram[place["r1"], place["r10"]])
        assert np.linalg.eigvalsh(gram).min() > -1e-9


def test_columns_are_read_as_they_were_at_first():
    opt = alexp.EvidenceMixture(Table.from_frame(FIRST), random_state=0)
    few = MORE[1:].assign(solvent=["DMF", "MeOH", "water"])  # every cell is different: on its own, a label
    table = Table.from_frame(few)
    assert table.understood["solvent"].kind == "label"
    assert opt.add_candidates(table) == [27, 28, 29]


def test_units_of_numbers_stay():
    frame = pd.DataFrame({"id": [f"c{k}" for k in range(30)], "mass": np.linspace(1.0, 3.0, 30)})
    more = pd.DataFrame({"id": ["heavy", "light"], "mass": [1000.0, 2.0]})
    opt = alexp.EvidenceMixture(Table.from_frame(frame), random_state=0)
    kernels = opt.models.kernels
    opt.add_candidates(Table.from_frame(more))
    assert opt.models.kernels == kernels
    assert opt.models.batches == (30, 2)
    whole = Table.from_frame(pd.concat([frame, more], ignore_index=True)).models()
    assert whole.kernels != kernels


@pytest.mark.parametrize("kind", [alexp.ALExp, alexp.LinUCB, alexp.Corral, alexp.ETC], ids=lambda kind: kind.__name__)
def test_asks_before_new_candidates_are_repeated_without_them(kind):
    settings = {"horizon": 60} if kind in (alexp.Corral, alexp.ETC) else {}
    table, models = own_columns(FIRST, "linear")
    opt = kind(models, table.domain, random_state=2, **settings)
    for available in (None, range(20), range(4), None):
        trial = opt.ask(available=available)
        opt.tell(trial, reward(trial) / 50.0)
    opt.ask()
    opt.add_candidates(own_columns(MORE, "linear")[0])
    assert opt.log.arrivals == [(5, 27)]
    other = kind(opt.models, opt.domain, random_state=2, **settings)
    for available in (range(27), range(20), range(4), range(27)):
        trial = other.ask(available=available)
        other.tell(trial, reward(trial) / 50.0)
    other.ask(available=range(27))
    assert other.state() == opt.state()
    for available in (None, range(28), [27, 29]):
        trial = opt.ask(available=available)
        opt.tell(trial, reward(trial) / 50.0)
    again = kind.from_dict(json.loads(json.dumps(opt.to_dict())))
    for one in (opt, again):
        one.amend(1, 0.3)
        one.retract(2)
    assert opt.state() == again.state()
    assert [opt.ask().index for _ in range(5)] == [again.ask().index for _ in range(5)]


WRONG = [
    (MORE.assign(reaction=["n0", "r5", "n2", "n3"]), "row 1: the id 'r5' is candidate 5 already"),
    (MORE.drop(columns="ligand"), r"lacks the column 'ligand'; new candidates need the columns of the first"),
    (MORE.rename(columns={"ligand": "ligands"}), "lacks the column 'ligand' and has the column 'ligands'"),
    (MORE.assign(lot=1), "has the column 'lot', which the first table does not have"),
    (MORE.assign(**{"T (°C)": ["hot", 1, 2, 3]}), "'hot' is not a number"),
    (MORE.assign(**{"T (°C)": [60.0, None, 2.0, 3.0]}), "row 1, column 'T \\(°C\\)': the cell is blank"),
    (MORE.assign(**{"T (°C)": ["60 °F", "70 °F", "80 °F", "90 °F"]}), "the unit '°F' differs from '°C'"),
    (MORE.assign(reaction=["a", "a", "b", "c"]), "the id 'a' is on row 0 already"),
]


@pytest.mark.parametrize(("frame", "said"), WRONG)
def test_candidates_that_do_not_fit_are_refused_and_nothing_changes(frame, said):
    opt = alexp.EvidenceMixture(Table.from_frame(FIRST), random_state=0)
    state = json.dumps(opt.to_dict())
    with pytest.raises(FileError, match=said):
        opt.add_candidates(Table.from_frame(frame))
    assert json.dumps(opt.to_dict()) == state


def test_descriptions_are_brought_along():
    table, models = described(FIRST, "auto")
    opt = alexp.EvidenceMixture(models, table, random_state=0)
    with pytest.raises(FileError, match="first candidates have the description 'array'"):
        opt.add_candidates(Table.from_frame(MORE))
    bare = Table.from_frame(MORE).describe("array", np.ones((4, 2)))
    with pytest.raises(FileError, match="the description 'lines', and the new ones need it as well"):
        opt.add_candidates(bare)
    lines = pd.DataFrame({"reaction": MORE["reaction"], "pka": 1.0, "lab": "x"})
    bare.describe("lines", lines)
    with pytest.raises(FileError, match="'BINAP' is new, and the description 'props' has no line for it"):
        opt.add_candidates(bare)
    assert opt.add_candidates(
        Table.from_frame(MORE[3:]).describe("array", np.ones((1, 2))).describe("lines", lines[3:])
    ) == [27]
    wide = Table.from_frame(MORE[:1]).describe("array", np.ones((1, 3))).describe("lines", lines[:1])
    with pytest.raises(ValueError, match="'array' of the first candidates is an array with 2 columns"):
        opt.add_candidates(wide)
    other = Table.from_frame(MORE[:1]).describe("array", np.ones((1, 2))).describe("lines", lines.drop(columns="lab"))
    with pytest.raises(FileError, match="the description 'lines' lacks the column 'lab'"):
        opt.add_candidates(other)
    with pytest.raises(FileError, match="the description 'more' is not known"):
        opt.add_candidates(
            Table.from_frame(MORE[:1])
            .describe("array", np.ones((1, 2)))
            .describe("lines", lines)
            .describe("more", lines)
        )


def test_models_of_your_own_and_bandits_are_refused():
    models = alexp.ModelClass.from_matrices({"a": np.random.default_rng(0).normal(size=(27, 2))})
    for opt in (
        alexp.EvidenceMixture(models, Table.from_frame(FIRST)),
        alexp.EvidenceMixture(alexp.ModelClass.legendre(3, 2), alexp.Interval(resolution=9)),
    ):
        with pytest.raises(TypeError, match="models that an alexp.Table made"):
            opt.add_candidates(Table.from_frame(MORE))
    with pytest.raises(TypeError, match=r"as an alexp.Table, got DataFrame; alexp.Table.read\(path\)"):
        alexp.EvidenceMixture(Table.from_frame(FIRST)).add_candidates(MORE)


def test_new_words_and_columns_that_were_constant_are_said():
    frame = FIRST.assign(base="KOAc")
    opt = alexp.EvidenceMixture(Table.from_frame(frame), random_state=0)
    with pytest.warns(UserWarning, match="new here") as said:
        opt.add_candidates(Table.from_frame(MORE.assign(base="CsF")))
    texts = [str(one.message) for one in said]
    assert any(
        "column 'solvent': new here: 'THF'; each is a word, as different from every word" in one for one in texts
    )
    assert any("all candidates had 'KOAc' at first, so that no model sees" in one for one in texts)


def test_blank_cells_are_filled_as_at_first():
    frame = FIRST.assign(**{"T (°C)": [None, *FIRST["T (°C)"][1:]]})
    opt = alexp.EvidenceMixture(Table.from_frame(frame, missing="median"), random_state=0)
    opt.add_candidates(Table.from_frame(MORE.assign(**{"T (°C)": [None, 70.0, 80.0, 90.0]}), missing="median"))
    whole = alexp.EvidenceMixture(Table.from_frame(FIRST), random_state=0)
    with pytest.raises(FileError, match="'n0' has no 'T \\(°C\\)', and all candidates had one at first"):
        whole.add_candidates(Table.from_frame(MORE.assign(**{"T (°C)": [None, 70.0, 80.0, 90.0]}), missing="median"))


def test_molecules_may_have_bits_that_none_had_before():
    pytest.importorskip("rdkit")
    smiles = ["CCO", "CCN", "CCC", "CCCl", "CCBr", "CCF", "CC=O", "CC#N"]
    frame = pd.DataFrame({"id": [f"m{k}" for k in range(8)], "smiles": smiles})
    opt = alexp.EvidenceMixture(Table.from_frame(frame), random_state=0)
    before, names = opt.models.n_columns, list(opt.models.names)
    for trial in opt.ask(4):
        opt.tell(trial, float(trial.index))
    opt.add_candidates(Table.from_frame(pd.DataFrame({"id": ["m8"], "smiles": ["c1ccccc1S"]})))
    assert opt.models.n_columns > before
    assert list(opt.models.names) == names
    bits = opt.models.gram(names.index("smiles fingerprints: Tanimoto"), opt.features(), opt.features())
    assert bits[8, 8] == 1.0
    assert bits[8, :8].max() < 0.3
    assert opt.ask(5)


# -- studies ---------------------------------------------------------------------------------------------------


@pytest.fixture
def storage(tmp_path):
    return f"sqlite:///{tmp_path / 'a.db'}"


def test_studies_store_replay_and_share_new_candidates(storage, tmp_path, monkeypatch):
    monkeypatch.setattr(replay_module, "REPLAY_EVENTS", 5)  # snapshots on the way
    study = create_study(Table.from_frame(FIRST), name="s", storage=storage, random_state=1)
    other = load_study("s", storage)
    for trial in study.ask(4):
        study.tell(trial, reward(trial))
    pending = study.ask(2)
    assert study.add_candidates(Table.from_frame(MORE), key="monday") == [27, 28, 29, 30]
    assert other.add_candidates(Table.from_frame(MORE), key="monday") == [27, 28, 29, 30]
    with pytest.raises(ValueError, match="key 'monday' was used before, for other candidates"):
        other.add_candidates(Table.from_frame(MORE[:1].assign(reaction="q")), key="monday")
    with pytest.raises(ValueError, match="key 'monday' was used before, for new candidates"):
        other.ask(key="monday")
    with pytest.raises(FileError, match="the id 'n0' is candidate 27 already"):
        other.add_candidates(Table.from_frame(MORE))
    found = other.ask(3, where="solvent == 'THF' or ligand == 'BINAP'", at_most={"ligand": 2})
    assert {trial.index for trial in found} <= {27, 28, 29}
    other.tell_many([(trial.x["reaction"], reward(trial)) for trial in found])
    study.fail(pending[0])
    study.amend(0, 31.0)
    study.add_candidates(Table.from_frame(MORE[:1].assign(reaction="z0")))
    study.ask(3)
    for one in (study, other, load_study("s", storage)):
        assert json.dumps(one.algorithm.to_dict()) == json.dumps(study.replayed().algorithm.to_dict())
    assert check("s", storage).problems == []
    events = [event for event in study.events() if event["kind"] == "add"]
    assert [(event["trial"], event["candidate"]) for event in events] == [(-1, 27), (-1, 31)]
    rows = list(export(study))
    assert "n0" in {row[rows[0].index("reaction")] for row in rows}
    assert "added 4 candidates" in study.report(tmp_path / "r.html").read_text()


def test_the_command_line_adds_candidates(storage, tmp_path):
    def run(*words, code=0):
        result = CliRunner().invoke(app, ["study", *words, "--storage", storage], env={"COLUMNS": "500"})
        assert result.exit_code == code, result.output
        return result.output

    first, more = tmp_path / "first.csv", tmp_path / "more.csv"
    FIRST.to_csv(first, index=False, sep=";", decimal=",")
    MORE.to_csv(more, index=False)
    ligands = tmp_path / "ligands.csv"
    ligands.write_text("ligand,steric\n" + "".join(f"{name},{value}\n" for name, value in STERIC.items()))
    run("create", "s", "--candidates", str(first), "--features", f"steric={ligands}", "--seed", "1")
    assert "'THF' is new" not in run("add", "s", str(more), "--preview", "--features", f"steric={ligands}")
    assert "error: " in run("add", "s", str(more), code=1)
    said = run("add", "s", str(more), "--features", f"steric={ligands}")
    assert "ligand    words   SPhos    words, new here: 'BINAP'" in said
    assert "added candidates 27 to 30; 31 in all" in said
    assert f"error: {more}, line 2: the id 'n0' is candidate 27 already" in run("add", "s", str(more), code=1)
    assert "all is well" in run("check", "s")
    one = tmp_path / "one.csv"
    one.write_text("reaction,solvent,ligand,T (°C)\nq,DMF,SPhos,82\n")  # a line alone says nothing of kinds
    assert "added candidate 31; 32 in all" in run("add", "s", str(one))
