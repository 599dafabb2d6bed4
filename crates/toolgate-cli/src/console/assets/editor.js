// Editor for a text of lines: line numbers, and an error at its line while one writes.

import { h, put, attr } from "./dom.js";

/** Time after the last key until the text is checked, in milliseconds. */
const CHECK_AFTER = 350;

/** `check(text)` gives `{line, why}` or null. `first` is the number of the first line. */
export function lineEditor({ label, text, first = 1, check, onChange = () => {} }) {
  const gutter = h("pre", { class: "gutter", "aria-hidden": "true" });
  const area = h("textarea", { class: "code", spellcheck: "false", autocomplete: "off", "data-field": "code", "aria-label": label, wrap: "off", value: text });
  const error = h("p", { class: "error", role: "status", "data-editor-error": "", hidden: true });
  const node = h("div", { class: "editor" }, h("div", { class: "editor-body" }, gutter, area), error);
  let timer = 0, wrong = null, asked = 0;
  function draw() {
    const count = area.value.split("\n").length;
    attr(area, "rows", Math.max(6, Math.min(40, count + 1)));
    gutter.replaceChildren(...Array.from({ length: count }, (_, i) => h("span", { class: wrong?.line === first + i ? "wrong" : "" }, String(first + i), "\n")));
    gutter.scrollTop = area.scrollTop;
    put(error, wrong ? wrong.why : "");
    attr(error, "hidden", !wrong);
    attr(area, "aria-invalid", wrong ? "true" : null);
  }
  async function run() {
    const mine = ++asked;
    const found = await check(area.value);
    if (mine !== asked) return;
    wrong = found;
    draw();
    onChange(area.value, wrong);
  }
  area.addEventListener("input", () => {
    draw();
    onChange(area.value, undefined);
    clearTimeout(timer);
    timer = setTimeout(run, CHECK_AFTER);
  });
  area.addEventListener("scroll", () => { gutter.scrollTop = area.scrollTop; }, { passive: true });
  draw();
  return { node, area, get value() { return area.value; }, set value(next) { area.value = next; draw(); run(); }, run };
}

/** A unified diff with its added and removed lines marked. */
export function diffView(text) {
  const pre = h("pre", { class: "diff", tabindex: "0", "aria-label": "Differences" });
  for (const line of text.split("\n")) {
    const kind = line.startsWith("+") && !line.startsWith("+++") ? "ins" : line.startsWith("-") && !line.startsWith("---") ? "del" : "span";
    const row = h(kind, { class: "dl" });
    put(row, line + "\n", true);
    pre.append(row);
  }
  return pre;
}
