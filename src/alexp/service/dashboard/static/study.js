// The page of one study: headline, pending trials, figures, trials and settings, updated with every event.

import { get, of } from "./api.js";
import { Arrivals } from "./arrivals.js";
import { announce, fill, h, note, table } from "./dom.js";
import * as figures from "./figures.js";
import { Follower } from "./live.js";
import { Plate } from "./plate.js";
import { Plot } from "./plots.js";
import { Trials } from "./trials.js";
import { aim, candidates, headline, many, measures, moment, number, percent, span } from "./words.js";

const FIGURES = ["probabilities", "evidence", "returns", "rewards", "interval", "predictions", "plausible"];

/** Show a study and follow it; returns a function that stops following. */
export async function showStudy(place, name, setStatus) {
  let before = null;
  let running = null;
  let again = false;
  let timer = null;
  let stopped = false;
  let told = null;

  const address = () => of(name, `view?points=600&rows=25${before === null ? "" : `&before=${before}`}`);
  const plate = new Plate(name, () => refresh());
  const trials = new Trials(
    name,
    () => refresh(),
    (page) => {
      before = page;
      return refresh();
    },
  );
  const arrivals = new Arrivals(name, () => refresh());
  const plots = FIGURES.map((key) => new Plot(key, key));
  const compromises = new Plot("Best compromises", "pareto");
  const parts = {
    line: h("p", { class: "headline" }),
    stopping: h("p", { class: "stopping" }),
    alarms: h("div", {}),
    tiles: h("dl", { class: "tiles" }),
    about: h("p", { class: "hint" }),
  };
  const leaders = h("section", { class: "card figure", "aria-labelledby": "leaders" });
  const decisive = h("section", { class: "card figure", "aria-labelledby": "decisive", hidden: true });
  const settings = h("section", { class: "card", "aria-labelledby": "settings" });
  const deeper = h("div", {});
  const judged = h("p", { class: "hint" });

  const show = (view) => {
    const line = headline(view);
    const text = line.join("");
    if (parts.line.textContent !== text)
      fill(
        parts.line,
        line.map((word, k) => (k % 2 ? h("strong", {}, word) : word)),
      );
    parts.stopping.textContent = view.stopping ? `${view.stopping}.` : "";
    parts.about.textContent = `${view.algorithm}, ${aim(view)}; ${many(view.n_models, "model")}, ${candidates(view)}; created ${moment(view.created_at)}`;
    fill(parts.alarms, alarm(view));
    fill(parts.tiles, tiles(view));
    plate.update(view);
    compromises.update(figures.pareto(view));
    judged.textContent = view.pareto ? `By ${measures(view)[0]}, the first objective that is measured.` : "";
    plots.forEach((plot, k) => plot.update(figures[FIGURES[k]](view)));
    fillLeaders(leaders, view);
    fillDecisive(decisive, view);
    fillSettings(settings, view);
    fill(
      deeper,
      deep(view, of(name, "progress"), () => get(`${address()}&deep=true`).then(show, () => setStatus("lost"))),
    );
    trials.update(view);
    arrivals.update(view);
    if (told !== null && view.n_events > told)
      announce(`${text} ${many(view.counts.told, "reward")} stored, ${view.counts.pending} pending.`);
    told = view.n_events;
    clearTimeout(timer);
    timer = setTimeout(refresh, view.fresh_in ? 1000 * view.fresh_in + 50 : 30_000); // leases change without events
  };

  /** Load the view again; a call during a load causes one more load after it. */
  const refresh = async () => {
    if (stopped) return;
    if (running) {
      again = true;
      return running;
    }
    running = get(address())
      .then(show)
      .catch((problem) => setStatus(problem.status === 404 ? "gone" : "lost"))
      .finally(() => (running = null));
    await running;
    if (again) {
      again = false;
      await refresh();
    }
  };

  const view = await get(address());
  const shown = plots.map((plot) => plot.element);
  fill(
    place,
    h(
      "div",
      { class: "title" },
      h("h1", {}, view.name),
      h("div", { class: "buttons" }, download(name, "report", "Report"), download(name, "export", "CSV")),
    ),
    parts.about,
    h(
      "section",
      { class: "card lead", "aria-label": "Present state" },
      parts.line,
      parts.stopping,
      parts.alarms,
      parts.tiles,
    ),
    plate.element,
    compromises.element,
    h("h2", { class: "between" }, "Which model is winning, and why"),
    judged,
    deeper,
    h("div", { class: "grid" }, leaders, shown[0], shown[1], decisive, ...shown.slice(2)),
    trials.element,
    arrivals.element,
    settings,
  );
  show(view);
  let soon = null;
  const follower = new Follower(
    of(name, "events"),
    view.n_events,
    () => {
      clearTimeout(soon);
      soon = setTimeout(refresh, 120); // a plate's events come together
    },
    setStatus,
  );
  return () => {
    stopped = true;
    clearTimeout(timer);
    clearTimeout(soon);
    follower.stop();
    [compromises, ...plots].forEach((plot) => plot.stop());
  };
}

const download = (name, what, words) => h("a", { class: "button", href: of(name, what), download: true }, words);

