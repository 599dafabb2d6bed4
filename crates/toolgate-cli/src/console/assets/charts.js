// Charts as SVG: stacked bars with a brush, lines, sparklines. Colors come from the style sheet by class.

import { h, put, attr } from "./dom.js";
import { clock, dateTime } from "./time.js";

const NS = "http://www.w3.org/2000/svg";

/** Creates an SVG element. Strings among the children are the console's own text. */
export function svg(tag, props = {}, ...kids) {
  const node = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(props)) {
    if (name === "on") for (const [event, run] of Object.entries(value)) node.addEventListener(event, run);
    else attr(node, name, value);
  }
  node.append(...kids.filter((kid) => kid !== null && kid !== undefined && kid !== false));
  return node;
}

/** The next number with one digit, or 2 or 5 before the zeros. */
function nice(n) {
  const ten = 10 ** Math.floor(Math.log10(Math.max(1, n)));
  return [1, 2, 5, 10].map((k) => k * ten).find((x) => x >= n);
}

/** Times for the axis: as many as there is room for, at round local times. */
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800].map((s) => s * 1000);
function ticks(from, to, most) {
  const step = STEPS.find((s) => (to - from) / s <= most) ?? STEPS.at(-1);
  const offset = new Date(from).getTimezoneOffset() * 60000;
  const out = [];
  for (let at = Math.ceil((from - offset) / step) * step + offset; at < to; at += step) out.push(at);
  const form = step >= 86400000 ? (ms) => dateTime(ms).slice(5, 10) : step >= 60000 ? (ms) => clock(ms).slice(0, 5) : clock;
  return out.map((at) => [at, form(at)]);
}

const LEFT = 34, BOTTOM = 18, TOP = 6;

function frame(label, height, className) {
  const plot = svg("g", {}), axis = svg("g", { class: "axis" });
  const root = svg("svg", { class: "chart " + className, height, role: "img", "aria-label": label }, axis, plot);
  const read = h("p", { class: "readout dim", "aria-hidden": "true" });
  const node = h("div", { class: "chart-box" }, root, read);
  return { plot, axis, root, read, node };
}

function drawAxis(axis, { from, to, top, x, y, width, height, unit = "", whole = false }) {
  axis.replaceChildren(
    svg("line", { x1: LEFT, x2: width, y1: height - BOTTOM, y2: height - BOTTOM }),
    ...[top, top / 2].filter((n) => !whole || Number.isInteger(n)).map((n) => svg("g", {}, svg("line", { class: "grid", x1: LEFT, x2: width, y1: y(n), y2: y(n) }), svg("text", { x: LEFT - 5, y: y(n) + 4, "text-anchor": "end" }, short(n) + unit))),
    ...ticks(from, to, Math.max(2, width / 90)).map(([at, text]) => svg("text", { x: x(at), y: height - 4, "text-anchor": "middle" }, text)));
}

const short = (n) => (n >= 1000 ? `${+(n / 1000).toFixed(1)}k` : String(+n.toFixed(1)));

/**
 * Stacked bars over time. `update({from, step, buckets})` draws; each bucket is a list of counts, one for each class.
 * With `onBrush`, a part of the time can be selected with the pointer, or with the arrow keys: it gets `[from, to]` or null.
 */
export function barChart({ label, classes, height = 120, onBrush = null, unit = "calls" }) {
  const { plot, axis, root, read, node } = frame(label, height, "bars");
  const layers = classes.map((c) => plot.appendChild(svg("path", { class: "c-" + c.id })));
  const brush = plot.appendChild(svg("rect", { class: "brush", y: TOP, height: height - TOP - BOTTOM, width: 0 }));
  let data = null, selected = null, drag = null, geometry = null;

  function draw() {
    const width = root.clientWidth;
    if (!data || width === 0) return;
    const { from, step, buckets } = data;
    const to = from + step * buckets.length;
    const sums = buckets.map((b) => b.reduce((sum, n) => sum + n, 0));
    const top = nice(Math.max(1, ...sums));
    const bar = (width - LEFT) / buckets.length;
    const x = (at) => LEFT + ((at - from) / (to - from)) * (width - LEFT);
    const y = (n) => height - BOTTOM - (n / top) * (height - BOTTOM - TOP);
    geometry = { from, to, width, x, at: (px) => from + ((px - LEFT) / (width - LEFT)) * (to - from) };
    const gap = bar > 4 ? 1 : 0;
    const base = buckets.map(() => 0);
    layers.forEach((layer, c) => {
      let d = "";
      buckets.forEach((b, i) => {
        if (!b[c]) return;
        const [low, high] = [y(base[i]), y(base[i] + b[c])];
        base[i] += b[c];
        d += `M${(LEFT + i * bar).toFixed(1)} ${low.toFixed(1)}V${high.toFixed(1)}h${Math.max(0.5, bar - gap).toFixed(1)}V${low.toFixed(1)}z`;
      });
      attr(layer, "d", d);
    });
    drawAxis(axis, { from, to, top, x, y, width, height, whole: true });
    drawBrush();
    const totals = classes.map((c, i) => `${buckets.reduce((sum, b) => sum + b[i], 0)} ${c.label}`);
    attr(root, "aria-label", `${label}: ${totals.join(", ")}`);
  }
  function drawBrush() {
    if (!geometry || !selected) { attr(brush, "width", 0); return; }
    const [a, b] = selected.map((at) => Math.max(LEFT, Math.min(geometry.width, geometry.x(at))));
    attr(brush, "x", a);
    attr(brush, "width", Math.max(1, b - a));
  }
  function select(range, done) {
    selected = range;
    drawBrush();
    if (done) onBrush?.(selected);
  }
  function readout(e) {
    if (!geometry || !data) return;
    const at = geometry.at(e.offsetX);
    const bucket = data.buckets[Math.floor((at - data.from) / data.step)];
    if (!bucket) { put(read, ""); return; }
    const start = data.from + Math.floor((at - data.from) / data.step) * data.step;
    const parts = classes.map((c, i) => (bucket[i] ? `${bucket[i]} ${c.label}` : null)).filter(Boolean);
    put(read, `${data.step >= 60000 ? dateTime(start) : clock(start)}: ${parts.join(", ") || "no " + unit}`);
  }
  root.addEventListener("pointermove", (e) => {
    readout(e);
    if (drag !== null) select([drag, geometry.at(e.offsetX)].sort((a, b) => a - b), false);
  });
  root.addEventListener("pointerleave", () => { if (drag === null) put(read, ""); });
  if (onBrush) {
    attr(root, "tabindex", "0");
    attr(root, "role", "application");
    attr(root, "aria-roledescription", "chart; the arrow keys select a time, Escape ends the selection");
    root.addEventListener("pointerdown", (e) => { if (e.button === 0 && geometry) { drag = geometry.at(e.offsetX); root.setPointerCapture(e.pointerId); } });
    root.addEventListener("pointerup", (e) => {
      if (drag === null) return;
      const range = [drag, geometry.at(e.offsetX)].sort((a, b) => a - b);
      drag = null;
      // A click without a drag ends the selection.
      select(geometry.x(range[1]) - geometry.x(range[0]) < 4 ? null : range, true);
    });
    root.addEventListener("keydown", (e) => {
      if (!data) return;
      const { from, step, buckets } = data, to = from + step * buckets.length;
      const width = selected ? selected[1] - selected[0] : step * Math.max(1, Math.round(buckets.length / 12));
      const move = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
      if (move) {
        const start = selected ? selected[0] + (e.shiftKey ? 0 : move * step * Math.max(1, Math.round(buckets.length / 60))) : to - width;
        const end = selected ? (e.shiftKey ? selected[1] + move * step : start + width) : to;
        select([Math.max(from, Math.min(start, to - step)), Math.max(from + step, Math.min(end, to))], true);
      } else if (e.key === "Escape" && selected) select(null, true);
      else return;
      e.preventDefault();
      e.stopPropagation();
    });
  }
  new ResizeObserver(draw).observe(root);
  return { node, update(next) { data = next; draw(); }, clear: () => select(null, false), get selected() { return selected; } };
}

