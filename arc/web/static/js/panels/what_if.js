// What if: other limits on what really happened, through the very planner that the hub runs.

import { ask } from "../asking.js";
import { copier } from "../copying.js";
import { behind, draw, el, put, table } from "../dom.js";
import { between, hoursOf } from "../hours.js";
import { known } from "../now.js";
import { setView, spanSeconds, view } from "../view.js";
import { clock, counted, lasting, mark, minutes, stepOf } from "../words.js";

const TALL = 120;
const DAY_S = 86400;
const POLICIES = ["arc0", "swift"];
/** Name, by which policies it is looked at, what it says, its steps. */
const SLIDERS = /** @type {[string, string[], string, (number|string)[]][]} */ ([
  ["idle_min", ["arc0"], "a node may be given work when idle for", ["0s", "10s", "30s", "1m", "2m", "5m", "10m", "15m", "30m"]],
  ["on_idle", ["arc0"], "a cycle also starts when a node turns idle", ["false", "true"]],
  ["busy_over", ["arc0"], "a node gives work away above so many waiting", [0, 1, 2, 3, 5, 8, 12, 20, 40]],
  ["per_node", ["arc0"], "tasks that one node gets in a cycle", [1, 2, 3, 5, 8, 12, 20]],
  ["per_cycle", ["arc0"], "tasks that a cycle moves", [1, 3, 5, 10, 20, 30, 40, 100]],
  ["every", ["arc0", "swift"], "a cycle every, whatever the news", ["10s", "30s", "1m", "2m", "5m", "10m", "15m", "30m"]],
  ["steal_from", ["arc0"], "only tasks as urgent as this or less", ["P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P9", "P10"]],
  ["anyone_from", ["arc0"], "from here on anyone may do tasks without skills and domain", ["P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P9", "P10"]],
  ["gain_min", ["swift"], "a moved task starts sooner by at least", ["0s", "5s", "10s", "30s", "1m", "2m", "5m", "15m"]],
  ["hops", ["swift"], "a task that was stolen more often than this stays", [1, 2, 3, 4, 8]],
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
function real(name) { return name === "policy" ? known()?.policy ?? null : own(played(), name); }

/** What a policy goes by where nothing else is said: for the hub's own as fleet.yaml has it.
 * @param {string} policy @param {string} name @returns {string|null} null: the hub has not told */
function own(policy, name) {
  const value = known()?.policies?.[policy]?.[name];
  return value === null || value === undefined ? null : String(value);
}

/** By which the steps of a slider are in order: seconds, a number, or the place in its list.
 * @param {string} word */
function size(word) {
  if (/^P?\d+$/.test(word)) return Number(word.replace("P", ""));
  if (["false", "true"].includes(word)) return Number(word === "true");
  return [...word.matchAll(/([\d.]+)([dhms])/g)].reduce((all, [, count, unit]) =>
    all + Number(count) * { d: 86400, h: 3600, m: 60, s: 1 }[/** @type {"d"} */ (unit)], 0);
}

/** The steps of a slider, what is in effect among them. @param {(number|string)[]} steps @param {(string|null)[]} also */
function stepsWith(steps, also) {
  const words = steps.map(String);
  for (const word of also) if (word !== null && !words.some((one) => size(one) === size(word))) words.push(word);
  return words.sort((one, other) => size(one) - size(other));
}

/** @param {HTMLElement} body @param {any} data @param {(...said: any[]) => void} sum */
function drawWhatIf(body, data, sum) {
  const drawn = /** @type {HTMLElement|null} */ (body.querySelector(".sliders"));
  if (drawn?.dataset.of !== standing() || drawn.dataset.what !== (view.what ?? "")) {
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
  put(place, area(data, Math.max(240, body.clientWidth || 900)), chosenLimits(),
    (data.cut ?? []).map((/** @type {string} */ one) => el("p", { class: "warn" }, one)),
    behind("what-if", "as a table", () => table("Reality and these limits", ["", "really", "played again as it is", "with these limits"], [
      ["stranded", lasting(was.stranded_s), lasting(same.stranded_s), lasting(would.stranded_s)], ["moves", was.moves, same.moves, would.moves],
      ["mean wait", lasting(was.mean_wait_s), lasting(same.mean_wait_s), lasting(would.mean_wait_s)],
      ["wait, 95 of 100 below", lasting(was.p95_wait_s), lasting(same.p95_wait_s), lasting(would.p95_wait_s)]])),
    behind("what-if-hours", "as a table: hour by hour", () => byHour(data)));
}

/** What is drawn, added up. @param {any} data */
function byHour(data) {
  const three = [data.reality, data.as_it_is, data.what_if];
  const told = (/** @type {any} */ one, /** @type {{from: number, to: number}} */ hour) => {
    const seconds = between(one.stranded, data.step_s, hour.from, hour.to);
    return seconds === null ? "not played" : lasting(Math.round(seconds));
  };
  return table("Stranded time in each hour", ["UTC", "really", "played again as it is", "with these limits"],
    hoursOf(data.since, data.step_s * data.reality.stranded.length).map((hour) => [hour.says, ...three.map((one) => told(one, hour))]));
}

/** Which part of what was asked for is compared; "" where all of it is. @param {any} data */
function ofWhole(data) {
  const after = data.asked_s - data.left_out_s - data.compared_s;
  if (data.left_out_s < 1 && after < 1) return "";
  const which = data.left_out_s < 1 ? "the first " : after < 1 ? "the last " : "";
  const from = which ? "" : `, from ${clock(data.since)} on,`;
  return `of ${which}${lasting(data.compared_s)} of ${lasting(data.asked_s)}${from} alone: `;
}

/** What the sliders begin at: drawn anew where the policy or the hub's own limits are others. */
function standing() { return `${played()} ${JSON.stringify(known()?.policies?.[played()] ?? null)}`; }

function allSliders() {
  const now = settings(), policy = played();
  return el("div", { class: "sliders", "data-of": standing(), "data-what": view.what ?? "" }, slider("policy", POLICY, POLICIES, now.policy ?? null),
    sliders(policy).map(([name, , says, steps]) => slider(name, says, steps, now[name] ?? null)));
}

/** @param {string} name @param {string} says @param {(number|string)[]} steps @param {string|null} chosen */
function slider(name, says, steps, chosen) {
  const usual = real(name), value = chosen ?? usual;
  const words = name === "policy" ? POLICIES : stepsWith(steps, [usual, chosen]);
  const at = value === null ? -1 : words.findIndex((word) => word === value || (name !== "policy" && size(word) === size(value)));
  const out = el("output", {}, value ?? "not known yet");
  const input = /** @type {HTMLInputElement} */ (el("input", { type: "range", min: 0, max: words.length - 1, value: Math.max(at, 0),
    disabled: at < 0, "data-name": name, "aria-label": `${name}: ${says}`, "aria-valuetext": value ?? "not known yet" }));
  /** @type {ReturnType<typeof setTimeout>|undefined} */ let soon;
  input.addEventListener("input", () => {
    const word = words[Number(input.value)];
    put(out, word);
    input.setAttribute("aria-valuetext", word);
    clearTimeout(soon);
    soon = setTimeout(() => {
      const changed = fit({ ...settings(), [name]: word });
      if (changed[name] === real(name)) delete changed[name];
      const what = Object.entries(changed).map(([key, one]) => `${key}=${one}`).join(",");
      const all = /** @type {HTMLElement|null} */ (input.closest(".sliders"));
      if (all) all.dataset.what = what; // it shows that already, and is not drawn anew below the pointer
      setView({ what: what || null });
    }, 250);
  });
  return el("label", { title: says }, name, out, input);
}

/** What was chosen: as the lines of fleet.yaml that make it so, and as the command that plays it again. */
function chosenLimits() {
  const { policy, ...limits } = settings();
  const changed = Object.entries(limits).map(([name, value]) => `${name}: ${value}`).join(", ");
  if (!policy && !changed) return null;
  const lines = `${policy ? `policy: ${policy}\n` : ""}${changed ? `rebalance: {${changed}}` : ""}`.trim();
  return el("p", { class: "actions" },
    el("span", { class: "type yaml" }, "fleet.yaml ", el("code", {}, lines), copier(() => lines)),
    el("span", { class: "type" }, "as a command ", el("code", {}, whatIf.command()), copier(whatIf.command)),
    el("button", { type: "button", onclick: () => setView({ what: null }) },
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