function alarm({ check }) {
  if (!check) return null;
  if (!check.checked) return note("warning", `Whether the rewards agree with the assumptions was ${check.text}.`);
  if (!check.contradicted) return null;
  const rejected = check.n_rejected
    ? ` Models contradicted on their own: ${check.rejected.join(", ")}${check.n_rejected > check.rejected.length ? " …" : ""}.`
    : "";
  const missed = check.missed.map(({ id, label, reward }) => h("li", {}, `Trial ${id} (${label}) gave ${number(reward)}`));
  return note(
    "warning",
    h("strong", {}, "Alarm: "),
    `${check.text}.${missed.length ? "" : rejected}`,
    missed.length > 0 && h("ul", {}, missed),
  );
}

function tiles(view) {
  const { counts, best, certificates, standing } = view;
  const rows = [
    ["Rewards", counts.told.toLocaleString("en")],
    ["Pending", counts.pending.toLocaleString("en")],
  ];
  if (best) {
    rows.push(["Recommended", best.label, `candidate ${best.index}`]);
    rows.push(["Its reward, estimated", number(best.value), best.model_name && `by ${best.model_name}`]);
  }
  if (view.pareto) rows.push(["Best compromises", String(view.pareto.trial.length), "of all measured so far"]);
  else if (!best && view.rewards.n) rows.push(["Mean reward so far", number(view.rewards.so_far.reward.at(-1))]);
  const so_far = view.rewards.so_far;
  if (best && view.rewards.n) rows.push(["Best measured", number(so_far.reward.at(-1))]);
  if (view.money) {
    const { spent, budget, left } = view.money;
    if (budget === null) rows.push(["Spent", number(spent)]);
    else rows.push(["Budget left", number(left), `of ${number(budget)}; ${number(spent)} spent`]);
  }
  if (certificates) rows.push(["Plausible models", `${certificates.n_plausible} of ${view.n_models}`, `certified ${certificates.rests_on}`]);
  else if (standing?.history && counts.told)
    rows.push([
      "Models in question",
      `${standing.history.likeliest.at(-1)} of ${view.n_models}`,
      "with 95 % of the weight",
    ]);
  return rows.map(([term, big, small]) =>
    h("div", {}, h("dt", {}, term), h("dd", {}, h("b", {}, big), small && h("span", { class: "hint" }, ` ${small}`))),
  );
}

function fillLeaders(place, view) {
  const { standing } = view;
  place.hidden = !standing || view.counts.told === 0;
  if (place.hidden) return;
  const chose = standing.leaders.some((leader) => leader.chosen !== null);
  const certified = standing.leaders.some((leader) => leader.plausible !== null);
  const headings = [
    "Model",
    standing.meaning === "posterior" ? "Probability" : "q",
    ...(chose ? ["Trials it chose"] : []),
    ...(certified ? ["Plausible"] : []),
  ];
  const rows = standing.leaders.map((leader) => [
    leader.name,
    percent(leader.q),
    ...(chose ? [String(leader.chosen)] : []),
    ...(certified ? [leader.plausible ? "yes" : "ruled out"] : []),
  ]);
  const out = `${standing.n_ruled_out} of ${many(view.n_models, "model")} ${standing.n_ruled_out === 1 ? "is" : "are"} effectively ruled out.`;
  fill(
    place,
    h("h3", { id: "leaders" }, "The leading models"),
    table("The leading models", headings, rows, [1, ...(chose ? [2] : [])]),
    view.n_models > 1 && h("p", { class: "hint" }, out),
    standing.memories.map(({ sentence }) => h("p", {}, sentence)),
  );
}

function fillDecisive(place, { explanation: seen }) {
  place.hidden = !seen?.decisive.length;
  if (place.hidden) return;
  const headings = ["Trial", "Candidate", "Measured", `Expected by ${seen.leader}`, `by ${seen.runner_up}`, "Odds"];
  fill(
    place,
    h("h3", { id: "decisive" }, "Which experiments decided between the two"),
    table("Decisive experiments", headings, seen.decisive, [0, 2, 3, 4]),
  );
}

function fillSettings(place, view) {
  const rows = view.explained.map(({ name, formula, value }) => [name, formula, value]);
  rows.push(["storage", "", view.where], ["created with version", "", view.library]);
  const open = place.querySelector("details")?.open;
  fill(
    place,
    h("h2", { id: "settings" }, "Settings"),
    h(
      "details",
      { open },
      h("summary", {}, "As formula and value"),
      table("Settings", ["Setting", "Formula", "Value"], rows),
    ),
  );
}

function deep({ takes, too_long: tooLong, counts }, progress, more) {
  if (!takes && !tooLong) return null;
  const rewards = many(counts.told, "reward");
  if (!takes) return note("status", `Explaining ${rewards} would take minutes, and is omitted here.`);
  const button = h("button", { type: "button", class: "plain", onclick: () => compute() }, "Compute it");
  const compute = () => {
    button.disabled = true;
    const timer = setInterval(async () => {
      const now = (await get(progress).catch(() => null))?.progress;
      if (now) button.textContent = `${now.what}: ${now.done} of ${now.total}`;
    }, 1000);
    more().finally(() => {
      clearInterval(timer);
      button.disabled = false;
    });
  };
  const what = tooLong ? "Certificates" : "Certificates, or the explanation,";
  return note("status", `${what} for ${rewards} take about ${span(Math.max(1, takes))}. `, button);
}
