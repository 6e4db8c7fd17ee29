// The form that asks for experiments: how many, for whom, and the conditions of the plate.

import { of } from "./api.js";
import { acting, careful } from "./writing.js";
import { field, fill, h, mark, note, option } from "./dom.js";
import { many } from "./words.js";

const RULES = [
  ["at_most", "at most, of each value"],
  ["together", "the same in all"],
];

/** The form; messages are shown in `message`, and `asked` is called after new trials were stored. */
export class Asking {
  constructor(name, message, asked) {
    Object.assign(this, { name, message, asked, limits: [] });
    this.element = h("form", { class: "asking", novalidate: true, onsubmit: (event) => this.ask(event) });
  }

  /** Make the inputs, once the columns of the candidates are known. */
  setUp(view) {
    this.columns = view.columns;
    this.n = h("input", { type: "number", min: "1", step: "1", value: "8", inputmode: "numeric", required: true });
    this.hours = h("input", { type: "number", min: "0", step: "any", placeholder: "no end", inputmode: "decimal" });
    this.worker = h("input", {
      type: "text",
      maxlength: "200",
      autocomplete: "nickname",
      placeholder: "this server",
      value: localStorage.getItem("worker") ?? "",
    });
    this.inputs = { n: this.n, lease: this.hours, worker: this.worker };
    const parts = [field("How many", this.n), field("Lease, hours", this.hours), field("Worker", this.worker)];
    if (view.domain === "Arms" || view.domain === "Candidates") {
      this.n.value = "1";
      const what = view.domain === "Arms" ? "context" : "features";
      this.round = h("textarea", {
        rows: "2",
        spellcheck: "false",
        placeholder: what === "context" ? "[0.3, 1.2]" : "[[0.3, 1.2], [0.1, 0.4]]",
      });
      this.inputs[what] = this.round;
      parts.unshift(
        field(what === "context" ? "Context, as JSON" : "Features, as JSON: one list per candidate", this.round),
      );
    }
    fill(
      this.element,
      h("div", { class: "inline" }, ...parts, h("button", { type: "submit", class: "primary" }, "Ask")),
      view.domain === "FiniteSet" ? this.conditions() : null,
    );
  }

  conditions() {
    this.where = this.inputs.where = h("input", {
      type: "text",
      maxlength: "10000",
      autocomplete: "off",
      spellcheck: "false",
      oninput: () => this.counted(),
    });
    this.rows = h("div", {});
    this.summary = h("summary", {}, "Conditions of the plate");
    this.limit();
    return h(
      "details",
      {},
      this.summary,
      field("Only candidates where", this.where, {
        hint: `Such as temperature <= 105 and solvent != 'DMF'. Columns: ${this.columns.join(", ")}.`,
      }),
      this.rows,
      h("button", { type: "button", class: "plain small", onclick: () => this.limit().column.focus() }, "Another limit"),
    );
  }

  /** One more line for a limit: a column, a rule, and perhaps a number. */
  limit() {
    const changed = () => {
      most.hidden = rule.value !== "at_most";
      this.counted();
    };
    const column = h(
      "select",
      { onchange: changed },
      [["", "no limit"], ...this.columns.map((name) => [name, name])].map(option),
    );
    const rule = h("select", { onchange: changed }, RULES.map(option));
    const number = h("input", { type: "number", min: "1", step: "1", value: "2", inputmode: "numeric" });
    const most = field("At most", number);
    this.rows.append(h("div", { class: "inline" }, field("Column", column), field("Limit", rule), most));
    this.limits.push({ column, rule, number });
    return this.limits.at(-1);
  }

  stated() {
    return this.limits.filter(({ column }) => column.value);
  }

  /** Say how many conditions there are, also while they are folded away. */
  counted() {
    const n = this.stated().length + (this.where.value.trim() ? 1 : 0);
    this.summary.textContent = n ? `Conditions of the plate: ${n}` : "Conditions of the plate";
  }

  /** The input of a field of the request. */
  find(name) {
    const [first, column] = [/^\w+/.exec(name)?.[0], /^at_most\.(.*)$/.exec(name)?.[1]];
    if (this.inputs[first]) return this.inputs[first];
    const own = this.stated().filter(({ rule }) => rule.value === first);
    const one = own.find((limit) => limit.column.value === column) ?? own[0];
    return one && (column === undefined ? one.column : one.number);
  }

  body() {
    const body = { n: Number(this.n.value) };
    if (this.hours.value) body.lease = 3600 * Number(this.hours.value);
    if (this.worker.value.trim()) body.worker = this.worker.value.trim();
    if (this.round?.value.trim()) body[this.inputs.context ? "context" : "features"] = JSON.parse(this.round.value);
    if (this.where?.value.trim()) body.where = this.where.value.trim();
    const of = (kind) => this.stated().filter(({ rule }) => rule.value === kind);
    if (of("at_most").length)
      body.at_most = Object.fromEntries(of("at_most").map(({ column, number }) => [column.value, Number(number.value)]));
    if (of("together").length) body.together = of("together").map(({ column }) => column.value);
    return body;
  }

  async ask(event) {
    event.preventDefault();
    const limits = this.limits.flatMap(({ column, number }) => [column, number]);
    [...Object.values(this.inputs), ...limits].forEach((input) => mark(input, null));
    localStorage.setItem("worker", this.worker.value.trim());
    let body;
    try {
      body = this.body();
    } catch (error) {
      return mark(this.round, `not JSON: ${error.message}`);
    }
    const find = (name) => this.find(name);
    await acting({ button: event.submitter, message: this.message, find }, async () => {
      const { trials } = await careful(of(this.name, "ask"), body);
      const shown = trials.slice(0, 8).map((trial) => trial.label);
      const text = `${many(trials.length, "experiment")} proposed: ${shown.join("; ")}${trials.length > 8 ? " …" : ""}`;
      fill(this.message, note("good", text));
      await this.asked();
    });
  }
}
