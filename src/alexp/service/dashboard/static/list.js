// All studies of the storage.

import { get } from "./api.js";
import { fill, h, table } from "./dom.js";
import { moment } from "./words.js";

/** Show the list; it is read again every half minute. */
export async function showList(place) {
  const body = h("div", {});
  fill(
    place,
    h(
      "div",
      { class: "title" },
      h("h1", {}, "Studies"),
      h("a", { class: "button primary", href: "#/new" }, "New study"),
    ),
    body,
  );
  const look = async () => {
    const { studies } = await get("/v1/studies");
    fill(body, studies.length === 0 ? nothing() : listed(studies));
  };
  await look();
  const timer = setInterval(() => document.hidden || look().catch(() => {}), 30_000);
  return () => clearInterval(timer);
}

const nothing = () =>
  h(
    "section",
    { class: "card" },
    h("h2", {}, "No study yet"),
    h("p", {}, "Choose the file that has your candidates, see what its columns were taken for, and ask for the first plate."),
  );

function listed(studies) {
  const rows = studies
    .sort((a, b) => b.created_at - a.created_at)
    .map((study) => [
      h("a", { href: `#/study/${encodeURIComponent(study.name)}` }, study.name),
      study.algorithm,
      study.counts.told.toLocaleString("en"),
      study.counts.pending.toLocaleString("en"),
      moment(study.created_at),
      study.latest === null ? "–" : moment(study.latest),
    ]);
  return h(
    "section",
    { class: "card" },
    table("Studies", ["Study", "Algorithm", "Rewards", "Pending", "Created", "Last event"], rows, [2, 3]),
  );
}
