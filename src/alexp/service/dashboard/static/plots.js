// Plotly in the colours of the page, light or dark, with the same numbers as a table for screen readers.

import { fill, h, table } from "./dom.js";

const dark = matchMedia("(prefers-color-scheme: dark)");
const still = matchMedia("(prefers-reduced-motion: reduce)");

/** Colours of the present theme; line colours are safe for colour-blind readers. */
export function palette() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  const lines = dark.matches
    ? ["#6cb6ff", "#ff9f43", "#3ddbb0", "#e396c4", "#f0e070", "#b4c2d0"]
    : ["#0072b2", "#d55e00", "#009e73", "#b0578d", "#a87000", "#4a5563"];
  return {
    text: read("--text"),
    muted: read("--muted"),
    grid: read("--line"),
    paper: read("--card"),
    band: read("--band"),
    wide: read("--band-wide"),
    lines,
  };
}

export const DASHES = ["solid", "dash", "dashdot", "dot", "longdash", "longdashdot"];

/** A label with HTML escaped: Plotly renders some HTML in labels. */
export const plain = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

function layout(figure, colours) {
  const axis = {
    zeroline: false,
    showline: true,
    linecolor: colours.grid,
    gridcolor: colours.grid,
    tickcolor: colours.grid,
    automargin: true,
    fixedrange: true,
  };
  return {
    font: { family: "system-ui, sans-serif", size: 12, color: colours.text },
    paper_bgcolor: colours.paper,
    plot_bgcolor: colours.paper,
    margin: { l: 52, r: 12, t: 8, b: 40 },
    hovermode: "closest",
    hoverlabel: { bgcolor: colours.paper, bordercolor: colours.grid, font: { color: colours.text } },
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, font: { size: 11 } },
    showlegend: figure.legend ?? false,
    dragmode: false,
    shapes: figure.shapes ?? [],
    xaxis: { ...axis, title: { text: figure.x, standoff: 8 }, ...(figure.xaxis ?? {}) },
    yaxis: { ...axis, title: { text: figure.y, standoff: 8 }, ...(figure.yaxis ?? {}) },
  };
}

/** A card with one figure. `update` takes the result of a function of figures.js, or null to hide the card. */
export class Plot {
  constructor(title, key) {
    this.heading = h("h3", { id: `plot-${key}` }, title);
    this.note = h("p", { class: "hint" });
    this.place = h("div", { class: "plot", role: "img" });
    this.rows = h("div", {});
    this.details = h("details", { ontoggle: () => this.listRows() }, h("summary", {}, "As a table"), this.rows);
    this.element = h(
      "section",
      { class: "card figure", "aria-labelledby": this.heading.id, hidden: true, dataset: { plot: key } },
      this.heading,
      this.note,
      this.place,
      this.details,
    );
    this.figure = null;
    this.redraw = () => this.figure && this.update(this.figure);
    dark.addEventListener("change", this.redraw);
  }

  update(figure) {
    this.figure = figure;
    this.element.hidden = figure === null;
    if (figure === null) return;
    if (figure.title) this.heading.textContent = figure.title;
    this.note.textContent = figure.note;
    this.place.setAttribute("aria-label", `${this.heading.textContent}: ${figure.summary}`);
    const colours = palette();
    const drawn = figure.draw(colours);
    Plotly.react(this.place, drawn, layout(figure, colours), {
      responsive: true,
      displayModeBar: false,
      staticPlot: false,
      scrollZoom: false,
    });
    this.listRows();
  }

  listRows() {
    if (!this.details.open || this.figure === null) return;
    const { headings, rows } = this.figure.table();
    const step = Math.max(1, Math.ceil(rows.length / 60));
    const shown = rows.filter((_, k) => k % step === (rows.length - 1) % step);
    fill(
      this.rows,
      table(
        this.heading.textContent,
        headings,
        shown,
        headings.map((_, k) => k),
      ),
    );
  }

  stop() {
    dark.removeEventListener("change", this.redraw);
    Plotly.purge(this.place);
  }
}

export const moves = () => !still.matches;
