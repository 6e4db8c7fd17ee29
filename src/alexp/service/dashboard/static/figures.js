// Figures of a view: data for Plotly, a summary in one sentence, and their numbers as rows.

import { DASHES, plain } from "./plots.js";
import { many, measures, number, odds, percent } from "./words.js";

const curve = (x, y, colour, name, more = {}) => ({
  type: "scatter",
  mode: "lines",
  x,
  y,
  name: plain(name),
  line: { color: colour, width: 2, ...more.line },
  hovertemplate: `${more.hover ?? "%{y:.4g}"}<extra></extra>`,
  ...more.trace,
});

function overTime(standing, values, form) {
  return (colours) =>
    standing.leaders.map((leader, k) =>
      curve(
        standing.history.told,
        values.map((row) => row[k]),
        colours.lines[k % colours.lines.length],
        leader.name,
        {
          line: { dash: DASHES[k % DASHES.length] },
          hover: `%{fullData.name}<br>after %{x} rewards: %{y:${form}}`,
        },
      ),
    );
}

/** q of the leading models over the rewards. */
export function probabilities({ standing, counts }) {
  const history = standing?.history;
  if (!history || counts.told === 0) return null;
  const posterior = standing.meaning === "posterior";
  const [first] = standing.leaders;
  const most = Math.max(...history.q.flat().filter((q) => q !== null), 0.1);
  return {
    title: posterior ? "Probability of the leading models" : "How often the leading models are followed",
    note: posterior
      ? "Given the rewards, and if one of the models is true, that it is this one."
      : "q: the share of rounds in which a model's agent is followed.",
    summary: `${first.name} has ${percent(first.q)} after ${many(counts.told, "reward")}`,
    x: "rewards",
    y: posterior ? "probability" : "q",
    legend: true,
    yaxis: { range: [0, Math.min(1.02, 1.15 * most)] },
    draw: overTime(standing, history.q, ".3f"),
    table: () => ({
      headings: ["rewards", ...standing.leaders.map((leader) => leader.name)],
      rows: history.told.map((told, k) =>
        [told, ...history.q[k].map((q) => (q === null ? "–" : q.toFixed(4)))].map(String),
      ),
    }),
  };
}

/** The evidence for the leader against the runner-up, in powers of ten. */
export function evidence({ explanation: seen }) {
  if (!seen?.odds) return null;
  const clipped = seen.odds.map((value) => value && Math.max(-300, Math.min(300, value)));
  const now = seen.odds.at(-1);
  return {
    title: "Evidence against the runner-up",
    note: `How strongly the rewards speak for ${seen.leader} over ${seen.runner_up}; at zero they are level.`,
    summary: `odds of ${seen.leader} over ${seen.runner_up} are ${now === null ? "unknown" : `${odds(10 ** Math.min(now, 300))} to 1`}`,
    x: "rewards",
    y: "odds, powers of ten",
    shapes: [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: 0, y1: 0, line: { color: "#8a94a0", width: 1 } }],
    draw: (colours) => [
      curve(seen.odds_at, clipped, colours.lines[0], "odds", {
        line: { shape: "hv" },
        hover: "after %{x} rewards: 10^%{y:.2f} to 1",
      }),
    ],
    table: () => ({
      headings: ["rewards", "odds (to 1)"],
      rows: seen.odds_at.map((told, k) => [
        String(told),
        seen.odds[k] === null ? "–" : odds(10 ** Math.min(seen.odds[k], 300)),
      ]),
    }),
  };
}

/** Returns behind the leader, for algorithms that sum returns and give no explanation. */
export function returns({ standing, explanation, counts }) {
  const history = standing?.history;
  if (!history?.behind || explanation?.odds || counts.told === 0) return null;
  const second = standing.leaders[1];
  return {
    title: "Returns behind the leader",
    note: "What the agents' policies would have earned by the estimate, minus that of the best model.",
    summary: second
      ? `${second.name} is ${number(-second.behind)} behind ${standing.leaders[0].name}`
      : "there is only one model",
    x: "rewards",
    y: "return behind",
    legend: true,
    draw: overTime(standing, history.behind, ".4g"),
    table: () => ({
      headings: ["rewards", ...standing.leaders.map((leader) => leader.name)],
      rows: history.told.map((told, k) => [String(told), ...history.behind[k].map((value) => number(value))]),
    }),
  };
}

const ORIGINS = {
  model: ["chosen by a model", "circle", 0],
  explored: ["exploration", "diamond", 4],
  observed: ["external measurement", "square", 3],
};

