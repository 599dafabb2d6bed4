// A list of which only the rows in view exist, so that thousands of rows cost as much as a screenful.

import { h, attr } from "./dom.js";

/** Rows that are drawn above and below the visible ones. */
const MARGIN = 6;

/**
 * `make(item)` gives `{node, update(item)}` once per row that comes into view. All rows have the same height. If rows are
 * added above the visible ones, the visible ones stay in place.
 */
export function virtualList({ label, rowHeight, key, make, className = "" }) {
  const spacer = h("div", { class: "v-spacer", role: "presentation" });
  const node = h("div", { class: "v-list " + className, role: "list", "aria-label": label, tabindex: "0" }, spacer);
  let items = [], index = new Map(), parts = new Map(), queued = 0;

  function draw() {
    queued = 0;
    const from = Math.max(0, Math.floor(node.scrollTop / rowHeight) - MARGIN);
    const to = Math.min(items.length, Math.ceil((node.scrollTop + node.clientHeight) / rowHeight) + MARGIN);
    const want = new Set();
    for (let i = from; i < to; i++) want.add(key(items[i]));
    for (const [k, part] of parts) {
      if (want.has(k)) continue;
      // The row with the focus stays, so that the focus is not lost by scrolling.
      if (index.has(k) && part.node.contains(document.activeElement)) { place(part, index.get(k)); continue; }
      part.node.remove();
      parts.delete(k);
    }
    for (let i = from; i < to; i++) {
      const item = items[i], k = key(item);
      let part = parts.get(k);
      if (!part) {
        part = make(item);
        part.node.classList.add("v-row");
        attr(part.node, "role", "listitem");
        parts.set(k, part);
        spacer.append(part.node);
      }
      if (part.item !== item) { part.item = item; part.update(item); }
      place(part, i);
    }
  }
  function place(part, i) {
    if (part.at !== i) {
      part.at = i;
      part.node.style.transform = `translateY(${i * rowHeight}px)`;
      attr(part.node, "aria-posinset", i + 1);
    }
    attr(part.node, "aria-setsize", items.length);
  }
  const queue = () => { queued ||= requestAnimationFrame(draw); };
  node.addEventListener("scroll", queue, { passive: true });
  new ResizeObserver(queue).observe(node);

  return {
    node,
    set(next) {
      const top = node.scrollTop;
      const anchor = top > 0 ? items[Math.floor(top / rowHeight)] : null;
      const before = anchor ? index.get(key(anchor)) : 0;
      items = next;
      index = new Map(items.map((item, i) => [key(item), i]));
      spacer.style.height = `${items.length * rowHeight}px`;
      const now = anchor ? index.get(key(anchor)) : undefined;
      if (now !== undefined && now !== before) node.scrollTop = top + (now - before) * rowHeight;
      draw();
    },
    get items() { return items; },
    parts: () => parts.values(),
    find: (k) => parts.get(k),
    /** Scrolls a row into view, and returns its part. */
    reveal(k) {
      const i = index.get(k);
      if (i === undefined) return null;
      const [a, b] = [i * rowHeight, (i + 1) * rowHeight];
      if (a < node.scrollTop) node.scrollTop = a;
      else if (b > node.scrollTop + node.clientHeight) node.scrollTop = b - node.clientHeight;
      draw();
      return parts.get(k);
    },
    at: (k) => index.get(k),
  };
}
