// Small DOM helpers. Untrusted text goes through `put` or `vis` only: text nodes, with invisible characters marked.

/** Characters that are invisible, change the order of others, look like a plain space or pile up on one letter. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}|\p{M}{4,}/u;
/** A run of letters; checked for scripts that do not belong in one word. */
const WORD = /(?:\p{L}(?:\p{M}{1,3}(?!\p{M}))?)+/u;
const PIECES = new RegExp(`(${HIDDEN.source})|(${WORD.source})`, "gu");
const LATIN = /\p{Script=Latin}/u;
const LOOKALIKE = /\p{Script=Cyrillic}|\p{Script=Greek}|\p{Script=Cherokee}|\p{Script=Armenian}/u;

/** Maximum number of marks with an element of their own. In text with more, the marks are still spelled out. */
const MOST_MARKS = 4000;

const code = (chars) => [...chars].map((ch) => "\u2039U+" + ch.codePointAt(0).toString(16).toUpperCase().padStart(4, "0") + "\u203a").join("");

/** Cuts text into plain parts and marks: `[{text, mark}]`, mark being null, "hidden" or "mixed". */
function pieces(text, lines) {
  const out = [];
  let at = 0;
  const plain = (end) => { if (end > at) out.push({ text: text.slice(at, end), mark: null }); };
  for (const m of text.matchAll(PIECES)) {
    if (m[1] !== undefined) {
      if (lines && (m[1] === "\n" || m[1] === "\t")) continue;
      plain(m.index);
      const last = out.at(-1);
      if (last?.mark === "hidden" && m.index === at) last.text += code(m[1]);
      else out.push({ text: code(m[1]), mark: "hidden" });
    } else {
      if (!(LATIN.test(m[2]) && LOOKALIKE.test(m[2]))) continue;
      plain(m.index);
      out.push({ text: m[2], mark: "mixed" });
    }
    at = m.index + m[0].length;
  }
  plain(text.length);
  return out;
}

/** Text as one inert string with hidden characters spelled out, for titles and notifications. */
export const visText = (text) => pieces(String(text ?? ""), false).map((p) => p.text).join("");

/** Number of marked characters of the text. */
export const hiddenCount = (text) => pieces(text, true).filter((p) => p.mark).length;

/** Text as an inert fragment. With `lines`, line ends and tabs are unchanged. */
export function vis(text, lines = false) {
  const out = document.createDocumentFragment();
  const all = pieces(String(text ?? ""), lines);
  for (const p of all.splice(0, MOST_MARKS)) {
    if (!p.mark) { out.append(p.text); continue; }
    const title = p.mark === "hidden" ? "an invisible character" : "mixes look-alike letters from different scripts";
    out.append(h("span", { class: "mark " + p.mark, title }, p.text));
  }
  out.append(all.map((p) => p.text).join(""));
  return out;
}

const shown = new WeakMap();

/** Sets the text of a node, touching it only if the text changed. */
export function put(node, text, lines = false) {
  text = String(text ?? "");
  if (shown.get(node) === text) return node;
  shown.set(node, text);
  node.replaceChildren(vis(text, lines));
  return node;
}

/** Sets or removes an attribute, touching it only if it changed. */
export function attr(node, name, value) {
  if (value === null || value === undefined || value === false) { if (node.hasAttribute(name)) node.removeAttribute(name); return; }
  const text = value === true ? "" : String(value);
  if (node.getAttribute(name) !== text) node.setAttribute(name, text);
}

/** Creates an element. `on` has the listeners; strings among the children are the console's own text. */
export function h(tag, props = {}, ...kids) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name === "on") for (const [event, run] of Object.entries(value)) node.addEventListener(event, run);
    else if (name === "value") node.value = value;
    else attr(node, name, value);
  }
  node.append(...kids.filter((k) => k !== null && k !== undefined && k !== false));
  return node;
}

/** Element that shows untrusted text. */
export const t = (tag, props, text, lines = false) => put(h(tag, props), text, lines);

export const button = (label, props, run) => h("button", { type: "button", ...props, on: { click: run } }, label);

/**
 * Keeps the children of `box` equal to a list without rebuilding: `make(item)` gives `{node, update(item)}`
 * once per key, then only `update` runs. Nodes that are in place are not moved, so focus and scroll stay.
 */
