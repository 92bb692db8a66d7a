// NEEDS YOU: what waits for a person, each with the command to type; below it who is stranded, and why.

import { typed } from "./copying.js";
import { byId, el, keepFocus, put } from "./dom.js";
import { seenAt, strandedNodes } from "./stranded.js";
import { setView, view } from "./view.js";
import { counted } from "./words.js";

let before = "";

/** @param {any} now what the hub knows */
export function showNeeds(now) {
  const needs = view.at ? null : now.needs_you ?? [];
  const { now: nodes = [], seen_at: at = null, by_cause: causes } = now.stranded ?? {};
  const key = JSON.stringify(needs === null ? view.at : [needs, nodes, causes, nodes.length ? at : null]);
  if (key === before) return;
  before = key;
  if (needs === null) drawPast(null);
  else keepFocus(byId("needs"), () => drawNow(needs, strandedNodes(nodes, seenAt(at), causes, "today")));
}

/** Who was stranded at the moment of the past that is shown.
 * @param {any[]} nodes @param {string} at @param {any} causes */
export function strandedThen(nodes, at, causes) {
  before = JSON.stringify(view.at); // what the hub says later of now does not take it away
  drawPast(strandedNodes(nodes, seenAt(at), causes, "in the 24 h before"));
}

/** @param {Node|null} stranded */
function drawPast(stranded) {
  const section = byId("needs");
  section.classList.toggle("quiet", !stranded);
  put(section, el("div", { class: "head" }, title(), el("span", { class: "sum" },
    "this is the past; what waits for a person is shown live"),
  el("button", { type: "button", onclick: () => setView({ at: null }) }, "back to live")), stranded);
}

/** @param {any[]} needs @param {Node|null} stranded */
function drawNow(needs, stranded) {
  const section = byId("needs");
  section.classList.toggle("quiet", needs.length === 0 && !stranded);
  put(section, el("div", { class: "head" }, title(),
    el("span", { class: needs.length ? "sum loud" : "sum" },
      needs.length ? counted(needs.length, "thing") : "nothing")),
  needs.length ? el("ol", { class: "persons" }, needs.slice(0, 12).map(line)) : null,
  needs.length > 12 ? el("p", { class: "plain" }, `… and ${needs.length - 12} more: `,
    typed("arc status")) : null, stranded);
}

function title() { return el("h2", { id: "needs-title" }, "Needs you"); }

/** @param {any} one */
function line(one) {
  return el("li", {},
    el("button", { class: "bare who", type: "button", "data-key": `need-${one.node}`,
      onclick: () => setView({ node: one.node, task: null }) }, one.node),
    el("span", { class: "what" }, one.text), one.try ? typed(one.try) : null);
}
