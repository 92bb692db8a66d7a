// What if: other limits on what really happened, through the very planner that the hub runs.

import { ask } from "../asking.js";
import { copier } from "../copying.js";
import { behind, draw, el, put, table } from "../dom.js";
import { known } from "../now.js";
import { setView, spanSeconds, view } from "../view.js";
import { clock, counted, lasting, mark, minutes, stepOf } from "../words.js";

const TALL = 120;
const DAY_S = 86400;
const POLICIES = ["arc0", "swift"];
/** Name, by which policies it is looked at, what it says, its steps. */
const SLIDERS = /** @type {[string, string[], string, (number|string)[]][]} */ ([
  ["idle_min", ["arc0"], "a node may be given work when idle for", ["0s", "10s", "30s", "1m", "2m", "5m", "10m", "15m", "30m"]],
  ["busy_over", ["arc0"], "a node gives work away above so many waiting", [0, 1, 2, 3, 5, 8, 12, 20, 40]],
  ["per_node", ["arc0"], "tasks that one node gets in a cycle", [1, 2, 3, 5, 8, 12, 20]],
  ["per_cycle", ["arc0"], "tasks that a cycle moves", [1, 3, 5, 10, 20, 40, 100]],
  ["every", ["arc0", "swift"], "a cycle every, whatever the news", ["10s", "30s", "1m", "2m", "5m", "10m", "15m", "30m"]],
  ["steal_from", ["arc0"], "only tasks as urgent as this or less", ["P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P9", "P10"]],
  ["gain_min", ["swift"], "a moved task starts sooner by at least", ["0s", "5s", "10s", "30s", "1m", "2m", "5m", "15m"]],
  ["hops", ["swift"], "how often one task may be stolen", [1, 2, 3, 4, 8]],
  ["transfer", ["swift"], "how long a move is taken to last", ["0s", "1s", "5s", "15s", "1m", "5m"]],
  ["task_takes", ["swift"], "how long a task takes of whose kind nothing is known", ["10s", "1m", "5m", "10m", "30m", "2h"]],
]);
const POLICY = "the seed's rules, or ours; each goes by limits of its own";

/** @type {import("../frame.js").Panel} */
export const whatIf = {
  id: "what-if",
  about: [
    "Move a slider: what arrived in the 24 hours up to the moment that is shown is played again through the very planner that "
    + "the hub runs, with these limits. The filled area is the stranded time that really was, the line "
    + "what it would have been.",
    "It is a simulation: an attempt takes as long as it really took, wherever it runs. The thin dotted "
    + "line is the same replay with the limits of today: where it lies far from the filled area, the "
    + "replay says little.",
  ],
  command: () => `arc simulate --from-history ${span()}${view.at ? ` --until ${view.at}` : ""}${chosen()}`,
  load: async () => {
    if (!view.what) return { idle: true };
    const answer = await ask("panels/what_if", { at: view.at, span: span(), ...settings() });
    return answer.data;
  },
  draw: drawWhatIf,
  every: () => 3600,
};

/** A day, up to the moment that is shown, or as long as is looked at where that is more. */
function span() { return spanSeconds() > DAY_S ? view.span : "24h"; }

/** @returns {Object<string, string>} */
function settings() {
  const found = /** @type {Object<string, string>} */ ({});
  for (const part of (view.what ?? "").split(",")) {
    const [name, value] = part.split("=");
    if (value) found[name] = value;
  }
  return fit(found);
}

/** What of it is a policy, and limits that this policy looks at. @param {Object<string, string>} found */
function fit(found) {
  const { policy } = found;
  const whose = POLICIES.includes(policy) ? policy : real("policy") ?? "arc0";
  const kept = Object.fromEntries(sliders(whose).filter(([name]) => found[name]).map(([name]) => [name, found[name]]));
  return POLICIES.includes(policy) ? { policy, ...kept } : kept;
}

