"""Tables as laboratories and instruments write them, and what must come of each: the columns, or the error."""

import io
from dataclasses import dataclass, field
from datetime import datetime, time


@dataclass(frozen=True)
class Case:
    """A file, options of the reader, and the verdict: kinds and values of columns, or texts of the error."""

    name: str
    data: bytes
    kinds: dict = field(default_factory=dict)  # column -> kind
    cells: dict = field(default_factory=dict)  # column -> cells
    error: tuple = ()
    options: dict = field(default_factory=dict)
    suffix: str = "csv"

    @property
    def file(self):
        return f"{self.name}.{self.suffix}"


def text(*lines, encoding="utf-8", end="\n"):
    return end.join([*lines, ""]).encode(encoding)


def workbook(*sheets, titles=None):
    import openpyxl

    book = openpyxl.Workbook()
    book.remove(book.active)
    for k, rows in enumerate(sheets):
        sheet = book.create_sheet((titles or ["Sheet1", "Sheet2", "Sheet3"])[k])
        for row in rows:
            sheet.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def formula():
    import openpyxl

    book = openpyxl.Workbook()
    for row in (["name", "x", "y"], ["a", 1, "=B2*2"], ["b", 2, "=B3*2"]):
        book.active.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def percentages(*shown):
    """Cells that Excel shows as percentages: 0.025 as 2.5 %."""
    import openpyxl

    book = openpyxl.Workbook()
    for k, value in enumerate(["loading", 0.025, 0.1, 0.07], 1):
        book.active.append([("name", "a", "b", "c")[k - 1], value])
    for line in shown:
        book.active.cell(line, 2).number_format = "0.0%"
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def parquet():
    import pandas as pd

    out = io.BytesIO()
    pd.DataFrame({"name": ["a", "b", "c"], "x": [0.5, 1.5, 2.5]}).to_parquet(out)
    return out.getvalue()


def merged():
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["name", "conditions", None, "ratio"])
    sheet.append([None, "T", "t", None])
    sheet.append(["a", 60, 1, 2])
    sheet.append(["b", 80, 2, 3])
    sheet.merge_cells("B1:C1")
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


PLAIN = {"name": "id", "x": "number"}
HALVES = {"x": [0.5, 1.5, 2.25]}

