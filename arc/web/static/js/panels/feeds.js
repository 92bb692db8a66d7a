// Who feeds whom: rows give, columns are given.

import { ask } from "../asking.js";
import { el, put } from "../dom.js";
import { view } from "../view.js";
import { clock, counted } from "../words.js";

/** @type {import("../frame.js").Panel} */
export const feeds = {
  id: "feeds",
  about: [
    "How many tasks went from which node to which in the 24 hours before the moment that is shown. "
    + "A row gives, a column is given.",
    "A node that only gives is too small for what is sent to it; one that is only given owns too little.",
  ],
  command: () => "arc log --since 24h",
  load: async () => (await ask("panels/feeds", { at: view.at })).data,
  draw: drawFeeds,
  every: () => 20,
};

/** @param {HTMLElement} body @param {any} data @param {(...said: any[]) => void} sum */
function drawFeeds(body, data, sum) {
  sum(`${counted(data.moves, "move")} ${data.whole ? "in 24 h" : `since ${clock(data.since).slice(0, 5)} UTC, when this history begins`}`);
  if (!data.moves) {
    put(body, el("p", { class: "plain" }, "nothing was moved"));
    return;
  }
  const givers = data.nodes.filter((/** @type {string} */ name) => data.cells.some((/** @type {any} */ one) => one.from === name));
  const takers = data.nodes.filter((/** @type {string} */ name) => data.cells.some((/** @type {any} */ one) => one.to === name));
  const most = Math.max(...data.cells.map((/** @type {any} */ one) => one.moves));
  const cell = (/** @type {string} */ from, /** @type {string} */ to) => {
    const one = data.cells.find((/** @type {any} */ some) => some.from === from && some.to === to);
    if (!one) return el("td", { class: "dim" }, from === to ? "" : "·");
    const why = Object.entries(one.why).map(([word, count]) => `${count} ${word}`).join(", ");
    return el("td", { class: `some m${Math.ceil((3 * one.moves) / most)}`, title: `${from} to ${to}: ${why}` }, one.moves);
  };
  put(body, el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Who feeds whom" },
    el("table", { class: "matrix" }, el("caption", { class: "unseen" }, "Moves from the row's node to the column's"),
      el("thead", {}, el("tr", {}, el("td", { class: "dim" }, "from \\ to"), takers.map((/** @type {string} */ name) =>
        el("th", { scope: "col" }, name)))),
      el("tbody", {}, givers.map((/** @type {string} */ from) => el("tr", {}, el("th", { scope: "row" }, from),
        takers.map((/** @type {string} */ to) => cell(from, to))))))));
}
