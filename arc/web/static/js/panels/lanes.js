// The lanes: a row a node, a block a task run, arcs for moves; stranded time is the loud part.

import { ask, bring } from "../asking.js";
import { draw, el, put } from "../dom.js";
import { isOfFleet, known } from "../now.js";
import { tipOn } from "../tip.js";
import { setView, view, windowed } from "../view.js";
import { clock, counted, lasting, mark, minutes, money, short, stepOf } from "../words.js";
import { tables } from "./lane_tables.js";

/** Colours of domains; `d5` is for none. */
const HUES = ["d0", "d1", "d2", "d3", "d4", "d6"];
const RIBBON = 10, GAP = 9, AXIS = 18, LETTER = 6.5;
const HEAT_FROM = 50;

/** @type {Partial<import("../frame.js").Panel>} */
export const lanes = {
  id: "lanes",
  about: [
    "A lane is a node. A block is one attempt of a task: its colour is the domain, or the first skill where there is none, its height the "
    + "cost where that is known; a broken outline means that it did not end well.",
    "The thin ribbon under a lane is how many tasks wait there. An arc is a move from one node to "
    + "another. Loud hatching: a slot was free here while work that might have run here waited "
    + "elsewhere, and a rule kept it there; loud dots: no rule forbade it, but nobody looked. Calm hatching: paused, draining or stopped. A dashed box: nobody looked.",
    "A node that fleet.yaml does not name any more has a lane where it did something in the span, and is said to be gone.",
    "From 50 nodes on each is a row of a heat map instead, stranded ones first; click one for its lane.",
  ],
  command: () => (view.at ? `arc log --since ${view.span}` : "arc status"),
  load: async () => {
    const width = Math.max(200, Math.round(document.getElementById("lanes")?.clientWidth ?? 1000));
    const nodes = view.q && /^[a-z][a-z0-9,-]*$/.test(view.q) ? view.q : null;
    const { data } = await ask("panels/lanes", { ...windowed(), width, nodes });
    if (data.fleet < HEAT_FROM || (nodes && data.nodes.length)) return data;
    const [heat, { drawHeat }] = await Promise.all([ask("panels/heat", windowed()), bring(() => import("./heat.js"))]);
    return { ...heat.data, drawHeat };
  },
  draw: (body, data, sum) => (data.drawHeat ? data.drawHeat(body, data, sum) : drawLanes(body, data, sum)),
  every: () => ({ "1m": 2, "5m": 3, "15m": 5, "1h": 8 })[view.span] ?? 15,
};

/** @param {HTMLElement} body @param {any} whole @param {(...said: any[]) => void} sum */
function drawLanes(body, whole, sum) {
  const data = { ...whole, nodes: whole.nodes.filter((/** @type {any} */ one) => isOfFleet(one.node) || didSomething(one, whole)) };
  const stranded = data.nodes.reduce((/** @type {number} */ all, /** @type {any} */ one) =>
    all + one.stranded_s, 0);
  const nodes = data.nodes.filter((/** @type {any} */ one) => one.node !== "inbox" && isOfFleet(one.node)).length;
  const gone = data.nodes.filter((/** @type {any} */ one) => !isOfFleet(one.node)).map((/** @type {any} */ one) => one.node);
  sum(`${counted(nodes, "node")}, ${gone.length ? `no longer in fleet.yaml: ${gone.join(", ")}; ` : ""}`,
    el("span", { class: stranded ? "loud" : null }, `${minutes(stranded)} stranded`),
    `, ${counted(data.moves.moved, "move")} in ${view.span}${data.moves.in_doubt ? `, ${data.moves.in_doubt} in doubt` : ""}${data.cut ? "; too many attempts, the newest are drawn" : ""}`);
  const wide = Math.max(260, body.clientWidth || 900);
  const plot = new Plot(data, wide);
  put(body, plot.picture(), legend(data), tables(data));
}

/** Whether a node ran, held or was given anything in the span, or a person asks for it by its name.
 * @param {any} node @param {any} data */
