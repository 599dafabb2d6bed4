// Times: always the local time of the browser, with the time in UTC as the title of the element.

import { h, attr } from "./dom.js";

const two = (n) => String(n).padStart(2, "0");
const dayOf = (d) => `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;

/** Local time of day, `14:03:12`. */
export function clock(ms) {
  const d = new Date(ms);
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

/** Local date and time to the minute, `2026-11-28 14:03`. */
export function dateTime(ms) {
  const d = new Date(ms);
  return `${dayOf(d)} ${two(d.getHours())}:${two(d.getMinutes())}`;
}

/** Local time: that of today to the second, any other with its date. */
export const shortTime = (ms) => (dayOf(new Date(ms)) === dayOf(new Date()) ? clock(ms) : dateTime(ms));

/** The time in UTC, to the second. */
export const utc = (ms) => new Date(ms).toISOString().slice(0, 19).replace("T", " ") + " UTC";

/** Element of a local time. `form` is `shortTime`, `clock` or `dateTime`. */
export function timeTag(ms, form = shortTime) {
  const node = h("time", {});
  setTime(node, ms, form);
  return node;
}

/** Sets the time that an element shows. Its text is the console's own, so it needs no marking. */
export function setTime(node, ms, form = shortTime) {
  const text = form(ms);
  if (node.textContent !== text) node.textContent = text;
  attr(node, "datetime", new Date(ms).toISOString());
  attr(node, "title", utc(ms));
}

/** A span of milliseconds, short enough for a column. */
export function span(ms) {
  if (ms < 1000) return Math.max(0, Math.round(ms)) + " ms";
  if (ms < 10000) return (ms / 1000).toFixed(1) + " s";
  const s = Math.floor(ms / 1000);
  if (s < 60) return s + " s";
  if (s < 3600) return Math.floor(s / 60) + ":" + two(s % 60);
  if (s < 172800) return Math.floor(s / 3600) + " h " + Math.floor((s % 3600) / 60) + " min";
  return Math.floor(s / 86400) + " days";
}
