// The funnel: what the last cycles did with everything that waited. A step opens its tasks.

import { ask } from "../asking.js";
import { behind, draw, el, put, table } from "../dom.js";
import { setView, view, windowed } from "../view.js";
import { clock, counted } from "../words.js";
import { taskLink } from "./lane_tables.js";

/** @type {import("../frame.js").Panel} */
export const funnel = {
  id: "funnel",
  about: [
    "The last ten cycles of the rebalancer, added up. At the top what waited on busy nodes; each line "
    + "takes away what one rule kept where it was; at the bottom what was moved.",
    "“Could not look” is never “nothing to do”: then nobody knows. Click a line for its tasks; "
    + "`arc explain RULE` says why the rule exists.",
  ],
  command: () => "arc skills run --name fleet-rebalance -- status",
  load: async () => (await ask("panels/funnel", { ...windowed(), step: view.step })).data,
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
      : `${counted(data.unseen, "answer")} missing`, 1, 0, "step blind", null,
    data.blind_because || "some nodes did not answer"));
  }
  const whole = Math.max(data.waiting, 1);
  steps.append(row("waiting there", String(data.waiting), data.waiting / whole, 0, "step", null,
    "what waited on busy nodes, once for each cycle"));
  for (const one of data.steps) {
    steps.append(row(one.rule, String(one.left), one.left / whole, one.out / whole, "step",
      one.rule, `${one.rule} kept ${one.out}, ${one.left} are left; click for the tasks`, one.out));
  }
  steps.append(row("moved", `${data.moved} of ${data.planned}`, data.moved / whole, 0, "step", null,
    "what was carried out, of what was planned"));
  put(body, steps, skipped(data), data.step ? tasksOf(data.step) : null,
    behind("funnel", "as a table", () => table("Rules and what they kept", ["rule", "kept", "left"],
      data.steps.map((/** @type {any} */ one) => [one.rule, one.out, one.left]))));
}

/** @param {string} name @param {string} value @param {number} left @param {number} out
 * @param {string} kind @param {string|null} rule @param {string} says @param {number} lost */
function row(name, value, left, out, kind, rule, says, lost = 0) {
  const parts = [el("span", {}, name),
    draw("svg", { class: "bar", viewBox: "0 0 100 12", preserveAspectRatio: "none", "aria-hidden": "true" },
      draw("rect", { class: "left", fill: kind.includes("blind") ? "url(#calm-hatch)" : null, width: (100 * left).toFixed(2), height: 12 }),
      draw("rect", { class: "out", x: (100 * left).toFixed(2), width: (100 * out).toFixed(2), height: 12 })),
    el("b", { class: "number" }, rule ? el("span", { class: "out" }, `-${lost}  `) : null, value)];
  if (!rule) return el("div", { class: kind, title: says }, parts);
  const open = view.step === rule;
  return el("button", { type: "button", class: kind, title: says, "data-row": rule, "data-key": `step-${rule}`,
    "aria-expanded": String(open), onclick: () => setView({ step: open ? null : rule }) }, parts);
}

/** @param {any} data */
function skipped(data) {
  const lines = Object.entries(data.skipped);
  if (!lines.length && !data.failed) return null;
  return el("p", { class: "dim" }, lines.map(([why, count]) => `${count}× skipped: ${why}`).join(" · "),
    data.failed ? ` · ${counted(data.failed, "cycle")} failed` : "");
}

/** @param {any} step */
function tasksOf(step) {
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Kept by ${step.rule}` },
    el("h3", {}, `kept by ${step.rule}`),
    step.nodes.length ? el("p", { class: "dim" }, step.nodes.map((/** @type {any} */ one) =>
      `${one.node} ${one.count}${one.because ? ` (${one.because})` : ""}`).join(" · ")) : null,
    step.tasks.length ? table(`Tasks kept by ${step.rule}`, ["task", "on", "cycles", "because"],
      step.tasks.map((/** @type {any} */ one) => [taskLink(one.uid), one.node, one.cycles, one.because]))
      : el("p", { class: "plain" }, "no single task was written down for this rule"),
    step.more > 0 ? el("p", { class: "plain" }, `… and ${counted(step.more, "task")} more`) : null);
}
