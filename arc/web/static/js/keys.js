// The keyboard: every key does what a button does, too.

import { copy } from "./copying.js";
import { byId, el, put, tell } from "./dom.js";
import { closeDrawer } from "./drawer.js";
import { step } from "./scrubber.js";
import { setView, view } from "./view.js";
import { short } from "./words.js";

/** @type {[string, string, (deeds: Deeds) => void][]} */
const KEYS = [
  ["/", "filter the tasks", () => byId("filter").focus()],
  ["j", "next row", () => move(1)],
  ["k", "row before", () => move(-1)],
  ["Enter", "open the row", () => { /* the row's own button hears it */ }],
  ["w", "why: copy the command for what is open", () => void why()],
  ["d", "drain the node that is open", () => openVerb("drain")],
  ["p", "pause the node, or the fleet, that is open", () => { openVerb("pause"); openVerb("pause-fleet"); }],
  ["r", "resume the node or the fleet, or retry the task, that is open", () => { openVerb("resume"); openVerb("resume-fleet"); openVerb("retry"); }],
  ["x", "cancel the task that is open", () => openVerb("cancel")],
  ["[", "a quarter back in time", () => step(-1)],
  ["]", "a quarter forward", () => step(1)],
  ["l", "back to live", () => setView({ at: null })],
  [" ", "stop or go on following the fleet", (deeds) => deeds.pause()],
  ["t", "dark or light", (deeds) => deeds.theme()],
  ["?", "this help", () => help()],
  ["Escape", "close what is open", () => closeDrawer()],
];
/** @typedef {{pause: () => void, theme: () => void}} Deeds */

/** @param {Deeds} deeds */
export function keys(deeds) {
  byId("keys").addEventListener("click", help);
  document.addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (target.matches("input, textarea, select")) {
      if (event.key === "Escape") target.blur();
      return;
    }
    if (target.closest("dialog")) return;
    if ([" ", "Enter"].includes(event.key) && target.matches("button, summary, a, [role=button]")) return;
    const found = KEYS.find(([key]) => key === event.key);
    if (!found || event.key === "Enter") return;
    event.preventDefault();
    found[2](deeds);
  });
}

/** Opens the form of a verb, where the drawer offers it. @param {string} verb */
function openVerb(verb) {
  const button = document.querySelector(`#drawer [data-verb="${verb}"]`);
  if (button instanceof HTMLButtonElement) button.click();
}

/** @param {number} way */
function move(way) {
  const rows = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("[data-row]")].filter((row) =>
    row.getClientRects().length));
  if (!rows.length) return;
  const at = rows.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  const next = rows[Math.min(Math.max(at + way, 0), rows.length - 1)];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

async function why() {
  const command = view.task ? `arc why ${short(view.task)}` : view.node ? `arc why --node ${view.node}` : "arc plan";
  if (await copy(command)) tell(`copied: ${command}`);
  const place = document.querySelector('#drawer [aria-label="Why"]');
  place?.scrollIntoView({ block: "start" });
}

/** Opens the help. */
export function help() {
  const dialog = /** @type {HTMLDialogElement} */ (byId("help"));
  const name = (/** @type {string} */ key) => (key === " " ? "space" : key);
  put(dialog, el("h2", { id: "help-title" }, "Keys and marks"),
    el("dl", {}, KEYS.flatMap(([key, says]) => [el("dt", {}, el("kbd", {}, name(key))), el("dd", {}, says)])),
    el("p", {}, "Stranded time, the loud colour: a slot was free on a node while a task that might have run "
      + "there waited elsewhere. Every panel has a ? that says what it shows, a table behind its plot, and "
      + "its command to copy. All times are UTC. The address holds what you look at: share it."),
    el("p", { class: "actions" }, el("button", { type: "button", onclick: () => dialog.close() }, "close")));
  if (!dialog.open) dialog.showModal();
}
