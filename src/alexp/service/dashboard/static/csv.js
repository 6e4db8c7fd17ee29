// Reads a pasted table to show its columns; the service reads and validates it again.

/** {header, rows} of CSV text separated by comma, semicolon or tab; null without a header and a row. */
export function readTable(text) {
  const first = text.split(/\r?\n/, 1)[0];
  const separator = [",", ";", "\t"].reduce((best, mark) =>
    first.split(mark).length > first.split(best).length ? mark : best,
  );
  const rows = [];
  let cells = [""];
  let quoted = false;
  for (let k = 0; k < text.length; k += 1) {
    const letter = text[k];
    if (quoted) {
      if (letter === '"' && text[k + 1] === '"') cells[cells.length - 1] += text[(k += 1)];
      else if (letter === '"') quoted = false;
      else cells[cells.length - 1] += letter;
    } else if (letter === '"') quoted = true;
    else if (letter === separator) cells.push("");
    else if (letter === "\n") {
      rows.push(cells);
      cells = [""];
    } else if (letter !== "\r") cells[cells.length - 1] += letter;
  }
  rows.push(cells);
  const full = rows.filter((row) => row.some((cell) => cell.trim())).map((row) => row.map((cell) => cell.trim()));
  return full.length < 2 ? null : { header: full[0], rows: full.slice(1) };
}

/** Whether all cells of a column are numbers. */
export const isNumeric = (rows, k) =>
  rows.every((row) => row[k] !== undefined && row[k] !== "" && Number.isFinite(Number(row[k])));

/**
 * Proposed models, as {name: columns}: columns whose names differ only in a number, or after the last dot or underscore,
 * are one model; if that gives no grouping, one model of all columns and one of each of the first six.
 */
export function proposed({ header, rows }) {
  const useful = header.filter(
    (name, k) => isNumeric(rows, k) || new Set(rows.map((row) => row[k])).size <= Math.min(20, rows.length / 2),
  );
  const groups = new Map();
  for (const name of useful) {
    const stem = /^(.+?)[._ -]?\d+$/.exec(name)?.[1] ?? /^(.+)[._][^._]+$/.exec(name)?.[1] ?? name;
    groups.set(stem, [...(groups.get(stem) ?? []), name]);
  }
  if (groups.size > 1 && groups.size < useful.length) return Object.fromEntries(groups);
  const all = useful.length > 1 ? [["all columns", useful]] : [];
  return Object.fromEntries([...all, ...useful.slice(0, 6).map((name) => [name, [name]])]);
}
