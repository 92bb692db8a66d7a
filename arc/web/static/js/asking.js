// Asks the server of the page: one envelope for each question, every wait bounded.

const LIMIT_MS = 15000;
let ahead = 0; // milliseconds by which the hub's clock is ahead of ours

/** What went wrong, with what to do. */
export class Trouble extends Error {
  /** @param {string} message @param {string} code @param {string} hint */
  constructor(message, code = "", hint = "") {
    super(message);
    this.code = code;
    this.hint = hint;
  }
}

/** The hub's time now, by our clock and what its answers told. */
export function hubNow() { return Date.now() + ahead; }

/** @param {string|undefined|null} moment when an answer was made */
export function heardAt(moment) {
  const at = Date.parse(moment ?? "");
  if (!Number.isNaN(at)) ahead = at - Date.now();
}

const TOKEN = "arc-token";

/** The bearer token that this tab was given; never in the address. */
export function token() {
  try { return sessionStorage.getItem(TOKEN); } catch { return null; }
}

/** @param {string} text */
export function keepToken(text) {
  try { sessionStorage.setItem(TOKEN, text); } catch { /* this tab keeps nothing: asked again */ }
}

/** Headers of every question. @returns {Object<string, string>} */
export function headers() {
  const given = token();
  return given ? { authorization: `Bearer ${given}` } : {};
}

/** The answer of `/api/v1/PATH`. @param {string} path @param {Object<string, any>} asked
 * @returns {Promise<any>} the envelope, whose `data` is what was asked for */
export async function ask(path, asked = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(asked)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, String(value));
  }
  const tail = query.size ? `?${query}` : "";
  return answerOf(() => fetch(`/api/v1/${path}${tail}`, {
    headers: headers(), signal: AbortSignal.timeout(LIMIT_MS) }));
}

/** Something that changes the fleet. @param {string} verb @param {object} body */
export async function act(verb, body) {
  return answerOf(() => fetch(`/act/${encodeURIComponent(verb)}`, {
    method: "POST", headers: { "content-type": "application/json", ...headers() },
    body: JSON.stringify(body), signal: AbortSignal.timeout(2 * LIMIT_MS) }));
}

/** A part of the page that is fetched when it is first needed.
 * @template Part @param {() => Promise<Part>} load @returns {Promise<Part>} */
export async function bring(load) {
  try {
    return await load();
  } catch {
    throw new Trouble("a part of the page could not be fetched", "unreachable", "it is tried again");
  }
}

/** @param {() => Promise<Response>} send */
async function answerOf(send) {
  let answer, said;
  try {
    answer = await send();
    said = await answer.json();
  } catch (error) {
    if (answer) throw new Trouble(`the answer (${answer.status}) could not be read`, "unreadable");
    throw new Trouble(error instanceof DOMException && error.name === "TimeoutError"
      ? "no answer within 15 s" : "the page's server does not answer", "unreachable");
  }
  heardAt(said?.as_of);
  if (said?.ok === true) return said;
  if (answer.status === 401) document.dispatchEvent(new Event("arc:token"));
  const error = said?.error ?? {};
  throw new Trouble(error.message ?? `refused with ${answer.status}`, error.code ?? "",
    error.hint ?? "");
}
