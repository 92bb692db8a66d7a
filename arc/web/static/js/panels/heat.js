// The heat map: a row a node and a column a stretch of time, for fleets too large for lanes.

import { behind, draw, el, put, table } from "../dom.js";
import { between, dated, hoursOf } from "../hours.js";
import { isOfFleet } from "../now.js";
import { tipOn } from "../tip.js";
import { named, split } from "../stranded.js";
import { setView, view } from "../view.js";
import { clock, counted, lasting, mark, minutes, stepOf } from "../words.js";

const ROW = 14, WHEN_MAX = 4;
const WORDS = { u: "not seen", p: "paused or stopped", b: "busy", i: "idle" };

/** @param {string} name */
function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

/** @param {HTMLElement} body @param {any} whole @param {(...said: any[]) => void} sum */
export function drawHeat(body, whole, sum) {
  const data = { ...whole, nodes: whole.nodes.filter((/** @type {any} */ one) => isOfFleet(one.node) || !one.quiet) };
  const gone = data.nodes.filter((/** @type {any} */ one) => !isOfFleet(one.node));
  const why = split(data.by_cause);
  sum(`${counted(data.nodes.length - gone.length, "node")}, ${gone.length ? `no longer in fleet.yaml: ${named(gone)}; ` : ""}`,
    el("span", { class: data.stranded_s ? "loud" : null }, `${minutes(data.stranded_s)} stranded`),
    ` in ${view.span}${why ? ` (${why})` : ""}; stranded ones first`);
  const columns = data.nodes[0]?.states.length ?? 1;
  const canvas = /** @type {HTMLCanvasElement} */ (el("canvas", { class: "heat", width: columns * 4,
    height: data.nodes.length * ROW, role: "img",
    "aria-label": "Heat map; the tables below say the same, node by node and hour by hour" }));
  canvas.style.height = `${data.nodes.length * ROW}px`;
  paint(canvas, data);
  const names = el("ol", { class: "heat-names" }, data.nodes.map((/** @type {any} */ node) =>
    el("li", {}, el("button", { type: "button", class: isOfFleet(node.node) ? "bare" : "bare gone", "data-row": node.node,
      "data-key": `heat-${node.node}`, onclick: () => setView({ node: node.node, task: null }) }, node.node),
    el("span", { class: node.stranded_s ? "loud" : "dim", title: causes(node) || null }, node.stranded_s ? minutes(node.stranded_s) : ""))));
  pointing(canvas, data, columns);
  put(body, el("div", { class: "heat-box scroll", tabindex: 0, role: "region",
    "aria-label": "Heat map of all nodes" }, el("span", {}), axis(data, Math.max(100, (body.clientWidth || 900) - 110)),
  names, canvas), legend(),
  behind("heat", "as a table", () => table("Nodes by stranded time", ["node", "stranded", "when", "kept by", "busy", "idle", "paused", "not seen"],
    data.nodes.map((/** @type {any} */ node) => [`${node.node}${isOfFleet(node.node) ? "" : ", no longer in fleet.yaml"}`, lasting(node.stranded_s), whenStranded(node, data), causes(node) || "-",
      ...["b", "i", "p", "u"].map((letter) => percent(node.states, letter))]))),
  behind("heat-hours", "as a table: hour by hour", () => byHour(data)));
}

/** The stretches in which it was stranded, in the steps that are drawn. @param {any} node @param {any} data */
function whenStranded(node, data) {
  const found = [...node.loud.matchAll(/[^0]+/g)];
  const at = (/** @type {number} */ place) => dated(data.since + place * data.step_s * 1000, (data.until - data.since) / 1000);
  const said = found.slice(0, WHEN_MAX).map((one) => `${at(one.index)} to ${at(one.index + one[0].length)}`);
  return [...said, ...found.length > WHEN_MAX ? [`${found.length - WHEN_MAX} more`] : []].join(", ") || "-";
}

/** The columns of the picture, added up. @param {any} data */
function byHour(data) {
  const parts = (/** @type {any} */ hour, /** @type {string} */ letter) => {
    const [first, last] = [Math.floor(hour.from / data.step_s), Math.ceil(hour.to / data.step_s)];
    return percent(data.nodes.map((/** @type {any} */ node) => node.states.slice(first, last)).join(""), letter);
  };
  const lines = data.nodes.map((/** @type {any} */ node) => [...node.loud].map((tenths) => Number(tenths) / 9));
  return table("All nodes in each hour", ["UTC", "stranded, about", "nodes stranded", "longest", "busy", "idle", "paused", "not seen"],
    hoursOf(data.since, (data.until - data.since) / 1000).map((hour) => {
      const stranded = lines.map((/** @type {number[]} */ line, /** @type {number} */ row) =>
        [between(line, data.step_s, hour.from, hour.to) ?? 0, data.nodes[row].node]).filter((/** @type {any} */ [seconds]) => seconds > 0)
        .sort((/** @type {any} */ one, /** @type {any} */ other) => other[0] - one[0]);
      return [hour.says, lasting(Math.round(stranded.reduce((/** @type {number} */ all, /** @type {any} */ [seconds]) => all + seconds, 0))),
        stranded.length, stranded.slice(0, WHEN_MAX).map((/** @type {any} */ [seconds, name]) => `${name} ${lasting(Math.round(seconds))}`).join(", ") || "-",
        ...["b", "i", "p", "u"].map((letter) => parts(hour, letter))];
    }));
}