export function keyed(box, key, make) {
  const have = new Map();
  return (items) => {
    const keys = new Set(items.map(key));
    for (const [k, part] of have) if (!keys.has(k)) { part.node.remove(); have.delete(k); }
    let at = box.firstChild;
    for (const item of items) {
      const k = key(item);
      let part = have.get(k);
      if (!part) { part = make(item); have.set(k, part); }
      part.update(item);
      if (part.node === at) at = at.nextSibling;
      else box.insertBefore(part.node, at);
    }
    return have;
  };
}

/** A scroll box for a long text, with its full length stated and a copy of the exact text. */
export function textBox(label, text, props = {}) {
  const pre = t("pre", { tabindex: "0", "aria-label": label }, text, true);
  return h("div", { class: "box", ...props },
    h("div", { class: "box-head" }, h("span", { class: "label" }, label), h("span", { class: "dim" }, sizeNote(text)), copyButton(() => text)), pre);
}

/** "1,204 characters, 31 lines, 2 marked". */
export function sizeNote(text) {
  const lines = text.split("\n").length;
  const marked = hiddenCount(text);
  const n = [...text].length;
  return `${n.toLocaleString("en")} character${n === 1 ? "" : "s"}` + (lines > 1 ? `, ${lines.toLocaleString("en")} lines` : "") + (marked ? `, ${marked} marked` : "");
}

/**
 * Copies a text. A page without a secure context (an address of the network without TLS) has no clipboard interface, so
 * the old command is the second way.
 */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { /* no interface, or not allowed */ }
  const field = h("textarea", { class: "sr", "aria-hidden": "true", tabindex: "-1", readonly: true, value: text });
  const before = document.activeElement;
  (before?.closest?.("dialog") ?? document.body).append(field);
  field.select();
  let ok = false;
  try { ok = document.execCommand("copy"); } catch { /* not supported */ }
  field.remove();
  before?.focus?.({ preventScroll: true });
  return ok;
}

/** A button that copies what `text()` returns. */
export function copyButton(text, label = "Copy", props = {}) {
  const b = button(label, { class: "quiet", ...props }, async () => {
    b.textContent = (await copyText(text())) ? "Copied" : "Blocked by the browser";
    setTimeout(() => { b.textContent = label; }, 1200);
  });
  return b;
}

/** Announces text to a screen reader. */
export function say(text) {
  put(document.getElementById("say"), text);
}

/** A cell of a table. A narrow screen shows its label beside it. */
export const cell = (label, ...kids) => h("td", { "data-label": label }, ...kids);

/** A paragraph for an error, and the function that shows a text there; without a text, it hides the paragraph. */
export function errorBox() {
  const node = h("p", { class: "error", role: "alert", hidden: true });
  return [node, (text) => { put(node, text ?? ""); attr(node, "hidden", !text); }];
}

/** Whether a key pressed in the element is text. */
export const isField = (el) => el instanceof HTMLElement && (el.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(el.tagName));

const drawn = new WeakMap();
/** Makes the children of a node anew if their data changed. Otherwise they stay, with the focus of the keyboard. */
export function redraw(node, data, make) {
  const key = JSON.stringify(data);
  if (drawn.get(node) === key) return;
  drawn.set(node, key);
  node.replaceChildren(...make());
}

/** The head of a table. A name in a list is that of a column of numbers, which are on its right side. */
export const tableHead = (...names) => h("thead", {}, h("tr", {}, ...names.map((name) => (Array.isArray(name) ? h("th", { scope: "col", class: "n" }, ...name) : h("th", { scope: "col" }, name)))));

/** `1 tool`, `2 tools`. */
export const plural = (n, word, more = word + "s") => `${n.toLocaleString("en")} ${n === 1 ? word : more}`;

/** The section of a page, which the navigation shows and hides. Its heading is for screen readers. */
export function pageRoot(id, title) {
  const node = h("section", { id: "view-" + id, class: "page", "aria-label": title, hidden: true }, h("h2", { class: "sr" }, title));
  document.getElementById("pages").append(node);
  return node;
}

/** Whether the screen has room for one pane only. */
export const isNarrow = () => matchMedia("(max-width: 900px)").matches;
