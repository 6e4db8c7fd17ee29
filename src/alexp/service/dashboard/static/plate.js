// The plate: what is to be measured, and what came out.

import { ahead, of } from "./api.js";
import { Asking } from "./asking.js";
import { Results } from "./results.js";
import { maps, SIZES, well } from "./wells.js";
import { acting, careful, typedMeasures, typedReward } from "./writing.js";
import { field, fill, h, mark, newId, note, option, question, table } from "./dom.js";
import { cell, many, measures, span } from "./words.js";

const MOST = 8; // columns of the candidates that are shown

/** The card of one study's pending trials; `changed` is called after every write. */
export class Plate {
  constructor(name, changed) {
    Object.assign(this, { name, changed, rows: new Map(), view: null });
    this.message = h("div", {});
    this.asking = new Asking(name, this.message, () => {
      this.focusNext = true; // on the rows of the new trials, which a cached view may not have yet
      return changed();
    });
    this.results = new Results(name, this.message, (text) => this.done(text));
    this.place = h("div", {});
    this.tellButton = h("button", { type: "submit", class: "primary" }, "Tell rewards");
    this.more = h("p", { class: "hint" });
    this.size = h(
      "select",
      { id: newId("wells"), onchange: () => this.sized() },
      [["", "no wells"], ...Object.keys(SIZES).map((size) => [size, `${size} wells`])].map(option),
    );
    this.size.value = localStorage.getItem("wells") ?? "";
    this.maps = h("div", {});
    const file = (form, words) => h("a", { class: "button", href: of(name, `plate?form=${form}`), download: true }, words);
    this.telling = h(
      "form",
      {
        class: "plate",
        novalidate: true,
        onsubmit: (event) => this.tell(event),
        onkeydown: (event) => this.next(event),
        onpaste: (event) => this.paste(event),
      },
      this.place,
      this.more,
      h(
        "p",
        { class: "hint" },
        "Leave blank what is not measured yet; write failed where an experiment failed, and replicates as 71.2; 72.9. " +
          "A column copied from a spreadsheet can be pasted.",
      ),
      h(
        "div",
        { class: "buttons start" },
        this.tellButton,
        file("xlsx", "Plate as Excel"),
        file("csv", "Plate as CSV"),
        h("span", { class: "choice" }, h("label", { for: this.size.id }, "Plate of"), this.size),
      ),
      this.maps,
    );
    this.empty = h("p", {}, "Nothing is pending.");
    this.heading = h("h2", { id: "plate" }, "Experiments");
    this.element = h(
      "section",
      { class: "card", "aria-labelledby": "plate" },
      this.heading,
      this.asking.element,
      this.message,
      this.empty,
      this.telling,
      this.results.element,
    );
  }

  setUp(view) {
    this.contextual = view.domain === "Arms" || view.domain === "Candidates";
    this.shown = view.columns.slice(0, MOST);
    this.asking.setUp(view);
    this.size.parentElement.hidden = view.domain !== "FiniteSet";
    this.results.setUp(view);
    this.results.element.hidden = this.contextual;
    this.measures = measures(view);
    const headings = ["Trial", ...this.shown, ...this.measures, "Note", "Asked", "Actions"];
    fill(this.place, table("Pending trials", headings, [], [0], true));
    this.body = this.place.querySelector("tbody");
  }

  update(view) {
    if (!this.view) this.setUp(view);
    this.view = view;
    const any = view.pending.length > 0;
    const focused = this.telling.contains(document.activeElement);
    this.empty.hidden = any;
    this.telling.hidden = !any;
    this.heading.textContent = view.counts.pending
      ? `Experiments: ${many(view.counts.pending, "is", "are")} pending`
      : "Experiments";
    const now = Date.now() / 1000 + ahead;
    const wanted = new Set(view.pending.map((trial) => trial.id));
    for (const [id, row] of this.rows) {
      if (!wanted.has(id)) {
        row.element.remove();
        this.rows.delete(id);
      }
    }
    for (const trial of view.pending) {
      if (!this.rows.has(trial.id)) {
        this.rows.set(trial.id, this.row(trial));
        this.body.append(this.rows.get(trial.id).element);
      }
      const row = this.rows.get(trial.id);
      const place = well(trial, this.size.value);
      fill(row.number, String(trial.id), place ? h("span", { class: "hint" }, ` ${place}`) : null);
      fill(row.asked, `${span(now - trial.at)} ago, ${trial.worker}`, lease(trial, now));
    }
    fill(this.maps, this.size.value && !this.contextual ? maps(this.name, view.pending, Number(this.size.value)) : null);
    const left = view.counts.pending - view.pending.length;
    const hidden = view.columns.length - this.shown.length;
    const more = [left > 0 && many(left, "more trial"), hidden > 0 && many(hidden, "more column")].filter(Boolean);
    this.more.textContent = more.length ? `${more.join(" and ")}: see the plate as a file.` : "";
    if (this.focusNext && any) {
      this.focusNext = false;
      this.proceed();
    } else if (focused && !(any && this.telling.contains(document.activeElement))) {
      this.proceed(); // the row that had the focus is gone
    }
  }

  sized() {
    localStorage.setItem("wells", this.size.value);
    this.update(this.view);
  }

