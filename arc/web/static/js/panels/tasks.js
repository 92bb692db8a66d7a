// The tasks that are not over, page by page; a filter, and a row for each.

import { ask } from "../asking.js";
import { el, put, table } from "../dom.js";
import { setView, view } from "../view.js";
import { counted, said } from "../words.js";
import { taskLink } from "./lane_tables.js";

const PAGE = 100;
/** @type {(string|null)[]} */ let cursors = [null];
let asked = "";

/** @type {import("../frame.js").Panel} */
export const tasks = {
  id: "tasks",
  about: [
    "What waits or runs, wherever it is, as the nodes say it now; also while the other panels show "
    + "the past. The reason is why the last cycle left it there.",
    "The filter is asked of every node. It takes words that all stand in a subject, in capitals or not, and `node:iris`, "
    + "`state:READY`, `domain:infra`, `skill:deploy`, `p:5`.",
  ],
  command: () => `arc tasks list${flags()}`,
  load,
  draw: drawTasks,
  every: () => 15,
};

/** @returns {Object<string, string>} */
function filters() {
  const found = /** @type {Object<string, string>} */ ({});
  const words = [];
  for (const word of (view.q ?? "").split(/\s+/).filter(Boolean)) {
    const [name, value] = word.split(/:(.*)/s);
    const key = { node: "node", state: "state", domain: "domain", p: "priority", skill: "skill" }[name.toLowerCase()];
    if (key && value) found[key] = key === "state" ? value.toUpperCase() : value.replace(/^[pP](?=\d)/, "");
    else words.push(word);
  }
  if (words.length) found.subject = words.join(" ");
  return found;
}

function flags() {
  return Object.entries(filters()).map(([name, value]) => ` --${name} ${quoted(value)}`).join("");
}

/** As a shell takes it for one word. @param {string} value */
function quoted(value) {
  if (/^[\w.-]+$/.test(value)) return value;
  return /^[^'\p{C}]+$/u.test(value) ? `'${value}'` : "…";
}

async function load() {
  const wanted = filters();
  if (JSON.stringify(wanted) !== asked) { asked = JSON.stringify(wanted); cursors = [null]; }
  const answer = await ask("tasks", { ...wanted, limit: PAGE, after: cursors.at(-1) });
  return { ...answer.data, partial: answer.partial ?? [] };
}

/** @param {HTMLElement} body @param {any} data @param {(...said: any[]) => void} sum */
function drawTasks(body, data, sum) {
  const rows = data.tasks;
  const blind = data.unread ?? [];
  const pages = data.more || data.next || cursors.length > 1;
  const total = data.total ?? null;
  sum(!pages ? counted(rows.length, "task") : total === null ? `${counted(rows.length, "task")}, nobody knows of how many`
    : `${rows.length} of ${counted(total, "task")}`, pages ? `, page ${cursors.length}` : "",
    blind.length ? el("span", { class: "loud" }, `; not asked: ${blind.join(", ")}`) : "");
  const old = body.querySelector("input");
  const field = /** @type {HTMLInputElement} */ (old ?? filterField());
  if (document.activeElement !== field) field.value = view.q ?? "";
  const list = rows.length ? table("Tasks", ["task", "P", "state", "node", "for", "subject", "because"],
    rows.map((/** @type {any} */ one) => [keyed(one), `P${one.priority}`, one.state, one.node,
      said(one.domain || one.skills), one.subject, one.rule ? `${one.rule}: ${one.because}` : said(one.because)]))
    : el("p", { class: "plain" }, blind.length ? "none on the nodes that answered" : "no such task is open");
  const kept = old?.closest(".filter") ?? el("div", { class: "filter" }, field);
  const after = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Tasks" }, list);
  while (kept.nextSibling) kept.nextSibling.remove();
  if (kept.parentElement !== body) put(body, kept);
  body.append(after, turning(data));
}

/** @param {any} one */
function keyed(one) {
  const link = taskLink(one.uid);
  link.dataset.row = one.uid;
  link.dataset.key = `task-${one.uid}`;
  return link;
}

function filterField() {
  const field = /** @type {HTMLInputElement} */ (el("input", { type: "search", id: "filter", maxlength: 200,
    placeholder: "filter: words, node:iris, state:READY, p:5  (/)", "aria-label": "Filter tasks" }));
  /** @type {ReturnType<typeof setTimeout>|undefined} */ let soon;
  field.addEventListener("input", () => {
    clearTimeout(soon);
    soon = setTimeout(() => setView({ q: field.value.trim() || null }), 300);
  });
  return field;
}

/** @param {any} data */
function turning(data) {
  const next = data.next ?? null;
  if (!next && cursors.length === 1) return el("p", { class: "dim" }, data.more ? "there are more: narrow the filter" : "");
  const go = (/** @type {() => void} */ change) => () => { change(); document.dispatchEvent(new CustomEvent("arc:again", { detail: "tasks" })); };
  return el("p", { class: "actions" },
    el("button", { type: "button", disabled: cursors.length === 1, onclick: go(() => cursors.pop()) }, "back"), " ",
    el("button", { type: "button", disabled: !next, onclick: go(() => cursors.push(next)) }, "next"));
}
