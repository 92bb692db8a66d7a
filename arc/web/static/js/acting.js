// Acting: a reason first, then the plan, then the deed; through the same door as the commands.

import { act, Trouble } from "./asking.js";
import { typed } from "./copying.js";
import { el, put, tell } from "./dom.js";
import { short } from "./words.js";

const NAME = "arc-actor";
const OPEN = new Set(["READY", "PENDING", "RETRYING", "CREATED", "CLAIMED", "RUNNING", "VALIDATING"]);
/** @typedef {{uid?: string, node?: string, state?: string}} Target */
/** @type {Object<string, {verbs: string[]}>} */
const KINDS = { task: { verbs: ["cancel", "retry", "move", "resolve"] }, node: { verbs: ["pause", "drain", "resume"] } };

/** Whether this page may change anything. */
export function mayAct() { return document.body.dataset.actions === "on"; }

/** @param {string} verb @param {Target} target */
function command(verb, target) {
  if (target.uid === undefined) return `arc nodes ${verb} ${target.node} --reason "…"`;
  const more = verb === "move" ? " --to NODE" : verb === "resolve" ? " --as done" : "";
  return `arc tasks ${verb} ${short(target.uid)}${more} --reason "…"`;
}

/** @param {string} verb @param {Target} target */
function fits(verb, target) {
  const state = target.state ?? "";
  if (verb === "cancel" || verb === "move") return OPEN.has(state);
  if (verb === "retry") return ["FAILED", "DEAD_LETTERED", "PARKED", "CANCELLED"].includes(state);
  if (verb === "resolve") return state === "PARKED";
  return verb === "resume" ? !["idle", "working"].includes(state) : !["paused", "suspended"].includes(state);
}

/** The buttons for one task or node; where acting is off, the commands instead.
 * @param {"task"|"node"} kind @param {Target} target */
export function actions(kind, target) {
  const verbs = KINDS[kind].verbs.filter((verb) => fits(verb, target));
  if (!verbs.length) return null;
  if (!mayAct()) {
    return el("details", {}, el("summary", {}, "what may be done"),
      el("ul", {}, verbs.map((verb) => el("li", {}, typed(command(verb, target))))),
      el("p", { class: "dim" }, "this page only reads; `web: {actions: true}` in fleet.yaml lets it act"));
  }
  const form = el("div", {});
  return el("div", {}, el("p", { class: "actions" }, verbs.map((verb) => el("button", { type: "button",
    "data-verb": verb, onclick: () => ask(form, verb, target) }, verb))), form);
}

function actor() {
  try { return localStorage.getItem(NAME) ?? ""; } catch { return ""; }
}

/** @param {HTMLElement} place @param {string} verb @param {Target} target */
function ask(place, verb, target) {
  const reason = /** @type {HTMLInputElement} */ (el("input", { type: "text", maxlength: 400, required: true, "aria-label": "Reason" }));
  const name = /** @type {HTMLInputElement} */ (el("input", { type: "text", maxlength: 60, value: actor(), required: true, "aria-label": "Your name" }));
  const more = /** @type {HTMLInputElement|null} */ (["move", "resolve"].includes(verb)
    ? el("input", { type: "text", maxlength: 32, "aria-label": verb === "move" ? "To which node" : "As what",
      placeholder: verb === "move" ? "node" : "done, failed or cancelled" }) : null);
  const out = el("div", {});
  const plan = el("button", { type: "button" }, "show the plan");
  plan.addEventListener("click", () => {
    const bad = [reason, name, more].find((field) => field && !field.value.trim());
    if (bad) { bad.focus(); put(out, el("p", { class: "trouble" }, "a name and a reason are needed; both go into the log")); return; }
    try { localStorage.setItem(NAME, name.value.trim()); } catch { /* asked again next time */ }
    const body = { ...target, reason: reason.value.trim(), by: name.value.trim(),
      ...(verb === "move" ? { to: more?.value.trim() } : {}), ...(verb === "resolve" ? { as: more?.value.trim() } : {}) };
    void planned(out, verb, body);
  });
  put(place, el("div", { class: "act" }, el("strong", {}, `${verb} ${target.uid ? short(target.uid) : target.node}`),
    el("label", {}, "who ", name), el("label", {}, "why ", reason), more ? el("label", {}, verb === "move" ? "to " : "as ", more) : null,
    el("p", { class: "actions" }, plan, el("button", { type: "button", onclick: () => put(place) }, "leave it")), out));
  (name.value ? reason : name).focus();
}

/** @param {HTMLElement} out @param {string} verb @param {any} body */
async function planned(out, verb, body) {
  put(out, el("p", { class: "plain" }, "asking what it would do"));
  try {
    const { data, warnings } = await act(verb, { ...body, dry_run: true });
    const go = el("button", { type: "button", onclick: () => void done(out, verb, { ...body, plan: data.plan_hash }) }, `${verb} now`);
    put(out, el("h3", {}, "what it would do"), el("pre", { tabindex: 0 }, said(data)),
      (warnings ?? []).map((/** @type {string} */ one) => el("p", { class: "warn" }, one)), el("p", { class: "actions" }, go));
    go.focus();
  } catch (error) {
    refused(out, error);
    if (!(error instanceof Trouble) || error.code !== "ARC-NEEDS-YES" || body.yes) return;
    out.append(el("p", { class: "actions" }, el("button", { type: "button",
      onclick: () => void planned(out, verb, { ...body, yes: true }) }, "I know; show the plan all the same")));
  }
}

/** @param {any} data */
function said(data) {
  const { plan_hash: _, ...rest } = data;
  return JSON.stringify(rest.plan ?? rest, null, 1);
}

/** @param {HTMLElement} out @param {string} verb @param {any} body */
async function done(out, verb, body) {
  put(out, el("p", { class: "plain" }, "under way"));
  try {
    const { data } = await act(verb, body);
    put(out, el("p", {}, el("strong", {}, `${verb}: done`)), el("pre", { tabindex: 0 }, said(data)));
    tell(`${verb}: done`);
  } catch (error) { refused(out, error); }
}

/** @param {HTMLElement} out @param {unknown} error */
function refused(out, error) {
  if (!(error instanceof Trouble)) throw error;
  put(out, el("p", { class: "trouble" }, error.message), error.hint ? el("p", { class: "dim" }, error.hint) : null);
  tell(error.message);
}