/** The sliders of a policy. @param {string} policy */
function sliders(policy) { return SLIDERS.filter(([, policies]) => policies.includes(policy)); }

/** The policy that is played. */
function played() { return settings().policy ?? real("policy") ?? "arc0"; }

/** What makes the command compare the fleet's own policy, or the other one, with these limits. */
function chosen() {
  const { policy = played(), ...limits } = settings();
  const pairs = Object.entries(limits).map(([name, value]) => `${name}=${value}`).join(",");
  return view.what ? ` --policy ${policy}${pairs ? `:${pairs}` : ""}` : "";
}

/** What the hub runs with now. @param {string} name @returns {string|null} */
function real(name) {
  if (name === "policy") return known()?.policy ?? null;
  const limits = known()?.limits;
  const value = limits?.[name] ?? limits?.[`${name}_s`];
  if (value === null || value === undefined) return null;
  if (limits[name] === undefined) return lasting(value).replaceAll(" ", "");
  return name === "steal_from" ? `P${value}` : String(value);
}

/** @param {HTMLElement} body @param {any} data @param {(...said: any[]) => void} sum */
function drawWhatIf(body, data, sum) {
  const drawn = /** @type {HTMLElement|null} */ (body.querySelector(".sliders"));
  if (drawn?.dataset.policy !== played()) {
    const held = drawn?.contains(document.activeElement);
    put(body, allSliders(), el("div", { class: "outcome" }));
    if (held) /** @type {HTMLElement} */ (body.querySelector("input[data-name=policy]")).focus();
  }
  const place = /** @type {HTMLElement} */ (body.querySelector(".outcome"));
  if (data.idle) {
    sum(`move a slider: the ${span()} up to ${view.at ? "this moment" : "now"} are played again with it`);
    put(place);
    return;
  }
  const was = data.reality, same = data.as_it_is, would = data.what_if;
  sum(`${ofWhole(data)}stranded ${minutes(was.stranded_s)} really, ${minutes(same.stranded_s)} played again, `,
    el("b", {}, `${minutes(would.stranded_s)} with these limits`), `; ${counted(would.moves, "move")} instead of ${same.moves}`);
  put(place, area(data, Math.max(240, body.clientWidth || 900)), yaml(),
    (data.cut ?? []).map((/** @type {string} */ one) => el("p", { class: "warn" }, one)),
    behind("what-if", "as a table", () => table("Reality and these limits", ["", "really", "played again as it is", "with these limits"], [
      ["stranded", lasting(was.stranded_s), lasting(same.stranded_s), lasting(would.stranded_s)], ["moves", was.moves, same.moves, would.moves],
      ["mean wait", lasting(was.mean_wait_s), lasting(same.mean_wait_s), lasting(would.mean_wait_s)],
      ["wait, 95 of 100 below", lasting(was.p95_wait_s), lasting(same.p95_wait_s), lasting(would.p95_wait_s)]])));
}

/** Which part of what was asked for is compared; "" where all of it is. @param {any} data */
function ofWhole(data) {
  const after = data.asked_s - data.left_out_s - data.compared_s;
  if (data.left_out_s < 1 && after < 1) return "";
  const which = data.left_out_s < 1 ? "the first " : after < 1 ? "the last " : "";
  const from = which ? "" : `, from ${clock(data.since)} on,`;
  return `of ${which}${lasting(data.compared_s)} of ${lasting(data.asked_s)}${from} alone: `;
}