function didSomething(node, data) {
  return Boolean(view.q) || node.ran > 0 || node.stranded_s > 0 || node.depth.some((/** @type {any} */ one) => one[1] > 0)
    || data.moves.shown.some((/** @type {any} */ one) => one.from === node.node || one.to === node.node);
}

/** The names of nodes that are stranded at this moment; none in the past. @returns {Set<string>} */
function strandedNow() {
  return new Set(view.at ? [] : (known()?.stranded?.now ?? []).map((/** @type {any} */ one) => one.node));
}

/** Whoever is stranded from now on, or is not any more, is so in the lanes, too: they are drawn more seldom. */
export function markStranded() {
  const names = strandedNow();
  for (const name of document.querySelectorAll("#lanes .lane .name")) {
    name.classList.toggle("loud", names.has(name.getAttribute("data-row") ?? ""));
  }
}

/** One drawing: where things are, and what they are made of. */
class Plot {
  /** @param {any} data @param {number} wide */
  constructor(data, wide) {
    this.data = data;
    this.left = wide < 520 ? 62 : 96;
    this.wide = wide;
    this.seconds = (data.until - data.since) / 1000;
    this.strandedNow = strandedNow();
    this.costliest = 0;
    for (const node of data.nodes) {
      for (const block of node.blocks) this.costliest = Math.max(this.costliest, block[7] ?? 0);
    }
    const rows = data.nodes.reduce((/** @type {number} */ all, /** @type {any} */ one) => all + one.rows, 0);
    this.row = rows <= 10 ? 20 : rows <= 24 ? 14 : 10;
    /** @type {Map<string, {top: number, middle: number, rows: number}>} */
    this.places = new Map();
    let top = AXIS;
    for (const node of data.nodes) {
      const tall = this.tallOf(node);
      this.places.set(node.node, { top, middle: top + tall / 2, rows: node.rows });
      top += tall + RIBBON + GAP;
    }
    this.tall = top;
  }

  /** The hub's own queue runs nothing. @param {any} node */
  tallOf(node) { return node.node === "inbox" ? 6 : node.rows * this.row; }

  /** @param {number} t */
  x(t) { return this.left + (Math.min(Math.max(t, 0), this.seconds) / this.seconds) * (this.wide - this.left - 8); }

  /** @param {number} t0 @param {number} t1 @param {number} least */
  span(t0, t1, least = 1) {
    const x = this.x(t0);
    return { x: x.toFixed(1), width: Math.max(this.x(t1) - x, least).toFixed(1) };
  }

  /** @param {number} t */
  time(t) { return `${clock(this.data.since + t * 1000)} UTC`; }

  picture() {
    return draw("svg", { width: this.wide, height: this.tall, role: "group",
      "aria-label": "Lanes; the tables below say the same" },
    this.axis(), this.data.nodes.map((/** @type {any} */ node) => this.lane(node)),
    this.data.moves.shown.map((/** @type {any} */ move) => this.arc(move)));
  }

  axis() {
    const step = stepOf(this.seconds, this.wide < 520 ? 4 : 10);
    const marks = [];
    const first = Math.ceil(this.data.since / 1000 / step) * step;
    for (let at = first; at * 1000 <= this.data.until; at += step) {
      const x = this.x(at - this.data.since / 1000);
      const word = mark(at * 1000, step);
      marks.push(draw("line", { class: "tick", x1: x, x2: x, y1: AXIS - 4, y2: this.tall - GAP }),
        x + 3 + LETTER * word.length > this.wide ? null : draw("text", { x: x + 3, y: 11 }, word));
    }
    return draw("g", { "aria-hidden": "true" }, marks);
  }

