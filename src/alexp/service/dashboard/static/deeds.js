// Rewards as people type them, and writing them: the question whether a strange one is right, and errors beside inputs.

import { newKey, post, Problem } from "./api.js";
import { h, mark, question } from "./dom.js";

/** A reward as it was typed, with a point or a comma for the decimals; null if it is no number. */
export function typed(text) {
  const clean = text
    .trim()
    .replace(/^([+-]?\d*),(\d+)$/, "$1.$2")
    .replace("−", "-");
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(clean) && Number.isFinite(Number(clean)) ? Number(clean) : null;
}

/** Write something; where a reward looks like a slip of the pen, ask, and if it is right say so. Null if it is not. */
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

/** Show a problem beside the input it is about; true if there was one. `find` gives the input of a field's name. */
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
