// A form for the arguments of a tool, generated from its input schema. Numbers are sent as they are typed.

import { h, t, put, attr, button } from "./dom.js";
import { sample, typeOf, valid } from "./json.js";

/** Deeper parts of a schema are written as JSON. */
const MAX_DEPTH = 3;
/** Maximum number of choices of a list; more are a field with proposals. */
const MAX_CHOICES = 40;

let ids = 0;

/** `value()` gives the JSON text of the arguments, or throws an error with a message for the person. */
export function argumentForm(schema) {
  const root = schema && typeof schema === "object" ? schema : {};
  const fields = objectField("", root, 0, true);
  const json = h("textarea", { rows: "8", spellcheck: "false", autocomplete: "off", "aria-label": "Arguments as JSON", "data-field": "arguments", value: sample(root) });
  const simple = Object.keys(root.properties ?? {}).length > 0;
  let mode = simple ? "form" : "json";
  const switches = [["form", "Form"], ["json", "JSON"]].map(([id, label]) => button(label, { class: "seg", "data-mode": id }, () => show(id)));
  const error = h("p", { class: "error", role: "alert", hidden: true });
  const node = h("div", { class: "argument-form" }, simple ? h("span", { class: "segs", role: "group", "aria-label": "Form of the arguments" }, ...switches) : "", fields.node, json, error);
  function show(id) {
    if (id === mode) return;
    if (id === "json") { try { json.value = JSON.stringify(JSON.parse(fields.raw() ?? "{}"), null, 2); } catch { json.value = fields.raw() ?? "{}"; } }
    mode = id;
    draw();
  }
  function draw() {
    attr(fields.node, "hidden", mode !== "form");
    attr(json, "hidden", mode !== "json");
    for (const b of switches) attr(b, "aria-pressed", String(b.dataset.mode === mode));
  }
  draw();
  return { node, value() {
    attr(error, "hidden", true);
    try {
      if (mode === "form") return fields.raw() ?? "{}";
      if (!valid(json.value) || !/^\s*\{/.test(json.value)) throw new Error("The arguments are not a JSON object.");
      return json.value;
    } catch (e) {
      put(error, e.message);
      attr(error, "hidden", false);
      throw e;
    }
  } };
}

/** Each field gives `raw()`: the JSON text of its value, or undefined if it is left out. */
function makeField(name, schema, depth, required) {
  const type = Array.isArray(schema?.type) ? schema.type.find((x) => x !== "null") : schema?.type;
  if (Array.isArray(schema?.enum) || schema?.const !== undefined) return enumField(name, schema, required);
  if (type === "string") return textField(name, schema, required);
  if (type === "number" || type === "integer") return numberField(name, schema, type, required);
  if (type === "boolean") return booleanField(name, schema, required);
  if (type === "array" && schema.items && depth < MAX_DEPTH && isSimple(schema.items)) return listField(name, schema, depth, required);
  if (type === "object" && schema.properties && depth < MAX_DEPTH) return objectField(name, schema, depth, required);
  return jsonField(name, schema, required);
}

const isSimple = (schema) => ["string", "number", "integer", "boolean"].includes(schema?.type) || Array.isArray(schema?.enum);

function labelled(name, schema, required, field, more = []) {
  const id = `field-${++ids}`;
  attr(field, "id", id);
  attr(field, "data-argument", name);
  const about = schema?.description ? t("small", { class: "says", id: id + "-about" }, schema.description, true) : "";
  if (about) attr(field, "aria-describedby", about.id);
  return h("div", { class: "form-field" }, h("label", { for: id }, t("code", {}, name), h("small", { class: "dim" }, ` ${typeOf(schema)}${required ? ", required" : ""}`)), field, ...more, about);
}

const missing = (name) => new Error(`${name} is required.`);

function textField(name, schema, required) {
  const long = (schema.maxLength ?? 1000) > 200 && !schema.format;
  const kinds = { date: "date", "date-time": "text", email: "email", uri: "url", password: "password", time: "time" };
  const field = long ? h("textarea", { rows: "2", spellcheck: "false" }) : h("input", { type: kinds[schema.format] ?? "text", autocomplete: "off", spellcheck: "false" });
  if (schema.maxLength) attr(field, "maxlength", Math.min(schema.maxLength, 100000));
  if (typeof schema.default === "string") field.value = schema.default;
  if (schema.examples?.length) attr(field, "placeholder", String(schema.examples[0]));
  return { node: labelled(name, schema, required, field), raw() {
    // An empty text is left out, unless the schema wants the argument: then it is sent, and judged like any other.
    if (field.value === "" && !required) return undefined;
    return JSON.stringify(field.value);
  } };
}

function numberField(name, schema, type, required) {
  const field = h("input", { type: "text", inputmode: type === "integer" ? "numeric" : "decimal", autocomplete: "off" });
  if (schema.default !== undefined) field.value = JSON.stringify(schema.default);
  const bounds = [schema.minimum !== undefined && `at least ${schema.minimum}`, schema.maximum !== undefined && `at most ${schema.maximum}`].filter(Boolean).join(", ");
  return { node: labelled(name, schema, required, field, bounds ? [h("small", { class: "dim" }, bounds)] : []), raw() {
    const text = field.value.trim();
    if (!text) { if (required) throw missing(name); return undefined; }
    if (!/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text)) throw new Error(`${name} is not a number.`);
    return text;
  } };
}

