// Queue depth: a small plot a node, with the line above which a node counts as busy.

import { ask, bring } from "../asking.js";
import { behind, el, put, table } from "../dom.js";
import { known } from "../now.js";
import { windowed, setView } from "../view.js";
import { clock, counted } from "../words.js";

const TALL = 58;
/** @type {any[]} */ let plots = [];
/** @type {Promise<any>|null} */ let loading = null;

/** @type {import("../frame.js").Panel} */
export const depth = {
  id: "depth",
  about: [
    "How many tasks waited on each node, the most in each stretch of time. The dashed line is "
    + "`busy_over`: a node with more waiting than that gives work away (policy arc0).",
    "A hole in a line: nobody looked, or the node did not answer. That is not an empty queue.",
  ],
  command: () => "arc nodes list",
  load: async () => {
    await bring(plotter);
    return (await ask("panels/depth", windowed())).data;
  },
  draw: drawDepth,
  every: () => 15,
};

/** uPlot, brought when it is first needed: the first picture of the page does not wait for it. */
function plotter() {
  loading ??= new Promise((done, failed) => {
    const style = el("link", { rel: "stylesheet", href: "/static/vendor/uPlot-1.6.32.min.css" });
    const script = el("script", { src: "/static/vendor/uPlot-1.6.32.iife.min.js" });
    script.addEventListener("load", () => done(/** @type {any} */ (window).uPlot));
    script.addEventListener("error", () => { loading = null; script.remove(); failed(new Error("uPlot")); });
    document.head.append(style, script);
  });
  return loading;
}

/** @param {string} name */
function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

/** @param {HTMLElement} body @param {any} data @param {(...said: any[]) => void} sum */
function drawDepth(body, data, sum) {
  const limit = known()?.limits?.busy_over ?? null;
  sum(`${limit === null ? "" : `busy above ${limit}`}${data.more ? `; the deepest, ${counted(data.more, "node")} more` : ""}`);
  for (const plot of plots) plot.destroy();
  plots = [];
  const scale = Math.max(limit ?? 0, 4, ...data.nodes.map((/** @type {any} */ one) => one.deepest)) * 1.1;
  const figures = data.nodes.map((/** @type {any} */ one) => {
    const place = el("div", { class: "plot" });
    const last = one.most.findLast((/** @type {any} */ value) => value !== null);
    return { place, one, figure: el("figure", { class: "small" }, el("figcaption", {},
      el("button", { type: "button", class: "bare", "data-key": `depth-${one.node}`, "data-row": one.node,
        onclick: () => setView({ node: one.node, task: null }) }, one.node),
      el("span", { class: "dim" }, `${last ?? "unknown"} now, most ${one.deepest}`)), place) };
  });
  put(body, data.nodes.length ? el("div", { class: "smalls" }, figures.map((/** @type {any} */ one) => one.figure))
    : el("p", { class: "plain" }, "nothing is known of any queue in this stretch of time"),
  behind("depth", "as a table", () => asTable(data)));
  for (const one of figures) plots.push(plot(one.place, one.one, data, scale, limit));
}

/** @param {HTMLElement} place @param {any} one @param {any} data @param {number} scale @param {number|null} limit */
function plot(place, one, data, scale, limit) {
  const times = one.most.map((/** @type {any} */ _, /** @type {number} */ at) => data.since / 1000 + at * data.step_s);
  const line = times.map(() => limit);
  const Plotter = /** @type {any} */ (window).uPlot;
  return new Plotter({
    width: Math.max(120, place.clientWidth), height: TALL, legend: { show: false },
    cursor: { show: false }, padding: [2, 0, 0, 0],
    axes: [{ show: false }, { show: false }],
    scales: { x: { time: true }, y: { range: [0, scale] } },
    series: [{}, { stroke: colour("--d0"), fill: `${colour("--d0")}33`, width: 1.5, spanGaps: false,
      points: { show: false }, paths: Plotter.paths.stepped({ align: 1 }) },
    { stroke: colour("--dim"), width: 1, dash: [4, 3], points: { show: false } }],
  }, [times, one.most, line], place);
}

/** @param {any} data */
function asTable(data) {
  const every = Math.max(1, Math.ceil(data.nodes[0]?.most.length / 24) || 1);
  const places = (data.nodes[0]?.most ?? []).map((/** @type {any} */ _, /** @type {number} */ at) => at)
    .filter((/** @type {number} */ at) => at % every === 0);
  return table("The most that waited in each stretch of time",
    ["node", ...places.map((/** @type {number} */ at) => clock(data.since + at * data.step_s * 1000).slice(0, 5))],
    data.nodes.map((/** @type {any} */ one) => [one.node, ...places.map((/** @type {number} */ at) => {
      const some = one.most.slice(at, at + every).filter((/** @type {any} */ value) => value !== null);
      return some.length ? Math.max(...some) : "?";
    })]));
}
