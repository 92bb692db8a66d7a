// What a step of the funnel is made of: tasks that a rule kept, moves, missed looks, what waits.

import { ask, hubNow, Trouble } from "../asking.js";
import { el, table } from "../dom.js";
import { clock, counted } from "../words.js";
import { taskLink } from "./lane_tables.js";

const NODES_MAX = 6; // are asked, each once: every question makes the hub look at the whole fleet
const ASKED_MAX = 200, ROWS_MAX = 200;
/** Steps that are no rules, as the panel names them. */
export const BLIND = "could_not_look", WAITING = "waiting", MOVED = "moved";

/** What was found when a step was opened: no clock and no news asks the nodes again, only a person does.
 * @type {{step: string, at: number, found: any[]}|null} */
let looked = null;

/** A node that filters its own queue tells how many a rule kept, and not which: those that it keeps
 * when the step is opened are looked for, with why. @param {any} step @returns {Promise<any>} */
export async function withTasks(step) {
  if (!step) looked = null;
  else if (looked?.step !== step.rule) looked = await lookInto(step);
  return step && looked?.at ? { ...step, live: looked } : step;
}

/** @param {any} step */
async function lookInto(step) {
  const asked = isCounted(step) ? step.nodes.slice(0, NODES_MAX).map((/** @type {any} */ one) => one.node) : [];
  const found = await Promise.all(asked.map(waitingOn));
  return { step: step.rule, at: asked.length ? hubNow() : 0, found };
}

/** Whether there are counts alone. @param {any} step */
function isCounted(step) { return !step.tasks?.length && !step.moves && !step.runs; }

/** What waits on one node, or why nobody knows. @param {string} node */
async function waitingOn(node) {
  try {
    const { data, partial } = await ask("tasks", { state: "READY", node, limit: ASKED_MAX });
    return { node, tasks: data.tasks.filter((/** @type {any} */ one) => one.node === node), more: data.more,
      trouble: data.unread?.length ? partial?.[0]?.error?.message ?? "it could not be read" : "" };
  } catch (error) { // what the cycles did is known all the same, and so are the other nodes
    if (!(error instanceof Trouble)) throw error;
    return { node, tasks: [], more: false, trouble: error.message };
  }
}

/** @param {any} step */
export function shownStep(step) {
  const says = step.rule === BLIND ? "could not look" : step.rule === WAITING ? "waiting there"
    : step.rule === MOVED ? "moved" : `kept by ${step.rule}`;
  return el("div", { class: "scroll opened", tabindex: 0, role: "region", "aria-label": says }, el("h3", {}, says),
    step.rule === BLIND ? missed(step) : step.rule === MOVED ? moves(step) : tasks(step),
    step.more > 0 ? el("p", { class: "plain" }, `… and ${step.more} more`) : null);
}

/** @param {any} step */
function tasks(step) {
  const counts = step.nodes.length ? el("p", { class: "dim" }, "in these cycles together: ", step.nodes.map((/** @type {any} */ one) =>
    `${one.node} ${one.count}${one.because ? ` (${one.because})` : ""}`).join(" · ")) : null;
  if (step.tasks?.length) {
    return [counts, table(`Tasks kept by ${step.rule}`, ["task", "on", "cycles", "because"],
      step.tasks.map((/** @type {any} */ one) => [taskLink(one.uid), one.node, one.cycles, one.because]))];
  }
  return [counts, ...live(step)];
}

/** Which tasks of those nodes wait now, as far as they were asked. @param {any} step */
function live(step) {
  if (!step.nodes.length) return [el("p", { class: "plain" }, "these cycles kept nothing by it")];
  const found = step.live?.found ?? [];
  const blind = found.filter((/** @type {any} */ one) => one.trouble);
  const cut = found.filter((/** @type {any} */ one) => one.more).map((/** @type {any} */ one) => one.node);
  const unasked = step.nodes.map((/** @type {any} */ one) => one.node)
    .filter((/** @type {string} */ node) => !found.some((/** @type {any} */ one) => one.node === node));
  const whole = !blind.length && !cut.length && !unasked.length && !step.nodes_more;
  return [
    el("p", { class: "actions" }, step.live ? `looked at ${clock(step.live.at)} ` : "",
      el("button", { type: "button", "data-key": "look-again", onclick: again }, step.live ? "look again" : "look")),
    found.length > blind.length ? rowsOf(step, whole) : null,
    blind.length ? el("p", { class: "trouble" }, "could not look at what waits now on ",
      blind.map((/** @type {any} */ one) => `${one.node}: ${one.trouble}`).join("; ")) : null,
    cut.length ? el("p", { class: "plain" }, `there are more: of ${cut.join(", ")} the first ${ASKED_MAX} waiting tasks were looked at`) : null,
    unasked.length || step.nodes_more ? el("p", { class: "plain" }, `not asked what waits now (${NODES_MAX} nodes at most are): `,
      unasked.join(", "), step.nodes_more ? ` and ${counted(step.nodes_more, "more node")}` : "") : null];
}

/** What the nodes that answered had. @param {any} step @param {boolean} whole nothing was left out */
function rowsOf(step, whole) {
  const what = step.rule === WAITING ? "waits there" : "is kept there by it";
  const all = step.live.found.flatMap((/** @type {any} */ one) => one.tasks)
    .filter((/** @type {any} */ one) => step.rule === WAITING || one.rule === step.rule);
  if (!all.length) return el("p", { class: "plain" }, whole ? `now nothing ${what} any more` : `nothing that was looked at ${what} now`);
  return [el("p", { class: "plain" }, `What ${what} now, which may be other tasks than in these cycles`,
    step.rule === WAITING ? ":" : ": a node tells how many it keeps, not which:"),
  table(`What ${what} now`, ["task", "P", "on", "subject", "because"], all.slice(0, ROWS_MAX).map((/** @type {any} */ one) =>
    [taskLink(one.uid), `P${one.priority}`, one.node, one.subject,
      step.rule === WAITING && one.rule ? `${one.rule}: ${one.because}` : one.because || "-"])),
  all.length > ROWS_MAX ? el("p", { class: "plain" }, `${ROWS_MAX} of ${all.length} are shown`) : null];
}

/** A person wants to know it as of now. */
function again() {
  looked = null;
  document.dispatchEvent(new CustomEvent("arc:again", { detail: "funnel" }));
}

/** @param {any} step */
function moves(step) {
  return step.moves.length ? table("Moves of these cycles", ["at", "task", "from", "to", "why", "outcome"],
    step.moves.map((/** @type {any} */ one) => [clock(one.at), taskLink(one.uid), one.from, one.to, one.why,
      one.because && one.outcome !== "moved" ? `${one.outcome}: ${one.because}` : one.outcome]))
    : el("p", { class: "plain" }, "these cycles moved nothing");
}

/** @param {any} step */
function missed(step) {
  return [step.unseen.length ? table("Nodes that were not seen", ["node", "since", "because"],
    step.unseen.map((/** @type {any} */ one) => [one.node, clock(one.since), one.because || "unknown"])) : null,
  table("Cycles that missed an answer", ["run", "at", "answers missing", "what it said"],
    step.runs.map((/** @type {any} */ one) => [one.run, clock(one.at), one.unseen, one.summary || one.outcome]))];
}
