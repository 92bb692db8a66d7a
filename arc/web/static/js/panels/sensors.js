// The sensors: a tick for each run; dashed where late, a cross where failed, hollow where it could not look.

import { ask } from "../asking.js";
import { behind, draw, el, put, table, tell } from "../dom.js";
import { known } from "../now.js";
import { tipOn } from "../tip.js";
import { view, windowed } from "../view.js";
import { clock, counted, lasting, mark } from "../words.js";

const TALL = 18, ROWS_MAX = 300;
const SAYS = /** @type {Object<string, string>} */ ({ done: "done", acted: "did something", late: "late",
  failed: "failed", could_not_look: "could not look", skipped: "nothing to do" });

/** @type {import("../frame.js").Panel} */
export const sensors = {
  id: "sensors",
  about: [
    "A sensor is scheduled work of the hub. A tick is one run: tall and coloured when it did something, "
    + "amber and dashed when it came late, a loud cross when it failed, a hollow ring when it could not look.",
    "Where runs lie close together the worst of them is drawn. With the focus on a row, left and right go from run to run.",
  ],
  command: () => "arc sensors list",
  load: async () => (await ask("panels/sensors", windowed())).data,
  draw: drawSensors,
  every: () => 10,
};

/** @param {HTMLElement} body @param {any} data @param {(...said: any[]) => void} sum */
function drawSensors(body, data, sum) {
  const bad = data.sensors.filter((/** @type {any} */ one) => Object.keys(one.bad).length);
  const states = view.at ? [] : known()?.sensors ?? [];
  const late = states.filter((/** @type {any} */ one) => ["late", "failed", "could_not_look", "broken"].includes(one.state));
  sum(late.length ? el("span", { class: "loud" }, late.map((/** @type {any} */ one) => `${one.sensor} ${one.state.replaceAll("_", " ")}`).join(", "))
    : bad.length ? `${counted(bad.length, "sensor")} had trouble` : "all well");
  const quiet = states.filter((/** @type {any} */ one) => !data.sensors.some((/** @type {any} */ some) => some.sensor === one.sensor));
  put(body, data.sensors.length ? null : el("p", { class: "plain" }, "no run in this stretch of time"),
    data.sensors.map((/** @type {any} */ one) => row(one, data, body.clientWidth || 320,
      states.find((/** @type {any} */ some) => some.sensor === one.sensor)?.every_s ?? one.usual_s)),
    quiet.length ? el("p", { class: "dim" }, `without a run here: ${quiet.map((/** @type {any} */ one) =>
      `${one.sensor} (${one.state})`).join(", ")}`) : null,
    behind("sensors", "as a table", () => table("Runs of each sensor",
      ["sensor", "runs", "usually every", "did", "late", "failed", "could not look", "last"],
      data.sensors.map((/** @type {any} */ one) => [one.sensor, one.runs, lasting(one.usual_s), one.acted,
        one.bad.late ?? 0, one.bad.failed ?? 0, one.bad.could_not_look ?? 0, one.summary]))),
    behind("sensor-runs", "as a table: runs", () => asRuns(data)));
}

/** The ticks as they are drawn, the newest first. @param {any} data */
function asRuns(data) {
  const rows = data.sensors.flatMap((/** @type {any} */ one) => one.ticks.map((/** @type {any} */ tick) => [one.sensor, ...tick]))
    .sort((/** @type {any} */ one, /** @type {any} */ other) => other[1] - one[1]);
  return el("div", {}, table("Runs, the newest first; of those that fall together the worst", ["UTC", "sensor", "run", "how", "what it said"],
    rows.slice(0, ROWS_MAX).map((/** @type {any} */ [sensor, t, how, run, says]) => [`${data.span_s > 86400 ? `${mark(data.since + t * 1000, 86400)} ` : ""}${clock(data.since + t * 1000)}`, sensor, run, SAYS[how] ?? how, says || "-"])),
  rows.length > ROWS_MAX ? el("p", { class: "plain" }, `… and ${counted(rows.length - ROWS_MAX, "tick")} before`) : null);
}

/** @param {any} one @param {any} data @param {number} wide
 * @param {number | null} every what its setting says; of the past, how its runs lay */
function row(one, data, wide, every) {
  const width = Math.max(80, wide - 8.5 * 14 - 6 * 14 - 12);
  const x = (/** @type {number} */ t) => 3 + (t / data.span_s) * (width - 6);
  const says = (/** @type {any} */ [t, how, run, said]) => [`${one.sensor}, run ${run}: ${SAYS[how] ?? how}`, said || null, `${clock(data.since + t * 1000)} UTC`];
  const ticks = one.ticks.map((/** @type {any} */ drawn) => {
    const [t, how] = drawn;
    const tick = how === "could_not_look" ? draw("circle", { class: "run-blind", cx: x(t), cy: TALL / 2, r: 3.5 })
      : how === "failed" ? draw("path", { class: "run failed", d: `M${x(t) - 4} 4 l8 9 m0 -9 l-8 9` })
      : draw("line", { class: `run ${how}`, x1: x(t), x2: x(t), y1: how === "skipped" || how === "done" ? TALL - 7 : 2, y2: TALL - 1 });
    tick.setAttribute("tabindex", "-1"); // the row alone is a stop: SVG that listens to the focus would be one, too
    tipOn(tick, () => says(drawn));
    return tick;
  });
  const svg = draw("svg", { width, height: TALL, role: "img", tabindex: 0, "data-key": `runs-${one.sensor}`,
    "aria-label": `${one.sensor}: ${counted(one.runs, "run")}; left and right go from run to run` },
  draw("line", { class: "tick", x1: 0, x2: width, y1: TALL - 1, y2: TALL - 1 }), ticks);
  byKeys(svg, ticks, one, (place) => says(one.ticks[place]));
  const name = el("span", { title: one.summary }, one.sensor.replace(/^fleet-/, ""));
  return el("div", { class: "sensor-row" }, name, svg, el("span", { class: "dim number" },
    every === null ? `${one.runs}×` : `every ${lasting(every)}`));
}

/** @type {Map<string, number>} */ const standing = new Map(); // by sensor at which run: rows are drawn anew

/** Left and right go from tick to tick, and say what each was; away from the row nothing is said.
 * @param {SVGElement} svg @param {SVGElement[]} ticks @param {any} one @param {(place: number) => (string|null)[]} says */
function byKeys(svg, ticks, one, says) {
  const found = one.ticks.findIndex((/** @type {any} */ [, , run]) => run === standing.get(one.sensor));
  let at = found < 0 ? ticks.length : found;
  const leave = () => { ticks[at]?.classList.remove("at"); ticks[at]?.dispatchEvent(new Event("blur")); };
  svg.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!way || !ticks.length) return;
    event.preventDefault();
    leave();
    at = Math.min(Math.max(at + way, 0), ticks.length - 1);
    standing.set(one.sensor, one.ticks[at][2]);
    ticks[at].classList.add("at");
    ticks[at].dispatchEvent(new Event("focus"));
    tell(says(at).filter(Boolean).join(", "));
  });
  svg.addEventListener("blur", leave);
}
