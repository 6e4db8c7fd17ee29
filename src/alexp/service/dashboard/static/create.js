// The form for a new study: a table of candidates, or an interval with a family of functions.

import { newKey, post } from "./api.js";
import { placed } from "./writing.js";
import { field, fill, h, mark, newId, note, option } from "./dom.js";
import { IntervalPart, numeric, TablePart } from "./problems.js";

const ALGORITHMS = [
  ["evidence-mixture", "Evidence mixture (default)"],
  ["alexp", "ALExp: follows models by their returns"],
  ["lm-ucb", "LMUCB: the likeliest model decides"],
  ["linucb", "LinUCB: one model of all columns"],
];

const GOALS = [
  ["maximize", "Maximise the reward"],
  ["minimize", "Minimise the reward"],
  ["several", "Several objectives"],
];
const DIRECTIONS = [
  ["maximize", "Maximise"],
  ["minimize", "Minimise"],
];
const MOST = 3; // objectives

/** What is sought: the largest or smallest reward, or compromises of objectives with names; `changed` says which. */
class Goal {
  constructor(put, changed) {
    this.select = put("direction", h("select", { onchange: () => this.show(changed) }, GOALS.map(option)));
    this.field = field("Goal", this.select);
    this.lines = Array.from({ length: MOST }, () => ({
      name: h("input", { type: "text", maxlength: "100", autocomplete: "off" }),
      direction: h("select", {}, DIRECTIONS.map(option)),
      ends: [numeric("", { placeholder: "none" }), numeric("", { placeholder: "none" })],
    }));
    this.rows = h(
      "div",
      { hidden: true },
      h(
        "p",
        { class: "hint" },
        "Two or three, such as yield and price. One that is a column of the table is known; the others are measured.",
      ),
      this.lines.map(({ name, direction, ends }, k) =>
        h(
          "div",
          { class: "inline" },
          field(`Objective ${k + 1}`, name),
          field(`Aim ${k + 1}`, direction),
          field(`Lowest possible ${k + 1}`, ends[0]),
          field(`Highest possible ${k + 1}`, ends[1]),
        ),
      ),
    );
  }

  get several() {
    return this.select.value === "several";
  }

  show(changed) {
    this.rows.hidden = !this.several;
    if (this.several) this.lines[0].name.focus();
    changed(this.several);
  }

  find(where) {
    return where.startsWith("objectives") ? this.lines[0].name : null;
  }

  /** Write the goal, and the ranges of objectives, into a request; false if something is missing. */
  state(body) {
    if (!this.several) {
      body.direction = this.select.value;
      return true;
    }
    const named = this.lines.filter(({ name }) => name.value.trim());
    const names = named.map(({ name }) => name.value.trim());
    this.lines.forEach(({ name, ends }) => [name, ...ends].forEach((input) => mark(input, null)));
    const ranges = {};
    const missing = [...named.keys()].find((k) => !ranged(named[k].ends, (ends) => (ranges[names[k]] = ends)));
    if (missing !== undefined) return false;
    const twice = named.find((_, k) => names.indexOf(names[k]) < k);
    const wrong = twice ?? (names.length < 2 ? this.lines.find(({ name }) => !name.value.trim()) : null);
    if (wrong) {
      mark(wrong.name, twice ? "This name is there already" : "Name at least two objectives");
      wrong.name.focus();
      return false;
    }
    body.objectives = Object.fromEntries(named.map(({ direction }, k) => [names[k], direction.value]));
    if (Object.keys(ranges).length) body.settings.reward_range = ranges;
    return true;
  }
}

/** Pass on a range if both ends are there; false, and marked, if one is missing. */
function ranged(ends, take) {
  const missing = ends.find((input) => !input.value);
  if (ends.some((input) => input.value) && missing) {
    mark(missing, "A range has two ends");
    missing.focus();
    return false;
  }
  if (!missing) take(ends.map((input) => Number(input.value)));
  return true;
}

