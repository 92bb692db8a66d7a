// The time scrubber: which stretch of time every panel shows.

import { hubNow } from "./asking.js";
import { byId, el, put } from "./dom.js";
import { onView, setView, spans, spanSeconds, view } from "./view.js";
import { day, clock } from "./words.js";

const STEPS = 1000;
const BACK_S = 7 * 86400; // how far the slider reaches

/** Draws the scrubber and follows it. */
export function scrubber() {
  const slider = /** @type {HTMLInputElement} */ (el("input", { type: "range", min: "0",
    max: String(STEPS), step: "1", id: "scrub", "aria-label": "Moment that is shown" }));
  const word = el("output", { for: "scrub", class: "mono" });
  const exact = /** @type {HTMLInputElement} */ (el("input", { type: "text", size: "17",
    "aria-label": "A moment, UTC", placeholder: "2026-03-10 03:15", maxlength: "24" }));
  const live = el("button", { type: "button", title: "Back to this moment (l)" }, "live");
  const choose = el("span", { class: "spans", role: "group", "aria-label": "How long" },
    spans().map((span) => el("button", { type: "button", "data-span": span,
      onclick: () => setView({ span }) }, span)));
  slider.addEventListener("input", () => setView({ at: momentOf(Number(slider.value)) }));
  exact.addEventListener("change", () => goTo(exact));
  live.addEventListener("click", () => setView({ at: null }));
  put(byId("scrubber"), choose, slider, word, exact, live);
  const show = () => {
    put(word, view.at ? `until ${day(view.at)}:${clock(view.at).slice(6)} UTC` : "until now");
    live.setAttribute("aria-pressed", String(!view.at));
    if (document.activeElement !== slider) slider.value = String(placeOf(view.at));
    for (const one of choose.querySelectorAll("button")) {
      one.setAttribute("aria-pressed", String(one.dataset.span === view.span));
    }
  };
  onView(show);
  show();
}

/** Near the present a step is short, far away it is long. @param {number} place */
function momentOf(place) {
  if (place >= STEPS) return null;
  const back = BACK_S * ((STEPS - place) / STEPS) ** 3;
  return new Date(Math.round(hubNow() / 1000 - back) * 1000).toISOString();
}

/** @param {string|null} at */
function placeOf(at) {
  if (!at) return STEPS;
  const back = Math.min(Math.max((hubNow() - Date.parse(at)) / 1000, 0), BACK_S);
  return Math.round(STEPS - STEPS * Math.cbrt(back / BACK_S));
}

/** @param {HTMLInputElement} field */
function goTo(field) {
  const text = field.value.trim().replace(" ", "T");
  const at = Date.parse(/Z$|[+-]\d\d:?\d\d$/.test(text) ? text : `${text}Z`);
  field.setCustomValidity(Number.isNaN(at) ? "a moment like 2026-03-10 03:15" : "");
  if (field.reportValidity() && text) setView({ at: new Date(at).toISOString() });
}

/** One step to the past or back, a quarter of what is shown. @param {number} way */
export function step(way) {
  const at = (view.at ? Date.parse(view.at) : hubNow()) + way * spanSeconds() * 250;
  setView({ at: at >= hubNow() ? null : new Date(Math.round(at / 1000) * 1000).toISOString() });
}