  /** @param {any} node */
  lane(node) {
    const place = /** @type {{top: number, rows: number}} */ (this.places.get(node.node));
    const tall = this.tallOf(node);
    const known = this.span(node.met, node.looked);
    const name = draw("text", { class: `name${this.strandedNow.has(node.node) ? " loud" : ""}${isOfFleet(node.node) ? "" : " gone"}`, x: 0, y: place.top + Math.min(tall / 2 + 4, 14),
      tabindex: 0, role: "button", "data-row": node.node, "data-key": `lane-${node.node}`,
      "aria-label": `${node.node}: ${this.wording(node)}` },
    node.node.length > 12 && this.left < 90 ? `${node.node.slice(0, 8)}…` : node.node);
    name.addEventListener("click", () => setView({ node: node.node, task: null }));
    name.addEventListener("keydown", (event) => {
      if (![" ", "Enter"].includes(/** @type {KeyboardEvent} */ (event).key)) return;
      event.preventDefault();
      setView({ node: node.node, task: null });
    });
    tipOn(name, () => [node.node, this.wording(node)]);
    return draw("g", { class: "lane" }, name,
      node.node === "inbox" ? null : draw("rect", { class: "track", y: place.top, height: tall, ...known }),
      node.gaps.map((/** @type {any} */ gap) => this.gap(gap, place.top, tall)),
      node.states.map((/** @type {any} */ one) => this.halted(one, place.top, tall)),
      node.blocks.map((/** @type {any} */ one) => this.block(node, one, place.top)),
      node.stranded.map((/** @type {any} */ one) => this.stranded(node, one, place.top, tall)),
      this.ribbon(node, place.top + tall + 1));
  }

  /** @param {any} node */
  wording(node) {
    const now = node.now;
    const parts = [...isOfFleet(node.node) ? [] : ["no longer in fleet.yaml"], now ? `${now.state}${now.because ? ` (${now.because})` : ""}` : "never looked at"];
    if (now && now.state !== "unknown") parts.push(`${now.pending} waiting, ${now.running} of ${now.slots} slots busy`);
    parts.push(`${counted(node.ran, "attempt")} here`);
    if (node.stranded_s) parts.push(`stranded ${minutes(node.stranded_s)}`);
    return parts.join("; ");
  }

  /** @param {any[]} one @param {number} top @param {number} tall */
  gap(one, top, tall) {
    const box = draw("rect", { class: "gap", y: top + 0.5, height: tall - 1, ...this.span(one[0], one[1]) });
    tipOn(box, () => [one[2], `${this.time(one[0])} to ${this.time(one[1])}, ${lasting(one[1] - one[0])}`]);
    return box;
  }

  /** @param {any[]} one @param {number} top @param {number} tall */
  halted(one, top, tall) {
    const box = draw("rect", { class: "halted", fill: "url(#calm-hatch)", y: top, height: tall,
      ...this.span(one[0], one[1]) });
    tipOn(box, () => [one[2], `${this.time(one[0])}, ${lasting(one[1] - one[0])}`]);
    return box;
  }

  /** @param {any} node @param {any[]} one @param {number} top */
  block(node, one, top) {
    const [t0, t1, row, domain, uid, outcome, count, cost] = one;
    const full = this.row - 2;
    const share = cost === null || !this.costliest ? 0.75 : 0.4 + 0.6 * (cost / this.costliest);
    const tall = Math.max(4, full * share);
    const well = ["completed", "", "cancelled", "waiting"].includes(outcome);
    const box = draw("rect", { class: `block ${domain < 0 ? "d5" : HUES[domain % HUES.length]}${well ? "" : " bad"}`,
      rx: 1, y: (top + row * this.row + 1 + full - tall).toFixed(1), height: tall.toFixed(1),
      ...this.span(t0, t1, 1.2), "data-uid": uid });
    box.addEventListener("click", () => setView({ task: uid, node: null }));
    tipOn(box, () => [
      count > 1 ? `${count} attempts on ${node.node}` : `${short(uid)} on ${node.node}: ${outcome || "runs"}`,
      `${domain === -2 ? "of several domains" : domain < 0 ? "no domain, no skill" : this.data.domains[domain]}${one[8] ? `, P${one[8]}` : ""}${
        one[9] ? `, ${one[9]}` : ""}${cost === null ? "" : `, ${money(cost)}`}`,
      `${this.time(t0)}, ${outcome === "" ? "so far " : ""}${lasting(t1 - t0)}`]);
    return box;
  }

