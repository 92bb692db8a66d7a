// Stranded nodes: which, beside whose queue, and which rule keeps the two apart, or that nobody looked.

import { typed } from "./copying.js";
import { el } from "./dom.js";
import { setView } from "./view.js";
import { clock, counted, minutes, short } from "./words.js";

const SHOWN = 5;
const NAMED = 3;
const LEAST_S = 3; // more than 0.0 minutes
const TENTH_S = 6; // of a minute
const NOBODY = "nobody_looked";

/** @typedef {{node: string, cause: string, rule: string, because?: string, uid: string, beside: string}} Stranded */

/** The first names, and how many more. @param {Stranded[]} list */
export function named(list) {
  const names = list.slice(0, NAMED).map((one) => one.node).join(", ");
  return list.length > NAMED ? `${names} and ${list.length - NAMED} more` : names;
}

/** How much of it a rule forbade, and in how much nobody looked, in tenths of a minute that add up to
 * what `minutes` says of both; nothing where there is none.
 * @param {Object<string, number>|undefined} causes seconds by rule, or by `nobody_looked` */
export function split(causes) {
  const all = Object.values(causes ?? {}).reduce((some, one) => some + one, 0);
  const whole = Math.round(Number((all / 60).toFixed(1)) * 10);
  const ruled = Math.min(Math.round((all - (causes?.[NOBODY] ?? 0)) / TENTH_S), whole);
  const parts = [ruled ? `a rule forbade it ${minutes(ruled * TENTH_S)}` : "", whole > ruled ? `nobody looked ${minutes((whole - ruled) * TENTH_S)}` : ""];
  return parts.filter(Boolean).join(", ");
}

/** What kept its slot and that work apart, as `arc status` says it. @param {Stranded} one */
export function cause(one) {
  const rule = one.cause === "rule" ? one.rule : `nobody looked${one.rule ? ` (${one.rule})` : ""}`;
  return `${rule}${one.because ? `: ${one.because}` : ""}`;
}

/** A line a node, below what waits for a person; null where no node is stranded.
 * @param {Stranded[]} list @param {string} when @param {Object<string, number>|undefined} causes
 * @param {string} over the time in which they add up */
export function strandedNodes(list, when, causes, over) {
  if (!list.length) return null;
  const whole = Object.entries(causes ?? {}).sort(([, one], [, other]) => other - one).filter(([, one]) => one >= LEAST_S);
  return el("div", { class: "stranded-nodes" },
    el("h3", {}, el("span", { class: "loud" }, `Stranded: ${counted(list.length, "node")}`),
      ` ${when}; a slot is free there, and work that it might run waits elsewhere`),
    el("ol", {}, list.slice(0, SHOWN).map(line),
      list.length > SHOWN ? el("li", {}, `… and ${list.length - SHOWN} more: `, typed("arc status")) : null),
    whole.length ? el("p", { class: "dim" }, `${over}: ${whole.slice(0, SHOWN).map(([rule, one]) =>
      `${rule === NOBODY ? "nobody looked" : rule} ${minutes(one)}`).join(", ")}`) : null);
}

/** @param {Stranded} one */
function line(one) {
  return el("li", {},
    el("button", { class: "bare who", type: "button", "data-key": `stranded-${one.node}`,
      onclick: () => setView({ node: one.node, task: null }) }, one.node),
    el("span", { class: "what" }, one.beside ? `free slot beside ${one.beside}: ${cause(one)}` : cause(one)),
    one.uid ? el("button", { class: "bare mono", type: "button", title: one.uid, "data-key": `beside-${one.uid}`,
      onclick: () => setView({ task: one.uid, node: null }) }, `task ${short(one.uid)}`) : null,
    typed(`arc why --node ${one.node}`));
}

/** When it was seen. @param {string|null|undefined} moment ISO */
export function seenAt(moment) { return moment ? `at ${clock(moment)} UTC` : "now"; }
