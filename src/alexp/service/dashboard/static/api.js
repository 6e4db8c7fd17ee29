// Talking to the service: JSON in and out, problems as `Problem`, and a key on every write so that a retry does no harm.

/** What the service answered instead of what was wanted (application/problem+json). */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `the server answered ${status}`);
    this.status = status;
    this.title = body.title ?? "";
    this.type = body.type ?? "";
    this.body = body;
    this.field = body.field ?? null;
    this.suspicious = status === 409 && this.type.endsWith(":suspicious-reward");
  }
}

/** A key for one deed; also where there is no secure context, as on a laboratory's plain HTTP. */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `page-${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** The address of something about a study. */
export const of = (name, rest = "") => `/v1/studies/${encodeURIComponent(name)}${rest && `/${rest}`}`;

/** How far the server's clock is ahead of this one's, in seconds. */
export let ahead = 0;

async function answered(address, options) {
  let response;
  try {
    response = await fetch(address, { credentials: "same-origin", cache: "no-store", ...options });
  } catch {
    throw new Problem(0, {
      title: "No connection",
      detail: "The server cannot be reached. Nothing is lost: try again.",
    });
  }
  const date = Date.parse(response.headers.get("date") ?? "");
  if (date) ahead = Math.abs(date - Date.now()) > 5000 ? (date - Date.now()) / 1000 : 0;
  if (response.ok) return response.status === 204 ? null : response.json();
  let body = {};
  try {
    body = await response.json();
  } catch {
    // not of the service: a proxy, perhaps
  }
  throw new Problem(response.status, body);
}

/** Look. */
export const get = (address) => answered(address, {});

/** Write. `key` names the deed: whoever repeats it with the same key gets what happened the first time. */
export const post = (address, body, key = newKey()) =>
  answered(address, {
    method: "POST",
    headers: { "content-type": "application/json", "idempotency-key": key },
    body: JSON.stringify(body),
  });
