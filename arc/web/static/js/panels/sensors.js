// The sensors: a tick for each run; late, failed, and hollow where it could not look.

import { ask } from "../asking.js";
import { behind, draw, el, put, table } from "../dom.js";
import { known } from "../now.js";
import { tipOn } from "../tip.js";
import { view, windowed } from "../view.js";
import { clock, counted, lasting } from "../words.js";

const TALL = 18;
const SAYS = /** @type {Object<string, string>} */ ({ done: "done", acted: "did something", late: "late",
  failed: "failed", could_not_look: "could not look", skipped: "nothing to do" });

/** @type {import("../frame.js").Panel} */
export const sensors = {
  id: "sensors",
  about: [
    "A sensor is scheduled work of the hub. A tick is one run: tall and coloured when it did something, "
    + "amber when it came late, loud when it failed, a hollow ring when it could not look.",
    "Where runs lie close together the worst of them is drawn.",
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
        one.bad.late ?? 0, one.bad.failed ?? 0, one.bad.could_not_look ?? 0, one.summary]))));
}

/** @param {any} one @param {any} data @param {number} wide
 * @param {number | null} every what its setting says; of the past, how its runs lay */
function row(one, data, wide, every) {
  const width = Math.max(80, wide - 8.5 * 14 - 6 * 14 - 12);
  const x = (/** @type {number} */ t) => 3 + (t / data.span_s) * (width - 6);
  const svg = draw("svg", { width, height: TALL, role: "img", "aria-label": `${one.sensor}: ${counted(one.runs, "run")}` },
    draw("line", { class: "tick", x1: 0, x2: width, y1: TALL - 1, y2: TALL - 1 }),
    one.ticks.map((/** @type {any} */ [t, mark, run, says]) => {
      const tick = mark === "could_not_look" ? draw("circle", { class: "run-blind", cx: x(t), cy: TALL / 2, r: 3.5 })
        : draw("line", { class: `run ${mark}`, x1: x(t), x2: x(t), y1: mark === "skipped" || mark === "done" ? TALL - 7 : 2, y2: TALL - 1 });
      tipOn(tick, () => [`${one.sensor}, run ${run}: ${SAYS[mark] ?? mark}`, says || null,
        `${clock(data.since + t * 1000)} UTC`]);
      return tick;
    }));
  const name = el("span", { title: one.summary }, one.sensor.replace(/^fleet-/, ""));
  return el("div", { class: "sensor-row" }, name, svg, el("span", { class: "dim number" },
    every === null ? `${one.runs}×` : `every ${lasting(every)}`));
}
