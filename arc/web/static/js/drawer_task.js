// One task in the drawer: its life, its why-table, its attempts, the end of its log.

import { actions } from "./acting.js";
import { ask, Trouble } from "./asking.js";
import { typed } from "./copying.js";
import { el, put, table } from "./dom.js";
import { setView } from "./view.js";
import { day, clock, inWords, lasting, money, said, short, valued } from "./words.js";

const FIELDS = ["dag", "domain", "skills", "needs", "tags", "source", "origin", "key", "parent",
  "pinned", "max_cost_usd", "hops", "stolen_from", "not_before", "deadline", "expected_s",
  "max_s", "failures", "max_attempts", "progress", "failure_reason", "cost_usd"];
const TAIL = 16384;
const WAITS = new Set(["READY", "PENDING", "RETRYING", "CREATED"]);

/** @param {HTMLElement} place @param {string} uid */
export async function drawTask(place, uid) {
  const asked = await Promise.allSettled([ask(`tasks/${encodeURIComponent(uid)}`),
    ask(`why/${encodeURIComponent(uid)}`), ask("panels/life", { uid })]);
  const [whole, why, life] = asked.map((one) => (one.status === "fulfilled" ? one.value.data : one.reason));
  for (const one of [whole, why, life]) if (one instanceof Error && !(one instanceof Trouble)) throw one;
  if (whole instanceof Trouble && life instanceof Trouble) throw whole;
  const task = whole instanceof Trouble ? {} : whole.task;
  put(place,
    whole instanceof Trouble ? el("p", { class: "trouble" }, `its node could not be asked: ${whole.message}`)
      : head(whole, task),
    whole instanceof Trouble ? null : actions("task", { uid, node: whole.node, state: task.state }),
    el("p", {}, typed(`arc why ${short(uid)}`), " ", typed(`arc tasks show ${short(uid)}`)),
    whyTable(why, task), lifeLine(life), whole instanceof Trouble ? null : attempts(whole, uid),
    whole instanceof Trouble ? null : bodyOf(task));
}

/** @param {any} whole @param {any} task */
function head(whole, task) {
  const lines = [["state", `${task.state} on ${whole.node === "inbox" ? "the hub's queue" : whole.node}`],
    ["priority", `P${task.priority}${whole.order?.tier ? `, ${whole.order.tier} ${whole.order.effective}` : ""}`],
    ["uid", whole.uid],
    ...FIELDS.filter((name) => ![null, undefined, "", 0, false].includes(task[name]) && said(task[name]) !== "-")
      .map((name) => [inWords(name), valued(name, task[name])])];
  return el("div", {}, el("p", { class: "subject" }, el("strong", {}, task.subject)),
    el("dl", {}, lines.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])));
}

/** @param {any} why @param {any} task */
function whyTable(why, task) {
  if (why instanceof Trouble) return el("p", { class: "trouble" }, `why: ${why.message}`);
  const verdict = el("p", { class: why.verdict === "ESCALATE" ? "loud" : null },
    el("strong", {}, `${said(why.verdict)}: `), said(why.result));
  const blind = why.could_not_look ? el("p", { class: "trouble" }, `could not look into ${why.could_not_look.node}: ${
    why.could_not_look.rule}: ${why.could_not_look.because}`) : null;
  const life = why.life && why.life.says !== why.result ? el("p", { class: "dim" }, why.life.says) : null;
  const checks = checked("the task itself", why.checks);
  const sifts = (why.steps ?? []).filter((/** @type {any} */ one, /** @type {number} */ place) => !place || one.dropped.length);
  const idle = (why.steps ?? []).filter((/** @type {any} */ one, /** @type {number} */ place) => place && !one.dropped.length);
  const steps = sifts.length ? table("Who might take it, condition by condition",
    ["condition", "alone", "left", "who drops out here"],
    sifts.map((/** @type {any} */ one) => [one.rule, one.alone, one.left,
      el("span", {}, one.dropped.map((/** @type {any} */ out) => el("div", {}, `${out.node}: ${out.because.replace(`${out.node}: `, "")}`,
        out.changeable ? el("span", { class: "dim" }, " (can be changed)") : null)))])) : null;
  const ways = (why.ways ?? []).map((/** @type {any} */ one) => el("li", {}, `to ${one.to} if ${
    one.changes.map((/** @type {any} */ change) => change.says).join(" and ")} `,
  one.changes.filter((/** @type {any} */ change) => change.command).map((/** @type {any} */ change) => typed(change.command))));
  const hand = (why.by_hand ?? []).map((/** @type {string} */ one) => el("li", {}, typed(one)));
  return el("section", { "aria-label": "Why" }, el("h3", {}, WAITS.has(task.state) ? "why it is still here" : "why"),
    verdict, blind, life, checks, sifts.length ? el("h3", {}, "who might take it") : null, steps,
    idle.length ? el("p", { class: "dim" }, `nobody drops out by ${idle.map((/** @type {any} */ one) => one.rule).join(", ")}`) : null, ways.length ? el("div", {}, el("h3", {}, "it would move"), el("ul", {}, ways)) : null,
    hand.length ? el("div", {}, el("h3", {}, "by hand"), el("ul", {}, hand)) : null);
}

