// Word diff of two texts.

/** Words, runs of white space, and single other characters. A run of letters stays whole, so that mixed scripts show. */
const PART = /\s+|[\p{L}\p{M}\p{N}_]+|[^]/gu;
/** Maximum number of comparisons of one pair. Longer texts are marked as a whole between their common prefix and suffix. */
const MOST = 1_000_000;

/** Returns two lists of `[{text, changed}]`: the old and the new text, with the parts marked that only one of them has. */
export function compare(older, newer) {
  const a = older.match(PART) ?? [], b = newer.match(PART) ?? [];
  const least = Math.min(a.length, b.length);
  let head = 0, tail = 0;
  while (head < least && a[head] === b[head]) head++;
  while (tail < least - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const [x, y] = [a, b].map((all) => all.slice(head, all.length - tail));
  const [inX, inY] = shared(x, y);
  return [runs(a, head, x.length, inX), runs(b, head, y.length, inY)];
}

/** For each part whether both lists have it, in their order. */
function shared(x, y) {
  const inX = new Array(x.length).fill(false), inY = new Array(y.length).fill(false);
  if (x.length * y.length > MOST) return [inX, inY];
  const wide = y.length + 1;
  const best = new Uint16Array((x.length + 1) * wide);
  for (let i = x.length - 1; i >= 0; i--)
    for (let j = y.length - 1; j >= 0; j--)
      best[i * wide + j] = x[i] === y[j] ? best[(i + 1) * wide + j + 1] + 1 : Math.max(best[(i + 1) * wide + j], best[i * wide + j + 1]);
  for (let i = 0, j = 0; i < x.length && j < y.length; ) {
    if (x[i] === y[j]) { inX[i++] = true; inY[j++] = true; }
    else if (best[(i + 1) * wide + j] >= best[i * wide + j + 1]) i++;
    else j++;
  }
  return [inX, inY];
}

/** Merges adjacent parts of one kind. */
function runs(parts, head, count, kept) {
  const out = [];
  parts.forEach((text, i) => {
    const changed = i >= head && i < head + count && !kept[i - head];
    if (out.at(-1)?.changed === changed) out.at(-1).text += text;
    else out.push({ text, changed });
  });
  return out;
}
