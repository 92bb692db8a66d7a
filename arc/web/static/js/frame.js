// Frames a panel: its title, what am I looking at, its command, its trouble; and keeps it fresh.

import { Trouble } from "./asking.js";
import { copier } from "./copying.js";
import { byId, el, keepFocus, put } from "./dom.js";
import { view } from "./view.js";

/** @typedef {{id: string, about: string[], command: () => string, load: () => Promise<any>,
 *   draw: (body: HTMLElement, data: any, sum: (...said: any[]) => void) => void,
 *   every: () => number}} Panel  what a panel's module gives; `every` in seconds */

/** @typedef {{id: string, refresh: () => Promise<void>, redraw: () => void, soon: () => void,
 *   due: (now: number, still: boolean) => boolean}} Framed  `still`: the past is shown */

/** Puts the frame around a panel and hands back what keeps it fresh.
 * @param {Panel} panel @returns {Framed} */
export function framed(panel) {
  const section = byId(panel.id);
  const title = /** @type {HTMLElement} */ (section.querySelector("h2"));
  const sum = el("span", { class: "sum" });
  const about = el("div", { class: "about", hidden: true }, panel.about.map((line) =>
    el("p", {}, line)));
  const ask = el("button", { type: "button", "aria-expanded": "false",
    "aria-label": `${title.textContent}: what am I looking at?`, title: "What am I looking at?" }, "?");
  ask.addEventListener("click", () => {
    about.hidden = !about.hidden;
    ask.setAttribute("aria-expanded", String(!about.hidden));
  });
  const tools = el("span", { class: "tools" }, copier(panel.command, "as arc command"), ask);
  const trouble = el("p", { class: "trouble", role: "status", hidden: true });
  const body = el("div", { class: "body" }, el("p", { class: "plain" }, "looking"));
  section.replaceChildren(el("div", { class: "head" }, title, sum, tools), about, trouble, body);
  return keeper(panel, section, body, trouble, (...said) => put(sum, ...said));
}

/** @param {Panel} panel @param {HTMLElement} section @param {HTMLElement} body
 * @param {HTMLElement} trouble @param {(...said: any[]) => void} sum @returns {Framed} */
function keeper(panel, section, body, trouble, sum) {
  let last = 0, running = false, again = false, seen = false;
  /** @type {any} */ let data = null;
  new IntersectionObserver((entries) => {
    seen = entries.some((entry) => entry.isIntersecting);
  }, { rootMargin: "200px" }).observe(section);

  function redraw() {
    if (data === null) return;
    keepFocus(body, () => panel.draw(body, data, sum));
  }
  async function refresh() {
    if (running) { again = true; return; }
    running = true;
    const asked = view;
    try {
      const answer = await panel.load();
      if (asked === view) {
        data = answer;
        trouble.hidden = true;
        section.classList.remove("stale");
        redraw();
      } else again = true;
    } catch (error) {
      if (!(error instanceof Trouble)) throw error;
      section.classList.add("stale");
      put(trouble, `could not look: ${error.message}${error.hint ? ` · ${error.hint}` : ""}`);
      trouble.hidden = false;
      if (data === null) put(body);
    } finally {
      running = false;
      last = Date.now();
      section.dataset.drawn = String(Number(section.dataset.drawn ?? 0) + 1);
      if (again) {
        again = false;
        if (document.hidden) last = 0; // nobody sees it: due as soon as somebody does
        else void refresh();
      }
    }
  }
  return {
    id: panel.id, refresh, redraw,
    soon: () => { last = Math.min(last, Date.now() - (panel.every() - 1) * 1000); },
    due: (now, still) => seen && !running && (last === 0 || !still) && now - last >= panel.every() * 1000,
  };
}
