// The two kinds of problems that the form can describe: their inputs, and the request that they give.

import { field, fill, h, mark, newId, note, option, table } from "./dom.js";
import { ACCEPT, content, DECIMALS, Reading } from "./reading.js";
import { many } from "./words.js";

export const numeric = (value, more = {}) =>
  h("input", { type: "number", step: "any", value, inputmode: "decimal", ...more });

const KINDS = ["number", "log", "words", "yes/no", "SMILES", "label"];
const HEADINGS = ["Column", "Kind", "Example", "Becomes"];
const MISSING = [
  ["refuse", "Refuse them"],
  ["drop", "Leave out these candidates"],
  ["median", "Fill in the median; such candidates are not proposed"],
  ["leave out", "Leave out these columns"],
];

/**
 * A table of candidates: the service reads it, the page shows what it understood. While `adding` to a study, how its
 * models are made is known already.
 */
export class TablePart {
  constructor(put, { adding = false } = {}) {
    this.adding = adding;
    const changed = () => this.reading.later();
    this.csv = put(
      "problem.csv",
      h("textarea", {
        rows: "6",
        spellcheck: "false",
        wrap: "off",
        class: "code",
        placeholder: "ligand,base,temperature\nXPhos,KOAc,90\n…",
      }),
    );
    this.file = put("problem.file", h("input", { type: "file", accept: ACCEPT }));
    this.more = put(
      "problem.models",
      h("input", { type: "file", accept: ACCEPT, multiple: true, onchange: () => this.loadMore() }),
    );
    const text = (name) => put(`problem.${name}`, h("input", { type: "text", maxlength: "200", oninput: changed }));
    this.id = text("id");
    this.sheet = text("sheet");
    this.reward = text("reward");
    this.header = put("problem.header", numeric("", { min: "1", step: "1", oninput: changed }));
    this.missing = put("problem.missing", h("select", { onchange: changed }, MISSING.map(option)));
    this.decimal = put(
      "problem.decimal",
      h("select", { onchange: changed }, DECIMALS.map(option)),
    );
    this.kernels = put(
      "problem.kernels",
      h(
        "select",
        {},
        [
          ["auto", "Curved: kernels chosen automatically"],
          ["linear", "Linear in the columns"],
        ].map(option),
      ),
    );
    this.column = h("input", { type: "text", maxlength: "200" });
    this.kind = h("select", {}, KINDS.map((kind) => option([kind, kind])));
    this.summary = h("div", { role: "status" });
    this.kinds = {};
    this.models = {};
    this.reading = new Reading({
      file: this.file,
      text: this.csv,
      place: this.summary,
      request: () => ["/v1/tables/preview", this.request()],
      show: (understood) => this.show(understood),
      taken: () => {
        this.kinds = {}; // what was stated about the columns of another table no longer holds
        for (const input of [this.csv, this.file]) mark(input, null);
      },
      refused: (trouble) => {
        const named = /column '([^']+)'/.exec(trouble.message);
        if (named) this.column.value = named[1];
      },
    });
    this.element = h(
      "div",
      {},
      h(
        "div",
        { class: "fields" },
        field("File", this.file, { hint: "CSV, Excel (.xlsx) or Parquet, one candidate per line." }),
        field("Further descriptions", this.more, {
          hint: adding
            ? "If the study has any: files of the same names, matched by id."
            : "Files with features of the candidates, matched by id. Each gets models of its own.",
        }),
      ),
      field("Table, one candidate per line", this.csv, { hint: "Or paste it here, with its line of column names." }),
      this.summary,
      h(
        "details",
        {},
        h("summary", {}, "How to read it"),
        h(
          "div",
          { class: "fields" },
          field("Column of ids (id)", this.id),
          field("Column of results (reward)", this.reward, { hint: "They count as measured." }),
          field("Blank cells (missing)", this.missing),
          field("Decimal sign (decimal)", this.decimal),
          field("Sheet of a workbook (sheet)", this.sheet),
          field("Line of the names (header)", this.header),
          adding ? null : field("Kind of models", this.kernels),
          field("State the kind of column (kinds)", this.column),
          field("Its kind", this.kind),
        ),
        h(
          "div",
          { class: "buttons start" },
          h(
            "button",
            { type: "button", class: "plain", onclick: () => this.state(this.column.value, this.kind.value) },
            "State this kind",
          ),
        ),
      ),
    );
  }

  async loadMore() {
    const files = await Promise.all([...this.more.files].map(content));
    this.models = Object.fromEntries(files.map((file) => [file.name.replace(/\.[^.]*$/, ""), file]));
    this.reading.later(0);
  }

  state(column, kind) {
    if (!column) return;
    this.kinds[column] = kind;
    this.reading.later(0);
  }

  request() {
    const body = { kind: "table", ...this.reading.given, kinds: this.kinds, missing: this.missing.value };
    for (const name of ["id", "sheet", "decimal", "reward"]) if (this[name].value.trim()) body[name] = this[name].value.trim();
    if (this.header.value) body.header = Number(this.header.value);
    if (Object.keys(this.models).length) body.models = this.models;
    return body;
  }

  show(understood) {
    if (understood === null) return fill(this.summary);
    const rows = understood.columns.map((column) => {
      const own = !column.description && !["id", "result"].includes(column.kind);
      const name = column.description ? `${column.description}: ${column.name}` : column.name;
      const cells = [name, own ? this.choice(column) : column.kind, column.example, column.becomes];
      return this.adding ? cells.slice(0, 3) : cells; // what a column becomes depends on all candidates
    });
    const count = `${many(understood.n_candidates, "candidate")}, ${many(understood.columns.length, "column")}.`;
    const said = [...understood.remarks, ...understood.warnings];
    return fill(
      this.summary,
      h("p", { class: "hint" }, `${count} ${understood.file}`),
      h("div", { class: "understood" }, table("What the columns are", HEADINGS.slice(0, rows[0].length), rows, [], true)),
      said.map((text) => note("warning", text)),
    );
  }

  /** The kind of a column, to be corrected. */
  choice(column) {
    const id = newId("kind");
    const select = h(
      "select",
      { id, "aria-label": `Kind of ${column.name}`, onchange: () => this.state(column.name, select.value) },
      KINDS.map((kind) => option([kind, kind])),
    );
    select.value = column.kind;
    return select;
  }

  find(where) {
    return where.startsWith("problem") ? (this.reading.given?.file ? this.file : this.csv) : null;
  }

  problem() {
    if (this.reading.given === null) {
      mark(this.csv, "Choose a file, or paste a table: a line of column names, and one line per candidate");
      this.csv.focus();
      return null;
    }
    return this.adding ? this.request() : { ...this.request(), kernels: this.kernels.value };
  }
}