/** What kept it stranded and for how long, the longest first. @param {any} node */
function causes(node) {
  return Object.entries(node.by_cause ?? {}).map(([cause, seconds]) =>
    `${cause === "nobody_looked" ? "nobody looked" : cause} ${minutes(/** @type {number} */ (seconds))}`).join(", ");
}

/** When it was, above the columns. @param {any} data @param {number} wide */
function axis(data, wide) {
  const seconds = (data.until - data.since) / 1000, step = stepOf(seconds, wide / 90);
  const marks = [];
  for (let at = Math.ceil(data.since / 1000 / step) * step; at * 1000 < data.until; at += step) {
    const x = ((at - data.since / 1000) / seconds) * wide;
    if (x < wide - 34) marks.push(draw("line", { class: "tick", x1: x, x2: x, y1: 2, y2: 14 }), draw("text", { x: x + 3, y: 11 }, mark(at * 1000, step)));
  }
  return draw("svg", { class: "heat-axis", viewBox: `0 0 ${wide} 14`, height: 14, width: "100%", "aria-hidden": "true" }, marks);
}

/** @param {string} states @param {string} letter */
function percent(states, letter) {
  return `${Math.round((100 * (states.split(letter).length - 1)) / Math.max(states.length, 1))} %`;
}

/** @param {HTMLCanvasElement} canvas @param {any} data */
function paint(canvas, data) {
  const brush = canvas.getContext("2d");
  if (!brush) return;
  const colours = /** @type {Object<string, string>} */ ({ b: colour("--d0"), i: colour("--track"),
    p: colour("--hatch"), u: colour("--panel") });
  const ruled = hatching(brush, false), unlooked = hatching(brush, true);
  data.nodes.forEach((/** @type {any} */ node, /** @type {number} */ row) => {
    for (let place = 0; place < node.states.length; place += 1) {
      const letter = node.states[place];
      const deep = node.depth[place] === "." ? 0 : parseInt(node.depth[place], 36);
      brush.globalAlpha = letter === "b" ? 0.35 + 0.5 * Math.min(deep / 12, 1) : letter === "p" ? 0.5 : 1;
      brush.fillStyle = colours[letter];
      brush.fillRect(place * 4, row * ROW, 4, ROW - 1);
      const share = Number(node.loud[place]);
      if (!share) continue;
      const tall = Math.max(3, Math.round(((ROW - 1) * share) / 9));
      const blind = Math.min(Math.round(((ROW - 1) * Number(node.unlooked?.[place] ?? 0)) / 9), tall);
      brush.globalAlpha = 1;
      brush.fillStyle = ruled;
      brush.fillRect(place * 4, row * ROW, 4, tall - blind);
      brush.fillStyle = unlooked;
      brush.fillRect(place * 4, row * ROW + tall - blind, 4, blind);
    }
  });
}

/** The hatching of the lanes, over all cells: stripes where a rule forbade it, dots where nobody looked.
 * @param {CanvasRenderingContext2D} brush @param {boolean} dotted */
function hatching(brush, dotted) {
  const size = ROW / 2;
  const tile = /** @type {HTMLCanvasElement} */ (el("canvas", { width: size, height: size }));
  const one = /** @type {CanvasRenderingContext2D} */ (tile.getContext("2d"));
  one.fillStyle = colour("--loud-soft");
  one.fillRect(0, 0, size, size);
  one.fillStyle = one.strokeStyle = colour("--loud");
  one.lineWidth = 2.8;
  one.beginPath();
  if (dotted) one.arc(size / 2, size / 2, 2.1, 0, 7);
  else for (const from of [-size, 0, size]) { one.moveTo(from - 1, size + 1); one.lineTo(from + size + 1, -1); }
  if (dotted) one.fill(); else one.stroke();
  return brush.createPattern(tile, "repeat") ?? colour("--loud");
}

/** @param {HTMLCanvasElement} canvas @param {any} data @param {number} columns */
function pointing(canvas, data, columns) {
  /** @type {{row: number, place: number}|null} */ let at = null;
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    at = { row: Math.floor((event.clientY - box.top) / ROW),
      place: Math.floor(((event.clientX - box.left) / box.width) * columns) };
    canvas.dispatchEvent(new PointerEvent("pointerenter"));
  });
  canvas.addEventListener("click", () => {
    const node = at && data.nodes[at.row];
    if (node) setView({ node: node.node, task: null });
  });
  tipOn(canvas, () => {
    const node = at && data.nodes[at.row];
    if (!at || !node) return ["move over a row"];
    const share = Number(node.loud[at.place]);
    return [node.node, `${clock(data.since + at.place * data.step_s * 1000)} UTC: ${
      /** @type {any} */ (WORDS)[node.states[at.place]] ?? "not seen"}${share ? `, about ${Math.round((share / 9) * 100)} % of it stranded` : ""}`,
    share ? `${Number(node.unlooked?.[at.place] ?? 0) * 2 > share ? "nobody looked" : "a rule forbade it"}; in all: ${causes(node)}` : null,
    node.depth[at.place] === "." ? null : `${parseInt(node.depth[at.place], 36)} waiting`];
  });
}

function legend() {
  const one = (/** @type {string} */ kind, /** @type {string} */ text) =>
    el("span", {}, el("i", { class: kind }), text);
  return el("div", { class: "legend" }, one("hatched", "stranded: a rule forbade it"), one("dotted", "stranded: nobody looked"), one("d0", "busy, the deeper the queue the fuller"),
    one("d5", "paused or stopped"), one("gap", "not seen"));
}
