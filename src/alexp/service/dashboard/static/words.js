// Formatting of numbers and times, and the headline of a study.

const DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const power = (exponent) =>
  (exponent < 0 ? "⁻" : "") + [...String(Math.abs(exponent))].map((digit) => DIGITS[digit]).join("");

/** A number with four significant digits. */
export function number(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e7 || size < 1e-4) {
    const exponent = Math.floor(Math.log10(size));
    return `${Number((value / 10 ** exponent).toPrecision(3))} × 10${power(exponent)}`;
  }
  return Number(value.toPrecision(digits)).toLocaleString("en", { maximumFractionDigits: 8, useGrouping: size >= 1e5 });
}

/** A cell of a table of candidates. */
export function cell(value) {
  if (typeof value === "number") return number(value, 8);
  return typeof value === "boolean" ? (value ? "yes" : "no") : value;
}

/** What is measured of an experiment: the names of the objectives, or the reward. */
export function measures({ trials }) {
  const names = Object.keys(trials.values);
  return names.length ? names : ["Reward"];
}

/** A result in words: a number, several measurements, numbers by objective, or the word for a failure. */
export function measured(reward) {
  if (Array.isArray(reward)) return reward.map(measured).join("; ");
  if (reward === null || typeof reward === "string") return reward ?? "–";
  if (typeof reward === "number") return number(reward, 8);
  return Object.entries(reward)
    .map(([name, value]) => `${name} ${measured(value)}`)
    .join(", ");
}

/** A count with separated thousands, and its noun in the right number. */
export const many = (n, one, more = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : more}`;

/** Odds (to 1) with two or three significant digits. */
export function odds(value) {
  if (value >= 1e6) return `10${power(Math.floor(Math.log10(value)))}`;
  return Number(value.toPrecision(value < 10 ? 2 : 3)).toLocaleString("en");
}

/** A probability in percent. */
export function percent(q) {
  if (q > 0.999 && q < 1) return "> 99.9 %";
  if (q < 0.001 && q > 0) return "< 0.1 %";
  return `${Number((100 * q).toPrecision(q < 0.1 ? 2 : 3))} %`;
}

/** A span of time in its two largest units. */
export function span(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** A moment as local date and time. */
export const moment = (seconds) =>
  new Date(1000 * seconds).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });

/** The headline as [text, name, text, name, …], names in bold: which model leads, and by how much. */
export function headline(view) {
  const { standing, counts } = view;
  const n = view.n_models;
  if (counts.told === 0) {
    const past = (standing?.memories ?? []).map(({ sentence }) => ` ${sentence}`).join("");
    return [past || n === 1 ? `No reward yet.${past}` : `No reward yet: all ${many(n, "model")} are equal.`];
  }
  if (standing === null) return [`${view.algorithm} keeps no probabilities over its ${many(n, "model")}.`];
  const [first, second] = standing.leaders;
  if (!second) return ["", first.name, " is the only model."];
  if (standing.n_level > 2) {
    const others = `${standing.n_level - 1} other models`;
    return ["", first.name, ` and ${others} share the lead: no reward so far tells them apart.`];
  }
  if (standing.meaning !== "posterior") {
    const verb = standing.meaning === "followed" ? "is followed in" : "counts";
    return ["", first.name, ` leads: it ${verb} ${percent(first.q)}, `, second.name, ` ${percent(second.q)}.`];
  }
  if (second.q <= 0)
    return ["", first.name, " leads with certainty, if one of the models is true, over ", second.name, "."];
  const ratio = first.q / second.q;
  if (ratio < 3) return ["", first.name, " and ", second.name, ` are not told apart yet: odds ${odds(ratio)} to 1.`];
  return ["", first.name, ` leads: odds ${odds(ratio)} to 1 over `, second.name, "."];
}

/** What the study seeks. */
export function aim({ pareto, direction }) {
  const each = Object.entries(pareto?.directions ?? {}).map(([name, own]) => `${own} ${name}`);
  return each.join(", ") || direction;
}

/** The number of candidates or arms, in words. */
export function candidates(view) {
  if (view.domain === "Candidates") return "candidates differ by round";
  if (view.domain === "Arms") return many(view.n_candidates, "arm");
  return many(view.n_candidates, "candidate");
}
