// The form for a new study: a table of candidates, or an interval with a family of functions.

import { newKey, post } from "./api.js";
import { placed } from "./writing.js";
import { field, fill, h, mark, newId, note } from "./dom.js";
import { IntervalPart, numeric, option, TablePart } from "./problems.js";

const ALGORITHMS = [
  ["evidence-mixture", "Evidence mixture (recommended)"],
  ["alexp", "ALExp: follows models by their returns"],
  ["lm-ucb", "LMUCB: the likeliest model decides"],
  ["linucb", "LinUCB: one model of all columns"],
];

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
  const direction = put(
    "direction",
    h(
      "select",
      {},
      [
        ["maximize", "Maximise the reward"],
        ["minimize", "Minimise the reward"],
      ].map(option),
    ),
  );
  const algorithm = put("algorithm", h("select", {}, ALGORITHMS.map(option)));
  const noise = put("settings.noise_std", numeric("", { min: "0", placeholder: "not known" }));
  const low = put("settings.reward_range", numeric("", { placeholder: "0" }));
  const high = put("settings.reward_range[1]", numeric("", { placeholder: "100" }));
  const bound = put("settings.reward_bound", numeric("", { min: "0", placeholder: "not known" }));
  const seed = put("random_state", numeric("", { min: "0", step: "1", placeholder: "a random one" }));
  const repeats = h("input", { type: "checkbox", id: newId("repeats") });
  const shape = h("input", { type: "checkbox", id: newId("noise") });
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
    const ends = [low.value, high.value];
    if (ends.some(Boolean) && !ends.every(Boolean)) {
      mark(low.value ? high : low, "A range has two ends");
      return (low.value ? high : low).focus();
    }
    if (low.value) settings.reward_range = ends.map(Number);
    if (noise.value) settings.noise_std = Number(noise.value);
    if (shape.checked) settings.noise = "gaussian";
    if (bound.value) settings.reward_bound = Number(bound.value);
    const body = {
      name: name.value.trim(),
      direction: direction.value,
      algorithm: algorithm.value,
      repeats: repeats.checked,
      settings,
      problem,
    };
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
      } else if (!placed(trouble, (where) => inputs.get(where) ?? kind.find(where)))
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
      h("section", { class: "card" }, h("div", { class: "fields" }, field("Name", name), field("Goal", direction))),
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
          field("Noise, standard deviation", noise, {
            hint: "Certificates need noise and bound; leave blank what you do not know.",
          }),
          field("Largest size of a reward", bound),
          field("Lowest possible reward", low, { hint: "Yields: 0 and 100. A reward outside is refused." }),
          field("Highest possible reward", high),
          field("Seed", seed),
        ),
        h(
          "p",
          { class: "choice" },
          repeats,
          h("label", { for: repeats.id }, "A measured candidate may be proposed again"),
        ),
        h("p", { class: "choice" }, shape, h("label", { for: shape.id }, "Measurement errors are bell-shaped")),
      ),
      message,
      h("div", { class: "buttons start" }, button),
    ),
  );
  choose(tablePart);
}
