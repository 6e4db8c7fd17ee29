// New candidates: a table of them, looked at before it is added.

import { of, post } from "./api.js";
import { acting } from "./writing.js";
import { fill, h, note } from "./dom.js";
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
}
