// Reading typed rewards, sending them with confirmation of suspicious ones, and errors beside inputs.

import { newKey, post, Problem } from "./api.js";
import { h, mark, question } from "./dom.js";

/** The number in a text, with a decimal point or comma; null if it is not a number. */
export function typed(text) {
  const clean = text
    .trim()
    .replace(/^([+-]?\d*),(\d+)$/, "$1.$2")
    .replace("−", "-");
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(clean) && Number.isFinite(Number(clean)) ? Number(clean) : null;
}

/** What a reward cell says: a number, a list of measurements ("71.2; 72.9"), "failed", or null if it is none of them. */
export function typedReward(text) {
  if (text.trim().toLowerCase() === "failed") return "failed";
  const values = text.split(";").map(typed);
  if (values.includes(null)) return null;
  return values.length === 1 ? values[0] : values;
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
    mark(input, detail.replace(`${field}: `, ""));
    first ??= input;
  }
  first?.focus();
  return first !== null;
}
