// The wells of a plate: a plate is what one ask returned, and its trials fill it row by row.

import { of } from "./api.js";
import { h, table } from "./dom.js";
import { cell } from "./words.js";

export const SIZES = { 24: [4, 6], 48: [6, 8], 96: [8, 12], 384: [16, 24] }; // rows and columns
const letter = (row) => String.fromCharCode(65 + row);

/** The name of a trial's well on a plate of `size` wells; empty if the plate is too small. */
export function well(trial, size) {
  const position = trial.id - trial.plate;
  const columns = SIZES[size]?.[1];
  return columns && position < size ? `${letter(Math.floor(position / columns))}${(position % columns) + 1}` : "";
}

/** A map of every plate that has pending trials, with the plate as a file. */
export function maps(name, pending, size) {
  return [...new Set(pending.map((trial) => trial.plate))].map((first) => {
    const trials = pending.filter((trial) => trial.plate === first);
    const [rows, columns] = SIZES[size];
    const inside = trials.filter((trial) => trial.id - first < size);
    const used = Math.min(rows, 1 + Math.floor(Math.max(...inside.map((trial) => trial.id - first)) / columns));
    const placed = new Map(inside.map((trial) => [well(trial, size), String(cell(trial.cells[0]) ?? "")]));
    const numbers = Array.from({ length: columns }, (_, k) => String(k + 1));
    const lines = Array.from({ length: used }, (_, row) => [
      h("strong", {}, letter(row)),
      ...numbers.map((number) => placed.get(letter(row) + number) ?? "·"),
    ]);
    const left = trials.length - inside.length;
    const file = (form, words) =>
      h("a", { href: of(name, `plate?form=${form}&first=${first}&wells=${size}`), download: true }, words);
    return h(
      "section",
      { class: "wells" },
      h("h3", {}, `Plate of trial ${first}`),
      table(`Wells of the plate of trial ${first}`, ["", ...numbers], lines),
      h(
        "p",
        { class: "hint" },
        left ? `${left} do not fit on it; choose a larger plate. ` : "A dot is empty or has its result. ",
        left ? null : ["With wells: ", file("xlsx", "Excel"), ", ", file("csv", "CSV")],
      ),
    );
  });
}
