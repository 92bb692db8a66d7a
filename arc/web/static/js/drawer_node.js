// One node in the drawer: how it is, what it may be given, what keeps work away from it.

import { actions } from "./acting.js";
import { ask, Trouble } from "./asking.js";
import { typed } from "./copying.js";
import { el, put, table } from "./dom.js";
import { checked } from "./drawer_task.js";
import { known } from "./now.js";
import { setView, view } from "./view.js";
import { inWords, lasting, said, valued } from "./words.js";

const SHOWN = ["state", "pending", "running", "slots", "free_slots", "idle_since", "owns", "also",
  "reason", "version", "dispatcher", "clock_off_s", "at"];
const PARTS = /** @type {Object<string, string>} */ ({ idle: "idle: it may be given work",
  busy: "busy: work may be taken from it",
  both: "both: it may be given work, and what no agent there can run may be taken", neither: "neither idle nor busy", out: "out: it neither gives nor takes" });

/** @param {HTMLElement} place @param {string} name */
export async function drawNode(place, name) {
  const now = known()?.nodes?.[name];
  const reasons = el("div", {}, el("p", { class: "plain" }, "asking why"));
  put(place,
    now ? el("dl", {}, SHOWN.filter((word) => ![null, undefined, ""].includes(now[word])).flatMap((word) =>
      [el("dt", {}, inWords(word)), el("dd", {}, valued(word, now[word]))]))
      : el("p", { class: "plain" }, name === "inbox" ? "the hub's own queue: what waits there is given away by the router"
        : "the hub has told nothing of this node yet"),
    now && !now.seen ? el("p", { class: "trouble" }, `not seen: ${now.rule}: ${now.reason}`) : null,
    name === "inbox" ? null : actions("node", { node: name, state: now?.state }),
    el("p", { class: "actions" }, typed(`arc why --node ${name}`),
      el("button", { type: "button", onclick: () => setView({ q: `node:${name}` }) }, "its tasks"),
      view.q === name ? el("button", { type: "button", onclick: () => setView({ q: null }) }, "all lanes")
        : el("button", { type: "button", onclick: () => setView({ q: name }) }, "its lane alone")), reasons);
  if (name === "inbox") { put(reasons); return; }
  try {
    const { data } = await ask(`why-node/${encodeURIComponent(name)}`);
    put(reasons, why(data));
  } catch (error) {
    if (!(error instanceof Trouble)) throw error;
    put(reasons, el("p", { class: "trouble" }, `why: ${error.message}`));
  }
}

/** @param {any} data */
function why(data) {
  const stranded = data.stranded;
  return el("section", { "aria-label": "Why" }, el("p", {}, el("strong", {}, data.says || (PARTS[data.part] ?? data.part))),
    stranded ? el("p", { class: "loud" }, `stranded: a slot is free beside a task on ${said(stranded.beside)}: ${
      stranded.rule || "nobody looked"}: ${said(stranded.because)}`) : null,
    checked("to be given work", data.receives), checked("to have work stolen from it", data.gives),
    moves("the next run brings", data.gets), moves("the next run takes", data.loses),
    data.elsewhere?.length ? el("div", {}, el("h3", {}, "what waits elsewhere, by the rule that keeps it from here; may_be_given: none does"),
      table("What waits elsewhere", ["tasks", "rule", "because"], data.elsewhere.map((/** @type {any} */ one) =>
        [one.count, one.rule, one.because || "-"]))) : null,
    (data.could_not_look ?? []).map((/** @type {any} */ one) => el("p", { class: "trouble" },
      `could not look into ${one.node}: ${one.because}`)),
    data.evidence?.oldest_report_s === null ? null : el("p", { class: "dim" },
      `from ${data.evidence?.seen} reports, the oldest ${lasting(data.evidence?.oldest_report_s)} old`));
}

/** @param {string} title @param {any[]} list */
function moves(title, list) {
  if (!list?.length) return null;
  return el("div", {}, el("h3", {}, title), table(title, ["task", "P", "subject", "from", "to"],
    list.map((one) => [el("button", { type: "button", class: "bare mono", onclick: () =>
      setView({ task: one.uid, node: null }) }, one.uid.slice(-6).toLowerCase()), one.priority, one.subject, one.from, one.to])));
}
