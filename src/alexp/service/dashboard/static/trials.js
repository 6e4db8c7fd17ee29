// The trials of a study, newest first and a page at a time; rewards can be corrected and withdrawn.

import { of } from "./api.js";
import { careful, placed, typedMeasures } from "./writing.js";
import { field, fill, h, note, question, table } from "./dom.js";
import { many, measured, measures, number } from "./words.js";

const STATES = {
  told: "measured",
  pending: "pending",
  abandoned: "abandoned",
  failed: "failed",
  retracted: "withdrawn",
  observed: "external measurement",
};

/** The card of trials; `changed` is called after a correction, `turn(before)` to show another page. */
export class Trials {
  constructor(name, changed, turn) {
    Object.assign(this, { name, changed, view: null });
    this.message = h("div", {});
    this.body = h("div", {});
    this.where = h("span", { class: "hint" });
    this.newer = h("button", { type: "button", class: "plain", onclick: () => turn(this.newerThan()) }, "Newer");
    this.older = h("button", { type: "button", class: "plain", onclick: () => turn(this.view.trials.id[0]) }, "Older");
    this.element = h(
      "section",
      { class: "card", "aria-labelledby": "trials" },
      h("h2", { id: "trials" }, "Trials"),
      this.message,
      this.body,
      h("div", { class: "buttons start" }, this.newer, this.older, this.where),
    );
  }

  newerThan() {
    const next = this.view.trials.id.at(-1) + 1 + this.view.trials.id.length;
    return next >= this.view.counts.trials ? null : next;
  }

  update(view) {
    this.view = view;
    const { trials } = view;
    const names = new Map(view.listed.map((model, k) => [model, view.names[k]]));
    const order = trials.id.map((_, k) => k).reverse();
    const chosen = trials.model.some((model) => model !== null) || trials.explored.some(Boolean);
    const by = (k) => (trials.model[k] === null ? "–" : (names.get(trials.model[k]) ?? `model ${trials.model[k]}`));
    const columns = measures(view).map((name) => trials.values[name] ?? trials.reward);
    const rows = order.map((k) => [
      String(trials.id[k]),
      trials.label[k],
      ...(chosen ? [trials.explored[k] ? "exploration" : by(k)] : []),
      ...columns.map((values) => number(values[k], 6)),
      trials.note[k] ? `${STATES[trials.state[k]]}: ${trials.note[k]}` : STATES[trials.state[k]],
      this.buttons(
        trials.id[k],
        trials.label[k],
        columns.map((values) => values[k]),
        trials.state[k],
      ),
    ]);
    const focused = document.activeElement?.dataset?.action;
    const before = ["Trial", "Candidate", ...(chosen ? ["Chosen by"] : [])];
    const headings = [...before, ...measures(view), "State", "Actions"];
    const numeric = [0, ...columns.map((_, k) => before.length + k)];
    fill(
      this.body,
      rows.length ? table("Trials, newest first", headings, rows, numeric, true) : h("p", {}, "No trial yet."),
    );
    if (focused) this.body.querySelector(`[data-action="${CSS.escape(focused)}"]`)?.focus();
    const { id } = trials;
    this.newer.disabled = id.length === 0 || id.at(-1) >= view.counts.trials - 1;
    this.older.disabled = id.length === 0 || id[0] === 0;
    this.where.textContent = id.length ? `${id[0]} to ${id.at(-1)} of ${many(view.counts.trials, "trial")}` : "";
  }

  buttons(id, label, rewards, state) {
    if (state === "pending" || state === "abandoned") return "";
    const correct = h(
      "button",
      {
        type: "button",
        class: "plain small",
        "aria-label": `Correct the reward of trial ${id}`,
        dataset: { action: `amend-${id}` },
        onclick: () => this.amend(id, label, rewards.map((reward) => (reward === null ? "" : String(reward)))),
      },
      "Correct",
    );
    const withdraw = h(
      "button",
      {
        type: "button",
        class: "plain small",
        "aria-label": `Withdraw the ${state === "failed" ? "failure" : "reward"} of trial ${id}`,
        dataset: { action: `retract-${id}` },
        onclick: () => this.retract(id, label),
      },
      "Withdraw",
    );
    return h("span", { class: "buttons tight" }, correct, state === "retracted" ? null : withdraw);
  }

  /** Ask for the right rewards; `texts` are those shown at first, `problem` what the service said of them. */
  async amend(id, label, texts, problem = null) {
    const names = measures(this.view);
    const inputs = texts.map((value) => h("input", { type: "text", inputmode: "decimal", autocomplete: "off", value }));
    const hint = "Replicates as 71.2; 72.9; failed where the experiment failed.";
    const right = await question({
      title: `Correct trial ${id}`,
      body: h(
        "div",
        {},
        h("p", { class: "hint" }, `${label}. The study continues as if this had been entered at once; the log keeps both.`),
        inputs.map((input, k) => field(names[k], input, { hint: k === 0 ? hint : null })),
      ),
      confirm: "Correct it",
      ready: () => {
        inputs[0].select();
        if (problem) placed(problem, () => inputs[0]);
      },
      answer: () => typedMeasures(inputs, names),
    });
    if (right === null) return;
    const written = inputs.map((input) => input.value);
    try {
      const [what, body] =
        right === "failed" ? ["fail", { trial: id, if_told: "amend" }] : ["amend", { trial: id, reward: right }];
      if ((await careful(of(this.name, what), body)) === null) return this.amend(id, label, written);
      await this.done(`Trial ${id} is corrected to ${measured(right)}.`);
    } catch (trouble) {
      if (trouble.field?.includes("reward")) return this.amend(id, label, written, trouble);
      this.failed(trouble);
    }
  }

  async retract(id, label) {
    const sure = await question({
      title: `Withdraw the reward of trial ${id}?`,
      body: h("p", {}, `${label} then counts as abandoned. Correcting it later gives it a reward again.`),
      confirm: "Withdraw it",
      danger: true,
    });
    if (!sure) return;
    try {
      await careful(of(this.name, "retract"), { trial: id });
      await this.done(`The reward of trial ${id} is withdrawn.`);
    } catch (problem) {
      this.failed(problem);
    }
  }

  async done(text) {
    fill(this.message, note("good", text));
    await this.changed();
  }

  failed(problem) {
    fill(this.message, note("error", problem.message));
  }
}
