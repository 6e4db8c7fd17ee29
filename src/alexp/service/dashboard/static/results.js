// Results by name: lines pasted from a spreadsheet, or a file; what the service understood is shown before it is stored.

import { of } from "./api.js";
import { acting, careful } from "./writing.js";
import { field, fill, h, newId, option, table } from "./dom.js";
import { ACCEPT, DECIMALS, Reading } from "./reading.js";
import { many, measured, measures } from "./words.js";

const ACTIONS = { tell: "new", fail: "new", amend: "replaces the stored one", skip: "stored already" };

/** The folded part of a plate's card; `stored(text)` is called when results were stored. */
export class Results {
  constructor(name, message, stored) {
    Object.assign(this, { name, message, stored });
    this.text = h("textarea", { rows: "5", spellcheck: "false", wrap: "off", class: "code" });
    this.file = h("input", { type: "file", accept: ACCEPT });
    this.decimal = h("select", { onchange: () => this.reading.later(0) }, DECIMALS.map(option));
    this.amend = h("input", { type: "checkbox", id: newId("amend"), onchange: () => this.reading.later(0) });
    this.button = h("button", { type: "submit", class: "primary", hidden: true }, "Store");
    this.understood = h("div", { role: "status" });
    this.hint = h("span", {});
    this.reading = new Reading({
      file: this.file,
      text: this.text,
      place: this.understood,
      request: () => [of(name, "results/preview"), this.request()],
      show: (answer) => this.show(answer),
      taken: () => (this.button.hidden = true),
      refused: () => (this.button.hidden = true),
    });
    this.element = h(
      "details",
      {},
      h("summary", {}, "Paste results by name, or upload them"),
      h(
        "form",
        { novalidate: true, onsubmit: (event) => this.store(event) },
        field("Names and results, one experiment per line", this.text, { hint: this.hint }),
        h(
          "div",
          { class: "fields" },
          field("Or a file of results", this.file, { hint: "The plate as it was downloaded and filled in, or a table." }),
          field("Decimal sign of the results", this.decimal),
        ),
        h(
          "p",
          { class: "choice" },
          this.amend,
          h("label", { for: this.amend.id }, "Replace results that are stored already and differ"),
        ),
        this.understood,
        h("div", { class: "buttons start" }, this.button),
      ),
    );
  }

  /** Say which columns the study takes. */
  setUp(view) {
    const names = measures(view);
    const [what, titles] = names.length > 1 ? [names.join(", "), names.join(", ")] : ["its result", "reward"];
    this.hint.textContent =
      `Copy the columns from your spreadsheet: the name of the candidate, and ${what}. Several measurements are written ` +
      "71.2; 72.9, a failed experiment failed. With a line of titles there may be other columns: " +
      `${view.columns[0]} or trial, ${titles}, note.`;
  }

  /** Take a text that was pasted elsewhere on the page. */
  take(text) {
    this.element.open = true;
    this.text.value = text;
    this.reading.pasted();
    this.text.focus();
  }

  request() {
    const body = { ...this.reading.given, partial: true, amend: this.amend.checked };
    return this.decimal.value ? { ...body, decimal: this.decimal.value } : body;
  }

  show(answer) {
    this.button.hidden = answer === null;
    if (answer === null) return fill(this.understood);
    const rows = answer.results.map((one) => [
      String(one.trial),
      one.label,
      measured(one.reward),
      one.note,
      ACTIONS[one.action],
    ]);
    this.button.textContent = `Store ${many(rows.length, "result")}`;
    const headings = ["Trial", "Candidate", "Result", "Note", "This is"];
    return fill(this.understood, table("What was understood", headings, rows, [0], true));
  }

  async store(event) {
    event.preventDefault();
    const { results } = this.reading.answer;
    const body = {
      results: results.map(({ trial, reward, note }) => (note ? { trial, reward, note } : { trial, reward })),
      if_told: this.amend.checked ? "amend" : "same",
    };
    await acting({ button: this.button, message: this.message }, async () => {
      const did = await careful(of(this.name, "tell"), body);
      if (did === null) return;
      this.reading.clear();
      this.amend.checked = false;
      this.element.open = false;
      const also = [did.amended && `${did.amended} replaced`, did.skipped && `${did.skipped} known already`];
      await this.stored([`${many(did.told, "result")} stored`, ...also.filter(Boolean)].join(", ") + ".");
    });
  }
}