function allSliders() {
  const now = settings(), policy = played();
  const mine = policy === (real("policy") ?? policy); // of another policy the hub's limits say nothing
  const one = (/** @type {string} */ name, /** @type {string} */ says, /** @type {(number|string)[]} */ steps) => {
    const words = steps.map(String);
    const own = now[name] ?? (mine || name === "policy" ? real(name) : null);
    const at = own === null ? -1 : words.indexOf(own);
    const out = el("output", {}, own ?? (mine ? "as it is" : "as fleet.yaml or usual"));
    const slider = /** @type {HTMLInputElement} */ (el("input", { type: "range", min: 0, max: words.length - 1,
      value: at < 0 ? Math.floor(words.length / 2) : at, "data-name": name, "aria-label": `${name}: ${says}` }));
    /** @type {ReturnType<typeof setTimeout>|undefined} */ let soon;
    slider.addEventListener("input", () => {
      put(out, words[Number(slider.value)]);
      slider.setAttribute("aria-valuetext", words[Number(slider.value)]);
      clearTimeout(soon);
      soon = setTimeout(() => {
        const changed = fit({ ...settings(), [name]: words[Number(slider.value)] });
        if (changed[name] === real(name) && (mine || name === "policy")) delete changed[name];
        setView({ what: Object.entries(changed).map(([key, value]) => `${key}=${value}`).join(",") || null });
      }, 250);
    });
    return el("label", { title: says }, name, out, slider);
  };
  return el("div", { class: "sliders", "data-policy": policy },
    one("policy", POLICY, POLICIES), sliders(policy).map(([name, , says, steps]) => one(name, says, steps)));
}

/** The lines of fleet.yaml that make it so. */
function yaml() {
  const { policy, ...limits } = settings();
  const changed = Object.entries(limits).map(([name, value]) => `${name}: ${value}`).join(", ");
  if (!policy && !changed) return null;
  const lines = `${policy ? `policy: ${policy}\n` : ""}${changed ? `rebalance: {${changed}}` : ""}`.trim();
  return el("p", { class: "actions" }, el("span", { class: "type" }, el("code", {}, lines), copier(() => lines)),
    el("button", { type: "button", onclick: () => { document.querySelector("#what-if .sliders")?.remove(); setView({ what: null }); } },
      "as it is"));
}

/** @param {any} data @param {number} wide */
function area(data, wide) {
  const { step_s: step, since } = data;
  const all = data.reality.stranded.length; // of what was not replayed nothing is drawn
  const [real, same, other] = [data.reality, data.as_it_is, data.what_if].map((one) =>
    /** @type {number[]} */ (one.stranded.filter((/** @type {number|null} */ value) => value !== null)));
  const most = Math.max(1, ...real, ...same, ...other);
  const x = (/** @type {number} */ at) => 30 + (at / all) * (wide - 36);
  const y = (/** @type {number} */ value) => TALL - 16 - (value / most) * (TALL - 28);
  const path = (/** @type {number[]} */ line) => line.map((value, at) => `L${x(at).toFixed(1)} ${y(value).toFixed(1)} L${x(at + 1).toFixed(1)} ${y(value).toFixed(1)}`).join(" ");
  const gap = stepOf(all * step, 8);
  const marks = [];
  for (let at = Math.ceil(since / 1000 / gap) * gap; at * 1000 < since + all * step * 1000; at += gap) {
    const place = x((at - since / 1000) / step);
    marks.push(draw("line", { class: "tick", x1: place, x2: place, y1: 6, y2: TALL - 14 }),
      draw("text", { x: place + 2, y: TALL - 3 }, mark(at * 1000, gap)));
  }
  return draw("svg", { width: wide, height: TALL, role: "img", "aria-label":
    `Stranded nodes over time: ${minutes(data.reality.stranded_s)} really, ${minutes(data.what_if.stranded_s)} with these limits` },
  marks, draw("text", { x: 0, y: 12 }, `${Math.round(most * 10) / 10}`), draw("text", { x: 0, y: TALL - 18 }, "0"),
  draw("path", { class: "real", d: `M${x(0)} ${y(0)} ${path(real)} L${x(real.length)} ${y(0)} Z` }),
  draw("path", { class: "same", d: `M${x(0)} ${y(0)} ${path(same)}` }),
  draw("path", { class: "other", d: `M${x(0)} ${y(0)} ${path(other)}` }));
}
