// The two kinds of problems that the form can describe: their inputs, and the request that they give.

import { isNumeric, proposed, readTable } from "./csv.js";
import { field, fill, h, mark, newId } from "./dom.js";
import { many } from "./words.js";

export const option = ([value, text]) => h("option", { value }, text);
export const numeric = (value, more = {}) =>
  h("input", { type: "number", step: "any", value, inputmode: "decimal", ...more });

/** A table of candidates, with models from its columns. */
export class TablePart {
  constructor(put) {
    this.csv = put(
      "problem.csv",
      h("textarea", {
        rows: "8",
        spellcheck: "false",
        wrap: "off",
        class: "code",
        placeholder: "ligand,base,temperature\nXPhos,KOAc,90\n…",
        oninput: () => this.read(),
      }),
    );
    this.file = h("input", { type: "file", accept: ".csv,.tsv,.txt,text/csv", onchange: () => this.load() });
    this.kernels = put(
      "problem.kernels",
      h(
        "select",
        {},
        [
          ["linear", "Linear in the columns"],
          ["auto", "Curved: kernels chosen automatically"],
        ].map(option),
      ),
    );
    this.summary = h("p", { class: "hint", role: "status" });
    this.models = h("div", { class: "models" });
    this.problemText = h("p", { class: "problem", hidden: true, role: "alert" });
    this.table = null;
    this.rows = [];
    this.builder = h(
      "div",
      { hidden: true },
      h("h3", {}, "Models: which columns describe the candidates?"),
      h(
        "p",
        { class: "hint" },
        "Each model is one way to describe a candidate. The study finds out which of them the rewards follow. Columns of words become one column of zeros and ones per word.",
      ),
      this.models,
      this.problemText,
      h(
        "div",
        { class: "buttons start" },
        h("button", { type: "button", class: "plain", onclick: () => this.add("", []).focus() }, "Add a model"),
      ),
      h("div", { class: "fields" }, field("Kind of models", this.kernels)),
    );
    this.element = h(
      "div",
      {},
      field("Table, one candidate per line", this.csv, {
        hint: "Paste it here with its line of column names, or choose a file.",
      }),
      field("File", this.file),
      this.summary,
      this.builder,
    );
  }

  async load() {
    const [file] = this.file.files;
    if (!file) return;
    this.csv.value = await file.text();
    this.read();
  }

  read() {
    mark(this.csv, null);
    this.table = readTable(this.csv.value);
    this.builder.hidden = this.table === null;
    this.summary.textContent = this.table
      ? `${many(this.table.rows.length, "candidate")}, ${many(this.table.header.length, "column")}.`
      : "";
    if (this.table === null || this.table.header.join("\n") === this.known) return;
    this.known = this.table.header.join("\n");
    fill(this.models);
    this.rows = [];
    for (const [name, columns] of Object.entries(proposed(this.table))) this.add(name, columns);
  }

  add(name, columns) {
    const title = h("input", {
      type: "text",
      value: name,
      "aria-label": "Name of the model",
      placeholder: "Name",
      maxlength: "200",
    });
    const boxes = this.table.header.map((column, k) => {
      const box = h("input", { type: "checkbox", id: newId("column"), value: column });
      box.checked = columns.includes(column);
      const kind = isNumeric(this.table.rows, k) ? null : h("span", { class: "hint" }, " (words)");
      return { box, element: h("span", { class: "choice" }, box, h("label", { for: box.id }, column, kind)) };
    });
    const row = { title, boxes: boxes.map(({ box }) => box) };
    const element = h(
      "fieldset",
      { class: "model" },
      h("legend", { class: "unseen" }, "Model"),
      title,
      h(
        "div",
        { class: "choices" },
        boxes.map((one) => one.element),
      ),
      h(
        "button",
        {
          type: "button",
          class: "plain small",
          onclick: () => {
            this.rows = this.rows.filter((other) => other !== row);
            element.remove();
          },
        },
        "Remove",
      ),
    );
    this.rows.push(row);
    this.models.append(element);
    return title;
  }

  say(text) {
    this.problemText.textContent = text ?? "";
    this.problemText.hidden = !text;
  }

  find(where) {
    if (!where.startsWith("problem")) return null;
    return where.startsWith("problem.models") ? (this.rows[0]?.title ?? null) : this.csv;
  }

  problem() {
    this.say(null);
    if (this.table === null) {
      mark(this.csv, "Paste a table: a line of column names, and one line per candidate");
      this.csv.focus();
      return null;
    }
    const models = {};
    for (const { title, boxes } of this.rows) {
      const name = title.value.trim();
      const columns = boxes.filter((box) => box.checked).map((box) => box.value);
      const wrong = !name
        ? "Every model needs a name"
        : name in models
          ? `There are two models ${name}`
          : !columns.length
            ? `Model ${name} has no columns`
            : null;
      if (wrong) {
        this.say(wrong);
        title.focus();
        return null;
      }
      models[name] = columns;
    }
    if (!this.rows.length) {
      this.say("There must be at least one model");
      return null;
    }
    return { kind: "table", csv: this.csv.value, models, kernels: this.kernels.value };
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
