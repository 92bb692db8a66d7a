// Copies a command, and says so.

import { el, put, tell } from "./dom.js";

/** @param {string} text */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    tell(`copied: ${text}`);
    return true;
  } catch {
    window.prompt("Copy this command", text);
    return false;
  }
}

/** A button that copies a command. @param {() => string} command @param {string} more */
export function copier(command, more = "") {
  const says = () => [`copy`, more ? el("span", { class: "long" }, ` ${more}`) : null];
  const button = el("button", { type: "button", title: `copy: ${command()}`,
    "aria-label": `copy ${more || "the command"}` }, says());
  button.addEventListener("click", async () => {
    if (!await copy(command())) return;
    put(button, "copied");
    setTimeout(() => put(button, says()), 1200);
  });
  return button;
}

/** A command to type, with its button. @param {string} command */
export function typed(command) {
  return el("span", { class: "type" }, el("code", {}, command), copier(() => command));
}
