// The funnel: what the last cycles did with everything that waited. A step opens what it is made of.

import { ask } from "../asking.js";
import { behind, draw, el, put, table } from "../dom.js";
import { setView, view, windowed } from "../view.js";
import { clock, counted } from "../words.js";
import { BLIND, MOVED, shownStep, WAITING, withTasks } from "./funnel_step.js";

/** @type {import("../frame.js").Panel} */
export const funnel = {
  id: "funnel",
  about: [
    "The last ten cycles of the rebalancer, added up. At the top what waited on busy nodes; each line "
    + "takes away what one rule kept where it was; at the bottom what was moved.",
    "“Could not look” is never “nothing to do”: then nobody knows. Click a line for what it is made of: "
    + "which nodes could not be looked at and why, what waits there, the tasks of a rule, the moves. A rule about "
    + "the task itself is looked at by its node, which tells how many it kept: then the tasks are those of when the line was opened. "
    + "`arc explain RULE` says why the rule exists.",
  ],
  command: () => "arc skills run --name fleet-rebalance -- status",
  load: async () => {
    const { data } = await ask("panels/funnel", { ...windowed(), step: view.step });
    return { ...data, step: await withTasks(data.step) };
  },
  draw: drawFunnel,
  every: () => 10,
};

/** @param {HTMLElement} body @param {any} data @param {(...said: any[]) => void} sum */
function drawFunnel(body, data, sum) {
  sum(data.cycles ? `${counted(data.cycles, "cycle")}, ${clock(data.first)} to ${clock(data.last)}` : "");
  if (!data.cycles) {
    put(body, el("p", { class: "plain" }, "no cycle in this stretch of time"));
    return;
  }
  const steps = el("div", { class: "steps" });
  if (data.blind || data.unseen) {
    steps.append(row("could not look", data.blind ? `${counted(data.blind, "cycle")} of ${data.cycles}`
      : `${counted(data.unseen, "answer")} missing`, 1, 0, "step blind", BLIND,
    `${data.blind_because || "some nodes did not answer"}; click for the nodes and the cycles`));
  }
  const whole = Math.max(data.waiting, 1);
  steps.append(row("waiting there", String(data.waiting), data.waiting / whole, 0, "step", WAITING,
    "what waited on busy nodes, once for each cycle; click for what waits there now"));
  for (const one of data.steps) {
    steps.append(row(one.rule, String(one.left), one.left / whole, one.out / whole, "step",
      one.rule, `${one.rule} kept ${one.out}, ${one.left} are left; click for the tasks`, `-${one.out}  `));
  }
  steps.append(row("moved", `${data.moved} of ${data.planned}`, data.moved / whole, 0, "step", MOVED,
    "what was carried out, of what was planned; click for the moves"));
  put(body, steps, skipped(data), data.step ? shownStep(data.step) : null,
    behind("funnel", "as a table", () => table("Rules and what they kept", ["rule", "kept", "left"],
      data.steps.map((/** @type {any} */ one) => [one.rule, one.out, one.left]))));
}

/** @param {string} name @param {string} value @param {number} left @param {number} out
 * @param {string} kind @param {string} step @param {string} says @param {string|null} lost */
function row(name, value, left, out, kind, step, says, lost = null) {
  const open = view.step === step;
  return el("button", { type: "button", class: kind, title: says, "data-row": step, "data-key": `step-${step}`,
    "aria-expanded": String(open), onclick: () => setView({ step: open ? null : step }) },
  el("span", {}, name),
  draw("svg", { class: "bar", viewBox: "0 0 100 12", preserveAspectRatio: "none", "aria-hidden": "true" },
    draw("rect", { class: "left", fill: kind.includes("blind") ? "url(#calm-hatch)" : null, width: (100 * left).toFixed(2), height: 12 }),
    draw("rect", { class: "out", x: (100 * left).toFixed(2), width: (100 * out).toFixed(2), height: 12 })),
  el("b", { class: "number" }, lost ? el("span", { class: "out" }, lost) : null, value));
}

/** @param {any} data */
function skipped(data) {
  const lines = Object.entries(data.skipped);
  if (!lines.length && !data.failed) return null;
  return el("p", { class: "dim" }, lines.map(([why, count]) => `${count}× skipped: ${why}`).join(" · "),
    data.failed ? ` · ${counted(data.failed, "cycle")} failed` : "");
}
