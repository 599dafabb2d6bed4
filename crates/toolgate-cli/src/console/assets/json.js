// Reads JSON text without changing it: numbers keep their digits, repeated keys stay repeated.

const TOKEN = /\s*(?:("(?:[^"\\]+|\\.)*")|([{}[\],:])|([^\s{}[\],:"]+))/gy;

function tokens(text) {
  const out = [];
  TOKEN.lastIndex = 0;
  for (let m; TOKEN.lastIndex < text.length && (m = TOKEN.exec(text)); ) out.push(m[1] ?? m[2] ?? m[3]);
  return out;
}

/** The same tokens, indented. Text that is not JSON is returned unchanged. */
export function pretty(text) {
  if (!valid(text)) return text;
  const list = tokens(text);
  let out = "", deep = 0;
  const line = () => "\n" + "  ".repeat(deep);
  list.forEach((tok, i) => {
    if (tok === "{" || tok === "[") {
      const empty = list[i + 1] === "}" || list[i + 1] === "]";
      deep++;
      out += tok + (empty ? "" : line());
    } else if (tok === "}" || tok === "]") {
      const empty = list[i - 1] === "{" || list[i - 1] === "[";
      deep--;
      out += (empty ? "" : line()) + tok;
    } else if (tok === ",") out += tok + line();
    else out += tok === ":" ? ": " : tok;
  });
  return out;
}

export function valid(text) {
  try { JSON.parse(text); return true; } catch { return false; }
}

/** The members of an object in its own order, as `[{key, raw}]` with the exact text of each value; null if it is not an object. */
export function members(text) {
  if (!valid(text)) return null;
  const list = tokens(text);
  if (list[0] !== "{") return null;
  const out = [];
  let i = 1;
  while (i < list.length && list[i] !== "}") {
    const key = JSON.parse(list[i]);
    let deep = 0, raw = "";
    for (i += 2; i < list.length; i++) {
      const tok = list[i];
      if (deep === 0 && (tok === "," || tok === "}")) break;
      if (tok === "{" || tok === "[") deep++;
      if (tok === "}" || tok === "]") deep--;
      raw += tok;
    }
    out.push({ key, raw });
    if (list[i] === ",") i++;
  }
  return out;
}

/** The kind of a value by its exact text. */
export function kind(raw) {
  const c = raw[0];
  return c === '"' ? "string" : c === "{" ? "object" : c === "[" ? "array" : c === "t" || c === "f" ? "boolean" : c === "n" ? "null" : "number";
}

/** Short description of the type that a schema declares. */
export function typeOf(schema) {
  if (schema === true || schema === undefined || schema === null) return "any";
  if (schema.enum) return schema.enum.map((v) => JSON.stringify(v)).join(" | ");
  if ("const" in schema) return JSON.stringify(schema.const);
  if (Array.isArray(schema.type)) return schema.type.join(" | ");
  if (schema.type === "array") return "array of " + typeOf(schema.items);
  if (schema.type) return schema.format ? `${schema.type} (${schema.format})` : String(schema.type);
  const any = schema.anyOf ?? schema.oneOf;
  return Array.isArray(any) ? any.map(typeOf).join(" | ") : "any";
}

/** Initial value to edit: the required properties of a schema with their default, first choice or an empty value. */
export function sample(schema) {
  const out = {};
  const props = schema?.properties ?? {};
  const want = Array.isArray(schema?.required) && schema.required.length ? schema.required : Object.keys(props);
  for (const name of want) if (Object.hasOwn(props, name)) out[name] = blank(props[name]);
  return JSON.stringify(out, null, 2);
}

function blank(schema) {
  if (schema?.default !== undefined) return schema.default;
  if (schema?.examples?.length) return schema.examples[0];
  if (schema?.enum?.length) return schema.enum[0];
  const type = Array.isArray(schema?.type) ? schema.type[0] : schema?.type;
  if (type === "object") return JSON.parse(sample(schema));
  return { string: "", number: 0, integer: schema?.minimum ?? 0, boolean: false, array: [] }[type] ?? null;
}
