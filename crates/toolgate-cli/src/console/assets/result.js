// Results of calls: text, JSON, tables, pictures and sounds. Everything is inert: media are shown through `blob:` addresses
// after their type was checked, and no link of a server can be followed.

import { h, t, attr, button, textBox, visText } from "./dom.js";
import { members, pretty, valid } from "./json.js";

/** Types that are shown, with the bytes that a file of the type begins with. SVG is a document, so it is not one. */
const PICTURES = { "image/png": [0x89, 0x50, 0x4e, 0x47], "image/jpeg": [0xff, 0xd8, 0xff], "image/gif": [0x47, 0x49, 0x46, 0x38], "image/webp": [0x52, 0x49, 0x46, 0x46] };
const SOUNDS = { "audio/wav": [0x52, 0x49, 0x46, 0x46], "audio/x-wav": [0x52, 0x49, 0x46, 0x46], "audio/mpeg": null, "audio/mp3": null, "audio/ogg": [0x4f, 0x67, 0x67, 0x53], "audio/flac": [0x66, 0x4c, 0x61, 0x43], "audio/webm": [0x1a, 0x45, 0xdf, 0xa3], "audio/mp4": null };
/** Maximum size of a picture or sound, in bytes. */
const MAX_MEDIA_BYTES = 16 * 1024 * 1024;
/** Maximum number of rows of a table. */
const MAX_TABLE_ROWS = 500;

/** Elements that show the result of a call as the protocol writes it. `raw` is its JSON text. */
export function resultView(raw) {
  const parts = members(raw) ?? [];
  const part = (key) => parts.find((p) => p.key === key)?.raw;
  const list = (key) => { const text = part(key); return text && valid(text) ? JSON.parse(text) : []; };
  const out = [];
  for (const block of list("content")) out.push(...content(block));
  for (const one of list("contents")) out.push(...content({ type: "resource", resource: one }));
  for (const message of list("messages")) out.push(h("p", { class: "label" }, visText(message.role)), ...content(message.content ?? {}));
  const structured = part("structuredContent");
  if (structured && structured !== "null") out.push(jsonView("Structured content", structured));
  const values = part("completion");
  if (values) out.push(jsonView("Completion", values));
  return out.length ? out : [h("p", { class: "dim" }, "The result is empty.")];
}

function content(block) {
  if (block.type === "text") return [valid(block.text) && /^\s*[[{]/.test(block.text) ? jsonView("Text", block.text) : textBox("Text", String(block.text ?? ""))];
  if (block.type === "image" || block.type === "audio") return [media(block.mimeType, block.data)];
  if (block.type === "resource_link") return [h("p", {}, "Link to a resource: ", t("b", {}, block.name ?? ""), " ", t("code", {}, block.uri))];
  if (block.type === "resource") {
    const r = block.resource ?? {};
    const about = [r.uri, r.mimeType].filter(Boolean).map(visText).join(", ");
    if (r.text !== undefined) return [textBox("Resource " + about, String(r.text))];
    return [t("p", {}, "Resource " + about), media(r.mimeType, r.blob)];
  }
  return [jsonView(visText(block.type ?? "content"), JSON.stringify(block))];
}

/** JSON as text, and as a table if it is a list of objects. */
function jsonView(label, raw) {
  let value = null;
  try { value = JSON.parse(raw); } catch { /* shown as text */ }
  const list = Array.isArray(value) ? value : value && typeof value === "object" ? Object.values(value).find((v) => isTable(v)) : null;
  const forms = { JSON: () => textBox(label, pretty(raw)), ...(isTable(list) ? { Table: () => dataTable(list) } : {}), "Exact text": () => textBox(label, raw) };
  const box = h("div", {});
  const switches = Object.entries(forms).map(([name, build]) => button(name, { class: "seg" }, () => show(name, build)));
  function show(name, build) {
    for (const b of switches) attr(b, "aria-pressed", b.textContent === name ? "true" : "false");
    box.replaceChildren(build());
  }
  const [first] = Object.entries(forms);
  show(...first);
  return h("div", { class: "form" }, h("span", { class: "segs", role: "group", "aria-label": "Form of the result" }, ...switches), box);
}

const isTable = (v) => Array.isArray(v) && v.length > 0 && v.every((row) => row && typeof row === "object" && !Array.isArray(row));

function dataTable(list) {
  const columns = [...new Set(list.slice(0, MAX_TABLE_ROWS).flatMap((row) => Object.keys(row)))].slice(0, 40);
  const text = (v) => (v === undefined ? "" : typeof v === "string" ? v : JSON.stringify(v));
  return h("div", { class: "scroll" }, h("table", { class: "data" },
    h("thead", {}, h("tr", {}, ...columns.map((c) => t("th", { scope: "col" }, c)))),
    h("tbody", {}, ...list.slice(0, MAX_TABLE_ROWS).map((row) => h("tr", {}, ...columns.map((c) => t("td", {}, text(row[c]))))))),
    list.length > MAX_TABLE_ROWS ? h("p", { class: "dim" }, `The first ${MAX_TABLE_ROWS} of ${list.length} rows.`) : "");
}

/** A picture or sound, if its bytes are of the type that the server states. */
function media(type, data) {
  const bytes = decode(data);
  const size = bytes ? `${Math.ceil(bytes.length / 1024).toLocaleString("en")} KiB` : "unreadable";
  const about = `${visText(type ?? "unknown type")}, ${size}`;
  const kinds = type in PICTURES ? PICTURES : type in SOUNDS ? SOUNDS : null;
  const begins = kinds?.[type];
  const fits = bytes && bytes.length > 0 && bytes.length <= MAX_MEDIA_BYTES && (!begins || begins.every((b, i) => bytes[i] === b));
  if (!kinds || !fits) return h("p", { class: "box-head", "data-media": "not-shown" }, about, " (not shown)");
  const url = URL.createObjectURL(new Blob([bytes], { type }));
  if (kinds === PICTURES) {
    const image = h("img", { src: url, alt: "Picture in the result: " + about, "data-media": "picture", on: { load: () => URL.revokeObjectURL(url), error: () => { image.replaceWith(h("p", { class: "box-head", "data-media": "not-shown" }, about, " (the browser cannot read it)")); URL.revokeObjectURL(url); } } });
    return h("figure", { class: "media" }, image, h("figcaption", { class: "dim" }, about));
  }
  const sound = h("audio", { controls: true, src: url, "data-media": "sound", "aria-label": "Sound in the result: " + about });
  return h("figure", { class: "media" }, sound, h("figcaption", { class: "dim" }, about));
}

function decode(data) {
  try {
    return Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  } catch {
    return null;
  }
}