/** Every reward, and the best (or in contextual studies the mean) so far. */
export function rewards(view) {
  const { rewards: told } = view;
  if (told.id.length === 0) return null;
  const contextual = view.domain === "Arms" || view.domain === "Candidates";
  const name = contextual ? "mean so far" : "best so far";
  const now = told.so_far.reward.at(-1);
  return {
    title: contextual ? "Rewards, and their mean so far" : "Rewards, and the best so far",
    note:
      told.id.length < told.n
        ? `${many(told.n, "reward")}; drawn are ${told.id.length.toLocaleString("en")}, with all extremes.`
        : `${many(told.n, "reward")}, in the order of the trials.`,
    summary: `${name} ${number(now)} after ${many(told.n, "reward")}`,
    x: "trial",
    y: plain(measures(view)[0]),
    legend: true,
    draw: (colours) => {
      const groups = Object.entries(ORIGINS).map(([origin, [words, symbol, colour]]) => {
        const shown = told.id.map((_, k) => k).filter((k) => told.origin[k] === origin);
        return {
          type: "scatter",
          mode: "markers",
          name: words,
          x: shown.map((k) => told.id[k]),
          y: shown.map((k) => told.reward[k]),
          text: shown.map((k) => plain(told.label[k])),
          marker: { symbol, size: 7, opacity: 0.75, color: colours.lines[colour] },
          hovertemplate: "trial %{x}: %{text}<br>reward %{y:.4g}<extra></extra>",
        };
      });
      const line = curve(told.so_far.id, told.so_far.reward, colours.lines[1], name, {
        line: { shape: contextual ? "linear" : "hv" },
        hover: `${name}: %{y:.4g}`,
      });
      return [...groups.filter((group) => group.x.length), line];
    },
    table: () => ({
      headings: ["trial", "candidate", "reward"],
      rows: told.id.map((id, k) => [String(id), told.label[k], number(told.reward[k])]),
    }),
  };
}

/** The first two objectives of every measured candidate, and the best compromises among them. */
export function pareto({ pareto: found }) {
  if (!found || found.trial.length === 0) return null;
  const names = Object.keys(found.directions);
  const [first, second] = names;
  const best = (name) => (found.directions[name] === "maximize" ? "more is better" : "less is better");
  return {
    title: "Best compromises",
    note: "Measured candidates that no other measured one beats in every objective, beside all others.",
    summary: `${many(found.trial.length, "best compromise")} of ${names.join(" and ")}`,
    x: `${plain(first)} (${best(first)})`,
    y: `${plain(second)} (${best(second)})`,
    legend: true,
    draw: (colours) => [
      {
        type: "scatter",
        mode: "markers",
        name: "other candidates",
        x: found.others[first],
        y: found.others[second],
        marker: { size: 7, color: colours.muted, opacity: 0.7 },
        hovertemplate: `${plain(first)} %{x:.4g}, ${plain(second)} %{y:.4g}<extra></extra>`,
      },
      {
        type: "scatter",
        mode: names.length === 2 ? "lines+markers" : "markers",
        name: "best compromises",
        x: found.values[first],
        y: found.values[second],
        text: found.label.map((label, k) =>
          [label, ...names.map((name) => `${name} ${number(found.values[name][k])}`)].map(plain).join("<br>"),
        ),
        line: { shape: "linear", width: 1, color: colours.lines[1] },
        marker: { size: 10, symbol: "diamond", color: colours.lines[1] },
        hovertemplate: "%{text}<extra></extra>",
      },
    ],
    table: () => ({
      headings: ["trial", "candidate", ...names],
      rows: found.trial.map((trial, k) => [
        String(trial),
        found.label[k],
        ...names.map((name) => number(found.values[name][k])),
      ]),
    }),
  };
}

/** The prediction of every reward from the rewards before it, against the measured reward. */
export function predictions({ explanation: seen }) {
  if (!seen || seen.trial.length === 0) return null;
  const all = [...seen.expected, ...seen.reward];
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const margin = 0.12 * (high - low) || 1;
  const range = [low - margin, high + margin];
  return {
    title: "Predicted against measured",
    note: seen.fit,
    summary: seen.fit,
    x: "expected (± 2 standard deviations)",
    y: "measured",
    xaxis: { range },
    yaxis: { range },
    draw: (colours) => [
      {
        type: "scatter",
        mode: "lines",
        x: range,
        y: range,
        line: { color: colours.lines[1], width: 1.5 },
        hoverinfo: "skip",
      },
      {
        type: "scatter",
        mode: "markers",
        x: seen.expected,
        y: seen.reward,
        text: seen.trial.map((id, k) => `trial ${id}: ${plain(seen.label[k])}`),
        error_x: {
          type: "data",
          array: seen.spread.map((s) => (s === null ? 0 : 2 * s)),
          thickness: 0.7,
          width: 0,
          color: colours.muted,
        },
        marker: { size: 7, color: colours.lines[0], opacity: 0.85 },
        hovertemplate: "%{text}<br>expected %{x:.4g}, measured %{y:.4g}<extra></extra>",
      },
    ],
    table: () => ({
      headings: ["trial", "candidate", "expected", "± 2 sd", "measured"],
      rows: seen.trial.map((id, k) => [
        String(id),
        seen.label[k],
        number(seen.expected[k]),
        number(2 * seen.spread[k]),
        number(seen.reward[k]),
      ]),
    }),
  };
}