/** Show the form. */
export function showCreate(place) {
  const inputs = new Map(); // by field of the request
  const put = (name, input) => {
    inputs.set(name, input);
    input.addEventListener("input", () => mark(input, null));
    return input;
  };
  const message = h("div", {});
  const name = put("name", h("input", { type: "text", maxlength: "200", required: true, autocomplete: "off" }));
  const goal = new Goal(put, (several) => single.forEach((one) => (one.hidden = several)));
  const algorithm = put("algorithm", h("select", {}, ALGORITHMS.map(option)));
  const noise = put("settings.noise_std", numeric("", { min: "0", placeholder: "not known" }));
  const low = put("settings.reward_range", numeric("", { placeholder: "0" }));
  const high = put("settings.reward_range[1]", numeric("", { placeholder: "100" }));
  const bound = put("settings.reward_bound", numeric("", { min: "0", placeholder: "not known" }));
  const seed = put("random_state", numeric("", { min: "0", step: "1", placeholder: "a random one" }));
  const cost = put("cost", h("input", { type: "text", maxlength: "200", autocomplete: "off", placeholder: "none" }));
  const budget = put("budget", numeric("", { min: "0", placeholder: "no limit" }));
  const repeats = h("input", { type: "checkbox", id: newId("repeats") });
  const noiseHint = h(
    "p",
    { class: "hint", id: newId("hint") },
    "With bell-shaped errors of the same spread everywhere, the page says without further numbers how much better another candidate may be.",
    " That is certified for models that are linear in the columns, and calibrated for curved ones.",
  );
  const shape = h("input", { type: "checkbox", id: newId("noise"), "aria-describedby": noiseHint.id });
  const tablePart = new TablePart(put);
  const intervalPart = new IntervalPart(put);
  let kind = tablePart;
  const radio = (part, text, checked) => {
    const input = h("input", { type: "radio", name: "kind", id: newId("kind"), checked, onchange: () => choose(part) });
    return h("span", { class: "choice" }, input, h("label", { for: input.id }, text));
  };
  const choose = (part) => {
    kind = part;
    tablePart.element.hidden = part !== tablePart;
    intervalPart.element.hidden = part !== intervalPart;
    repeats.checked = part === intervalPart;
  };
  const single = [
    field("Noise, standard deviation", noise, {
      hint: "Certificates need noise and bound, or bell-shaped errors; leave blank what you do not know.",
    }),
    field("Largest size of a reward", bound),
    field("Lowest possible reward", low, { hint: "Yields: 0 and 100. A reward outside is refused." }),
    field("Highest possible reward", high),
  ];
  const button = h("button", { type: "submit", class: "primary" }, "Create the study");
  let key = newKey();

  const submit = async (event) => {
    event.preventDefault();
    fill(message);
    inputs.forEach((input) => mark(input, null));
    if (!name.value.trim()) {
      mark(name, "A study needs a name");
      return name.focus();
    }
    const problem = kind.problem();
    if (problem === null) return;
    const settings = {};
    const body = {
      name: name.value.trim(),
      algorithm: algorithm.value,
      repeats: repeats.checked,
      settings,
      problem,
    };
    if (!goal.state(body)) return;
    if (!goal.several) {
      if (!ranged([low, high], (ends) => (settings.reward_range = ends))) return;
      if (noise.value) settings.noise_std = Number(noise.value);
      if (bound.value) settings.reward_bound = Number(bound.value);
    }
    if (shape.checked) settings.noise = "gaussian";
    if (cost.value.trim()) body.cost = cost.value.trim();
    if (budget.value) body.budget = Number(budget.value);
    if (seed.value) body.random_state = Number(seed.value);
    button.disabled = true;
    try {
      await post("/v1/studies", body, key);
      location.hash = `#/study/${encodeURIComponent(body.name)}`;
    } catch (trouble) {
      if (trouble.status !== 0) key = newKey(); // without a response the call may have been stored: keep its key
      if (trouble.type?.endsWith(":study-exists")) {
        mark(name, trouble.message);
        name.focus();
      } else if (!placed(trouble, (where) => inputs.get(where) ?? goal.find(where) ?? kind.find(where)))
        fill(message, note("error", trouble.message));
    } finally {
      button.disabled = false;
    }
  };

  fill(
    place,
    h("h1", {}, "New study"),
    h(
      "form",
      { class: "create", novalidate: true, onsubmit: submit },
      h("section", { class: "card" }, h("div", { class: "fields" }, field("Name", name), goal.field), goal.rows),
      h(
        "fieldset",
        { class: "card" },
        h("legend", {}, "What can be tried"),
        h(
          "p",
          { class: "choices" },
          radio(tablePart, "A table of candidates", true),
          radio(intervalPart, "A number between two ends", false),
        ),
        tablePart.element,
        intervalPart.element,
      ),
      h(
        "section",
        { class: "card" },
        h("h2", {}, "How"),
        h(
          "div",
          { class: "fields" },
          field("Algorithm", algorithm),
          single,
          field("Column with the cost of an experiment", cost, {
            hint: "A column of the table, such as a price: improvement per cost then decides.",
          }),
          field("Budget", budget, { hint: "What all experiments together may cost." }),
          field("Seed", seed),
        ),
        h(
          "div",
          { class: "choices" },
          h(
            "p",
            { class: "choice" },
            repeats,
            h("label", { for: repeats.id }, "A measured candidate may be proposed again"),
          ),
          h("p", { class: "choice" }, shape, h("label", { for: shape.id }, "Measurement errors are bell-shaped")),
        ),
        noiseHint,
      ),
      message,
      h("div", { class: "buttons start" }, button),
    ),
  );
  choose(tablePart);
}
