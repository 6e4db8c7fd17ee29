"""The dashboard in a real browser: what a chemist does on one day, what others do meanwhile, and who can read it."""

import re
from urllib.parse import quote

import numpy as np
import openpyxl
import pytest

import alexp
from alexp.study import load_study
from tests.service.browsing import AXE, DESK, PHONE, browser, faults, page_of, unexpected, why_not
from tests.service.serving import ARMS, READER, WRITER, Caller, client, create, process, serving

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

SOLVENTS = {"water": 10.2, "ethanol": 5.2, "DMF": 6.4, "toluene": 2.4}
ROWS = [(s, b, t, p) for s, p in SOLVENTS.items() for b in ("KOAc", "K2CO3") for t in (20, 60)]
CSV = "solvent,base,celsius,polarity\n" + "\n".join(",".join(map(str, row)) for row in ROWS)
EVIL = "<img src=x onerror=alert(1)>"


def measured(label):
    """The reward of a candidate: it follows polarity and temperature."""
    _, _, celsius, polarity = label.split(", ")
    return round(30.0 + 4.0 * float(polarity) + 0.2 * float(celsius), 2)


@pytest.fixture(scope="module")
def chromium():
    with browser() as running:
        yield running


@pytest.fixture(scope="module")
def storage(tmp_path_factory):
    return f"sqlite:///{tmp_path_factory.mktemp('browser') / 'studies.db'}"


@pytest.fixture(scope="module")
def address(storage, tmp_path_factory):
    """A server in a process of its own: whatever this process tells, another process tells."""
    with process("--storage", storage, log=tmp_path_factory.mktemp("log") / "log") as (_, url):
        yield url


@pytest.fixture
def page(chromium):
    with page_of(chromium, accept_downloads=True) as one:
        yield one
        assert unexpected(one) == []


@pytest.fixture(scope="module")
def http(address):
    with client(address) as one:
        yield one


def at(address, name):
    return f"{address}/#/study/{quote(name, safe='')}"


PLOT = "document.querySelector('[data-plot=probabilities] .plot').getAttribute('aria-label')"


def drawn(page):
    """What the figure of the probabilities says to those who do not see it."""
    return page.evaluate(PLOT)


def fill_in(page):
    """Type the reward of everything that is pending."""
    for row in page.locator("form.plate tbody tr").all():
        cells = row.locator("td.described").all_inner_texts()
        row.locator("input.reward").fill(str(measured(", ".join(cells))))


def test_a_day_at_the_bench(page, address, storage):
    page.goto(address)
    page.get_by_role("link", name="New study").last.click()
    page.get_by_role("button", name="Create the study").click()
    assert page.get_by_text("A study needs a name").is_visible()  # beside its input
    page.get_by_label("Name", exact=True).fill("bench 1/2")
    page.get_by_label("Table, one candidate per line").fill(CSV)
    page.get_by_text("16 candidates, 4 columns.").wait_for()
    assert page.get_by_label("Kind of solvent").input_value() == "words"
    page.get_by_label("Seed").fill("0")
    page.get_by_role("button", name="Create the study").click()
    page.get_by_role("heading", name="bench 1/2").wait_for()
    assert page.locator(".headline").inner_text() == "No reward yet: all 56 models are equal."

    page.get_by_label("How many").fill("0")  # the service's own word on it, beside the input
    page.get_by_role("button", name="Ask").click()
    page.locator(".problem", has_text="greater than or equal to 1").wait_for()
    assert page.get_by_label("How many").get_attribute("aria-invalid") == "true"
    page.get_by_label("How many").fill("6")
    page.get_by_label("Lease, hours").fill("2")
    page.get_by_label("Worker").fill("Ada")
    page.get_by_role("button", name="Ask").click()
    page.get_by_role("heading", name="Experiments: 6 are pending").wait_for()
    assert page.get_by_text(re.compile("for (2 h 0|1 h 59) min more")).count() == 6
    page.locator("[aria-label^='Reward of trial 0']:focus").wait_for()

    page.keyboard.type("seventy")
    page.get_by_role("button", name="Tell rewards").click()
    assert page.get_by_text("This is not a number").is_visible()
    fill_in(page)
    page.get_by_role("button", name="Tell rewards").click()
    page.get_by_text("6 rewards stored.").wait_for()
    page.locator(".headline strong").first.wait_for()  # somebody leads, and nobody has reloaded the page
    assert "after 6 rewards" in drawn(page)

    page.get_by_label("How many").fill("2")
    page.get_by_role("button", name="Ask").click()
    page.get_by_role("heading", name="Experiments: 2 are pending").wait_for()
    fill_in(page)
    page.locator("form.plate tbody tr input.reward").first.fill("7240,5")  # a slip of the pen
    question = page.get_by_role("dialog", name="Is this right?")
    page.get_by_role("button", name="Tell rewards").click()
    question.get_by_role("button", name="No, let me correct it").click()
    assert load_study("bench 1/2", storage).counts["told"] == 6
    page.get_by_role("button", name="Tell rewards").click()
    question.get_by_role("button", name="Yes, it is right").click()
    page.get_by_text("2 rewards stored.").wait_for()
    page.wait_for_function(f"() => {PLOT}.includes('after 8 rewards')")
    wrong = drawn(page)

    page.get_by_role("button", name="Correct the reward of trial 6").click()
    dialog = page.get_by_role("dialog", name="Correct trial 6")
    assert dialog.get_by_label("Reward").input_value() == "7240.5"
    label = page.locator("section", has=page.locator("#trials")).locator("tr", has_text="7240.5").locator("td").nth(1)
    dialog.get_by_label("Reward").fill(str(measured(label.inner_text())))
    page.keyboard.press("Enter")
    page.get_by_text("Trial 6 is corrected").wait_for()
    page.wait_for_function(f"before => {PLOT} !== before", arg=wrong)  # q has moved
    assert load_study("bench 1/2", storage).counts == {"trials": 8, "told": 8, "pending": 0, "abandoned": 0}

    with page.expect_download() as report:
        page.get_by_role("link", name="Report").click()
    text = report.value.path().read_text(encoding="utf-8")
    assert "bench 1/2: study report" in text
    with page.expect_download() as table:
        page.get_by_role("link", name="CSV").click()
    assert len(table.value.path().read_text(encoding="utf-8").splitlines()) == 9


