// What a step of the funnel is made of: tasks that a rule kept, moves, missed looks, what waits.

import { ask, Trouble } from "../asking.js";
import { el, table } from "../dom.js";
import { clock, counted } from "../words.js";
import { taskLink } from "./lane_tables.js";

const NODES_MAX = 6; // are asked one by one; of more all are
const ROWS_MAX = 200, ASKED_MAX = 1000;
/** Steps that are no rules, as the panel names them. */
export const BLIND = "could_not_look", WAITING = "waiting", MOVED = "moved";

/** A node that filters its own queue tells how many a rule kept, and not which: those that it keeps
 * now are looked for, with why. @param {any} step @returns {Promise<any>} */
export async function withTasks(step) {
  if (!step || ![step.tasks?.length, step.moves, step.runs].every((one) => !one) || !step.nodes.length) return step;
  const names = step.nodes.map((/** @type {any} */ one) => one.node);
  /** @type {any[]} */ let answers;
  try {
    answers = await Promise.all((names.length > NODES_MAX ? [null] : names).map((/** @type {string|null} */ node) =>
      ask("tasks", { state: "READY", node, limit: ASKED_MAX })));
  } catch (error) { // what the cycles did is known all the same
    if (!(error instanceof Trouble)) throw error;
    return { ...step, trouble: error.message };
  }
  const all = answers.flatMap((one) => one.data.tasks);
  const live = all.filter((/** @type {any} */ one) => names.includes(one.node)
    && (step.rule === WAITING || one.rule === step.rule));
  return { ...step, live, unread: answers.flatMap((one) => one.data.unread ?? []),
    cut: answers.some((one) => one.data.more) };
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

/** Which tasks of those nodes wait now. @param {any} step */
function live(step) {
  if (step.trouble) return [el("p", { class: "trouble" }, `could not look at what waits now: ${step.trouble}`)];
  if (!step.live) return [el("p", { class: "plain" }, "these cycles kept nothing by it")];
  const what = step.rule === WAITING ? "waits there" : "is kept there by it";
  const rows = step.live.slice(0, ROWS_MAX);
  return [el("p", { class: "plain" }, rows.length
    ? `What ${what} now, which may be other tasks than in these cycles${step.rule === WAITING ? "" : ": a node tells how many it keeps, not which"}:`
    : `now nothing ${what} any more${step.cut ? ", as far as was looked" : ""}`),
  rows.length ? table(`What ${what} now`, ["task", "P", "on", "subject", "because"], rows.map((/** @type {any} */ one) =>
    [taskLink(one.uid), `P${one.priority}`, one.node, one.subject,
      step.rule === WAITING && one.rule ? `${one.rule}: ${one.because}` : one.because || "-"])) : null,
  step.unread.length ? el("p", { class: "trouble" }, `could not look into: ${[...new Set(step.unread)].join(", ")}`) : null,
  step.cut || step.live.length > ROWS_MAX ? el("p", { class: "plain" },
    `there are more: the first ${counted(ASKED_MAX, "waiting task")} of a node were looked at, ${ROWS_MAX} are shown`) : null];
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
