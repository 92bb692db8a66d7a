// Divides a stretch of time into whole hours for the tables behind plots, never into too many rows.

import { mark } from "./words.js";

const ROWS_MAX = 48, HOUR_S = 3600;

/** Rows of an hour, or of as many whole hours as make at most 48 of them. `from` and `to` count in
 * seconds from the beginning of the stretch.
 * @param {number} since milliseconds @param {number} seconds
 * @returns {{from: number, to: number, says: string}[]} */
export function hoursOf(since, seconds) {
  const size = Math.max(1, Math.ceil(seconds / HOUR_S / ROWS_MAX)) * HOUR_S;
  const begun = since / 1000, found = [];
  for (let at = Math.floor(begun / size) * size; at < begun + seconds; at += size) {
    const from = Math.max(at - begun, 0), to = Math.min(at + size - begun, seconds);
    if (to > from) found.push({ from, to, says: `${dated((begun + from) * 1000, seconds)} to ${mark((begun + to) * 1000, 60)}` });
  }
  return found;
}

/** A moment of a stretch, with its day where the stretch is longer than one. @param {number} ms @param {number} seconds */
export function dated(ms, seconds) {
  return `${seconds > 86400 ? `${mark(ms, 86400)} ` : ""}${mark(ms, seconds < HOUR_S ? 1 : 60)}`;
}

/** What a line of stretches comes to between two moments: its values weighed by seconds; null where
 * nothing of it is known. @param {(number|null)[]} line @param {number} step seconds of each
 * @param {number} from @param {number} to */
export function between(line, step, from, to) {
  let sum = 0, known = false;
  for (let at = Math.floor(from / step); at < Math.min(Math.ceil(to / step), line.length); at += 1) {
    const value = line[at], lasts = Math.min(to, (at + 1) * step) - Math.max(from, at * step);
    if (value === null || value === undefined || lasts <= 0) continue;
    known = true;
    sum += value * lasts;
  }
  return known ? sum : null;
}