/** How many models are still in question. */
export function plausible({ standing, counts, n_models: m, certificates }) {
  const history = standing?.history;
  if (!history || counts.told === 0 || m < 2) return null;
  const now = history.likeliest.at(-1);
  const certified = certificates ? ` ${certificates.n_plausible} of ${m} are certified plausible now, ${certificates.rests_on}.` : "";
  return {
    title: "Models still in question",
    note: `How many models, the likeliest first, together have 95 % of the ${standing.meaning === "posterior" ? "probability" : "weight"}.${certified}`,
    summary: `${now} of ${m} models have 95 % of the probability`,
    x: "rewards",
    y: "models",
    yaxis: { rangemode: "tozero", range: [0, 1.08 * Math.max(...history.likeliest, 2)] },
    draw: (colours) => [
      curve(history.told, history.likeliest, colours.lines[2], "models", {
        line: { shape: "hv" },
        trace: { fill: "tozeroy", fillcolor: colours.band },
        hover: "after %{x} rewards: %{y} models",
      }),
    ],
    table: () => ({
      headings: ["rewards", "models"],
      rows: history.told.map((told, k) => [String(told), String(history.likeliest[k])]),
    }),
  };
}

const band = (x, lower, upper, name, colour) => [
  { type: "scatter", mode: "lines", x, y: lower, line: { width: 0 }, hoverinfo: "skip", showlegend: false },
  {
    type: "scatter",
    mode: "lines",
    x,
    y: upper,
    line: { width: 0 },
    fill: "tonexty",
    fillcolor: colour,
    name,
    hoverinfo: "skip",
  },
];

/** The reward on an interval. */
export function interval(view) {
  const { curve: seen, best, certificates } = view;
  if (!seen) return null;
  const values = [...seen.played.reward, ...(seen.estimate ?? [])];
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const margin = 0.2 * (high - low) || 1;
  return {
    title: "Reward over x",
    note:
      "The estimate, two standard deviations to both sides, the certified band where there is one, and the played points." +
      (certificates ? ` The band is certified ${certificates.rests_on}.` : ""),
    summary: best
      ? `the estimate is largest at x = ${best.label}, about ${number(best.value)}`
      : "no recommendation yet",
    x: "x",
    y: "reward",
    legend: true,
    yaxis: { range: [low - margin, high + margin] },
    shapes: best
      ? [
          {
            type: "line",
            yref: "paper",
            y0: 0,
            y1: 1,
            x0: Number(best.x),
            x1: Number(best.x),
            line: { color: "#8a94a0", width: 1, dash: "dot" },
          },
        ]
      : [],
    draw: (colours) => {
      const out = [];
      if (seen.lower && seen.upper)
        out.push(
          ...band(
            seen.points,
            seen.lower,
            seen.upper,
            `certified band (${100 * (1 - certificates.delta)} %)`,
            colours.wide,
          ),
        );
      if (seen.estimate && seen.spread) {
        const edge = (sign) => seen.estimate.map((value, k) => value + sign * 2 * seen.spread[k]);
        out.push(...band(seen.points, edge(-1), edge(1), "± 2 standard deviations", colours.band));
      }
      if (seen.estimate)
        out.push(curve(seen.points, seen.estimate, colours.lines[0], "estimate", { hover: "x = %{x:.4g}: %{y:.4g}" }));
      out.push({
        type: "scatter",
        mode: "markers",
        name: "rewards",
        x: seen.played.x,
        y: seen.played.reward,
        text: seen.played.id.map(String),
        marker: { size: 7, color: colours.lines[1], opacity: 0.8 },
        hovertemplate: "trial %{text}: x = %{x:.4g}, reward %{y:.4g}<extra></extra>",
      });
      return out;
    },
    table: () => ({
      headings: ["x", "estimate", "standard deviation"],
      rows: seen.points.map((x, k) => [number(x), number(seen.estimate?.[k]), number(seen.spread?.[k])]),
    }),
  };
}
