// The page: shows the part that the address names, and the state of the connection.

import { announce, fill, h, note } from "./dom.js";
import { showCreate } from "./create.js";
import { showList } from "./list.js";
import { showStudy } from "./study.js";

const main = document.getElementById("main");
const status = document.getElementById("status");
let leave = () => {};
let turn = 0;

const WORDS = {
  idle: "",
  live: "Live",
  lost: "Connection lost, trying again",
  trouble: "The storage is not reachable, trying again",
  gone: "This study has been deleted",
};

/** Show the state of the connection in the header. */
export function setStatus(state) {
  if (status.dataset.state === state) return;
  if (state !== "live" && state !== "idle") announce(WORDS[state]);
  status.dataset.state = state;
  status.textContent = WORDS[state] ?? state;
}

async function route() {
  const mine = (turn += 1);
  leave();
  leave = () => {};
  setStatus("idle");
  const [, page, name] = /^#\/([^/]*)\/?(.*)$/.exec(location.hash) ?? [null, "", ""];
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === (page === "new" ? "#/new" : "#/")) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const place = h("div", { class: "page" });
  fill(main, place);
  try {
    const stop =
      page === "study"
        ? await showStudy(place, decodeURIComponent(name), setStatus)
        : page === "new"
          ? showCreate(place)
          : await showList(place);
    if (mine === turn) leave = stop ?? (() => {});
    else stop?.();
  } catch (problem) {
    fill(place, note("error", problem.message), h("p", {}, h("a", { href: "#/" }, "All studies")));
  }
  if (mine !== turn) return;
  const title = main.querySelector("h1")?.textContent;
  document.title = title ? `${title} · alexp` : "alexp";
  if (turn > 1) main.focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

window.addEventListener("hashchange", () => {
  if (location.hash === "#main")
    main.focus(); // the link that skips the header
  else route();
});
route();