const FAMILIES = [
  ["legendre", "Legendre polynomials"],
  ["polynomial", "Powers of x"],
  ["fourier", "Waves"],
];

/** A number between two ends, and a family of functions. */
export class IntervalPart {
  constructor(put) {
    this.lower = put("problem.lower", numeric("-1"));
    this.upper = put("problem.upper", numeric("1"));
    this.resolution = put("problem.resolution", numeric("200", { min: "2", step: "1" }));
    this.family = h("select", {}, FAMILIES.map(option));
    this.degree = put("problem.models.degree", numeric("6", { min: "0", step: "1" }));
    this.size = put("problem.models.size", numeric("2", { min: "1", step: "1" }));
    this.element = h(
      "div",
      { class: "fields", hidden: true },
      field("From", this.lower),
      field("To", this.upper),
      field("Points in between", this.resolution),
      field("Family", this.family),
      field("Highest degree or frequency", this.degree),
      field("Functions per model", this.size, { hint: "Every set of so many functions of the family is one model." }),
    );
  }

  find(where) {
    return where === "problem.models.frequencies" ? this.degree : where.startsWith("problem") ? this.lower : null;
  }

  problem() {
    const degree = Number(this.degree.value);
    const family = this.family.value;
    const models = {
      family,
      size: Number(this.size.value),
      ...(family === "fourier" ? { frequencies: degree } : { degree }),
    };
    return {
      kind: "interval",
      lower: Number(this.lower.value),
      upper: Number(this.upper.value),
      resolution: Number(this.resolution.value),
      models,
    };
  }
}
