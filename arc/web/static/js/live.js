// Follows the fleet by server-sent events; says when it cannot, and how old what is shown is.

import { headers, heardAt, hubNow } from "./asking.js";
import { byId, put } from "./dom.js";
import { readEvents } from "./events.js";
import { forget, merge } from "./now.js";
import { clock, lasting } from "./words.js";

const AGAIN_MS = 3000;
const SILENT_MS = 25000; // without two heartbeats of ten seconds each: the connection is dead, whatever TCP says

/** @typedef {{onNow: (now: any) => void, onStale: (panel: string) => void}} Ears */

/** @type {AbortController|null} */ let source = null;
/** @type {Ears|null} */ let ears = null;
let shownAt = 0, heard = 0, state = "connecting", stopped = false, away = "";
/** @type {ReturnType<typeof setTimeout>|undefined} */ let retry;

/** Begins to follow. @param {Ears} given */
export function follow(given) {
  ears = given;
  byId("dot").addEventListener("animationend", () => byId("dot").classList.remove("beat"));
  document.addEventListener("visibilitychange", () => (document.hidden ? drop() : connect()));
  connect();
}

/** Whether the page stands still because its reader wants it to. */
export function isPaused() { return stopped; }

/** @param {boolean} still */
export function pause(still) {
  stopped = still;
  if (still) { drop(); setState("paused"); } else connect();
}

/** Milliseconds of the hub's clock at which what is shown was true; 0: nothing is. */
export function shown() { return shownAt; }

function drop() {
  source?.abort();
  source = null;
  clearTimeout(retry);
}

async function connect() {
  if (stopped || document.hidden || source) return;
  clearTimeout(retry);
  const own = new AbortController();
  source = own;
  try {
    await readEvents("/live", headers(), own.signal, hear);
  } catch (error) {
    if (own.signal.aborted) return;
    if (!(error instanceof Error)) throw error;
  }
  if (source !== own) return;
  source = null;
  setState("lost");
  retry = setTimeout(connect, AGAIN_MS);
}

/** @param {string} kind @param {string} data */
function hear(kind, data) {
  if (kind === "open") forget();
  beat();
  if (kind === "trouble") trouble(JSON.parse(data));
  if (kind === "now") { byId("dot").classList.add("beat"); take(JSON.parse(data)); }
  if (kind === "stale") for (const panel of JSON.parse(data).panels ?? []) ears?.onStale(String(panel));
}

/** The stream says something: as long as it does, what is shown is how it is. */
function beat() {
  heard = Date.now();
  if (!away && shownAt) shownAt = hubNow();
  if (state !== "live") setState("live");
}

/** @param {any} said */
function take(said) {
  if (!away) { heardAt(said.seen_at); shownAt = Date.parse(said.seen_at) || hubNow(); }
  ears?.onNow(merge(said));
  showState();
}

/** The hub cannot be asked, or can be again; the stream itself is well. @param {any} said */
function trouble(said) {
  away = said.error ? `${said.error.message}${said.error.hint ? ` (${said.error.hint})` : ""}` : "";
  if (away && said.seen_at) shownAt = Date.parse(said.seen_at);
  showState();
}

/** @param {string} next */
function setState(next) { state = next; showState(); }

/** Called each second: ages grow by our own clock, whatever else stands still. */
export function showState() {
  if (source && state === "live" && heard && Date.now() - heard > SILENT_MS) {
    drop();
    state = "lost";
    retry = setTimeout(connect, 0);
  }
  const box = byId("live"), banner = byId("banner");
  const word = away ? "no hub" : { live: "live", lost: "reconnecting", paused: "paused",
    connecting: "connecting" }[state] ?? state;
  if (byId("live-word").textContent !== word) put(byId("live-word"), word);
  box.dataset.state = away ? "lost" : state;
  const old = shownAt ? `showing ${clock(shownAt)}, ${lasting((hubNow() - shownAt) / 1000)} old` : "";
  const text = away ? `${away}; ${old || "nothing was seen yet"}`
    : state === "lost" ? `${old || "nothing was seen yet"}, reconnecting`
      : state === "paused" ? `${old}, paused: press space to follow again` : "";
  banner.hidden = !text;
  banner.classList.toggle("calm", state === "paused" && !away);
  if (banner.textContent !== text) put(banner, text);
}
