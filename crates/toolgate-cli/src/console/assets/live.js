// Counts of calls as they end, by second and by tool: what the page shows while there are too many calls for rows.

import { state, on, now } from "./api.js";
import { CLASSES, classOf } from "./outcomes.js";

/** Seconds that are kept. */
export const SECONDS = 600;
/** Above this many calls a second, a list of calls is unreadable; below the lower one, it is readable again. */
const MANY = 20, FEW = 12;
/** Seconds over which the rate of a tool is an average. */
const RATE_SECONDS = 10;

const seconds = new Map();
const tools = new Map();
let many = false;

const secondOf = (ms) => Math.floor(ms / 1000);
const classIndex = new Map(CLASSES.map((c, i) => [c.id, i]));

on("batch", (batch) => {
  const at = secondOf(batch.at);
  for (const one of batch.counts) add(at, one, one.n, one.took_ms);
  forget();
});
on("page", () => {
  // The calls of before this page was open, as far as the gateway knows them.
  seconds.clear();
  tools.clear();
  for (const c of state.calls.values()) if (c.state === "done") add(secondOf(c.at + (c.took_ms ?? 0)), c, 1, c.took_ms ?? 0);
  forget();
});

function add(at, one, n, took) {
  const c = classIndex.get(classOf(one));
  if (!seconds.has(at)) seconds.set(at, new Array(CLASSES.length).fill(0));
  seconds.get(at)[c] += n;
  const name = one.server ? `${one.server}.${one.tool}` : one.tool;
  if (!tools.has(name)) tools.set(name, { name, server: one.server, total: 0, took: 0, classes: new Array(CLASSES.length).fill(0), recent: new Map() });
  const tool = tools.get(name);
  tool.total += n;
  tool.took += took;
  tool.classes[c] += n;
  tool.recent.set(at, (tool.recent.get(at) ?? 0) + n);
}

function forget() {
  const oldest = secondOf(now()) - SECONDS;
  for (const at of seconds.keys()) if (at < oldest) seconds.delete(at);
  for (const tool of tools.values()) for (const at of tool.recent.keys()) if (at < oldest) tool.recent.delete(at);
  // Tools without a call in this time leave the table; names come from callers, so there may be any number of them.
  for (const [name, tool] of tools) if (!tool.recent.size) tools.delete(name);
}

/** Buckets of the last minutes for a chart. */
export function liveBuckets(step = 2) {
  const end = secondOf(now()) + 1, begin = end - SECONDS;
  const buckets = Array.from({ length: SECONDS / step }, () => new Array(CLASSES.length).fill(0));
  for (const [at, counts] of seconds) {
    const bucket = buckets[Math.floor((at - begin) / step)];
    if (bucket) counts.forEach((n, i) => { bucket[i] += n; });
  }
  return { from: begin * 1000, step: step * 1000, buckets };
}

/** Calls per second in the last seconds. */
export function liveRate(over = 2) {
  const end = secondOf(now());
  let sum = 0;
  for (let at = end - over; at < end; at++) sum += seconds.get(at)?.reduce((a, b) => a + b, 0) ?? 0;
  return sum / over;
}

/** Whether there are too many calls for rows. */
export function tooMany() {
  const rate = liveRate(3);
  many = many ? rate > FEW : rate > MANY;
  return many;
}

/** The tools by their rate. */
export function liveTools() {
  const end = secondOf(now());
  return [...tools.values()].map((tool) => {
    const spark = Array.from({ length: 60 }, (_, i) => tool.recent.get(end - 60 + i) ?? 0);
    const rate = spark.slice(-RATE_SECONDS).reduce((a, b) => a + b, 0) / RATE_SECONDS;
    return { ...tool, rate, spark };
  }).sort((a, b) => b.rate - a.rate || b.total - a.total || (a.name < b.name ? -1 : 1));
}
