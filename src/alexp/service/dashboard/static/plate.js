// The plate: ask for experiments, show pending ones with their workers, and tell rewards.

import { ahead, of } from "./api.js";
import { careful, placed, typedReward } from "./writing.js";
import { field, fill, h, mark, note, question, table } from "./dom.js";
import { many, span } from "./words.js";

/** The card of one study's pending trials; `changed` is called after every write. */
export class Plate {
  constructor(name, changed) {
    Object.assign(this, { name, changed, rows: new Map(), contextual: false, view: null });
    this.message = h("div", {});
    this.asking = h("form", { class: "inline", novalidate: true, onsubmit: (event) => this.ask(event) });
    this.table = table(
      "Pending trials",
      ["Trial", "Candidate", "Asked", "Worker", "Reward", "Note", "Actions"],
      [],
      [0],
      true,
    );
    this.body = this.table.querySelector("tbody");
    this.tellButton = h("button", { type: "submit", class: "primary" }, "Tell rewards");
    this.more = h("p", { class: "hint" });
    this.telling = h(
      "form",
      {
        novalidate: true,
        onsubmit: (event) => this.tell(event),
        onkeydown: (event) => this.next(event),
        onpaste: (event) => this.paste(event),
      },
      this.table,
      this.more,
      h(
        "div",
        { class: "buttons start" },
        this.tellButton,
        h(
          "span",
          { class: "hint" },
          "Leave blank what is not measured yet; write failed where an experiment failed, and replicates as 71.2; 72.9. " +
            "A column copied from a spreadsheet can be pasted.",
        ),
      ),
    );
    this.empty = h("p", {}, "Nothing is pending.");
    this.heading = h("h2", { id: "plate" }, "Experiments");
    this.element = h(
      "section",
      { class: "card", "aria-labelledby": "plate" },
      this.heading,
      this.asking,
      this.message,
      this.empty,
      this.telling,
    );
  }

  setUp(view) {
    this.contextual = view.domain === "Arms" || view.domain === "Candidates";
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
    if (this.contextual) {
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
    fill(this.asking, ...parts, h("button", { type: "submit", class: "primary" }, "Ask"));
  }

  update(view) {
    if (!this.view) this.setUp(view);
    this.view = view;
    const any = view.pending.length > 0;
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
      row.asked.textContent = `${span(now - trial.at)} ago`;
      fill(row.worker, trial.worker, lease(trial, now));
    }
    const left = view.counts.pending - view.pending.length;
    this.more.textContent = left > 0 ? `and ${left.toLocaleString("en")} more` : "";
    if (this.focusNext && any) {
      this.focusNext = false;
      this.inputsInOrder()[0].focus();
    }
  }

  row(trial) {
    const written = h("input", {
      type: "text",
      maxlength: "2000",
      autocomplete: "off",
      size: "12",
      "aria-label": `Note on trial ${trial.id}`,
    });
    const input = h("input", {
      type: "text",
      class: "reward",
      inputmode: "decimal",
      autocomplete: "off",
      size: "10",
      "aria-label": `Reward of trial ${trial.id}, ${trial.label}`,
      id: `reward-${trial.id}`,
      oninput: () => mark(input, null),
    });
    const cell = (column, ...content) => h("td", { role: "cell", dataset: { column } }, ...content);
    const asked = cell("Asked");
    const worker = cell("Worker");
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
    const problem = h("p", { class: "problem", id: `${input.id}-problem`, hidden: true });
    const number = cell("Trial", String(trial.id));
    number.className = "n";
    const cells = [
      number,
      cell("Candidate", trial.label),
      asked,
      worker,
      cell("Reward", input, problem),
      cell("Note", written),
      cell("Actions", h("span", { class: "buttons tight" }, this.contextual ? null : fail, give)),
    ];
    return { element: h("tr", { role: "row" }, cells), asked, worker, input, written };
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

  paste(event) {
    const lines = event.clipboardData.getData("text").trim().split(/\r?\n/);
    const inputs = this.inputsInOrder();
    const at = inputs.indexOf(event.target);
    if (lines.length < 2 || at < 0) return;
    event.preventDefault();
    lines.slice(0, inputs.length - at).forEach((line, k) => (inputs[at + k].value = line.trim()));
  }

  async ask(event) {
    event.preventDefault();
    Object.values(this.inputs).forEach((input) => mark(input, null));
    const body = { n: Number(this.n.value) };
    if (this.hours.value) body.lease = 3600 * Number(this.hours.value);
    if (this.worker.value.trim()) body.worker = this.worker.value.trim();
    localStorage.setItem("worker", this.worker.value.trim());
    if (this.round?.value.trim()) {
      try {
        body[this.inputs.context ? "context" : "features"] = JSON.parse(this.round.value);
      } catch (error) {
        mark(this.round, `not JSON: ${error.message}`);
        return;
      }
    }
    await this.write(
      event.submitter,
      async () => {
        const { trials } = await careful(of(this.name, "ask"), body);
        const text = `${many(trials.length, "experiment")} proposed: ${trials
          .slice(0, 8)
          .map((trial) => trial.label)
          .join("; ")}${trials.length > 8 ? " …" : ""}`;
        fill(this.message, note("good", text));
        this.focusNext = true; // on the rows of the new trials, which a cached view may not have yet
        await this.changed();
      },
      (name) => this.inputs[name],
    );
  }

  async tell(event) {
    event.preventDefault();
    const results = [];
    const inputs = [];
    let wrong = null;
    for (const [trial, { input, written }] of this.rows) {
      mark(input, null);
      if (!input.value.trim()) continue;
      const reward = typedReward(input.value);
      if (reward === null) {
        mark(input, "This is not a number");
        wrong ??= input;
      }
      const remark = written.value.trim();
      results.push(remark ? { trial, reward, note: remark } : { trial, reward });
      inputs.push(input);
    }
    if (wrong) return wrong.focus();
    if (results.length === 0) return fill(this.message, note("error", "Type in at least one reward."));
    await this.write(
      this.tellButton,
      async () => {
        if ((await careful(of(this.name, "tell"), { results })) === null) return inputs[0].focus();
        fill(this.message, note("good", `${many(results.length, "reward")} told.`));
        await this.changed();
        (this.inputsInOrder()[0] ?? this.n).focus();
      },
      (name) => inputs[Number(/^results\[(\d+)\]/.exec(name)?.[1] ?? -1)],
    );
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
    await this.write(null, async () => {
      await careful(of(this.name, "fail"), { trial: trial.id, reason });
      fill(this.message, note("good", `Trial ${trial.id} has failed.`));
      await this.changed();
    });
  }

  async abandon(trial) {
    const sure = await question({
      title: `Abandon trial ${trial.id}?`,
      body: h("p", {}, `${trial.label} will take no reward any more, and may be proposed again. If the experiment failed, say so instead.`),
      confirm: "Abandon it",
      danger: true,
    });
    if (!sure) return;
    await this.write(null, async () => {
      await careful(of(this.name, "abandon"), { trials: [trial.id] });
      fill(this.message, note("good", `Trial ${trial.id} is abandoned.`));
      await this.changed();
    });
  }

  /** Call `action`, with the button disabled meanwhile; errors are shown beside their inputs or above the form. */
  async write(button, action, find = () => null) {
    if (button) button.disabled = true;
    fill(this.message);
    try {
      await action();
    } catch (problem) {
      if (!placed(problem, find)) fill(this.message, note("error", problem.message));
    } finally {
      if (button) button.disabled = false;
    }
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
