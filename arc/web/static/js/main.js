// Puts the page together: panels in their frames, the stream that keeps them fresh, the keys.

import { bring, hubNow, keepToken, token, Trouble } from "./asking.js";
import { byId, draw, el, put, tell } from "./dom.js";
import { drawer, nowChanged, refreshDrawer } from "./drawer.js";
import { framed } from "./frame.js";
import { showMoment, showNow } from "./header.js";
import { keys } from "./keys.js";
import { follow, isPaused, pause, showState } from "./live.js";
import { showNeeds } from "./needs.js";
import { known } from "./now.js";
import { lanes, markStranded } from "./panels/lanes.js";
import { scrubber } from "./scrubber.js";
import { onView, setView, view } from "./view.js";
import { clock } from "./words.js";

const AGAIN_MS = 3000;
/** Which of the server's names for stale things belong to which panel here. */
const ALSO = /** @type {Object<string, string>} */ ({ heat: "lanes", life: "drawer", moment: "header" });
const SHOWN_BY = /** @type {Object<string, string[]>} */ ({
  q: ["lanes", "tasks"], step: ["funnel"], what: ["what-if"],
  span: ["lanes", "funnel", "depth", "sensors"],
  at: ["lanes", "funnel", "feeds", "depth", "money", "sensors"] });

/** Hatchings that SVGs refer to by their names. */
function patterns() {
  const hatch = (/** @type {string} */ id, /** @type {string} */ ground, /** @type {string} */ line, /** @type {number} */ wide, /** @type {string} */ turn) =>
    draw("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: `rotate(${turn})` },
      draw("rect", { width: 6, height: 6, class: ground }), draw("rect", { width: wide, height: 6, class: line }));
  document.body.append(draw("svg", { width: 0, height: 0, class: "patterns", "aria-hidden": "true", focusable: "false" },
    draw("defs", {}, hatch("loud-hatch", "hatch-soft", "hatch-loud", 3.4, "45"),
      draw("pattern", { id: "loud-dots", width: 6, height: 6, patternUnits: "userSpaceOnUse" },
        draw("rect", { width: 6, height: 6, class: "hatch-soft" }), draw("circle", { cx: 3, cy: 3, r: 1.9, class: "hatch-loud" })),
      hatch("calm-hatch", "hatch-none", "hatch-calm", 1.4, "-45"))));
}

/** @type {import("./frame.js").Framed[]} */ const panels = [];
/** @type {Map<string, import("./frame.js").Framed>} */ const byName = new Map();

/** @param {any} panel */
function place(panel) {
  const one = framed(panel);
  panels.push(one);
  byName.set(one.id, one);
}

/** The lanes are drawn first; the others are brought when that is done. */
async function others() {
  const brought = await bring(() => Promise.all([import("./panels/funnel.js"), import("./panels/feeds.js"),
    import("./panels/depth.js"), import("./panels/money.js"), import("./panels/sensors.js"),
    import("./panels/tasks.js"), import("./panels/what_if.js")])).catch(() => null);
  if (!brought) return void setTimeout(others, AGAIN_MS);
  for (const panel of brought.flatMap((module) => Object.values(module)).filter((one) => one.load)) place(panel);
}

/** @param {string} name */
function refresh(name) { void byName.get(name)?.refresh(); }

let limits = "";
let fleetNodes = "";

/** What draws lines and sliders at the hub's limits, and lanes of the nodes of fleet.yaml, is drawn anew where they
 * are others. @param {any} now */
function limitsChanged(now) {
  const nodes = Object.keys(now.nodes ?? {}).sort().join();
  if (nodes !== fleetNodes) byName.get("lanes")?.redraw();
  fleetNodes = nodes;
  const said = JSON.stringify([now.policy, now.limits, now.policies]);
  if (said !== limits) for (const name of ["depth", "what-if"]) byName.get(name)?.redraw();
  limits = said;
}

function past() {
  document.body.classList.toggle("past", Boolean(view.at));
  if (view.at) showMoment().catch(sorry);
  else if (known()) showNow(known());
  if (known()) showNeeds(known());
}

/** @param {unknown} error */
function sorry(error) {
  if (!(error instanceof Trouble)) throw error;
  put(byId("facts"), el("li", { class: "loud" }, `could not look: ${error.message}`));
}

/** A page that is not on this machine alone is shown to who has its token. */
function askToken() {
  if (byId("facts").querySelector("input")) return;
  const field = /** @type {HTMLInputElement} */ (el("input", { type: "password", "aria-label": "Token", maxlength: 200, autocomplete: "off" }));
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !field.value) return;
    keepToken(field.value.trim());
    location.reload();
  });
  put(byId("facts"), el("li", {}, "this page needs its token: ", field));
  field.focus();
}

function theme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("arc-theme", root.dataset.theme); } catch { /* for this page alone */ }
  for (const panel of panels) panel.redraw();
}

function pausing() {
  pause(!isPaused());
  const button = byId("pause");
  button.setAttribute("aria-pressed", String(isPaused()));
  put(button, isPaused() ? "go on" : "freeze");
  tell(isPaused() ? "this page stands still; the fleet does not" : "following the fleet");
}

function tick() {
  put(byId("clock"), clock(hubNow()));
  showState();
  if (document.hidden || isPaused()) return;
  const now = Date.now();
  for (const panel of panels) {
    if (panel.due(now, Boolean(view.at) && panel.id !== "tasks")) void panel.refresh();
  }
}

/** What is drawn by measure or by colour is drawn anew when the window or the system's theme is another. */
function surroundings() {
  let before = innerWidth;
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { for (const panel of panels) panel.redraw(); });
  /** @type {ReturnType<typeof setTimeout>|undefined} */ let soon;
  addEventListener("resize", () => {
    if (innerWidth === before) return;
    before = innerWidth;
    clearTimeout(soon);
    soon = setTimeout(() => { for (const panel of panels) panel.redraw(); }, 150);
  });
}

function begin() {
  patterns();
  scrubber();
  drawer();
  keys({ pause: pausing, theme });
  byId("pause").addEventListener("click", pausing);
  byId("theme").addEventListener("click", theme);
  byId("fleet").addEventListener("click", () => setView({ fleet: "open", task: null, node: null }));
  document.addEventListener("arc:again", (event) => refresh(/** @type {CustomEvent} */ (event).detail));
  document.addEventListener("arc:token", askToken);
  if (document.body.dataset.token === "needed" && !token()) return void askToken();
  onView((_, changed) => {
    for (const name of new Set(changed.flatMap((one) => SHOWN_BY[one] ?? []))) refresh(name);
    if (changed.includes("at")) past();
  });
  follow({
    onNow: (now) => { showNow(now); showNeeds(now); markStranded(); nowChanged(now); limitsChanged(now); },
    onStale: (name) => {
      if (view.at) return;
      if (name === "life") refreshDrawer();
      byName.get(ALSO[name] ?? name)?.soon();
    },
  });
  past();
  place(lanes);
  void byName.get("lanes")?.refresh().then(others).then(tick);
  surroundings();
  setInterval(tick, 1000);
}

begin();
