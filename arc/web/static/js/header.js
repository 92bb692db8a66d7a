// The header: how the fleet is in one line, now or at the moment that is looked at.

import { ask } from "./asking.js";
import { byId, el, put, visible } from "./dom.js";
import { strandedThen } from "./needs.js";
import { named as nodesOf, split } from "./stranded.js";
import { clock, day, minutes, money } from "./words.js";
import { view } from "./view.js";

/** @param {any} value @param {string} text @param {string|null} kind */
function fact(value, text, kind = null) {
  return el("li", { class: kind }, el("b", {}, value), ` ${text}`);
}

/** @param {any} now what the hub knows @returns {void} */
export function showNow(now) {
  named(now.fleet ?? "", (now.needs_you ?? []).length);
  if (view.at) return;
  const head = now.header ?? {};
  const stranded = now.stranded?.now ?? [];
  const unseen = head.nodes - head.seen;
  const paused = now.hub?.paused;
  put(byId("facts"),
    fact(head.nodes, head.nodes === 1 ? "node" : "nodes"),
    unseen ? fact(unseen, "not seen", "warn") : null,
    fact(head.waiting + (head.inbox ?? 0), head.inbox ? `waiting, ${head.inbox} of them in the hub` : "waiting"),
    fact(head.running, "running"),
    fact(head.moved_last_cycle ?? "-", "moved in the last cycle"), fact(head.moved_24h, "moved in 24 h"),
    stranded.length ? fact(nodesOf(stranded), "stranded now", "loud") : null,
    fact(minutes(now.stranded?.today_s ?? 0), `stranded today${inBrackets(split(now.stranded?.by_cause))}`),
    head.budget_per_day_usd ? limited(head) : null,
    fact(money(head.spent_today_usd), head.budget_per_day_usd ? "spent today, as was heard" : "spent today"),
    paused ? el("li", { class: "warn", title: paused.reason }, `the fleet is paused by ${paused.by}${paused.reason ? `: ${paused.reason}` : ""}`) : null);
}

/** What the limit of the fleet's day counts, which is not all that is spent. @param {any} head */
function limited(head) {
  const day = head.fleet_day;
  const one = fact(money(day?.counted_usd), `of ${money(day?.limit_usd ?? head.budget_per_day_usd)} today`);
  one.title = dayInWords(day);
  return one;
}

/** @param {any} day */
export function dayInWords(day) {
  if (!day) return "the hub's queue has not told what it counts";
  const since = day.counted_since === null ? "" : `, counted since ${clock(day.counted_since).slice(0, 5)} UTC`;
  return `${money(day.spent_usd)} spent and ${money(day.reserved_usd)} reserved${since}: what the hub's own queue gives out`;
}

/** @param {string} text */
function inBrackets(text) { return text ? ` (${text})` : ""; }

/** The fleet's name, and in the tab how many things wait for a person.
 * @param {string} fleet @param {number} needs */
function named(fleet, needs) {
  const title = `${needs ? `(${needs}) ` : ""}${fleet ? `${visible(fleet)} · ` : ""}arc`;
  if (document.title !== title) document.title = title;
  const head = /** @type {Element} */ (document.querySelector("h1"));
  if (fleet && head.textContent !== visible(fleet)) put(head, fleet);
}

/** The header of a moment of the past. */
export async function showMoment() {
  if (!view.at) return;
  const asked = view.at;
  const { data } = await ask("panels/moment", { at: view.at });
  if (view.at !== asked) return;
  const nodes = data.nodes.filter((/** @type {any} */ one) => one.node !== "inbox");
  const known = nodes.filter((/** @type {any} */ one) => one.state !== "unknown");
  const stranded = data.stranded_because;
  strandedThen(stranded, data.at, data.by_cause);
  put(byId("facts"),
    el("li", { class: "warn" }, `as it was at ${day(data.at).slice(0, 10)} ${clock(data.at)} UTC`),
    fact(`${known.length} of ${nodes.length + data.forgotten.length}`, "nodes seen"),
    fact(data.waiting, "waiting"), fact(data.running, "running"),
    fact(data.moved_24h, "moved in the 24 h before"),
    stranded.length ? fact(nodesOf(stranded), "stranded then", "loud") : null,
    fact(minutes(data.stranded_24h_s), `stranded in the 24 h before${inBrackets(split(data.by_cause))}`),
    fact(money(data.cost_24h_usd), "spent in them"));
}