function booleanField(name, schema, required) {
  const field = h("select", {}, ...(required ? [] : [h("option", { value: "" }, "not set")]), h("option", { value: "true" }, "true"), h("option", { value: "false" }, "false"));
  if (schema.default !== undefined) field.value = String(schema.default);
  return { node: labelled(name, schema, required, field), raw: () => field.value || undefined };
}

function enumField(name, schema, required) {
  const values = schema.enum ?? [schema.const];
  const field = values.length > MAX_CHOICES ? null : h("select", {}, ...(required ? [] : [h("option", { value: "" }, "not set")]), ...values.map((v, i) => t("option", { value: String(i) }, typeof v === "string" ? v : JSON.stringify(v))));
  if (!field) return textField(name, { ...schema, type: "string" }, required);
  const start = values.findIndex((v) => v === schema.default);
  if (start >= 0) field.value = String(start);
  return { node: labelled(name, schema, required, field), raw: () => (field.value === "" ? undefined : JSON.stringify(values[Number(field.value)])) };
}

function listField(name, schema, depth, required) {
  const rows = [];
  const box = h("div", { class: "form-list" });
  function add() {
    const item = makeField(`${name}[${rows.length}]`, schema.items, depth + 1, true);
    const row = { item, node: h("div", { class: "row" }, item.node, button("Remove", { class: "small" }, () => { rows.splice(rows.indexOf(row), 1); row.node.remove(); })) };
    rows.push(row);
    box.append(row.node);
    return row;
  }
  for (let i = 0; i < Math.min(10, schema.minItems ?? 0); i++) add();
  const more = button("Add an element", { class: "small" }, () => add().node.querySelector("input, textarea, select")?.focus());
  const node = h("fieldset", { class: "form-group" }, h("legend", {}, t("code", {}, name), h("small", { class: "dim" }, ` ${typeOf(schema)}${required ? ", required" : ""}`)), schema.description ? t("small", { class: "says" }, schema.description, true) : "", box, more);
  return { node, raw: () => (rows.length || required ? `[${rows.map((row) => row.item.raw() ?? "null").join(",")}]` : undefined) };
}

function objectField(name, schema, depth, required) {
  const needed = new Set(Array.isArray(schema.required) ? schema.required : []);
  const parts = Object.entries(schema.properties ?? {}).map(([key, part]) => [key, makeField(key, part === true || part === null ? {} : part, depth + 1, needed.has(key))]);
  const node = name === "" ? h("div", { class: "form-group" }, ...parts.map(([, part]) => part.node))
    : h("fieldset", { class: "form-group" }, h("legend", {}, t("code", {}, name), h("small", { class: "dim" }, required ? " object, required" : " object")), schema.description ? t("small", { class: "says" }, schema.description, true) : "", ...parts.map(([, part]) => part.node));
  return { node, raw() {
    const members = [];
    let wrong = null;
    for (const [key, part] of parts) {
      try {
        const raw = part.raw();
        if (raw !== undefined) members.push(`${JSON.stringify(key)}:${raw}`);
      } catch (e) { wrong ??= e; }
    }
    // An optional object without any member is left out, whatever its own members require.
    if (!required && !members.length) return undefined;
    if (wrong) throw wrong;
    return `{${members.join(",")}}`;
  } };
}

function jsonField(name, schema, required) {
  const field = h("textarea", { rows: "3", spellcheck: "false", placeholder: "JSON" });
  if (schema?.default !== undefined) field.value = JSON.stringify(schema.default);
  return { node: labelled(name, schema, required, field), raw() {
    const text = field.value.trim();
    if (!text) { if (required) throw missing(name); return undefined; }
    if (!valid(text)) throw new Error(`${name} is not valid JSON.`);
    return text;
  } };
}
