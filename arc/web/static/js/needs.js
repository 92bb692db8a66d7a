// NEEDS YOU: what waits for a person, each with the command to type.

import { typed } from "./copying.js";
import { byId, el, put } from "./dom.js";
import { setView, view } from "./view.js";
import { counted } from "./words.js";

let before = "";

/** @param {any} now what the hub knows */
export function showNeeds(now) {
  const section = byId("needs");
  const needs = view.at ? null : now.needs_you ?? [];
  const key = JSON.stringify(needs);
  if (key === before && section.dataset.drawn) return;
  before = key;
  section.dataset.drawn = "1";
  const title = el("h2", { id: "needs-title" }, "Needs you");
  if (needs === null) {
    section.classList.add("quiet");
    put(section, el("div", { class: "head" }, title, el("span", { class: "sum" },
      "this is the past; what waits for a person is shown live"),
    el("button", { type: "button", onclick: () => setView({ at: null }) }, "back to live")));
    return;
  }
  section.classList.toggle("quiet", needs.length === 0);
  put(section, el("div", { class: "head" }, title,
    el("span", { class: needs.length ? "sum loud" : "sum" },
      needs.length ? counted(needs.length, "thing") : "nothing")),
  needs.length ? el("ol", {}, needs.slice(0, 12).map(line)) : null,
  needs.length > 12 ? el("p", { class: "plain" }, `… and ${needs.length - 12} more: `,
    typed("arc status")) : null);
}

/** @param {any} one */
function line(one) {
  return el("li", {},
    el("button", { class: "bare who", type: "button", "data-key": `need-${one.node}`,
      onclick: () => setView({ node: one.node, task: null }) }, one.node),
    el("span", { class: "what" }, one.text), one.try ? typed(one.try) : null);
}
