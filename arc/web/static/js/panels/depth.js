// Queue depth: a small plot a node, with the line above which a node counts as busy.

import { ask, bring } from "../asking.js";
import { behind, el, put, table } from "../dom.js";
import { known } from "../now.js";
import { tipOn } from "../tip.js";
import { setView, view, windowed } from "../view.js";
import { clock, counted, mark } from "../words.js";

const TALL = 84, FONT = "10px system-ui, sans-serif";
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 50000, 100000];
/** @type {any[]} */ let plots = [];
/** @type {Promise<any>|null} */ let loading = null;

/** @type {import("../frame.js").Panel} */
export const depth = {
  id: "depth",
  about: [
    "How many tasks waited on each node, the most in each stretch of time; upwards tasks, across the time in UTC, "
    + "all plots in one scale. The dashed line is `busy_over` of today: a node with more waiting than that gives "
    + "work away. Under the policy swift there is none: what waits moves where it starts sooner by `gain_min`, however deep the queue.",
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
  const limit = busyOver();
  sum([lineSays(limit), data.more ? `the deepest, ${counted(data.more, "node")} more` : ""].filter(Boolean).join("; "));
  for (const plot of plots) plot.destroy();
  plots = [];
  const scale = Math.max(limit ?? 0, 4, ...data.nodes.map((/** @type {any} */ one) => one.deepest)) * 1.1;
  const figures = data.nodes.map((/** @type {any} */ one) => {
    const place = el("div", { class: "plot" });
    return { place, one, figure: el("figure", { class: "small" }, el("figcaption", {},
      el("button", { type: "button", class: "bare", "data-key": `depth-${one.node}`, "data-row": one.node,
        onclick: () => setView({ node: one.node, task: null }) }, one.node),
      el("span", { class: "dim" }, `${atTheEnd(one) ?? "unknown"} ${view.at ? "then" : "now"}, most ${one.deepest}`)), place) };
  });
  put(body, data.nodes.length ? el("div", { class: "smalls" }, figures.map((/** @type {any} */ one) => one.figure))
    : el("p", { class: "plain" }, "nothing is known of any queue in this stretch of time"),
  behind("depth", "as a table", () => asTable(data)));
  for (const one of figures) plots.push(plot(one.place, one.one, data, scale, limit));
}

/** What waits on a node: of now as the header counts it, else as the last look found it. @param {any} one */
function atTheEnd(one) {
  const hub = view.at ? null : known();
  const line = one.node === "inbox" ? hub?.inbox : hub?.nodes?.[one.node];
  return line ? (line.seen ? line.pending : null) : one.now;
}

/** Above which a node counts as busy; null: the hub has not told, or its policy asks for no depth. */
function busyOver() { return known()?.policy === "swift" ? null : known()?.limits?.busy_over ?? null; }

/** What the dashed line is, or why there is none. Which limit was in effect then nobody wrote down.
 * @param {number|null} limit */
function lineSays(limit) {
  if (known()?.policy === "swift") return "swift: no depth counts as busy";
  return limit === null ? "" : view.at ? `today's limit: busy above ${limit}` : `busy above ${limit}`;
}

/** @param {HTMLElement} place @param {any} one @param {any} data @param {number} scale @param {number|null} limit */
function plot(place, one, data, scale, limit) {
  const times = one.most.map((/** @type {any} */ _, /** @type {number} */ at) => data.since / 1000 + at * data.step_s);
  const Plotter = /** @type {any} */ (window).uPlot;
  const axis = { font: FONT, stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, gap: 3 };
  const made = new Plotter({
    width: Math.max(120, place.clientWidth), height: TALL, legend: { show: false }, padding: [6, 8, 0, 0],
    tzDate: (/** @type {number} */ at) => Plotter.tzDate(new Date(at * 1000), "Etc/UTC"),
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 5 } },
    hooks: { setCursor: [(/** @type {any} */ own) => {
      if (own.cursor.idx !== null && place.matches(":hover")) place.dispatchEvent(new PointerEvent("pointerenter"));
    }] },
    axes: [{ ...axis, size: 18, space: 44, values: (/** @type {any} */ own, /** @type {number[]} */ marks, /** @type {any} */ _axis,
      /** @type {any} */ _space, /** @type {number} */ step) => marks.map((at) => beside(mark(at * 1000, step), own.valToPos(at, "x"))) },
    { ...axis, size: 28, space: 18, incrs: WHOLE }],
    scales: { x: { time: true }, y: { range: [0, scale] } },
    series: [{}, { stroke: colour("--d0"), fill: `${colour("--d0")}33`, width: 1.5, spanGaps: false,
      points: { show: false }, paths: Plotter.paths.stepped({ align: 1 }) },
    ...limit === null ? [] : [{ stroke: colour("--dim"), width: 1, dash: [4, 3], points: { show: false } }]],
  }, [times, one.most, ...limit === null ? [] : [times.map(() => limit)]], place);
  tipOn(place, () => pointed(one, data, made.cursor.idx));
  return made;
}

/** A word of the axis, where it does not reach below the other axis. @param {string} word @param {number} x */
function beside(word, x) { return x < word.length * 2.7 - 6 ? "" : word; }

/** @param {any} one @param {any} data @param {number|null|undefined} at which stretch */
function pointed(one, data, at) {
  if (at === null || at === undefined) return [one.node];
  return [`${one.node}: ${one.most[at] === null ? "nobody knows" : `${one.most[at]} waiting`}`,
    `${clock(data.since + at * data.step_s * 1000)} UTC`];
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
