// Holds what is looked at. All of it stands in the address, so that a moment can be shared.

const USUAL = { at: null, span: "3h", task: null, node: null, fleet: null, step: null, q: null, what: null };
/** @typedef {{at: string|null, span: string, task: string|null, node: string|null,
 *   fleet: string|null, step: string|null, q: string|null, what: string|null}} View */

const SPANS = { "1m": 60, "5m": 300, "15m": 900, "1h": 3600, "3h": 10800, "12h": 43200,
  "24h": 86400, "7d": 604800 };

/** @returns {View} */
function read() {
  const query = new URLSearchParams(location.search);
  const found = { ...USUAL };
  for (const name of Object.keys(USUAL)) {
    const value = query.get(name);
    if (value !== null) /** @type {any} */ (found)[name] = value.slice(0, 300);
  }
  if (found.at !== null && Number.isNaN(Date.parse(found.at))) found.at = null;
  if (!(found.span in SPANS)) found.span = "3h";
  return /** @type {View} */ (/** @type {unknown} */ (found));
}

/** @type {View} */
export let view = read();
/** @type {((view: View, changed: string[]) => void)[]} */
const listeners = [];

/** @param {(view: View, changed: string[]) => void} listener */
export function onView(listener) { listeners.push(listener); }

// What a person opened is a step that the browser's Back undoes; words and sliders are none, and of a
// slider that is drawn along, or a key that is held, all that follows within a second is one step.
const STEPS = ["task", "node", "fleet", "span", "at", "step"];
const ONE_STEP_MS = 1000;
let stepped = { at: -ONE_STEP_MS, by: "" };

/** Whether a change is a step of its own. @param {string[]} changed */
function isStep(changed) {
  const by = changed.filter((name) => STEPS.includes(name)).join(), now = performance.now();
  if (!by) return false;
  const same = by === "at" && stepped.by === by && now - stepped.at < ONE_STEP_MS;
  stepped = { at: now, by };
  return !same;
}

/** @param {Partial<View>} changes @param {{quiet?: boolean}} how */
export function setView(changes, how = {}) {
  const changed = Object.keys(changes).filter((name) =>
    /** @type {any} */ (view)[name] !== /** @type {any} */ (changes)[name]);
  if (!changed.length) return;
  view = { ...view, ...changes };
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(view)) {
    if (value === null || value === /** @type {any} */ (USUAL)[name]) query.delete(name);
    else query.set(name, String(value));
  }
  const tail = query.size ? `?${query}` : "";
  const address = `${location.pathname}${tail}`;
  if (isStep(changed)) history.pushState(null, "", address); else history.replaceState(null, "", address);
  if (!how.quiet) for (const listener of listeners) listener(view, changed);
}

/** Seconds that are shown. */
export function spanSeconds() { return /** @type {any} */ (SPANS)[view.span]; }

/** The spans that can be chosen. */
export function spans() { return Object.keys(SPANS); }

/** What every panel is asked with. */
export function windowed() { return { at: view.at, span: view.span }; }

window.addEventListener("popstate", () => {
  const before = /** @type {any} */ (view), now = /** @type {any} */ (read());
  view = now;
  const changed = Object.keys(USUAL).filter((name) => before[name] !== now[name]);
  for (const listener of listeners) listener(view, changed);
});