/** Lines over time. Each line is `{id, label}`; `update({from, step, values})` has a list for each line, null for no value. */
export function lineChart({ label, lines, height = 120, unit = "" }) {
  const { plot, axis, root, read, node } = frame(label, height, "lines");
  const paths = lines.map((l) => plot.appendChild(svg("path", { class: "line l-" + l.id, fill: "none" })));
  let data = null;
  function draw() {
    const width = root.clientWidth;
    if (!data || width === 0) return;
    const { from, step, values } = data;
    const count = values[0]?.length ?? 0, to = from + step * count;
    const known = values.flat().filter((v) => v !== null);
    const top = nice(Math.max(1, ...known));
    const x = (at) => LEFT + ((at - from) / (to - from)) * (width - LEFT);
    const y = (n) => height - BOTTOM - (n / top) * (height - BOTTOM - TOP);
    paths.forEach((path, l) => {
      let d = "", pen = false;
      values[l].forEach((v, i) => {
        if (v === null) { pen = false; return; }
        d += `${pen ? "L" : "M"}${x(from + (i + 0.5) * step).toFixed(1)} ${y(v).toFixed(1)}`;
        // A single value between gaps is a short line.
        if (!pen && (values[l][i + 1] ?? null) === null) d += "h2";
        pen = true;
      });
      attr(path, "d", d);
    });
    drawAxis(axis, { from, to, top, x, y, width, height, unit });
    const last = lines.map((l, i) => { const v = values[i].filter((one) => one !== null).at(-1); return v === undefined ? null : `${l.label} ${short(v)}${unit}`; }).filter(Boolean);
    attr(root, "aria-label", `${label}, last: ${last.join(", ") || "no values"}`);
  }
  root.addEventListener("pointermove", (e) => {
    if (!data) return;
    const { from, step, values } = data, width = root.clientWidth;
    const i = Math.floor(((e.offsetX - LEFT) / (width - LEFT)) * (values[0]?.length ?? 0));
    if (!values[0] || i < 0 || i >= values[0].length) { put(read, ""); return; }
    put(read, `${dateTime(from + i * step)}: ${lines.map((l, k) => `${l.label} ${values[k][i] === null ? "none" : short(values[k][i]) + unit}`).join(", ")}`);
  });
  root.addEventListener("pointerleave", () => put(read, ""));
  new ResizeObserver(draw).observe(root);
  return { node, update(next) { data = next; draw(); } };
}

/** The legend of a chart: `{id, label}` with the color of the class `c-ID` or `l-ID`. */
export const legend = (all, kind = "c") => h("ul", { class: "legend" }, ...all.map((one) => h("li", {}, h("i", { class: `${kind}-${one.id}` }), one.label)));

/** A small line without axes for a list of numbers. */
export function sparkline(label) {
  const path = svg("path", { class: "line l-all", fill: "none" });
  const node = svg("svg", { class: "spark", width: 80, height: 20, viewBox: "0 0 80 20", role: "img", "aria-label": label }, path);
  return { node, update(values) {
    const top = Math.max(1, ...values), step = 80 / Math.max(1, values.length - 1);
    attr(path, "d", values.map((v, i) => `${i ? "L" : "M"}${(i * step).toFixed(1)} ${(18 - (v / top) * 16).toFixed(1)}`).join(""));
  } };
}
