// Map of the traffic: callers on the left, the gateway, servers on the right. Width is traffic, color is what became of it.

import { h, visText } from "./dom.js";
import { svg } from "./charts.js";
import { CLASSES } from "./outcomes.js";

/** Rows on each side; the others are summed up in one. */
const MAX_ROWS = 12;
const ROW = 30, TOP = 16, MAX_WIDTH = 22;

/** The class by which charts color a class of the index. */
export const chartClass = (name) => (CLASSES.some((c) => c.id === name) ? name : "refused");

/** Counts by the classes of charts. */
export function chartCounts(classes) {
  const out = new Array(CLASSES.length).fill(0);
  for (const [name, n] of Object.entries(classes)) out[CLASSES.findIndex((c) => c.id === chartClass(name))] += n;
  return out;
}

const add = (into, counts) => counts.forEach((n, i) => { into[i] += n; });
const sum = (counts) => counts.reduce((a, b) => a + b, 0);

function side(flows, of) {
  const rows = new Map();
  for (const flow of flows) {
    const name = of(flow);
    if (!rows.has(name)) rows.set(name, new Array(CLASSES.length).fill(0));
    add(rows.get(name), chartCounts(flow.classes));
  }
  const all = [...rows].map(([name, counts]) => ({ name, counts, total: sum(counts) })).sort((a, b) => b.total - a.total || (a.name < b.name ? -1 : 1));
  if (all.length <= MAX_ROWS) return all;
  const rest = { name: null, counts: new Array(CLASSES.length).fill(0), more: all.length - MAX_ROWS + 1 };
  for (const row of all.slice(MAX_ROWS - 1)) add(rest.counts, row.counts);
  rest.total = sum(rest.counts);
  return [...all.slice(0, MAX_ROWS - 1), rest];
}

/** `pick(kind, name)` runs when a caller or server is chosen. */
export function trafficMap(pick) {
  const root = svg("svg", { class: "map", role: "group", "aria-label": "Traffic from callers through the gateway to servers" });
  const node = h("div", { class: "map-box" }, root);
  let flows = [];
  function draw() {
    const width = root.clientWidth;
    if (!width) return;
    const callers = side(flows, (f) => f.caller), servers = side(flows, (f) => f.server ?? "");
    const height = TOP * 2 + ROW * Math.max(1, callers.length, servers.length);
    root.setAttribute("height", height);
    const label = Math.min(220, Math.max(90, width * 0.24));
    const mid = width / 2, half = Math.min(60, width * 0.06);
    const all = Math.max(1, ...callers.map((r) => r.total), ...servers.map((r) => r.total));
    const thick = (n) => (n ? Math.max(1, (n / all) * MAX_WIDTH) : 0);
    const total = (rows) => rows.reduce((w, r) => w + r.counts.reduce((x, n) => x + thick(n), 0), 0);
    const parts = [];
    const draw_side = (rows, x0, x1, kind) => {
      let into = height / 2 - total(rows) / 2;
      rows.forEach((row, i) => {
        const y = TOP + ROW * (i + 0.5) + ((height - TOP * 2) - ROW * rows.length) / 2;
        const wide = row.counts.reduce((w, n) => w + thick(n), 0);
        let at = y - wide / 2;
        row.counts.forEach((n, c) => {
          const w = thick(n);
          if (!w) return;
          const [a, b] = [at + w / 2, into + w / 2];
          const bend = (x0 + x1) / 2;
          parts.push(svg("path", { class: "flow f-" + CLASSES[c].id, "stroke-width": w.toFixed(1), fill: "none", d: `M${x0} ${a.toFixed(1)}C${bend} ${a.toFixed(1)} ${bend} ${b.toFixed(1)} ${x1} ${b.toFixed(1)}` }, svg("title", {}, `${visText(row.name ?? "others")}: ${n} ${CLASSES[c].label}`)));
          at += w;
          into += w;
        });
        const text = row.name === null ? `${row.more} others` : row.name === "" ? "no server" : row.name;
        const shown = visText(text), chars = Math.floor(label / 7.4);
        const choose = row.name ? () => pick(kind, row.name) : null;
        const about = `${kind} ${shown}: ${row.total} calls, ${row.counts.map((n, c) => (n ? `${n} ${CLASSES[c].label}` : "")).filter(Boolean).join(", ")}`;
        // The button is the box alone: its name would have to contain the text, which may be cut.
        parts.push(svg("g", { class: "map-node" + (choose ? " pick" : ""), "data-map": row.name ? `${kind} ${row.name}` : null },
          svg("rect", { x: kind === "caller" ? 0 : width - label, y: y - 12, width: label, height: 24, rx: 5, ...(choose ? { tabindex: "0", role: "button" } : { role: "img" }), "aria-label": about,
            on: choose ? { click: choose, keydown: (e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); e.stopPropagation(); choose(); } } } : {} }, svg("title", {}, about)),
          svg("text", { x: kind === "caller" ? label - 8 : width - label + 8, y: y + 4, "text-anchor": kind === "caller" ? "end" : "start", "aria-hidden": "true" }, shown.length > chars ? shown.slice(0, chars - 1) + "\u2026" : shown)));
      });
    };
    draw_side(callers, label, mid - half, "caller");
    draw_side(servers, width - label, mid + half, "server");
    parts.push(svg("g", { class: "map-gate" }, svg("rect", { x: mid - half, y: TOP / 2, width: half * 2, height: height - TOP, rx: 8 }), svg("text", { x: mid, y: height / 2 + 4, "text-anchor": "middle" }, "gateway")));
    // A refresh must not take the keyboard focus away.
    const focused = root.contains(document.activeElement) ? document.activeElement.parentNode.getAttribute("data-map") : null;
    root.replaceChildren(...parts);
    if (focused) root.querySelector(`[data-map="${CSS.escape(focused)}"] rect`)?.focus();
  }
  new ResizeObserver(draw).observe(root);
  return { node, update(next) { flows = next; draw(); } };
}
