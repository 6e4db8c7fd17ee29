// Reading typed rewards, sending them with confirmation of suspicious ones, and errors beside inputs.

import { newKey, post, Problem } from "./api.js";
import { fill, h, mark, note, question } from "./dom.js";

/** The number in a text, with a decimal point or comma; null if it is none, or if 1,234 may be a thousand. */
function typed(text) {
  const clean = text.trim().replace("−", "-");
  if (/^[+-]?[1-9]\d{0,2},\d{3}$/.test(clean)) return null;
  const number = clean.replace(/^([+-]?\d*),(\d+)$/, "$1.$2");
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(number) && Number.isFinite(Number(number)) ? Number(number) : null;
}

const WRONG = "This is not a number; write 71.2, replicates as 71.2; 72.9, or failed";

/** What a reward cell says: a number, a list of measurements ("71.2; 72.9"), "failed", or null if it is none of them. */
export function typedReward(text) {
  if (text.trim().toLowerCase() === "failed") return "failed";
  const values = text.split(";").map(typed);
  if (values.includes(null)) return null;
  return values.length === 1 ? values[0] : values;
}

/** What the inputs of all `measures` of one experiment say; null, and marked, if any is wrong. */
export function typedMeasures(inputs, measures) {
  inputs.forEach((input) => mark(input, null));
  const values = inputs.map((input) => typedReward(input.value));
  if (values.includes("failed")) return "failed";
  values.forEach((value, k) => value === null && mark(inputs[k], WRONG));
  if (values.includes(null)) return null;
  return values.length === 1 ? values[0] : Object.fromEntries(measures.map((name, k) => [name, values[k]]));
}

/** Send a request that writes; if a reward is suspicious, ask for confirmation. Null if it is not confirmed. */
export async function careful(address, body) {
  const key = newKey();
  try {
    return await post(address, body, key);
  } catch (problem) {
    if (!(problem instanceof Problem) || !problem.suspicious) throw problem;
    const sure = await question({
      title: "Is this right?",
      body: h("p", {}, problem.message),
      confirm: "Yes, it is right",
      cancel: "No, let me correct it",
    });
    return sure ? post(address, { ...body, sure: true }, key) : null;
  }
}

/** Show a problem beside its input; true if there is such an input. `find` returns the input of a field. */
export function placed(problem, find) {
  const found = problem.body?.errors ?? (problem.field ? [{ field: problem.field, detail: problem.message }] : []);
  let first = null;
  for (const { field, detail } of found) {
    const input = find(field.replace(/^body\.?/, ""));
    if (!input) continue;
    mark(input, detail.replace(`${field}: `, "").replace(/\n.*\n\s*\^\s*$/, "")); // the input shows the text itself
    first ??= input;
  }
  first?.focus();
  return first !== null;
}

/** Call `action` with the button disabled meanwhile; problems are shown beside their inputs, or else in `message`. */
export async function acting({ button = null, message, find = () => null }, action) {
  if (button) button.disabled = true;
  fill(message);
  try {
    await action();
  } catch (problem) {
    if (!placed(problem, find)) fill(message, note("error", h("p", { class: "lines" }, problem.message)));
  } finally {
    if (button) button.disabled = false;
  }
}
