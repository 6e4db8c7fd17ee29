// Requests to the service: JSON in and out, errors as `Problem`, and a key on every write so that it can be repeated safely.

/** An error response of the service (application/problem+json). */
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

/** A random key for one write; works without a secure context, as on plain HTTP. */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `page-${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** The address of a study, or of a route below it. */
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
      detail: "The server cannot be reached. Try again; repeating is safe.",
    });
  }
  const date = Date.parse(response.headers.get("date") ?? "");
  if (date) ahead = Math.abs(date - Date.now()) > 5000 ? (date - Date.now()) / 1000 : 0;
  if (response.ok) return response.status === 204 ? null : response.json();
  let body = {};
  try {
    body = await response.json();
  } catch {
    // not a response of the service, perhaps one of a proxy
  }
  throw new Problem(response.status, body);
}

/** Read. */
export const get = (address) => answered(address, {});

/** Write. Repeated with the same `key`, the request returns the stored result and does nothing. */
export const post = (address, body, key = newKey()) =>
  answered(address, {
    method: "POST",
    headers: { "content-type": "application/json", "idempotency-key": key },
    body: JSON.stringify(body),
  });
