// The fleet as a whole in the drawer: who paused it, and the word that pauses or resumes all of it.

import { actions } from "./acting.js";
import { typed } from "./copying.js";
import { el, put } from "./dom.js";
import { known } from "./now.js";
import { day } from "./words.js";

/** Of the whole fleet: "paused", "active", or undefined while nobody knows. @param {any} now */
export function fleetState(now) { return now?.hub ? (now.hub.paused ? "paused" : "active") : undefined; }

/** @param {HTMLElement} place */
export function drawFleet(place) {
  const now = known(), paused = now?.hub?.paused, states = new Map();
  for (const one of Object.values(now?.nodes ?? {})) states.set(one.state, (states.get(one.state) ?? 0) + 1);
  put(place,
    now ? el("dl", {}, [["policy", now.policy], ["hub", now.hub?.running ? now.hub.name : "no hub runs"],
      ["moves", paused ? `paused by ${paused.by} since ${day(paused.at)}${paused.reason ? `: ${paused.reason}` : ""}` : "as the sensors decide"],
      ...[...states].sort().map(([state, count]) => [`nodes ${state}`, count])]
      .flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])) : el("p", { class: "plain" }, "the hub has told nothing yet"),
    el("p", { class: "dim" }, "Pausing it: nothing new starts or moves, on any node; what runs goes on. Resuming it: also nodes that were paused one by one."),
    actions("fleet", { state: fleetState(now) }),
    el("p", { class: "actions" }, typed("arc status")));
}
