// Shows a few lines beside what the pointer or the focus is on.

import { byId, el, put } from "./dom.js";

/** @param {Element} target @param {() => (string|null)[]} lines */
export function tipOn(target, lines) {
  const show = () => {
    const box = byId("tip");
    put(box, lines().filter((line) => line !== null).map((line, place) =>
      el("div", { class: place ? "dim" : null }, line)));
    box.hidden = false;
    const at = target.getBoundingClientRect(), own = box.getBoundingClientRect();
    const left = Math.min(Math.max(4, at.left + at.width / 2 - own.width / 2),
      innerWidth - own.width - 4);
    const above = at.top - own.height - 6;
    box.style.left = `${left}px`;
    box.style.top = `${above > 4 ? above : at.bottom + 6}px`;
  };
  const hide = () => { byId("tip").hidden = true; };
  target.addEventListener("pointerenter", show);
  target.addEventListener("focus", show);
  target.addEventListener("pointerleave", hide);
  target.addEventListener("blur", hide);
}
