// Keeps what the hub said last, put together from what changed.

/** @type {any} */ let last = null;
/** @type {Object<string, any>} */ let nodes = {};

/** What the hub said last; null: nothing yet. @returns {any} */
export function known() { return last; }

/** Whether fleet.yaml names it, as far as the hub has told. @param {string} name */
export function isOfFleet(name) { return name === "inbox" || !last?.nodes || name in last.nodes; }

/** A new stream tells everything once. */
export function forget() { nodes = {}; }

/** @param {{full: boolean, set: any, nodes: Object<string, any>, gone: string[]}} said */
export function merge(said) {
  if (said.full) { last = {}; nodes = {}; }
  for (const name of said.gone ?? []) delete nodes[name];
  Object.assign(nodes, said.nodes ?? {});
  last = { ...last, ...said.set, nodes };
  return last;
}
