// The tables behind the lanes: nodes, attempts, moves and stranded time, for eyes, keys and readers.

import { behind, el, table } from "../dom.js";
import { setView } from "../view.js";
import { clock, day, lasting, money, short } from "../words.js";

const ROWS_MAX = 200;

/** @param {any} data */
export function tables(data) {
  const at = (/** @type {number} */ t) => day(data.since + t * 1000).slice(11) + clock(data.since + t * 1000).slice(5);
  return el("div", { class: "tables" },
    behind("lanes", "as a table: nodes", () => table("Nodes in this stretch of time",
      ["node", "state", "waiting", "attempts", "stranded", "looked until"],
      data.nodes.map((/** @type {any} */ node) => [node.node, node.now?.state ?? "never looked at",
        node.now && node.now.state !== "unknown" ? node.now.pending : "unknown", node.ran,
        lasting(node.stranded_s), at(node.looked)]))),
    behind("attempts", "as a table: attempts", () => attempts(data, at)),
    behind("moves", "as a table: moves", () => table("Moves in this stretch of time",
      ["at", "task", "from", "to", "why", "rule", "began after", "else after about"],
      data.moves.shown.map((/** @type {any} */ move) => [at(move.t), taskLink(move.uid), move.from,
        move.to, move.why, move.rule || "-", move.started_s === null ? "not begun" : lasting(move.started_s),
        move.else_s === null ? "unknown" : lasting(move.else_s)]))),
    behind("stranded", "as a table: stranded time", () => table("Stranded time",
      ["node", "from", "until", "seconds", "rule or cause", "beside", "task"],
      data.nodes.flatMap((/** @type {any} */ node) => node.stranded.map((/** @type {any} */ one) =>
        [node.node, at(one.t0), at(one.t1), one.seconds, one.cause === "rule" ? one.rule : "nobody looked",
          one.beside || "-", one.uid ? taskLink(one.uid) : "-"])))));
}

/** The newest attempts, as the lanes draw them. @param {any} data @param {(t: number) => string} at */
function attempts(data, at) {
  const rows = data.nodes.flatMap((/** @type {any} */ node) => node.blocks.map((/** @type {any} */ one) => [node.node, one]))
    .sort((/** @type {any} */ one, /** @type {any} */ other) => other[1][0] - one[1][0]);
  return table("Attempts in this stretch of time, the newest first", ["at", "node", "task", "for", "outcome", "took", "cost"],
    rows.slice(0, ROWS_MAX).map((/** @type {any} */ [node, [t0, t1, , kind, uid, outcome, count, cost]]) => [at(t0), node,
      count > 1 ? `${count} attempts` : taskLink(uid), kind === -2 ? "several" : kind < 0 ? "-" : data.domains[kind],
      outcome || "runs", lasting(t1 - t0), cost === null ? "unknown" : money(cost)]));
}

/** @param {string} uid */
export function taskLink(uid) {
  return el("button", { type: "button", class: "bare mono", title: uid, "data-uid": uid,
    onclick: () => setView({ task: uid, node: null }) }, short(uid));
}