  /** @param {any} node @param {any} one @param {number} top @param {number} tall */
  stranded(node, one, top, tall) {
    const box = draw("rect", { class: "stranded", fill: `url(#${one.cause === "rule" ? "loud-hatch" : "loud-dots"})`, y: top + 0.5,
      height: tall - 1, ...this.span(one.t0, one.t1, 2) });
    if (one.uid) box.addEventListener("click", () => setView({ task: one.uid, node: null }));
    tipOn(box, () => [`${node.node} was stranded ${lasting(one.seconds)}`,
      one.beside ? `work that it might run waited on ${one.beside}` : null,
      one.cause === "rule" ? `kept by the rule ${one.rule}` : `nobody looked${one.rule ? `: ${one.rule}` : ""}`,
      this.time(one.t0)]);
    return box;
  }

  /** @param {any} node @param {number} top */
  ribbon(node, top) {
    const deepest = Math.max(1, ...node.depth.map((/** @type {any} */ point) => point[1] ?? 0));
    const scale = Math.max(deepest, 8);
    const parts = node.depth.map((/** @type {any} */ point, /** @type {number} */ place) => {
      const until = node.depth[place + 1]?.[0] ?? node.looked;
      if (!point[1] || until <= point[0]) return null;
      const tall = Math.max(1.5, ((RIBBON - 1) * point[1]) / scale);
      const box = draw("rect", { class: "ribbon", y: (top + RIBBON - 1 - tall).toFixed(1),
        height: tall.toFixed(1), ...this.span(point[0], until, 0.8) });
      tipOn(box, () => [`${counted(point[1], "task")} waiting on ${node.node}`, this.time(point[0])]);
      return box;
    });
    return draw("g", {}, parts);
  }

  /** @param {any} move */
  arc(move) {
    const from = this.places.get(move.from), to = this.places.get(move.to);
    const end = to ?? from;
    if (!from && !to) return null;
    const x = this.x(move.t);
    const y0 = (from ?? { middle: this.tall - GAP }).middle;
    const y1 = (to ?? { middle: this.tall - GAP }).middle;
    if (!end) return null;
    const bow = Math.min(60, 8 + Math.abs(y1 - y0) * 0.22) * (x > this.wide - 70 ? -1 : 1);
    const path = `M${x.toFixed(1)} ${y0} C${(x + bow).toFixed(1)} ${y0} ${(x + bow).toFixed(1)} ${y1} ${x.toFixed(1)} ${y1}`;
    const way = bow > 0 ? 1 : -1;
    const group = draw("g", { class: "arc-group", role: "button", tabindex: -1,
      "aria-label": `${short(move.uid)} from ${move.from} to ${move.to}` },
    draw("path", { class: "arc", d: path }),
    draw("path", { class: "arc-end", d: `M${x.toFixed(1)} ${y1} l${6 * way} -3.2 v6.4 z` }),
    draw("path", { class: "arc-reach", d: path }));
    group.addEventListener("click", () => setView({ task: move.uid, node: null }));
    tipOn(group, () => [`${short(move.uid)}${move.priority ? ` P${move.priority}` : ""}: ${move.from} to ${move.to}, ${move.why}${
      move.rule ? ` (${move.rule})` : ""}`, move.because || null,
    move.started_s === null ? `${move.to} has not begun it here` : `${move.to} began it ${lasting(move.started_s)} later`,
    move.else_s === null ? null : `${move.from} would have come to it in about ${lasting(move.else_s)}, ${move.ahead} ahead`,
    this.time(move.t)]);
    return group;
  }
}

/** @param {any} data */
function legend(data) {
  const one = (/** @type {string} */ kind, /** @type {string} */ text) =>
    el("span", {}, el("i", { class: kind }), text);
  const more = data.domains.length > HUES.length ? el("span", {}, "(colours repeat)") : null;
  return el("div", { class: "legend" },
    one("hatched", "stranded: a rule forbade it"), one("dotted", "stranded: nobody looked"), data.domains.slice(0, 12).map((/** @type {string} */ name, /** @type {number} */ place) =>
      one(HUES[place % HUES.length], name)), one("d5", "no domain, no skill"), one("halted", "paused, draining, stopped"),
    one("gap", "nobody looked"), one("arrow", "move"), more);
}
