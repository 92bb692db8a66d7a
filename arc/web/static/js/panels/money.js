// Money: what each node spent today, and where that leads to by midnight.

import { ask, Trouble } from "../asking.js";
import { behind, draw, el, put, table } from "../dom.js";
import { hoursOf } from "../hours.js";
import { known } from "../now.js";
import { tipOn } from "../tip.js";
import { setView, view } from "../view.js";
import { clock, counted, money as dollars } from "../words.js";

const WIDE = 150, TALL = 46;
const AGAIN_MS = 60000, COLUMNS_MAX = 10;

/** @type {import("../frame.js").Panel} */
export const money = {
  id: "money",
  about: [
    "What attempts said that they cost, from midnight to midnight UTC, when budgets begin anew. The dotted line "
    + "goes on to the next midnight at the pace of the day so far; the dashed one is the limit, where there is one.",
    "The limit of the fleet's day counts what the hub's own queue gives out, spent and reserved, since midnight or since it was "
    + "set: it is told beside all that was spent, as was heard.",
    "An attempt that does not say what it cost counts as nothing here: unknown is not free.",
  ],
  command: () => "arc budget",
  load: async () => {
    const [spent, limits] = await Promise.all([ask("panels/money", { at: view.at }), view.at ? null : budgets()]);
    return { ...spent.data, limits };
  },
  draw: drawMoney,
  every: () => 20,
};

let askedAt = 0;
/** @type {Map<string, number>|null} */ let kept = null;

/** The day's limit of each node that has one; null: nobody could say. It asks every node, so seldom. */
async function budgets() {
  if (Date.now() - askedAt < AGAIN_MS) return kept;
  askedAt = Date.now();
  try {
    const { data } = await ask("budget");
    kept = new Map(data.scopes.filter((/** @type {any} */ one) => one.scope === "node" && one.limit_usd !== null)
      .map((/** @type {any} */ one) => [one.store, Number(one.limit_usd)]));
  } catch (error) {
    if (!(error instanceof Trouble)) throw error;
    kept = null;
  }
  return kept;
}

/** @param {HTMLElement} body @param {any} data @param {(...said: any[]) => void} sum */
function drawMoney(body, data, sum) {
  const head = view.at ? null : known()?.header;
  const limit = head?.fleet_day?.limit_usd ?? head?.budget_per_day_usd ?? null;
  sum(`${dollars(data.spent_usd)} ${view.at ? "that day" : "today"}, pace ${dollars(pace(data, Number(data.spent_usd)))} a day`
    + (limit === null ? "" : `; of the limit ${dollars(head.fleet_day?.counted_usd)} of ${dollars(limit)}`));
  if (!data.nodes.length) {
    put(body, el("p", { class: "plain" }, "no attempt has said what it cost"));
    return;
  }
  const most = pace(data, Math.max(...data.nodes.map((/** @type {any} */ one) => Number(one.spent_usd))));
  put(body, el("div", { class: "smalls" }, data.nodes.map((/** @type {any} */ one) => node(one, data, most))),
    data.more ? el("p", { class: "plain" }, `… and ${counted(data.more, "node")} more`) : null,
    behind("money", "as a table", () => table("Spent today", ["node", "spent", "limit", "pace a day"],
      data.nodes.map((/** @type {any} */ one) => [one.node, dollars(one.spent_usd),
        data.limits?.has(one.node) ? dollars(data.limits.get(one.node)) : data.limits ? "none" : "unknown", dollars(pace(data, Number(one.spent_usd)))]))),
    behind("money-hours", "as a table: hour by hour", () => byHour(data)));
}

/** What each node had spent by the end of each hour, as the lines show it. @param {any} data */
function byHour(data) {
  const shown = data.nodes.slice(0, COLUMNS_MAX), others = data.nodes.slice(COLUMNS_MAX);
  const by = (/** @type {any} */ one, /** @type {number} */ second) =>
    one.line[Math.min(Math.floor(second / data.step_s + 0.001), one.line.length) - 1] ?? 0;
  return table("Spent since midnight, by the end of each hour", ["UTC", ...shown.map((/** @type {any} */ one) => one.node),
    ...others.length ? ["others"] : []],
  hoursOf(data.since, data.elapsed_s).map((hour) => [hour.says, ...shown.map((/** @type {any} */ one) => dollars(by(one, hour.to))),
    ...others.length ? [dollars(others.reduce((/** @type {number} */ all, /** @type {any} */ one) => all + by(one, hour.to), 0))] : []]));
}

/** Where this leads to in a whole day. @param {any} data @param {number} spent */
function pace(data, spent) { return data.elapsed_s ? (spent * data.day_s) / data.elapsed_s : 0; }

/** @param {any} one @param {any} data @param {number} most */
function node(one, data, most) {
  const limit = data.limits?.get(one.node) ?? null;
  const spent = Number(one.spent_usd), ends = pace(data, spent);
  const top = Math.max(limit === null ? most : Math.max(limit, ends), 0.0001) * 1.05;
  const x = (/** @type {number} */ seconds) => (seconds / data.day_s) * WIDE;
  const y = (/** @type {number} */ value) => TALL - 2 - (value / top) * (TALL - 6);
  const points = one.line.map((/** @type {number} */ value, /** @type {number} */ at) =>
    `${x((at + 1) * data.step_s).toFixed(1)} ${y(value).toFixed(1)}`);
  const svg = draw("svg", { viewBox: `0 0 ${WIDE} ${TALL}`, height: TALL, width: "100%", "aria-hidden": "true",
    preserveAspectRatio: "none" },
  draw("line", { class: "tick", x1: 0, x2: WIDE, y1: TALL - 2, y2: TALL - 2 }),
  draw("path", { class: "spent", d: `M0 ${TALL - 2} L${points.join(" L")}`, "vector-effect": "non-scaling-stroke" }),
  limit === null ? null : draw("line", { class: "budget", x1: 0, x2: WIDE, y1: y(limit), y2: y(limit) }),
  draw("path", { class: "pace", d: `M${x(data.elapsed_s).toFixed(1)} ${y(spent).toFixed(1)} L${WIDE} ${y(ends).toFixed(1)}`,
    "vector-effect": "non-scaling-stroke" }));
  const figure = el("figure", { class: "small" }, el("figcaption", {},
    el("button", { type: "button", class: "bare", "data-row": one.node, "data-key": `money-${one.node}`,
      onclick: () => setView({ node: one.node, task: null }) }, one.node),
    el("span", { class: limit !== null && spent > limit ? "loud" : "dim" },
      limit === null ? dollars(one.spent_usd) : `${dollars(one.spent_usd)} of ${dollars(limit)}`)), svg);
  tipOn(figure, () => [`${one.node}: ${dollars(one.spent_usd)} since ${clock(data.since).slice(0, 5)} UTC`,
    `at this pace ${dollars(ends)} by midnight`]);
  return figure;
}
