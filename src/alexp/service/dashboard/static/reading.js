// Tables that the service reads: a file or a pasted text, sent after a pause, and the answer to the latest one.

import { post } from "./api.js";
import { fill, h, note } from "./dom.js";

export const ACCEPT = ".csv,.tsv,.txt,.xlsx,.parquet,text/csv";
export const DECIMALS = [
  ["", "As the cells say"],
  [",", "Comma: 0,5"],
  [".", "Point: 0.5"],
];
const PAUSE = 400; // milliseconds without typing, after which the table is sent

/** A file as the service takes it: its name, and its bytes in base64. */
export function content(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve({ name: file.name, content: reader.result.split(",")[1] ?? "" });
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

/**
 * A file input and a text area of which one is filled in. `request()` gives the address and the body that they are sent
 * with, `show(answer)` shows the answer in `place`, and `refused(problem)` is called before a problem is shown there.
 */
export class Reading {
  constructor({ file, text, place, request, show, taken = () => {}, refused = () => {} }) {
    Object.assign(this, { file, text, place, request, show, taken, refused, given: null, answer: null, turn: 0 });
    text.addEventListener("input", () => this.pasted());
    file.addEventListener("click", () => (file.value = "")); // so that the same file can be chosen again
    file.addEventListener("change", () => this.chosen());
  }

  pasted() {
    this.file.value = "";
    this.take(this.text.value.trim() ? { csv: this.text.value } : null);
  }

  async chosen() {
    const [file] = this.file.files;
    if (!file) return;
    this.text.value = "";
    this.take({ file: await content(file) }, 0);
  }

  /** Take a new table, {csv} or {file}; null for none. */
  take(given, wait = PAUSE) {
    this.given = given;
    this.taken();
    this.later(wait);
  }

  clear() {
    this.text.value = this.file.value = "";
    this.take(null, 0);
  }

  /** Read the table after a pause. */
  later(wait = PAUSE) {
    clearTimeout(this.timer);
    this.answer = null;
    this.timer = setTimeout(() => this.read(), wait);
  }

  async read() {
    const turn = (this.turn += 1);
    if (this.given === null) return this.show(null);
    try {
      const answer = await post(...this.request());
      if (turn === this.turn) this.show((this.answer = answer));
    } catch (problem) {
      if (turn !== this.turn) return;
      this.refused(problem);
      fill(this.place, note("error", h("p", { class: "lines" }, problem.message)));
    }
  }
}
