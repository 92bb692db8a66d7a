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
    "The filter takes words of a subject, and `node:iris`, `state:READY`, `domain:infra`, `p:5`.",
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
  if (words.length) found.words = words.join(" ");
  return found;
}

function flags() {
  const names = { node: "--node", state: "--state", domain: "--domain", priority: "--priority", skill: "--skill" };
  return Object.entries(filters()).filter(([name]) => name !== "words")
    .map(([name, value]) => ` ${/** @type {any} */ (names)[name]} ${/^[\w.-]+$/.test(value) ? value : "…"}`).join("");
}

async function load() {
  const { words, ...rest } = filters();
  if (JSON.stringify(rest) !== asked) { asked = JSON.stringify(rest); cursors = [null]; }
  const answer = await ask("tasks", { ...rest, limit: PAGE, after: cursors.at(-1) });
  return { ...answer.data, partial: answer.partial ?? [], words };
}

/** @param {HTMLElement} body @param {any} data @param {(...said: any[]) => void} sum */
function drawTasks(body, data, sum) {
  const words = (data.words ?? "").toLowerCase();
  const rows = data.tasks.filter((/** @type {any} */ one) => !words || String(one.subject).toLowerCase().includes(words));
  const blind = data.unread ?? [];
  const pages = Boolean(data.next) || cursors.length > 1;
  sum(counted(rows.length, "task"), words && pages ? ` of the ${data.tasks.length} on this page` : "", data.more || data.next || cursors.length > 1 ? `, page ${cursors.length}` : "",
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