CASES = [
    # -- text in many forms -------------------------------------------------------------------------------------
    Case("plain", text("name,x", "a,0.5", "b,1.5", "c,2.25"), PLAIN, HALVES),
    Case("windows_line_ends", text("name,x", "a,0.5", "b,1.5", "c,2.25", end="\r\n"), PLAIN, HALVES),
    Case("tabs", text("name\tx", "a\t0.5", "b\t1.5", "c\t2.25"), PLAIN, HALVES, suffix="tsv"),
    Case("semicolons", text("name;x", "a;0.5", "b;1.5", "c;2.25"), PLAIN, HALVES),
    Case("decimal_commas", text("name;x", "a;0,5", "b;1,5", "c;2,25"), PLAIN, HALVES),
    Case("excel_sep_line", text("sep=;", "name;x", "a;0,5", "b;1,5", "c;2,25"), PLAIN, HALVES),
    Case("bom", text("name;x", "a;0,5", "b;1,5", "c;2,25", encoding="utf-8-sig"), PLAIN, HALVES),
    Case("utf16", text("name\tx", "a\t0,5", "b\t1,5", "c\t2,25", encoding="utf-16"), PLAIN, HALVES, suffix="txt"),
    Case(
        "latin1",
        text("Kürzel;Lösungsmittel;T (°C)", "a;Äther;60", "b;Äther;80", "c;Wasser;60", encoding="latin-1"),
        {"Kürzel": "id", "Lösungsmittel": "words", "T (°C)": "number"},
        {"Lösungsmittel": ["Äther", "Äther", "Wasser"], "T (°C)": [60, 80, 60]},
    ),
    Case(
        "windows_1252",
        text("name;x;price", "a;1,5;5 €", "b;2,5;7 €", encoding="cp1252"),
        {"price": "number"},
        {"price": [5, 7], "x": [1.5, 2.5]},
    ),
    Case(
        "quoted",
        b'"name","x"\n"2,2\'-bipyridine","1.5"\n"b ""x""","2.5"\n',
        PLAIN,
        {"name": ["2,2'-bipyridine", 'b "x"'], "x": [1.5, 2.5]},
    ),
    Case("trailing_empty_columns", text("name;x;;", "a;0,5;;", "b;1,5;;", ";;;"), PLAIN, {"x": [0.5, 1.5]}),
    Case(
        "thousands",
        text("name;x;y", "a;1.234,5;1'234", "b;12,25;2'000"),
        PLAIN,
        {"x": [1234.5, 12.25], "y": [1234, 2000]},
    ),
    Case("english_thousands", b'name,x\na,"1,234.5"\nb,"1,234,567"\n', PLAIN, {"x": [1234.5, 1234567.0]}),
    Case("thin_spaces", text("name;x", "a;1\u202f234,5", "b;\u22122,5"), PLAIN, {"x": [1234.5, -2.5]}),
    Case("percent", text("name,conversion", "a,85 %", "b,7.5%"), {"conversion": "number"}, {"conversion": [85.0, 7.5]}),
    Case(
        "units",
        text("name,T,t", "a,60 °C,30 min", "b,80°C,45 min"),
        {"T": "number", "t": "number"},
        {"T": [60, 80], "t": [30, 45]},
    ),
    Case("three_decimals", text("name,pKa", "a,4.756", "b,9.245"), {"pKa": "number"}, {"pKa": [4.756, 9.245]}),
    Case("yes_no", text("name,dry", "a,yes", "b,No", "c,yes"), {"dry": "yes/no"}, {"dry": ["yes", "No", "yes"]}),
    Case("codes", text("name,lot", "a,007", "b,012", "c,007"), {"lot": "words"}, {"lot": ["007", "012", "007"]}),
    Case(
        "factorial",
        text("solvent,base,T", "DMF,KOAc,90", "DMF,CsOPiv,105", "water,KOAc,105", "water,CsOPiv,90"),
        {"solvent": "words", "base": "words", "T": "number"},
    ),
    Case("other_id", text("well plate,x", "A1,1", "A2,2"), {"well plate": "id", "x": "number"}),
    Case("id_by_keyword", text("x,Kürzel", "1,a", "2,b"), {"Kürzel": "id"}, options={"id": "Kürzel"}),
    Case(
        "units_line_skipped",
        text("name,T,t", ",°C,h", "a,60,1", "b,80,2", "c,90,4"),
        {"T": "number"},
        {"T": [60, 80, 90]},
        options={"skip": [2]},
    ),
    Case("title_skipped", text("Run 12", "name,T,t", "a,60,1", "b,80,2"), {"T": "number"}, options={"header": 2}),
    Case(
        "bounds_replaced",
        text("name,x", "a,<0.1", "b,0.5", "c,0.7"),
        PLAIN,
        {"x": [0.05, 0.5, 0.7]},
        options={"replace": {"<0.1": 0.05}},
    ),
    Case(
        "dates_ignored",
        text("name,made,x", "a,2024-03-01,1", "b,2024-03-02,2"),
        {"made": "label", "x": "number"},
        options={"ignore": ["made"]},
    ),
    Case(
        "blanks_median",
        text("name,x", "a,1", "b,", "c,4", "d,n/a"),
        PLAIN,
        {"x": [1, "", 4, ""]},
        options={"missing": "median"},
    ),
    Case(
        "blanks_dropped",
        text("name,x", "a,1", "b,", "c,4"),
        PLAIN,
        {"name": ["a", "c"], "x": [1, 4]},
        options={"missing": "drop"},
    ),
    Case(
        "blanks_left_out",
        text("name,x,y", "a,1,2", "b,,3", "c,4,5"),
        {"x": "label", "y": "number"},
        options={"missing": "leave out"},
    ),
    Case(
        "stated_decimal", text("name;x", "a;1,234", "b;2,345"), PLAIN, {"x": [1.234, 2.345]}, options={"decimal": ","}
    ),
    Case(
        "workbook",
        workbook([["name", "T (°C)", "solvent"], ["a", 60, "DMF"], ["b", 80.5, "DMF"], ["c", 90, "water"]]),
        {"T (°C)": "number", "solvent": "words"},
        {"T (°C)": [60.0, 80.5, 90.0]},
        suffix="xlsx",
    ),
    Case(
        "workbook_sheet",
        workbook([["notes"], ["x"]], [["name", "x"], ["a", "0,5"], ["b", "1,5"]]),
        PLAIN,
        {"x": [0.5, 1.5]},
        options={"sheet": "Sheet2"},
        suffix="xlsx",
    ),
    Case("parquet", parquet(), PLAIN, {"x": [0.5, 1.5, 2.5]}, suffix="parquet"),
    Case(
        "smiles",
        text("name,smiles", "ethanol,CCO", "benzene,c1ccccc1", "acid,CC(=O)O"),
        {"smiles": "SMILES"},
        {"smiles": ["CCO", "c1ccccc1", "CC(=O)O"]},
    ),
    # -- refused ------------------------------------------------------------------------------------------------
    Case(
        "ambiguous_comma",
        text("name;x", "a;1,234", "b;2,345"),
        error=("line 2, column 'x': '1,234' may be 1.234 or 1234.0", "decimal={'x': ','}"),
    ),
    Case(
        "ambiguous_point",
        text("name;x;y", "a;1.234;0,5", "b;2.345;0,7"),
        error=("line 2, column 'x': '1.234' may be 1234.0 or 1.234", "decimal={'x': '.'}"),
    ),
    Case(
        "mixed_decimals",
        text("name;x", "a;0,5", "b;0.7"),
        error=("line 3, column 'x'", "decimal commas ('0,5')", "decimal points ('0.7', line 3)"),
    ),
    Case(
        "comma_in_comma_file",
        text("name,x,y", "a,0,5,1", "b,0,7,2"),
        error=("line 2: 4 cells, but the header has 3", "semicolons"),
    ),
    Case(
        "blank",
        text("name,x,y", "a,1,2", "b,,3", "c,4,n/a"),
        error=("line 3, column 'x': the cell is blank", "line 4, column 'y': the cell is blank", "missing='median'"),
    ),
    Case(
        "word_among_numbers",
        text("name,x", "a,1", "b,tar", "c,4"),
        error=("line 3, column 'x': 'tar' is not a number, but 2 of 3 cells are", "kinds={'x': 'words'}"),
    ),
    Case(
        "bound",
        text("name,x", "a,<0.1", "b,0.5", "c,1"),
        error=("line 2, column 'x': '<0.1' is a bound", "replace={'<0.1': ...}"),
    ),
    Case(
        "two_units", text("name,T", "a,60 °C", "b,333 K"), error=("line 3, column 'T': the unit 'K' differs from '°C'",)
    ),
    Case(
        "some_units",
        text("name,T", "a,60 °C", "b,80"),
        error=("line 3, column 'T': this number has no unit", "kinds={'T': 'number'}"),
    ),
    Case("header_unit_differs", text("name,T (K)", "a,60 °C", "b,80 °C"), error=("the unit '°C' differs from 'K'",)),
    Case(
        "unknown_unit",
        text("name,x", "a,12 foo", "b,13 foo", "c,12 foo"),
        error=("line 2, column 'x': '12 foo' may be a number with the unit 'foo'", "kinds={'x': 'words'}"),
    ),
    Case(
        "dates",
        text("name,made,x", "a,01.03.2024,1", "b,02.03.2024,2"),
        error=("line 2, column 'made': '01.03.2024' is a date", "ignore=['made']"),
    ),
    Case(
        "workbook_dates",
        workbook([["name", "made"], ["a", datetime(2024, 3, 1)], ["b", datetime(2024, 3, 2)]]),
        error=("line 2, column 'made'", "is a date"),
        suffix="xlsx",
    ),
    Case(
        "duplicate_ids",
        text("name,x", "a,1", "b,2", "", "a,3"),
        error=("line 5, column 'name': the id 'a' is on line 2 already",),
    ),
    Case("blank_id", text("id,x", "a,1", ",2"), error=("line 3, column 'id': the id is blank",)),
    Case("merged_header", merged(), error=("line 1: column 3 has no name (merged cells?)", "header=2"), suffix="xlsx"),
    Case(
        "units_line",
        text("name,T,t", ",°C,h", "a,60,1", "b,80,2", "c,90,4"),
        error=("line 2: this line has texts ('°C', 'h')", "skip=[2]"),
    ),
    Case(
        "title",
        text("Run 12 of Monday", "name,T,t", "a,60,1", "b,80,2"),
        error=("line 1: the first line has one cell, the lines below it 3", "header=2"),
    ),
    Case("same_names", text("name,x,x", "a,1,2", "b,2,3"), error=("line 1: columns 2 and 3 have the same name 'x'",)),
    Case("header_only", text("name,x"), error=("must have a header and at least one line",)),
    Case(
        "two_sheets",
        workbook([["name", "x"], ["a", 1], ["b", 2]], [["name", "y"], ["a", 1], ["b", 2]]),
        error=("has 2 sheets with cells ('Sheet1', 'Sheet2')", "sheet='Sheet1'"),
        suffix="xlsx",
    ),
    Case(
        "no_such_column",
        text("name,temperature", "a,1", "b,2"),
        options={"kinds": {"temprature": "number"}},
        error=("has no column 'temprature'", "'temperature'"),
    ),
    Case(
        "old_workbook",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100),
        error=("old format .xls", "save it as .xlsx"),
        suffix="xls",
    ),
    Case("picture", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0", error=("is not a table",), suffix="png"),
    Case(
        "bad_smiles",
        text("name,smiles", "a,CCO", "b,C1CC"),
        error=("line 3, column 'smiles': 'C1CC' is not the SMILES",),
    ),
    Case("reaction_smiles", text("name,smiles", "a,CCO>>CC", "b,C"), error=("line 2, column 'smiles'", "a reaction")),
    Case("reserved", text("trial,x", "1,2", "2,3"), error=("must not have a column 'trial'", "rename it")),
    # Written by other programs: instruments, European Excel, scripts.
    Case("german_booleans", text("name;trocken", "a;WAHR", "b;FALSCH"), {"trocken": "yes/no"}),
    Case("excel_booleans", workbook([["name", "dry"], ["a", True], ["b", False]]), {"dry": "yes/no"}, suffix="xlsx"),
    Case("latin1_units", text("name;Vol (µL)", "a;10,5", "b;9,75", encoding="latin-1"), {"Vol (µL)": "number"}),
    Case(
        "euro_cells",
        text("name;Preis", "a;1,50 €", "b;2,50 €", encoding="cp1252"),
        {"Preis": "number"},
        {"Preis": [1.5, 2.5]},
    ),
    Case("exponents", text("name;x", "a;1,0E-03", "b;2,5E+04"), {"x": "number"}, {"x": [0.001, 25000.0]}),
    Case("swiss_thousands", text("name;x", "a;1'234.5", "b;2'345.5"), {"x": "number"}, {"x": [1234.5, 2345.5]}),
    Case("barcodes", text("name,lot", "a,12345678901234567890", "b,12345678901234567891"), {"lot": "words"}),
    Case("cas_numbers", text("id,cas", "a,64-17-5", "b,67-56-1"), {"cas": "words"}),
    Case(
        "text_in_excel",
        workbook([["name", "x"], ["a", "1,5"], ["b", "2"]]),
        {"x": "number"},
        {"x": [1.5, 2.0]},
        suffix="xlsx",
    ),
    Case("old_mac", b"name,x\ra,1\rb,2\r", {"x": "number"}, {"x": [1, 2]}),
    Case("one_column", text("x", "1", "2", "3"), {"x": "number"}),
    Case("formula", formula(), error=("line 2, column 3", "'=B2*2' has no stored value", "save it"), suffix="xlsx"),
    Case(
        "title_and_operator",
        workbook([["Screening"], [], ["Operator: X"], ["name", "T", "y"], ["a", 60, 1], ["b", 80, 2]]),
        error=("line 1", "header=4"),
        suffix="xlsx",
    ),
    Case(
        "title_text",
        text("Plate reader;;", "Date: 1.5.2024;;", ";;", "Well;OD;Dose", "A1;0,5;1", "A2;0,7;2"),
        error=("line 1", "header=4"),
    ),
    Case(
        "comments",
        text("# instrument 7", "# run 3", "name,x", "a,1", "b,2"),
        error=("line 1: '# instrument 7' looks like a comment", "header=3"),
    ),
    Case("title_of_one_cell", text("Run 7", "", "name;x;y", "a;1;2", "b;2;3"), error=("line 1", "header=3")),
    Case("pipes", text("name|x", "a|1", "b|2"), error=("'name|x' looks like 2 columns separated by '|'",)),
    Case("blanks_between", text("name x y", "a 1 2", "b 2 3"), error=("3 columns separated by blanks",), suffix="txt"),
    Case("web_page", b"<html><table><tr><td>name</td></tr></table></html>", error=("is a web page",), suffix="xls"),
    Case(
        "plus_minus",
        text("name,y", "a,71.2 ± 0.5", "b,72.9 ± 0.4"),
        error=("line 2, column 'y': '71.2 ± 0.5' has several numbers", "ignore=['y']"),
    ),
    Case("intervals", text("name,x", "a,10-20", "b,20-30"), error=("'10-20' has several numbers",)),
    Case("ratios", text("name,er", "a,95:5", "b,90:10"), error=("'95:5' has several numbers",)),
    Case(
        "times",
        workbook([["name", "t"], ["a", time(0, 30)], ["b", time(1, 45)]]),
        error=("'00:30:00' has several numbers",),
        suffix="xlsx",
    ),
    Case(
        "serial_dates",
        text("name,date", "a,45231", "b,45240"),
        error=("line 2, column 'date': '45231' may be a date", "kinds={'date': 'number'}"),
    ),
    Case(
        "sum_below",
        text("name,x", "a,1", "b,2", "Total,3"),
        error=("line 4, column 'name': 'Total' looks like a summary", "skip=[4]"),
    ),
    Case("sum_skipped", text("name,x", "a,1", "b,2", "Total,3"), {"x": "number"}, {"x": [1, 2]}, options={"skip": [4]}),
    Case("error_cells", text("name,x", "a,1", "b,#WERT!", "c,3"), error=("line 3, column 'x': '#WERT!' is not a",)),
    Case(
        "percent_or_share", text("name,ee", "a,85%", "b,0.9"), error=("line 3, column 'ee': this number has no unit",)
    ),
    Case("header_only_xlsx", workbook([["name", "x"]]), error=("header and at least one line",), suffix="xlsx"),
    # Played by hand: what was silently wrong, or refused with the wrong remedy.
    Case("utf16_big_endian", "\ufeffname;x\na;0,5\nb;1,5\n".encode("utf-16-be"), PLAIN, {"x": [0.5, 1.5]}),
    Case("mixed_line_ends", b"name,x\r\na,0.5\nb,1.5\rc,2.25\r\n", PLAIN, HALVES),
    Case(
        "line_in_a_cell",
        b'name,"T\n(K)",x\na,"300",1\nb,310,tar\nc,320,2\n',
        error=("line 4, column 'x': 'tar' is not a number",),
    ),
    Case("delimiters_behind", text("name;x", "a;0,5;", "b;1,5;"), PLAIN, {"x": [0.5, 1.5]}),
    Case("ids_like_dates", text("id,x", "1-2,1", "SEPT2,2", "007,3"), cells={"id": ["1-2", "SEPT2", "007"]}),
    Case(
        "ids_like_numbers", text("Sample,x", "1E5,1", "2E3,2", "100000,3"), cells={"Sample": ["1E5", "2E3", "100000"]}
    ),
    Case("no_break_thousands", text("name;m", "a;1\u00a0234,5 g", "b;12\u00a0345,0 g"), cells={"m": [1234.5, 12345.0]}),
    Case("percent_in_quotes", b'name,ee\na,"3,5 %"\nb,"12,25 %"\n', {"ee": "number"}, {"ee": [3.5, 12.25]}),
    Case("percent_cells", percentages(2, 3, 4), {"loading": "number"}, {"loading": [2.5, 10.0, 7.0]}, suffix="xlsx"),
    Case(
        "some_percent_cells",
        percentages(2, 4),
        error=("line 3, column 'loading': this number has no unit, others of the column have '%'",),
        suffix="xlsx",
    ),
    Case(
        "two_forms_of_umlauts",
        "name,solvent,x\na,Äther,1\nb,A\u0308ther,2\nc,THF,3\n".encode(),
        {"solvent": "words"},
        {"solvent": ["Äther", "Äther", "THF"]},
    ),
    Case(
        "away_from_the_corner",
        workbook([[], [], [None, "name", None, "x"], [None, "a", None, 0.5], [None, "b", None, 1.5]]),
        PLAIN,
        {"x": [0.5, 1.5]},
        suffix="xlsx",
    ),
    Case(
        "same_names_beside_a_gap", text(";name;x;x", ";a;1;2", ";b;2;3"), error=("columns 3 and 4 have the same name",)
    ),
    Case(
        "units_line_xlsx",
        workbook([["name", "T", "t"], [None, "°C", "h"], ["a", 60, 1], ["b", 80, 2], ["c", 90, 3]]),
        error=("line 2: this line has texts ('°C', 'h')", "skip=[2]"),
        suffix="xlsx",
    ),
    Case(
        "hidden_sheet",
        workbook([["name", "x"], ["a", 1], ["b", 2]], [["DMF"], ["THF"]], titles=["Daten", "Listen"]),
        error=("has 2 sheets with cells ('Daten', 'Listen')", "sheet='Daten'"),
        suffix="xlsx",
    ),
    Case(
        "two_summaries",
        text("name;x", "a;1,5", "b;2,5", "c;4,5", ";", "Mittelwert;2,83", "Stabw.;1,2"),
        error=("line 6, column 'name': 'Mittelwert' looks like a summary", "skip=[6, 7]"),
    ),
    Case(
        "printed_by",
        text("name;x;y", "a;1,5;1", "b;2,5;2", "", "Gedruckt am 12.03.2024"),
        error=("line 5: 1 cells, but the header has 3", "skip=[5]"),
    ),
    Case(
        "error_among_words",
        text("name;solvent;x", "a;DMF;1", "b;#REF!;2", "c;DMF;3"),
        error=("line 3, column 'solvent': '#REF!' is an error of the spreadsheet", "replace={'#REF!': ...}"),
    ),
    Case(
        "error_replaced",
        text("name;solvent;x", "a;DMF;1", "b;#BEZUG!;2", "c;DMF;3"),
        {"solvent": "words"},
        {"solvent": ["DMF", "THF", "DMF"]},
        options={"replace": {"#BEZUG!": "THF"}},
    ),
    Case("powers_of_ten", text("name;k", "a;1,2·10^-3", "b;3,4·10^-5"), error=("'1,2·10^-3' has several numbers",)),
    Case(
        "points_beside_semicolons",
        text("name;x;base", "a;1.234;KOAc", "b;12.345;CsOAc"),
        error=("line 2, column 'x': '1.234' may be 1234.0 or 1.234", "decimal={'x': '.'}"),
    ),
    Case("sure_points", text("name;x;y", "a;1.234;0.5", "b;12.345;0.75"), cells={"x": [1.234, 12.345]}),
    Case("stated_points", text("name;x", "a;1.234", "b;2.345"), cells={"x": [1.234, 2.345]}, options={"decimal": "."}),
    Case(
        "stated_point_of_one", text("name;x", "a;1.234", "b;2.345"), cells={"x": [1234, 2345]}, options={"decimal": ","}
    ),
]
