// Writes times, durations, money and names the way the commands of arc do.

const STEPS = /** @type {[number, string][]} */ ([[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]]);

/** A length of time in at most two units.
 * @param {number|null|undefined} seconds @returns {string} */
export function lasting(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "-";
  if (seconds < 0) return `-${lasting(-seconds)}`;
  if (seconds > 0 && seconds < 1) return `${Number(seconds.toPrecision(1))}s`;
  let left = Math.floor(seconds);
  const parts = [];
  for (const [size, unit] of STEPS) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count) parts.push(`${count}${unit}`);
    if (parts.length === 2 || (parts.length && !count)) break;
  }
  return parts.join(" ") || "0s";
}

/** Minutes as the header tells stranded time, hours where there are many. @param {number} seconds */
export function minutes(seconds) {
  const value = seconds / 60;
  if (value >= 600) return `${Math.round(value / 60)} h`;
  return `${value >= 10 || value === 0 ? Math.round(value) : value.toFixed(1)} min`;
}

/** `03:45:04` in UTC. @param {number|string|Date} moment milliseconds, or ISO */
export function clock(moment) { return new Date(moment).toISOString().slice(11, 19); }

/** `2026-03-10 03:45` in UTC. @param {number|string|Date} moment */
export function day(moment) { return new Date(moment).toISOString().slice(0, 16).replace("T", " "); }

/** A mark on an axis, as short as its step allows. @param {number} ms @param {number} step */
export function mark(ms, step) {
  const text = new Date(ms).toISOString();
  if (step >= 86400) return text.slice(5, 10);
  return step >= 60 ? text.slice(11, 16) : text.slice(11, 19);
}

/** `$1.20`, from a decimal string. @param {string|number|null|undefined} amount */
export function money(amount) {
  if (amount === null || amount === undefined) return "unknown";
  const value = Number(amount);
  if (Number.isNaN(value)) return "unknown";
  return `$${value >= 100 ? value.toFixed(0) : value.toFixed(value && value < 0.1 ? 3 : 2)}`;
}

/** `1 task`, `2 tasks`. @param {number} count @param {string} noun */
export function counted(count, noun) { return `${count} ${noun}${count === 1 ? "" : "s"}`; }

/** The end of a uid, by which people and commands name it. @param {unknown} uid */
export function short(uid) { return String(uid ?? "-").slice(-6).toLowerCase(); }

const IN_WORDS = /** @type {Object<string, string>} */ ({ pending: "waiting", dispatcher: "daemon", at: "as of",
  clock_off_s: "clock against the hub", expected_s: "usually takes", max_s: "stopped after", max_attempts: "attempts at most" });

/** The name of a field for people. @param {string} name */
export function inWords(name) { return IN_WORDS[name] ?? name.replaceAll("_", " "); }

/** Its value: seconds as a length of time. @param {string} name @param {any} value */
export function valued(name, value) {
  if (name.endsWith("_s") && typeof value === "number") return lasting(value);
  return name.endsWith("_usd") ? money(value) : said(value);
}

/** One word or sentence of an answer. @param {any} value @returns {string} */
export function said(value) {
  if (value === null || value === undefined || value === "") return "-";
  if (Array.isArray(value)) return value.map(said).join(", ") || "-";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

const ROUND = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
  86400, 172800];

/** Seconds between the marks of an axis, so that about `most` fit.
 * @param {number} seconds @param {number} most */
export function stepOf(seconds, most) {
  return ROUND.find((step) => seconds / step <= most) ?? 172800;
}
