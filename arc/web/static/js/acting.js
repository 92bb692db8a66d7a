// Acting: a reason first, then the plan, then the deed; through the same door as the commands.

import { act, Trouble } from "./asking.js";
import { typed } from "./copying.js";
import { el, put, tell } from "./dom.js";
import { known } from "./now.js";
import { short } from "./words.js";

const NAME = "arc-actor";
/** @typedef {{uid?: string, node?: string, state?: string}} Target */
/** What each state is offered, as the server has it from the table of states.
 * @type {{task: Object<string, string[]>, node: Object<string, string[]>, fleet: Object<string, string[]>, as: Object<string, string[]>}} */
const OFFERED = JSON.parse(document.body.dataset.offered ?? "{}");
const SAYS = /** @type {Object<string, string>} */ ({ "pause-fleet": "pause the fleet", "resume-fleet": "resume the fleet" });

/** Whether this page may change anything. */
export function mayAct() { return document.body.dataset.actions === "on"; }

/** @param {string} verb @param {Target} target */
function command(verb, target) {
  if (verb.endsWith("-fleet")) return `arc ${verb.replace("-fleet", "")} --reason "…"`;
  if (target.uid === undefined) return `arc nodes ${verb} ${target.node} --reason "…"`;
  const more = verb === "move" ? " --to NODE" : verb === "resolve" ? " --as done" : "";
  return `arc tasks ${verb} ${short(target.uid)}${more} --reason "…"`;
}

/** The buttons for one task, one node or the fleet; where acting is off, the commands instead.
 * @param {"task"|"node"|"fleet"} kind @param {Target} target */
export function actions(kind, target) {
  const verbs = OFFERED[kind]?.[target.state ?? ""] ?? [];
  if (!verbs.length) return null;
  if (!mayAct()) {
    return el("details", {}, el("summary", {}, "what may be done"),
      el("ul", {}, verbs.map((verb) => el("li", {}, typed(command(verb, target))))),
      el("p", { class: "dim" }, "this page only reads; `web: {actions: true}` in fleet.yaml lets it act"));
  }
  const form = el("div", {});
  return el("div", {}, el("p", { class: "actions" }, verbs.map((verb) => el("button", { type: "button",
    "data-verb": verb, onclick: () => ask(form, verb, target) }, SAYS[verb] ?? verb))), form);
}

function actor() {
  try { return localStorage.getItem(NAME) ?? ""; } catch { return ""; }
}

/** What a verb has to be told beside the reason: a choice; null: nothing.
 * @param {string} verb @param {Target} target */
function choice(verb, target) {
  if (verb !== "move" && verb !== "resolve") return null;
  const some = verb === "resolve" ? OFFERED.as[target.state ?? ""] ?? []
    : Object.keys(known()?.nodes ?? {}).filter((name) => name !== target.node).sort();
  return /** @type {HTMLSelectElement} */ (el("select", { "aria-label": verb === "move" ? "To which node" : "As what" },
    el("option", { value: "" }, verb === "move" ? "which node" : "as what"), some.map((one) => el("option", { value: one }, one))));
}

/** @param {HTMLElement} place @param {string} verb @param {Target} target */
function ask(place, verb, target) {
  const reason = /** @type {HTMLInputElement} */ (el("input", { type: "text", maxlength: 400, required: true, "aria-label": "Reason" }));
  const name = /** @type {HTMLInputElement} */ (el("input", { type: "text", maxlength: 60, value: actor(), required: true, "aria-label": "Your name" }));
  const more = choice(verb, target);
  const out = el("div", {});
  const plan = el("button", { type: "button" }, "show the plan");
  plan.addEventListener("click", () => {
    const bad = [reason, name, more].find((field) => field && !field.value.trim());
    if (bad) {
      bad.focus();
      put(out, el("p", { class: "trouble" }, bad === more ? `to ${verb} it, choose ${verb === "move" ? "where to" : "as what"}`
        : "a name and a reason are needed; both go into the log"));
      return;
    }
    try { localStorage.setItem(NAME, name.value.trim()); } catch { /* asked again next time */ }
    const { state: _, ...about } = target;
    void planned(out, verb, { ...about, reason: reason.value.trim(), by: name.value.trim(),
      ...(more ? { [verb === "move" ? "to" : "as"]: more.value } : {}) });
  });
  const what = SAYS[verb] ?? `${verb} ${target.uid ? short(target.uid) : target.node}`;
  put(place, el("div", { class: "act" }, el("strong", {}, what),
    el("label", {}, "who ", name), el("label", {}, "why ", reason), more ? el("label", {}, verb === "move" ? "to " : "as ", more) : null,
    el("p", { class: "actions" }, plan, el("button", { type: "button", onclick: () => put(place) }, "leave it")), out));
  (name.value ? reason : name).focus();
}

/** @param {HTMLElement} out @param {string} verb @param {any} body */
async function planned(out, verb, body) {
  put(out, el("p", { class: "plain" }, "asking what it would do"));
  try {
    const said = await act(verb, { ...body, dry_run: true });
    const go = el("button", { type: "button", onclick: () => void done(out, verb, { ...body, plan: said.data.plan_hash }) }, `${SAYS[verb] ?? verb} now`);
    put(out, el("h3", {}, "what it would do"), lines(said), el("p", { class: "actions" }, go));
    go.focus();
  } catch (error) {
    refused(out, error);
    if (!(error instanceof Trouble) || error.code !== "ARC-NEEDS-YES" || body.yes) return;
    out.append(el("p", { class: "actions" }, el("button", { type: "button",
      onclick: () => void planned(out, verb, { ...body, yes: true }) }, "I know; show the plan all the same")));
  }
}

/** What the command of that name would print, a line each. @param {any} said */
function lines(said) {
  return el("div", {}, el("ul", { class: "said", tabindex: 0 }, (said.data.says ?? []).map((/** @type {string} */ one) => el("li", {}, one))),
    (said.warnings ?? []).map((/** @type {string} */ one) => el("p", { class: "warn" }, one)));
}

/** @param {HTMLElement} out @param {string} verb @param {any} body */
async function done(out, verb, body) {
  put(out, el("p", { class: "plain" }, "under way"));
  try {
    const said = await act(verb, body);
    put(out, el("p", {}, el("strong", {}, `${SAYS[verb] ?? verb}: done`)), lines(said));
    tell(`${SAYS[verb] ?? verb}: done`);
  } catch (error) { refused(out, error); }
}

/** @param {HTMLElement} out @param {unknown} error */
function refused(out, error) {
  if (!(error instanceof Trouble)) throw error;
  put(out, el("p", { class: "trouble" }, error.message), error.hint ? el("p", { class: "dim" }, error.hint) : null);
  tell(error.message);
}