/** What is not met, each with its reason; then what is, in one line.
 * @param {string} title @param {any[]|undefined} list */
export function checked(title, list) {
  if (!list?.length) return null;
  const no = list.filter((one) => !one.met), ok = list.filter((one) => one.met);
  return el("div", {}, el("h3", {}, title),
    no.length ? table(title, ["", "rule", "said"], no.map((one) => [el("b", { class: "loud" }, "NO"), one.rule, one.said || "-"])) : null,
    ok.length ? el("p", { class: "dim" }, `ok: ${ok.map((one) => one.rule).join(", ")}`) : null);
}

/** @param {any} life */
function lifeLine(life) {
  if (life instanceof Trouble) return el("p", { class: "trouble" }, `its past: ${life.message}`);
  if (!life.known) return el("p", { class: "dim" }, "the hub has heard of no event of this task yet");
  const rows = life.lines.map((/** @type {any} */ one) => [
    el("button", { type: "button", class: "bare mono", title: "show every panel at this moment",
      onclick: () => setView({ at: one.at }) }, `${day(one.at).slice(5, 10)} ${clock(one.at)}`),
    one.to ? `${one.node} to ${one.to}` : one.node, `${one.what}${one.n ? `, attempt ${one.n}` : ""}`,
    [one.why, one.rule, one.because, one.error, one.cost_usd ? money(one.cost_usd) : null,
      one.took_s === undefined ? null : lasting(one.took_s)].filter(Boolean).join(", ")]);
  return el("section", { "aria-label": "Life" }, el("h3", {}, "its life"), table("Its life", ["at (UTC)", "where", "what", "more"], rows));
}

/** @param {any} whole @param {string} uid */
function attempts(whole, uid) {
  const rows = whole.attempts.map((/** @type {any} */ one) => [one.n, one.node ?? one.on, said(one.agent),
    one.outcome ?? "under way", lasting(one.duration_s), one.error_kind ?? "-", money(one.cost_usd),
    one.message ?? "-"]);
  const log = el("div", {});
  const open = el("button", { type: "button", onclick: () => void showLog(log, uid, "stdout") }, "end of its output");
  const errors = el("button", { type: "button", onclick: () => void showLog(log, uid, "stderr") }, "end of its errors");
  const kept = whole.kept.map((/** @type {any} */ one) => [one.run, one.node, one.rule, one.because]);
  return el("section", { "aria-label": "Attempts" }, el("h3", {}, "attempts"),
    rows.length ? table("Attempts", ["n", "on", "agent", "outcome", "took", "error", "cost", "message"], rows)
      : el("p", { class: "dim" }, "none yet"),
    rows.length ? el("p", { class: "actions" }, open, errors) : null, log,
    kept.length ? el("div", {}, el("h3", {}, "kept by earlier cycles"),
      table("Kept by earlier cycles", ["run", "node", "rule", "because"], kept)) : null);
}

/** @param {HTMLElement} place @param {string} uid @param {string} stream */
async function showLog(place, uid, stream) {
  put(place, el("p", { class: "plain" }, "asking its node"));
  try {
    const path = `tasks/${encodeURIComponent(uid)}/log`;
    let { data } = await ask(path, { stream });
    if (data.next < data.size) ({ data } = await ask(path, { stream, offset: Math.max(data.size - TAIL, 0) }));
    put(place, el("p", { class: "dim" }, `${stream} of attempt ${data.attempt} on ${data.node}${data.ended ? "" : ", which runs"}`),
      el("pre", { tabindex: 0, "aria-label": stream }, data.text || "(nothing)"));
  } catch (error) {
    if (!(error instanceof Trouble)) throw error;
    put(place, el("p", { class: "trouble" }, `could not read it: ${error.message}`));
  }
}

/** @param {any} task */
function bodyOf(task) {
  if (!task.body) return null;
  return el("details", {}, el("summary", {}, "body"), el("pre", { tabindex: 0 }, task.body.slice(0, 20000)));
}