  row(trial) {
    const written = h("input", {
      type: "text",
      maxlength: "2000",
      autocomplete: "off",
      size: "12",
      "aria-label": `Note on trial ${trial.id}`,
    });
    const inputs = this.measures.map((measure, k) => {
      const input = h("input", {
        type: "text",
        class: "reward",
        inputmode: "decimal",
        autocomplete: "off",
        size: "10",
        "aria-label": `${measure} of trial ${trial.id}, ${trial.label}`,
        id: `reward-${trial.id}-${k}`,
        oninput: () => mark(input, null),
      });
      return input;
    });
    const at = (column, ...content) => h("td", { role: "cell", dataset: { column } }, ...content);
    const asked = at("Asked");
    const give = h(
      "button",
      {
        type: "button",
        class: "plain small",
        "aria-label": `Abandon trial ${trial.id}`,
        onclick: () => this.abandon(trial),
      },
      "Abandon",
    );
    const fail = h(
      "button",
      {
        type: "button",
        class: "plain small",
        "aria-label": `Trial ${trial.id} failed`,
        onclick: () => this.fail(trial),
      },
      "Failed",
    );
    const problem = (input) => h("p", { class: "problem", id: `${input.id}-problem`, hidden: true });
    const number = at("Trial");
    number.className = "n";
    const described = this.shown.map((name, k) => {
      const content = at(name, cell(trial.cells[k]) ?? "");
      content.className = "described";
      return content;
    });
    const cells = [
      number,
      ...described,
      ...inputs.map((input, k) => at(this.measures[k], input, problem(input))),
      at("Note", written),
      asked,
      at("Actions", h("span", { class: "buttons tight" }, this.contextual ? null : fail, give)),
    ];
    return { element: h("tr", { role: "row" }, cells), number, asked, inputs, written };
  }

  inputsInOrder() {
    return [...this.body.querySelectorAll("input.reward")];
  }

  next(event) {
    if (event.key !== "Enter" || event.target.tagName !== "INPUT") return;
    event.preventDefault();
    const inputs = this.inputsInOrder();
    (inputs[inputs.indexOf(event.target) + 1] ?? this.tellButton).focus();
  }

  /** Cells of a spreadsheet: rewards go into the inputs from here on, names and rewards into the part for them. */
  paste(event) {
    const text = event.clipboardData.getData("text");
    const lines = text.trim().split(/\r?\n/).map((line) => line.split("\t"));
    const rows = [...this.rows.values()].map((row) => row.inputs);
    const down = rows.findIndex((inputs) => inputs.includes(event.target));
    if (down < 0 || (lines.length < 2 && lines[0].length < 2)) return;
    event.preventDefault();
    const across = rows[down].indexOf(event.target);
    const isReward = (cell) => !cell.trim() || typedReward(cell) !== null;
    if (lines.every((cells) => cells.length <= this.measures.length - across && (cells.length < 2 || cells.every(isReward))))
      lines.forEach((cells, r) => cells.forEach((cell, c) => rows[down + r] && (rows[down + r][across + c].value = cell.trim())));
    else this.results.take(text);
  }

  async tell(event) {
    event.preventDefault();
    const results = [];
    const inputs = [];
    let wrong = null;
    for (const [trial, row] of this.rows) {
      if (row.inputs.every((input) => !input.value.trim())) continue;
      const reward = typedMeasures(row.inputs, this.measures);
      if (reward === null) wrong ??= row.inputs.find((input) => input.hasAttribute("aria-invalid"));
      const remark = row.written.value.trim();
      results.push(remark ? { trial, reward, note: remark } : { trial, reward });
      inputs.push(row.inputs[0]);
    }
    if (wrong) return wrong.focus();
    if (results.length === 0) return fill(this.message, note("error", "Type in at least one reward."));
    const find = (name) => inputs[Number(/^results\[(\d+)\]/.exec(name)?.[1] ?? -1)];
    await acting({ button: this.tellButton, message: this.message, find }, async () => {
      if ((await careful(of(this.name, "tell"), { results })) === null) return inputs[0].focus();
      await this.done(`${many(results.length, "reward")} stored.`);
    });
  }

  async fail(trial) {
    const input = h("input", { type: "text", maxlength: "2000", autocomplete: "off", placeholder: "vial broke" });
    const reason = await question({
      title: `Trial ${trial.id} failed?`,
      body: h(
        "div",
        {},
        h(
          "p",
          { class: "hint" },
          `${trial.label} will not be proposed again, and the models learn where failures lie. ` +
            "Trials, below, can be corrected.",
        ),
        field("Why, if you like", input),
      ),
      confirm: "It failed",
      danger: true,
      answer: () => input.value.trim(),
    });
    if (reason === null) return;
    await acting({ message: this.message }, async () => {
      await careful(of(this.name, "fail"), { trial: trial.id, reason });
      await this.done(`Trial ${trial.id} has failed.`);
    });
  }

  async abandon(trial) {
    const sure = await question({
      title: `Abandon trial ${trial.id}?`,
      body: h(
        "p",
        {},
        `${trial.label} will take no reward any more, and may be proposed again. If the experiment failed, say so instead.`,
      ),
      confirm: "Abandon it",
      danger: true,
    });
    if (!sure) return;
    await acting({ message: this.message }, async () => {
      await careful(of(this.name, "abandon"), { trials: [trial.id] });
      await this.done(`Trial ${trial.id} is abandoned.`);
    });
  }

  /** Say what was done, show it, and go on with what is pending. */
  async done(text) {
    fill(this.message, note("good", text));
    await this.changed();
    this.proceed();
  }

  /** The keyboard goes on with the next pending trial, or with the next plate. */
  proceed() {
    (this.inputsInOrder()[0] ?? this.asking.n).focus();
  }
}

function lease(trial, now) {
  if (trial.until === null) return null;
  const left = trial.until - now;
  return h(
    "span",
    { class: left > 0 ? "hint" : "hint late" },
    left > 0 ? ` for ${span(left)} more` : ` lease expired ${span(-left)} ago`,
  );
}
