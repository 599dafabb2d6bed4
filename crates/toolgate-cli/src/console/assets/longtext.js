// Text that may be long: with line numbers, a search, and a note of how much of it was on the screen.

import { h, put, vis, attr, copyButton, sizeNote, hiddenCount } from "./dom.js";

/** From this many lines on, each line has a number. */
const NUMBERED_LINES = 8;
/** Maximum number of lines with an element of their own. Longer texts are one block, with line numbers left out. */
const MAX_LINE_ELEMENTS = 20000;

/**
 * A box for a text. `seen()` tells whether all of it was on the screen, and `onSeen` runs when that becomes true. A box that
 * shows everything without scrolling counts as seen once it is visible.
 */
export function longText(label, text, { onSeen = () => {}, lines = true } = {}) {
  const parts = text.split("\n");
  const numbered = lines && parts.length >= NUMBERED_LINES && parts.length <= MAX_LINE_ELEMENTS;
  const pre = h("pre", { tabindex: "0", "aria-label": label || "Text", class: numbered ? "numbered" : "" });
  if (numbered) pre.append(...parts.map((line) => { const row = h("span", { class: "ln" }); row.append(vis(line, true), "\n"); return row; }));
  else pre.append(vis(text, true));
  const progress = h("span", { class: "seen dim", "data-seen": "no", hidden: true });
  const find = h("input", { type: "search", class: "find", "data-field": "find", placeholder: "Find", "aria-label": "Find in the text", autocomplete: "off", spellcheck: "false" });
  const hits = h("span", { class: "dim", role: "status" });
  const findBox = h("span", { class: "find-box", hidden: true }, find, hits);
  const node = h("div", { class: "box" },
    h("div", { class: "box-head" }, h("span", { class: "label" }, label), h("span", { class: "dim" }, sizeNote(text)), findBox, progress, copyButton(() => text)), pre);

  let done = false;
  /** Seen parts of the text in pixels from its top, disjoint and in order. */
  let ranges = [];
  function look() {
    if (done || !pre.isConnected || pre.clientHeight === 0 || document.hidden) return;
    const [from, to, all] = [pre.scrollTop, pre.scrollTop + pre.clientHeight, pre.scrollHeight];
    const long = all > pre.clientHeight + 8;
    attr(findBox, "hidden", !long);
    attr(progress, "hidden", !long);
    ranges = merge(ranges, [from, to]);
    const covered = ranges.reduce((sum, [a, b]) => sum + b - a, 0);
    done = !long || covered >= all - 8;
    put(progress, done ? "seen to the end" : `${Math.min(99, Math.floor((100 * covered) / all))} % seen`);
    attr(progress, "data-seen", done ? "yes" : "no");
    if (done) { progress.classList.add("all"); onSeen(); }
  }
  pre.addEventListener("scroll", look, { passive: true });
  new ResizeObserver(() => { if (!done) { ranges = []; look(); } }).observe(pre);

  let at = -1;
  function search(step) {
    const word = find.value.toLowerCase();
    for (const mark of pre.querySelectorAll(".hit")) mark.classList.remove("hit");
    if (!word) { put(hits, ""); at = -1; return; }
    const rows = numbered ? [...pre.children] : [pre];
    const found = rows.filter((row) => row.textContent.toLowerCase().includes(word));
    put(hits, found.length ? "" : "not found");
    if (!found.length) { at = -1; return; }
    at = (at + step + found.length) % found.length;
    if (!numbered) return;
    put(hits, `${at + 1} of ${found.length} lines`);
    found[at].classList.add("hit");
    pre.scrollTop = found[at].offsetTop - pre.offsetTop - pre.clientHeight / 3;
  }
  find.addEventListener("input", () => { at = -1; search(1); });
  find.addEventListener("keydown", (e) => {
    if (e.key === "Enter") { e.preventDefault(); search(e.shiftKey ? -1 : 1); }
    if (e.key === "Escape") { e.stopPropagation(); find.value = ""; search(0); pre.focus(); }
  });
  return { node, look, seen: () => done, marked: hiddenCount(text) };
}

function merge(ranges, add) {
  const out = [];
  for (const [a, b] of [...ranges, add].sort((x, y) => x[0] - y[0])) {
    const last = out.at(-1);
    if (last && a <= last[1] + 1) last[1] = Math.max(last[1], b);
    else out.push([a, b]);
  }
  return out;
}
