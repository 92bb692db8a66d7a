// Makes elements. Whatever is shown becomes a text node: nothing here ever parses markup.

const SVG = "http://www.w3.org/2000/svg";
// What could drive a reader's eye elsewhere: control, format and unassigned characters.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;

/** @typedef {Node|string|number|null|undefined|false} Child */

/** The text with every character that is not seen made visible. @param {unknown} text */
export function visible(text) {
  return String(text).replace(HIDDEN, (char) => (char === "\n" ? char
    : `\\u{${/** @type {number} */ (char.codePointAt(0)).toString(16)}}`));
}

/** @param {Element} made @param {Object<string, any>} facts */
function dress(made, facts) {
  for (const [name, value] of Object.entries(facts)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : visible(value));
  }
}

/** @param {Element} parent @param {(Child|Child[])[]} children */
function fill(parent, children) {
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : document.createTextNode(visible(child)));
  }
}

/** One HTML element. @param {string} name @param {Object<string, any>} facts
 * @param {...any} children @returns {HTMLElement} */
export function el(name, facts = {}, ...children) {
  const made = document.createElement(name);
  dress(made, facts);
  fill(made, children);
  return made;
}

/** One SVG element. @param {string} name @param {Object<string, any>} facts
 * @param {...any} children @returns {SVGElement} */
export function draw(name, facts = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  dress(made, facts);
  fill(made, children);
  return made;
}

/** @param {string} id @returns {HTMLElement} */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no ${id}`);
  return found;
}

/** What fills an element from now on. @param {Element} parent @param {...any} children */
export function put(parent, ...children) {
  parent.replaceChildren();
  fill(parent, children);
}

/** Draws a part of the page anew; what had the focus there has it again. @param {Element} box @param {() => void} change */
export function keepFocus(box, change) {
  const focus = box.contains(document.activeElement) ? document.activeElement?.getAttribute("data-key") : null;
  change();
  if (!focus) return;
  const same = box.querySelector(`[data-key="${CSS.escape(focus)}"]`);
  if (same instanceof HTMLElement || same instanceof SVGElement) same.focus();
}

/** A table with heads. Cells are texts, numbers or nodes.
 * @param {string} says @param {string[]} heads @param {any[][]} rows */
export function table(says, heads, rows) {
  return el("table", {}, el("caption", { class: "unseen" }, says),
    el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell) =>
      el("td", { class: typeof cell === "number" ? "number" : null }, cell ?? "-"))))));
}

const opened = new Set();

/** The table behind a plot; it stays open when the plot is drawn anew.
 * @param {string} name @param {string} says @param {() => Node} make */
export function behind(name, says, make) {
  const box = el("details", { open: opened.has(name) }, el("summary", {}, says));
  const place = el("div", { class: "scroll" });
  box.append(place);
  const show = () => { if (box.hasAttribute("open") && !place.firstChild) place.append(make()); };
  box.addEventListener("toggle", () => {
    if (box.hasAttribute("open")) opened.add(name); else opened.delete(name);
    show();
  });
  show();
  return box;
}

/** Says something to who listens with a screen reader, and nowhere else. @param {string} text */
export function tell(text) { put(byId("said"), text); }
