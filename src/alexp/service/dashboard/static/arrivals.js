// What comes to a study later: new candidates, looked at before they are added, and results of old campaigns.

import { of, post } from "./api.js";
import { acting } from "./writing.js";
import { field, fill, h, note } from "./dom.js";
import { TablePart } from "./problems.js";
import { many } from "./words.js";

/** The card of the candidates; `changed` is called after some were added. */
export class Arrivals {
  constructor(name, changed) {
    Object.assign(this, { name, changed });
    const inputs = new Map();
    this.part = new TablePart((field, input) => inputs.set(field, input) && input, { adding: true });
    this.message = h("div", {});
    this.heading = h("h2", { id: "candidates" }, "Candidates");
    this.columns = h("p", { class: "hint" });
    this.button = h("button", { type: "submit", class: "primary" }, "Add the candidates");
    this.details = h(
      "details",
      {},
      h("summary", {}, "Add candidates"),
      this.columns,
      h(
        "form",
        { novalidate: true, onsubmit: (event) => this.add(event, (where) => inputs.get(`problem.${where}`)) },
        this.part.element,
        h("div", { class: "buttons start" }, this.button),
      ),
    );
    this.element = h(
      "section",
      { class: "card", "aria-labelledby": "candidates", hidden: true },
      this.heading,
      this.message,
      this.details,
      this.campaigns(),
    );
  }

  update(view) {
    this.element.hidden = view.domain !== "FiniteSet";
    this.heading.textContent = `Candidates: ${view.n_candidates.toLocaleString("en")}`;
    this.columns.textContent = `New ones may be proposed from the next plate on. Their table has the columns of the first: ${view.columns.join(", ")}.`;
  }

  async add(event, find) {
    event.preventDefault();
    const table = this.part.problem();
    if (table === null) return;
    await acting({ button: this.button, message: this.message, find }, async () => {
      const { candidates, warnings } = await post(of(this.name, "candidates"), table);
      this.part.reading.clear();
      this.details.open = false;
      fill(
        this.message,
        note("good", `${many(candidates.length, "candidate")} added.`),
        warnings.map((text) => note("warning", text)),
      );
      await this.changed();
    });
  }
  /** The fold with the form for the results of an old campaign. */
  campaigns() {
    const title = h("input", { type: "text", maxlength: "200", required: true });
    const results = h("textarea", { rows: "6", spellcheck: "false", required: true });
    const reward = h("input", { type: "text", maxlength: "200", value: "reward" });
    const button = h("button", { type: "submit", class: "primary" }, "Learn from the results");
    const find = (where) => (where.startsWith("reward") ? reward : results);
    const learn = async (event) => {
      event.preventDefault();
      await acting({ button, message: this.message, find }, async () => {
        const body = { memory: { [title.value.trim()]: results.value }, reward: reward.value };
        const { warnings } = await post(of(this.name, "learn"), body);
        results.value = "";
        details.open = false;
        fill(
          this.message,
          note("good", "Learned. What the past is worth stands below the leading models."),
          warnings.map((text) => note("warning", text)),
        );
        await this.changed();
      });
    };
    const details = h(
      "details",
      {},
      h("summary", {}, "Learn from old results"),
      h("p", { class: "hint" }, "Of another substrate, machine or year, with the columns of the candidates and one with results, in any unit."),
      h(
        "form",
        { onsubmit: learn },
        field("Name of the campaign", title, { hint: "Such as 2023." }),
        field("Old results, one per line", results, { hint: "Paste them from a spreadsheet, or as CSV, with the names of the columns first." }),
        field("Column with the results", reward),
        h("div", { class: "buttons start" }, button),
      ),
    );
    return details;
  }
}
