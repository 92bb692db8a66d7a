// The drawer: one task whole, one node whole, or the fleet, beside the page.

import { bring, Trouble } from "./asking.js";
import { byId, el, put, tell } from "./dom.js";
import { known } from "./now.js";
import { onView, setView, view } from "./view.js";

/** @type {Element|null} */ let before = null;
/** @type {string|undefined} */ let drawn;

/** Opens and closes it as the address says. */
export function drawer() {
  onView((_, changed) => { if (changed.some((name) => ["task", "node", "fleet"].includes(name))) void show(); });
  void show();
}

/** Closes it; the focus goes back to where it was. */
export function closeDrawer() {
  setView({ task: null, node: null, fleet: null });
}

/** What is known of what is shown, in one word. @param {any} now @returns {string|undefined} */
function stateOf(now) {
  if (view.node) return now?.nodes?.[view.node]?.state;
  return view.fleet && now?.hub ? JSON.stringify(now.hub.paused) : undefined;
}

/** A node, or the fleet, that is shown and is something else by now is drawn anew. @param {any} now */
export function nowChanged(now) {
  const state = view.task ? undefined : stateOf(now);
  if (state === undefined || state === drawn) return;
  drawn = state;
  if (!byId("drawer").querySelector(".act")) void show(true);
}

/** What is shown now is fetched again, unless somebody writes or reads in it. */
export function refreshDrawer() {
  if (view.task && !byId("drawer").querySelector(".act, pre:focus, details[open]")) void show(true);
}

async function show(again = false) {
  const box = byId("drawer");
  const { task, node, fleet } = view;
  drawn = stateOf(known());
  if (!task && !node && !fleet) {
    if (box.hidden) return;
    box.hidden = true;
    put(box);
    if (before instanceof HTMLElement || before instanceof SVGElement) before.focus();
    before = null;
    return;
  }
  if (box.hidden) before = document.activeElement;
  box.hidden = false;
  const place = el("div", {}, el("p", { class: "plain" }, "asking the nodes"));
  const title = el("h2", { id: "drawer-title", tabindex: "-1" }, task ? `Task ${task.slice(-6).toLowerCase()}` : node ? `Node ${node}` : "The fleet");
  if (!again) {
    put(box, el("div", { class: "top" }, title, el("button", { type: "button", title: "Close (Esc)",
      onclick: closeDrawer }, "close")), place);
    title.focus();
    tell(title.textContent ?? "");
  }
  const target = again ? /** @type {HTMLElement} */ (box.lastElementChild) : place;
  try {
    if (task) await (await bring(() => import("./drawer_task.js"))).drawTask(target, task);
    else if (node) await (await bring(() => import("./drawer_node.js"))).drawNode(target, node);
    else (await bring(() => import("./drawer_fleet.js"))).drawFleet(target);
  } catch (error) {
    if (!(error instanceof Trouble)) throw error;
    put(target, el("p", { class: "trouble" }, `could not look: ${error.message}`),
      error.hint ? el("p", { class: "dim" }, error.hint) : null,
      error.code ? el("p", { class: "dim" }, `arc explain ${error.code}`) : null);
  }
}
