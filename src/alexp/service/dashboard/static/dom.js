// Elements, dialogs and announcements. Text is never parsed as HTML, here or in other modules.

/** An element: `on…` are listeners, `dataset` is copied, false and null leave an attribute out; children are nodes or text. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "dataset") Object.assign(element.dataset, value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Put new children in the place of the old ones. */
export function fill(element, ...children) {
  element.replaceChildren(
    ...children.flat().filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

let count = 0;
/** A new id. */
export const newId = (stem) => `${stem}-${(count += 1)}`;

/** A label, its input, a hint and a place for an error message. */
export function field(label, input, { hint = null, names = [] } = {}) {
  input.id ||= newId("field");
  const problem = h("p", { class: "problem", id: `${input.id}-problem`, hidden: true });
  const note = hint && h("p", { class: "hint", id: `${input.id}-hint` }, hint);
  if (note) input.setAttribute("aria-describedby", note.id);
  return h(
    "div",
    { class: "field", dataset: { names: names.join(" ") } },
    h("label", { for: input.id }, label),
    input,
    note,
    problem,
  );
}

/** An option of a select, from its value and text. */
export const option = ([value, text]) => h("option", { value }, text);

/** Show an error message beside an input; null removes it. */
export function mark(input, text) {
  const problem = document.getElementById(`${input.id}-problem`);
  if (problem) {
    problem.textContent = text ?? "";
    problem.hidden = !text;
  }
  const hint = document.getElementById(`${input.id}-hint`);
  const described = [hint?.id, text ? problem?.id : null].filter(Boolean).join(" ");
  if (described) input.setAttribute("aria-describedby", described);
  else input.removeAttribute("aria-describedby");
  if (text) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
}

/**
 * A table; `numeric` are the positions of right-aligned columns, and cells may be nodes. A `stacked` one shows every row
 * as a block on narrow screens; its roles are explicit, because that layout would drop them.
 */
export function table(caption, headings, rows, numeric = [], stacked = false) {
  const kind = (k) => (numeric.includes(k) ? "n" : null);
  const role = (name) => (stacked ? name : null);
  const cell = (content, k) =>
    h("td", { class: kind(k), role: role("cell"), dataset: { column: headings[k] } }, content ?? "");
  const heading = (text, k) => h("th", { scope: "col", class: kind(k), role: role("columnheader") }, text);
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      { class: stacked ? "stacked" : null, role: role("table") },
      h("caption", { class: "unseen" }, caption),
      h("thead", { role: role("rowgroup") }, h("tr", { role: role("row") }, headings.map(heading))),
      h(
        "tbody",
        { role: role("rowgroup") },
        rows.map((row) => h("tr", { role: role("row") }, row.map(cell))),
      ),
    ),
  );
}

/** Tell screen readers what has changed. */
export function announce(text) {
  const place = document.getElementById("announcer");
  if (place.textContent !== text) place.textContent = text;
}

/** A note at the top of an element: kind "error", "warning" or "good". Errors are announced. */
export function note(kind, ...text) {
  return h("div", { class: `note ${kind}`, role: kind === "error" ? "alert" : "status" }, ...text);
}

/** A modal question; resolves to what `answer` returns when it is confirmed, and to null when it is not. */
export function question({
  title,
  body,
  confirm,
  cancel = "Cancel",
  danger = false,
  answer = () => true,
  ready = null,
}) {
  return new Promise((resolve) => {
    const before = document.activeElement;
    let result = null;
    const heading = h("h2", { id: newId("question") }, title);
    const form = h(
      "form",
      {
        method: "dialog",
        novalidate: true,
        onsubmit: (event) => {
          event.preventDefault();
          result = answer();
          if (result !== null) dialog.close();
        },
      },
      heading,
      body,
      h(
        "div",
        { class: "buttons" },
        h("button", { type: "button", class: "plain", onclick: () => dialog.close() }, cancel),
        h("button", { type: "submit", class: danger ? "danger" : "primary" }, confirm),
      ),
    );
    const dialog = h("dialog", { "aria-labelledby": heading.id }, form);
    dialog.addEventListener("close", () => {
      dialog.remove();
      const action = before?.dataset.action; // of a button that a new table has replaced meanwhile
      const back = before?.isConnected ? before : action && document.querySelector(`[data-action="${CSS.escape(action)}"]`);
      back?.focus();
      resolve(result);
    });
    document.body.append(dialog);
    dialog.showModal();
    ready?.();
  });
}