GRID = [(f"R{k:02d}", k % 5, k // 5) for k in range(25)]
GRID_CSV = "name,acid,heat\n" + "\n".join(",".join(map(str, row)) for row in GRID)


def test_bell_shaped_errors_are_one_switch_and_the_sentence_says_what_it_rests_on(page, address, storage, http):
    """Nothing but the switch: calibrated at first, then certified; and an alarm with the experiments that raise it."""
    noise = np.random.default_rng(0)

    def create_with_switch(name):
        page.goto(f"{address}/#/new")
        page.get_by_label("Name", exact=True).fill(name)
        page.get_by_label("Table, one candidate per line").fill(GRID_CSV)
        page.get_by_text("25 candidates, 3 columns.").wait_for()
        page.get_by_text("How to read it").click()
        page.get_by_label("Kind of models").select_option("linear")
        page.get_by_label("Measurement errors are bell-shaped").check()
        page.get_by_label("Seed").fill("0")
        page.get_by_role("button", name="Create the study").click()
        page.get_by_role("heading", name=name).wait_for()
        return Caller(http, name)

    def tell(study, n, reward):
        trials = study.post("ask", n=n)["trials"]
        results = [{"trial": t["id"], "reward": reward(t["x"]["acid"], t["x"]["heat"])} for t in trials]
        study.post("tell", results=results)

    study = create_with_switch("bell")
    assert load_study("bell", storage).algorithm.noise == "gaussian"
    sentence = page.locator(".stopping")
    tell(study, 6, lambda acid, heat: 40.0 + 3.0 * acid + heat + noise.standard_normal())
    sentence.get_by_text(
        re.compile("No candidate is better.*the same spread everywhere: calibrated, not certified.$")
    ).wait_for()
    tell(study, 10, lambda acid, heat: 40.0 + 3.0 * acid + heat + noise.standard_normal())
    sentence.get_by_text(
        re.compile(
            "of 100 such runs, if the model is true and errors are bell-shaped with the same spread everywhere.$"
        )
    ).wait_for()
    assert load_study("bell", storage).stop_report().certified
    assert page.get_by_text("Alarm:").count() == 0

    study = create_with_switch("bent")
    tell(study, 22, lambda acid, heat: 40.0 + 9.0 * (acid - 2) ** 2 - 9.0 * (heat - 2) ** 2 + noise.standard_normal())
    alarm = page.locator(".note", has_text="Alarm: none of the models explains the rewards")
    alarm.wait_for()
    named = alarm.get_by_role("listitem").all_inner_texts()
    assert len(named) == 3
    rewards = {f"{row['id']}": row for row in load_study("bent", storage).trials()}
    for text in named:
        trial, label, reward = re.fullmatch(r"Trial (\d+) \((R\d\d), .*\) gave ([-\d.]+)", text).groups()
        assert rewards[trial]["label"].startswith(label)
        assert rewards[trial]["reward"] == pytest.approx(float(reward), rel=1e-3)
    sentence.get_by_text("by an estimate without a guarantee: none of the models explains the rewards").wait_for()


def test_a_file_is_uploaded_looked_at_and_corrected(page, address, storage, tmp_path):
    """A European export: the service reads it, the page shows each column, the user corrects one, and creates."""
    lines = ["Kürzel;Lösungsmittel;T (°C);Anteil;Charge", *(
        f"r{k};{'DMF' if k % 2 else 'Wasser'};{60 + k};{k},5 %;{k % 3}" for k in range(12)
    )]  # fmt: skip
    (tmp_path / "Reaktionen.csv").write_text("\n".join(lines), encoding="cp1252")
    page.goto(f"{address}/#/new")
    page.get_by_label("Name", exact=True).fill("uploaded")
    page.get_by_label("File", exact=True).set_input_files(tmp_path / "Reaktionen.csv")
    page.get_by_text("12 candidates, 5 columns. Reaktionen.csv, text in Windows-1252").wait_for()
    shown = page.get_by_role("region", name="What the columns are").get_by_role("row")
    assert "a number from 0.5 to 11.5 %; decimal commas" in shown.nth(4).inner_text()
    assert page.get_by_label("Kind of Charge").input_value() == "number"
    page.get_by_label("Kind of Charge").select_option("words")
    page.get_by_text("a component with 3 words").wait_for()
    assert page.get_by_label("Kind of Charge").input_value() == "words"
    page.get_by_label("Seed").fill("0")
    page.get_by_role("button", name="Create the study").click()
    page.get_by_role("heading", name="uploaded").wait_for()
    made = alexp.load_study("uploaded", storage).algorithm
    same = alexp.Table.read(tmp_path / "Reaktionen.csv", kinds={"Charge": "words"})
    assert made.models.names == same.models().names
    assert (made.repeats, made.goal, made.domain[3]["Anteil"]) == (False, "best", 3.5)


def test_a_file_that_is_refused_says_why_and_how_to_go_on(page, address, tmp_path):
    (tmp_path / "t.csv").write_text("name,x,y\na,1,2\nb,,3\nc,4,5\nd,tar,7\n")
    page.goto(f"{address}/#/new")
    page.get_by_label("File", exact=True).set_input_files(tmp_path / "t.csv")
    page.get_by_text("t.csv, line 5, column 'x': 'tar' is not a number, but 2 of 3 cells are").wait_for()
    (tmp_path / "u.csv").write_text("name,x,y\na,1,2\nb,,3\nc,4,5\nd,6,7\n")
    page.get_by_label("File", exact=True).set_input_files(tmp_path / "u.csv")
    page.get_by_text("u.csv, line 3, column 'x': the cell is blank").wait_for()
    page.get_by_text("How to read it").click()
    page.get_by_label("Blank cells (missing)").select_option("drop")
    page.get_by_text("1 candidate with blank cells left out (line 3)").wait_for()


NAMED = "name,ligand,celsius\n" + "".join(
    f"{ligand}-{t},{ligand},{t}\n" for ligand in ("XPhos", "SPhos", "dppf", "PPh3") for t in (60, 80, 105, 120)
)


def test_a_plate_under_conditions_is_a_table_and_a_file(page, address, http):
    """Only some candidates, two per ligand: what is wrong with a condition stands beside it."""
    study = create(http, "plate", {"kind": "table", "csv": NAMED})
    page.goto(at(address, "plate"))
    page.get_by_text("Conditions of the plate").click()
    where = page.get_by_label("Only candidates where")
    where.fill("celcius <= 105")
    page.get_by_role("button", name="Ask").click()
    wrong = page.locator(".field", has=where).locator(".problem")
    wrong.get_by_text("'celcius' is no column; did you mean 'celsius'?").wait_for()
    assert where.get_attribute("aria-invalid") == "true"
    assert "^" not in wrong.inner_text()  # which is made for terminals
    where.fill("celsius <= 105")
    page.get_by_label("Column", exact=True).select_option("ligand")
    page.get_by_label("At most").fill("1")
    page.get_by_role("button", name="Ask").click()
    page.locator(".field", has=page.get_by_label("How many")).get_by_text("n must be at most 4").wait_for()
    assert page.get_by_text("Conditions of the plate: 2").is_visible()
    page.get_by_label("How many").fill("4")
    page.get_by_role("button", name="Another limit").click()
    page.get_by_label("Column", exact=True).last.select_option("celsius")
    page.get_by_label("Limit").last.select_option("together")
    assert page.get_by_label("At most").last.is_hidden()
    page.get_by_role("button", name="Ask").click()
    page.get_by_role("heading", name="Experiments: 4 are pending").wait_for()
    asked = [trial["x"] for trial in study.get("pending")["pending"]]
    assert len({x["ligand"] for x in asked}) == 4
    assert {x["celsius"] for x in asked} < {60, 80, 105}
    assert len({x["celsius"] for x in asked}) == 1
    heads = page.get_by_role("region", name="Pending trials").locator("th").all_inner_texts()
    assert heads == ["Trial", "name", "ligand", "celsius", "Reward", "Note", "Asked", "Actions"]
    shown = page.locator("form.plate tbody tr").first.locator("td.described").all_inner_texts()
    assert shown == [str(value) for value in asked[0].values()]
    with page.expect_download() as sheet:
        page.get_by_role("link", name="Plate as Excel").click()
    assert sheet.value.suggested_filename == "plate plate.xlsx"
    with sheet.value.path().open("rb") as content:
        rows = list(openpyxl.load_workbook(content).active.values)
    assert rows[0] == ("trial", "name", "ligand", "celsius", "reward")
    assert rows[1][:4] == (0, *asked[0].values())
    with page.expect_download() as text:
        page.get_by_role("link", name="Plate as CSV").click()
    assert len(text.value.path().read_text(encoding="utf-8").splitlines()) == 5

    page.get_by_label("Plate of").select_option("24")
    wells = page.get_by_role("region", name="Wells of the plate of trial 0").locator("tbody tr")
    assert wells.all_inner_texts() == ["A\t" + "\t".join([x["name"] for x in asked] + ["·", "·"])]
    study.post("tell", results=[{"trial": 0, "reward": 40.0}])
    page.get_by_role("heading", name="Experiments: 3 are pending").wait_for()
    assert wells.all_inner_texts()[0].split("\t")[1:3] == ["·", asked[1]["name"]]  # a well stays where it is
    study.post("ask", n=7)
    page.get_by_role("region", name="Wells of the plate of trial 4").wait_for()
    with page.expect_download() as mapped:
        page.locator(".wells").first.get_by_role("link", name="CSV").click()
    lines = [line.split(",")[:3] for line in mapped.value.path().read_text(encoding="utf-8").splitlines()]
    assert lines[:2] == [["trial", "well", "name"], ["1", "A2", asked[1]["name"]]]
    assert len(lines) == 4


def test_results_are_pasted_by_name_and_looked_at_before_they_are_stored(page, address, http, tmp_path):
    study = create(http, "pasted", {"kind": "table", "csv": NAMED})
    names = [trial["x"]["name"] for trial in study.post("ask", n=5)["trials"]]
    page.goto(at(address, "pasted"))
    page.get_by_text("Paste results by name").click()
    area = page.get_by_label("Names and results, one experiment per line")
    store = page.get_by_role("button", name=re.compile("^Store"))
    area.fill(f"{names[0]}\t71,2; 72,9\nXPhus-60\t3,5\n{names[1]}\tfailed")
    page.get_by_text("text, line 2: no candidate has the name 'XPhus-60'").wait_for()
    assert store.is_hidden()
    area.fill(f"{names[0]}\t71,2; 72,9\n{names[2]}\t3,5\n{names[1]}\tfailed")
    shown = page.get_by_role("region", name="What was understood").locator("tbody tr")
    shown.nth(2).wait_for()
    assert [row.split("\t")[2] for row in shown.all_inner_texts()] == ["71.2; 72.9", "3.5", "failed"]
    assert study.get()["counts"]["told"] == 0
    store.click()
    page.get_by_text("3 results stored.").wait_for()
    page.get_by_role("heading", name="Experiments: 2 are pending").wait_for()
    counts = study.get()["counts"]
    assert (counts["told"], counts["failed"]) == (3, 1)  # two measurements of one experiment
    page.get_by_label(re.compile(f"Reward of trial .*{names[3]}")).focus()
    page.evaluate(
        """text => { const data = new DataTransfer(); data.setData("text", text);
        document.activeElement.dispatchEvent(new ClipboardEvent("paste", {clipboardData: data, bubbles: true})); }""",
        f"{names[3]}\t50\n{names[2]}\t9",
    )  # two columns, into one cell of the plate
    page.get_by_text(re.compile("has the reward 3.5, the file says 9.0")).wait_for()
    page.get_by_label("Replace results that are stored already").check()
    page.get_by_text("replaces the stored one").wait_for()
    store.click()
    page.get_by_text("1 result stored, 1 replaced.").wait_for()
    lines = study.http.get(f"{study.base}/plate").text.splitlines()
    (tmp_path / "plate.csv").write_text("\n".join([f"{lines[0]},note", f"{lines[1]}61.5,<b>late</b>"]))
    page.get_by_text("Paste results by name").click()
    page.get_by_label("Or a file of results").set_input_files(tmp_path / "plate.csv")
    page.get_by_role("cell", name="<b>late</b>").wait_for()
    store.click()
    page.get_by_text("Nothing is pending.").wait_for()
    page.get_by_text("measured: <b>late</b>").wait_for()
    page.locator("input:focus").wait_for()  # the keyboard goes on where it was


def test_old_results_are_learned_from(page, address, http):
    create(http, "remembering", {"kind": "table", "csv": CSV})
    page.goto(at(address, "remembering"))
    page.get_by_text("Learn from old results").click()
    page.get_by_label("Name of the campaign").fill("2023")
    old = [f"{','.join(map(str, row))},{2.0 * measured(', '.join(map(str, row))):.1f}" for row in ROWS[::2]]
    page.get_by_label("Old results, one per line").fill("\n".join([f"{CSV.splitlines()[0]},yield", *old]))
    page.get_by_role("button", name="Learn from the results").click()
    page.get_by_text("has no column 'reward'").first.wait_for()
    page.get_by_label("Column with the results").fill("yield")
    page.get_by_role("button", name="Learn from the results").click()
    page.get_by_text("Learned. What the past is worth").wait_for()
    page.locator(".headline", has_text="No reward yet. The models of '2023' have").wait_for()
    page.get_by_label("How many").fill("4")
    page.get_by_role("button", name="Ask").click()
    page.get_by_role("heading", name="Experiments: 4 are pending").wait_for()
    fill_in(page)
    page.get_by_role("button", name="Tell rewards").click()
    page.get_by_text(re.compile("(The|Whether the) past .*2023.* and have [0-9]+% now")).wait_for()


def test_new_compounds_are_added_from_a_table(page, address, http, tmp_path):
    study = create(http, "arriving", {"kind": "table", "csv": NAMED})
    page.goto(at(address, "arriving"))
    page.get_by_role("heading", name="Candidates: 16").wait_for()
    page.get_by_text("Add candidates").click()
    page.get_by_role("button", name="Add the candidates").click()
    page.get_by_text("Choose a file, or paste a table").wait_for()
    area = page.get_by_label("Table, one candidate per line")
    area.fill("name,ligand,celsius\nXPhos-60,XPhos,60\n")
    page.get_by_text("1 candidate, 3 columns").wait_for()
    page.get_by_role("button", name="Add the candidates").click()
    page.locator(".problem", has_text="the id 'XPhos-60' is candidate 0 already").wait_for()
    (tmp_path / "new.csv").write_text("name;ligand;celsius\nBippyPhos-60;BippyPhos;60\nBippyPhos-85;BippyPhos;85,5\n")
    page.get_by_label("File", exact=True).set_input_files(tmp_path / "new.csv")
    page.get_by_text("2 candidates, 3 columns").wait_for()
    page.get_by_role("button", name="Add the candidates").click()
    page.get_by_text("2 candidates added.").wait_for()
    page.get_by_text("column 'ligand': new here: 'BippyPhos'").wait_for()
    page.get_by_role("heading", name="Candidates: 18").wait_for()
    page.get_by_text("Conditions of the plate").click()
    page.get_by_label("Only candidates where").fill("ligand = 'BippyPhos'")
    page.get_by_label("How many").fill("2")
    page.get_by_role("button", name="Ask").click()
    page.get_by_role("heading", name="Experiments: 2 are pending").wait_for()
    assert {trial["x"]["celsius"] for trial in study.get("pending")["pending"]} == {60, 85.5}


def test_a_week_in_the_laboratory(page, address, storage, tmp_path):
    """Monday to Friday by the page alone: a file from Excel, a plate that comes back, a broken vial, new compounds."""
    cells = [(f"R{k:02d}", ligand, t, f"{k / 8:.3f}".replace(".", ",")) for k, (ligand, t) in enumerate(
        (ligand, t) for ligand in ("XPhos", "SPhos", "dppf", "PPh3", "dppe") for t in (60, 80, 105)
    )]  # fmt: skip
    text = "\n".join(["Nr;Ligand;T (°C);c / M", *(";".join(map(str, row)) for row in cells)])
    (tmp_path / "Reaktionen.csv").write_text(text, encoding="cp1252")

    def true_yield(name):
        _, ligand, t, _ = cells[int(name[1:])] if name[1:].isdecimal() else ("", "dppe", 80, "")
        return 40.0 + 6.0 * len(ligand) + t / 10.0

    def pending():
        rows = page.locator("form.plate tbody tr").all()
        return [row.locator("td.described").first.inner_text() for row in rows]

    def ask(n):
        page.get_by_label("How many").fill(str(n))
        page.get_by_role("button", name="Ask").click()
        page.get_by_role("heading", name=f"Experiments: {n} are pending").wait_for()

    # Monday: the file as it comes, yields between 0 and 100, a first plate for four heating blocks
    page.goto(f"{address}/#/new")
    page.get_by_label("Name", exact=True).fill("week")
    page.get_by_label("File", exact=True).set_input_files(tmp_path / "Reaktionen.csv")
    page.get_by_text("15 candidates, 4 columns").wait_for()
    page.get_by_label("Lowest possible reward").fill("0")
    page.get_by_label("Highest possible reward").fill("100")
    page.get_by_label("Seed").fill("0")
    page.get_by_role("button", name="Create the study").click()
    page.get_by_role("heading", name="week").wait_for()
    page.get_by_text("Conditions of the plate").click()
    page.get_by_label("Column", exact=True).select_option("Ligand")
    page.get_by_label("At most").fill("1")
    page.get_by_label("Worker").fill("Ada")
    ask(4)
    with page.expect_download() as plate:
        page.get_by_role("link", name="Plate as Excel").click()
    plate.value.save_as(tmp_path / "plate.xlsx")

    # Tuesday: the sheet comes back with replicates, a failure and a note; one yield is impossible
    first = pending()
    book = openpyxl.load_workbook(tmp_path / "plate.xlsx")
    sheet = book.active
    assert [row[1] for row in sheet.iter_rows(min_row=2, values_only=True)] == first
    results = [f"{true_yield(first[0])}; {true_yield(first[0]) + 1}", 171.2, "failed", true_yield(first[3])]
    for k, result in enumerate(results, 2):
        sheet.cell(k, sheet.max_column).value = result
    book.save(tmp_path / "plate.xlsx")
    page.get_by_text("Paste results by name").click()
    page.get_by_label("Or a file of results").set_input_files(tmp_path / "plate.xlsx")
    page.get_by_text("plate.xlsx, line 3").wait_for()
    page.get_by_text("of 0 to 100, got 171.2").wait_for()
    sheet.cell(3, sheet.max_column).value = 71.2
    book.save(tmp_path / "corrected.xlsx")
    page.get_by_label("Or a file of results").set_input_files(tmp_path / "corrected.xlsx")
    page.get_by_role("button", name="Store 4 results").click()
    page.get_by_text("Nothing is pending.").wait_for()

    # Wednesday: a vial breaks, the rest is pasted by name with decimal commas
    ask(4)
    second = pending()
    assert first[2] not in second  # what failed does not come back
    page.get_by_role("button", name=re.compile("failed$")).first.click()
    page.get_by_role("dialog").get_by_label("Why, if you like").fill("vial broke")
    page.get_by_role("dialog").get_by_role("button", name="It failed").click()
    page.get_by_text("Experiments: 3 are pending").wait_for()
    page.get_by_text("Paste results by name").click()
    lines = [f"{name}\t{true_yield(name)}".replace(".", ",") for name in second[1:]]
    page.get_by_label("Names and results").fill("\n".join(lines))
    page.get_by_role("button", name="Store 3 results").click()
    page.get_by_text("Nothing is pending.").wait_for()

    # Thursday: new compounds arrive, and the whole plate runs at one temperature
    page.get_by_text("Add candidates").click()
    page.get_by_label("Table, one candidate per line").fill("Nr;Ligand;T (°C);c / M\nNeu;dppe;80;1,5\nNeu2;dppe;60;1,5")
    page.get_by_text("2 candidates, 4 columns").wait_for()
    page.get_by_role("button", name="Add the candidates").click()
    page.get_by_role("heading", name="Candidates: 17").wait_for()
    page.get_by_label("Limit").select_option("together")
    page.get_by_label("Column", exact=True).select_option("T (°C)")
    ask(3)
    with load_study("week", storage) as study:
        assert len({trial.x["T (°C)"] for trial in study.pending()}) == 1
    for name, row in zip(pending(), page.locator("form.plate tbody tr").all(), strict=True):
        row.locator("input.reward").fill(str(true_yield(name)))
        row.get_by_label(re.compile("^Note")).fill("by <b>Bo</b>")
    page.get_by_role("button", name="Tell rewards").click()
    page.get_by_text("3 rewards stored.").wait_for()

    # Friday: a slip is corrected; is it time to stop?
    page.get_by_role("button", name="Correct the reward of trial 1", exact=True).click()
    page.get_by_role("dialog").get_by_label("Reward").fill("61,2")
    page.get_by_role("dialog").get_by_role("button", name="Correct it").click()
    page.get_by_text("Trial 1 is corrected to 61.2.").wait_for()
    sentence = page.locator(".stopping").inner_text()
    assert "of the best candidate" in sentence
    assert float(re.search(r"within ([\d.]+) of", sentence)[1]) <= 100.0
    with page.expect_download() as report:
        page.get_by_role("link", name="Report").click()
    said = report.value.path().read_text(encoding="utf-8")
    assert "vial broke" in said
    assert "<b>Bo</b>" not in said
    with load_study("week", storage) as study:
        assert study.counts == {"trials": 12, "told": 10, "pending": 0, "abandoned": 0, "failed": 2}
        assert study.replayed().algorithm.to_dict() == study.algorithm.to_dict()


PRICED = "name,ligand,celsius,price\n" + "".join(
    f"{ligand}-{t},{ligand},{t},{price}\n"
    for ligand, price in (("XPhos", 9), ("SPhos", 8), ("dppf", 4), ("PPh3", 1))
    for t in (60, 80, 105, 120)
)


TWO = {"yield": "maximize", "price": "minimize"}


def test_two_objectives_and_a_budget_from_the_form_to_the_figure(page, address, http):
    """Yield is measured, price is known; every experiment costs its price, and the money runs out."""
    page.goto(f"{address}/#/new")
    page.get_by_label("Name", exact=True).fill("compromise")
    page.get_by_label("Goal").select_option("several")
    page.get_by_label("Objective 1", exact=True).fill("yield")
    page.get_by_label("Table, one candidate per line").fill(PRICED)
    page.get_by_role("button", name="Create the study").click()
    page.get_by_text("Name at least two objectives").wait_for()
    page.get_by_label("Objective 2", exact=True).fill("price")
    page.get_by_label("Aim 2").select_option("minimize")
    page.get_by_label("Highest possible 1").fill("100")
    page.get_by_label("Objective 3", exact=True).fill("purity <i>")
    page.get_by_role("button", name="Create the study").click()
    page.get_by_text("A range has two ends").wait_for()
    page.get_by_label("Lowest possible 1").fill("0")
    page.get_by_label("Column with the cost").fill("prize")
    page.get_by_label("Budget").fill("60")
    page.get_by_role("button", name="Create the study").click()
    page.locator(".field", has=page.get_by_label("Column with the cost")).get_by_text("'prize' is no column").wait_for()
    page.get_by_label("Column with the cost").fill("price")
    page.get_by_role("button", name="Create the study").click()
    page.get_by_role("heading", name="compromise").wait_for()
    left = page.locator(".tiles div", has_text="Budget left")
    assert "60" in left.inner_text()
    page.get_by_label("How many").fill("4")
    page.get_by_role("button", name="Ask").click()
    page.get_by_role("heading", name="Experiments: 4 are pending").wait_for()
    heads = page.get_by_role("region", name="Pending trials").locator("th").all_inner_texts()
    assert heads[5:8] == ["yield", "purity <i>", "Note"]  # the price is known
    rows = page.locator("form.plate tbody tr").all()
    rows[0].locator("input.reward").first.fill("71,5")
    page.get_by_role("button", name="Tell rewards").click()
    assert page.get_by_text("This is not a number").is_visible()  # one of two is missing
    for k, row in enumerate(rows[:3]):
        for value, cell in zip((70.5 + k, 90 - 3 * k), row.locator("input.reward").all(), strict=True):
            cell.fill(str(value))
    rows[2].locator("input.reward").first.fill("172,5")
    page.get_by_role("button", name="Tell rewards").click()
    page.locator(".problem:visible, .note.error").filter(has_text="100").first.wait_for()  # outside its range
    rows[2].locator("input.reward").first.fill("72,5")
    page.get_by_role("button", name="Tell rewards").click()
    page.get_by_text("3 rewards stored.").wait_for()
    figure = page.locator("[data-plot=pareto]")
    figure.get_by_text("Best compromises").first.wait_for()
    figure.get_by_text("As a table").click()
    assert "purity <i>" in figure.get_by_role("table").inner_text()
    study = Caller(http, "compromise")
    assert figure.locator("tbody tr").count() == len(study.get("pareto")["pareto"])
    name = study.get("pending")["pending"][0]["x"]["name"]
    page.get_by_text("Paste results by name").click()
    page.get_by_label("Names and results").fill(f"{name}\t60,5\t99")
    page.get_by_role("cell", name="yield 60.5, purity <i> 99").wait_for()
    page.get_by_role("button", name="Store 1 result").click()
    page.get_by_text("Nothing is pending.").wait_for()
    page.get_by_role("button", name="Correct the reward of trial 3").click()
    dialog = page.get_by_role("dialog", name="Correct trial 3")
    assert dialog.get_by_label("purity <i>").input_value() == "99"
    dialog.get_by_label("purity <i>").fill("98; 97")
    dialog.get_by_label("yield").fill("60; 61")
    dialog.get_by_role("button", name="Correct it").click()
    page.get_by_text("Trial 3 is corrected to yield 60; 61, purity <i> 98; 97.").wait_for()
    money = study.get()["money"]
    assert money["left"] == 60 - money["spent"] < 60
    assert str(round(money["left"])) in left.inner_text()
    page.get_by_label("How many").fill("12")  # more than there is money for
    page.get_by_role("button", name="Ask").click()
    page.locator(".problem:visible, .note.error").filter(has_text="budget").first.wait_for()


def test_the_page_follows_what_another_process_does(page, address, storage, http):
    create(
        http,
        "shared",
        {
            "kind": "table",
            "csv": CSV,
            "models": {"polarity": ["polarity", "celsius"], "base": ["base"]},
            "kernels": "linear",
        },
    )
    page.goto(at(address, "shared"))
    page.get_by_text("Live", exact=True).wait_for()
    page.evaluate("window.kept = true")
    with load_study("shared", storage) as study:
        for trial in study.ask(8):
            study.tell(trial, 30.0 + 4.0 * float(trial.x["polarity"]) + 0.2 * float(trial.x["celsius"]))
        page.locator(".headline", has_text="polarity leads").wait_for()
        assert re.search(r"polarity has .* after \d rewards", drawn(page))
        page.locator("#announcer", has_text="8 rewards stored").wait_for(state="attached")
        waiting = study.ask(lease=60.0)
        page.get_by_text("1 is pending").wait_for()
        page.get_by_label(f"Reward of trial {waiting.id}").fill("12")
        study.tell(0, study.trials_dataframe()["reward"][0] + 0.5, if_told="amend")
        page.wait_for_function("() => document.querySelector('#status').dataset.state === 'live'")
        page.wait_for_timeout(700)
        assert page.get_by_label(f"Reward of trial {waiting.id}").input_value() == "12"  # what is half typed stays
        page.get_by_role("button", name=f"Abandon trial {waiting.id}").click()
        page.get_by_role("dialog").get_by_role("button", name="Abandon it").click()
        page.get_by_text("Nothing is pending.").wait_for()
        assert study.counts["abandoned"] == 1
        study.ask()
        page.get_by_label("Note on trial 9").fill("lost if it failed")
        page.get_by_role("button", name="Trial 9 failed").click()
        page.get_by_role("dialog").get_by_label("Why, if you like").fill("tar <i>")
        page.get_by_role("dialog").get_by_role("button", name="It failed").click()
        page.get_by_text("Trial 9 has failed.").wait_for()
        page.get_by_text("failed: tar <i>").wait_for()
        assert study.counts["failed"] == 1
        page.get_by_role("button", name="Withdraw the reward of trial 7").click()
        page.get_by_role("dialog").get_by_role("button", name="Withdraw it").click()
        page.get_by_text("The reward of trial 7 is withdrawn.").wait_for()
        assert study.counts["abandoned"] == 2
    assert page.evaluate("window.kept"), "the page was loaded again"
    http.delete("/v1/studies/shared").raise_for_status()
    page.locator("#status", has_text="This study has been deleted").wait_for()


def test_an_interval_has_its_curve_and_plots_follow_the_dark(page, address, http):
    page.goto(f"{address}/#/new")
    page.get_by_label("Name", exact=True).fill("polymer")
    page.get_by_label("A number between two ends").check()
    page.get_by_label("Points in between").fill("60")
    page.get_by_label("Functions per model").fill("9")  # more than the family has
    page.get_by_role("button", name="Create the study").click()
    page.locator("main").get_by_text("size must be at most").wait_for()
    page.get_by_label("Functions per model").fill("2")
    page.get_by_label("Noise, standard deviation").fill("0.1")
    page.get_by_label("Largest size of a reward").fill("2")
    page.get_by_role("button", name="Create the study").click()
    page.get_by_role("heading", name="polymer").wait_for()
    for _ in range(5):
        trials = http.post("/v1/studies/polymer/ask", json={"n": 2}).json()["trials"]
        results = [{"trial": trial["id"], "reward": 1.0 - trial["x"] ** 2} for trial in trials]
        http.post("/v1/studies/polymer/tell", json={"results": results}).raise_for_status()
    curve = page.locator("[data-plot=interval]")
    curve.wait_for()
    page.locator("[data-plot=rewards] .hint", has_text="10 rewards").wait_for()
    curve.get_by_text("As a table").click()
    curve.get_by_role("table").locator("tbody tr").nth(20).wait_for()
    ground = "() => getComputedStyle(document.querySelector('[data-plot=interval] .main-svg')).backgroundColor"
    light = page.evaluate(ground)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"before => ({ground})() !== before", arg=light)
    assert page.locator(".stopping").inner_text().count("No candidate is better than") == 1
    page.get_by_text("As formula and value").click()
    page.get_by_role("cell", name="noise_std", exact=True).wait_for()


def test_texts_of_users_stay_texts(page, address, http):
    csv = f'name,size\n"{EVIL}",1\nplain,2\nother,3\n'
    name, problem = f"{EVIL}/%2e&amp;", {"kind": "table", "csv": csv, "models": {EVIL: ["size"], "<b>b</b>": ["name"]}}
    for called in ("evil", name):
        create(http, called, problem)
        caller = Caller(http, quote(called, safe=""))
        for trial in caller.post("ask", n=3, worker=EVIL)["trials"][:2]:
            caller.post("tell", results=[{"trial": trial["id"], "reward": float(trial["index"])}])
    for shown in (address, at(address, "evil"), at(address, name)):
        page.goto("about:blank")
        page.goto(shown)
        page.get_by_text(EVIL).first.wait_for()
        assert page.locator("main img").count() == 0
        assert page.locator("main b", has_text=re.compile("^b$")).count() == 0


def test_contextual_studies_have_neither_best_nor_curve(page, address, http):
    study = create(http, "arms", ARMS)
    page.goto(at(address, "arms"))
    page.get_by_label("Context, as JSON").fill("[0.5, ")
    page.get_by_role("button", name="Ask").click()
    page.get_by_text("not JSON").wait_for()
    page.get_by_label("Context, as JSON").fill("[0.5, 0.25]")
    page.get_by_role("button", name="Ask").click()
    page.get_by_label("Reward of trial 0").fill("1.5")
    page.get_by_role("button", name="Tell rewards").click()
    page.get_by_text("Mean reward so far").wait_for()
    page.get_by_text("depend on the round").wait_for()
    assert page.get_by_text("Recommended").count() == 0
    assert page.locator("[data-plot=interval]").is_hidden()
    assert study.get()["counts"]["told"] == 1


def test_who_may_only_read_is_told_so(chromium, tmp_path):
    with serving(f"sqlite:///{tmp_path / 's.db'}", tokens={WRITER: "write", READER: "read"}) as (address, _):
        with client(address, WRITER) as http:
            create(http, "s")
        with page_of(chromium, http_credentials={"username": "anybody", "password": READER}) as page:
            page.goto(at(address, "s"))
            page.get_by_text("Live", exact=True).wait_for()
            page.get_by_role("button", name="Ask").click()
            page.get_by_text("this token may read only").wait_for()
            assert unexpected(page) == []


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed, and `make test` could not install it")
def test_no_serious_fault_of_accessibility(page, address, http):
    models = {"polarity": ["polarity", "celsius"], "base": ["base"], "all": ["solvent", "base", "celsius"]}
    study = create(http, "read", {"kind": "table", "csv": CSV, "models": models})
    trials = study.post("ask", n=9)["trials"]
    study.post("tell", results=[{"trial": t["id"], "reward": measured(t["label"])} for t in trials[:7]])

    def look():
        for size in (DESK, PHONE):
            page.set_viewport_size(size)
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
                assert faults(page) == [], (size, scheme)

    page.goto(address)
    page.get_by_role("link", name="read", exact=True).wait_for()
    look()
    page.goto(f"{address}/#/new")
    page.get_by_label("Goal").select_option("several")
    page.get_by_label("Table, one candidate per line").fill(CSV)
    page.get_by_label("Kind of solvent").wait_for()
    page.get_by_text("How to read it").click()
    look()
    page.goto(at(address, "read"))
    page.locator("[data-plot=plausible] .main-svg").first.wait_for()
    for summary in page.get_by_text("As a table").all():
        if summary.is_visible():
            summary.click()
    for folded in ("Conditions of the plate", "Paste results by name", "Add candidates"):
        page.get_by_text(folded).click()
    page.get_by_label("Plate of").select_option("96")
    page.get_by_label("Only candidates where").fill("nothing")
    page.get_by_role("button", name="Ask").click()
    page.locator(".problem:visible").wait_for()
    page.get_by_label("Names and results").fill("trial\treward\n7\t3.5")
    page.get_by_role("button", name="Store 1 result").wait_for()
    look()
    page.get_by_role("button", name=re.compile("^Correct the reward")).first.click()
    assert faults(page) == []
    page.keyboard.press("Escape")
    page.locator("button:focus", has_text="Correct").wait_for()
    money = create(http, "money", {"kind": "table", "csv": PRICED}, objectives=TWO, cost="price", budget=100)
    money.post("tell", results=[{"trial": t["id"], "reward": {"yield": 50}} for t in money.post("ask", n=2)["trials"]])
    page.goto(at(address, "money"))
    page.locator("[data-plot=pareto] .main-svg").first.wait_for()
    look()
