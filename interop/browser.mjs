// A person at the console: a real Chromium opens the link and presses the buttons.
//
// A job is JSON in argv[2]: {link, steps: [...], near}, with near: true no name but that of this machine leads anywhere; each step prints one JSON line when it is done:
//   {do: "pending", holds: TEXT}   waits until a request whose arguments hold TEXT is shown, and opens it; says its id
//   {do: "reload"}                 loads the page anew, without the link
//   {do: "shot", path}             takes a screenshot of the whole page
//   {do: "approve", id}            presses "approve once" and waits until the request is gone
//   {do: "deny", id, reason}       writes the reason, presses "deny" and waits until the request is gone
//   {do: "edit", id, text}         approves with these arguments instead, and waits until the request is gone
//   {do: "remember", id, uses}     approves and remembers it for so many uses
//   {do: "grants"}                 opens the grants; says what is shown there
//   {do: "key", name, holds}       waits until that key is shown with TEXT in it; says what is shown of it
//   {do: "revoke_key", name}       revokes it, and waits until it is shown as revoked
//   {do: "freeze", reason}         freezes everything
//   {do: "thaw", what}             thaws it
//   {do: "call", state}            waits for a row of the calls view in that state; says its id and what is shown of it
//   {do: "stop", id}               presses "stop" on that running call
//   {do: "offered", name}          opens that tool, resource or prompt in the list of all; says what is shown of it
//   {do: "pin", name, holds}       waits until the pin of that name is shown, with TEXT in it; says what is shown
//   {do: "settle", name, act}      presses "accept" or "reject" on it, and waits until it is gone or rejected
//   {do: "press", name, act}       presses that button of it
//   {do: "task", status}           waits until a task in that state is shown; says its call and what is shown of it
//   {do: "stop_task", id}          presses "stop" on the task of that call, and waits until it is cancelled
//   {do: "server", id, state}      goes to the servers and waits until that one is in that state; says what is shown
//   {do: "sign_in", id, name}      presses "sign in" on it, and waits for the page that the browser comes back to; where there
//                                  is a name, it is given at the pages of servers/oidc.mjs, and what is asked is allowed
//                                  there; says what it was told before it went there
//   {do: "sign_out", id}           presses "sign out" on it, and waits until it wants a sign-in; says what the other button said
//   {do: "own_sign_in", url, wrong, key, path}  opens the page of a link, shows the wrong key and then the right one there, goes to
//                                  the page where it leads, and comes back; says what it was told on the way
//   {do: "own_sign_in_as", url, name, path}  the same, where he shows who he is by signing in as NAME at servers/oidc.mjs
//   {do: "keys", keys}             presses these keys one after the other, outside any field
//   {do: "keys_at_once", keys}     the same, so fast that nothing happens in between
//   {do: "gone", name}             waits until the pin of that name is not shown any more
//   {do: "narrow", width}          makes the window so wide; says how wide the page is
//   {do: "fetch", url, init, read} asks from a script of the page; says status, text and the header `read`, or why not
//   {do: "see", at, holds}         waits until what the selector finds is visible with TEXT in it; says its text
//   {do: "hidden", at}             waits until nothing that the selector finds is visible
//   {do: "click", at}              presses it
//   {do: "go", to}                 sets the part of the address after #
//   {do: "size", width, height}    makes the window so large; says how wide the page is
//   {do: "colors", scheme}         prefers "light" or "dark"
//   {do: "select", at, value}      chooses an option
//   {do: "count", at}              says how many elements the selector finds
//   {do: "view", path}             takes a screenshot of what the window shows
//   {do: "axe", page}              says what axe-core finds wrong on the page
//   {do: "frames", count}          says the median, 95th percentile and longest time between so many frames
//   {do: "usable", at}             loads the page again; says the times of its first paint and until the selector finds something
//   {do: "foreign", page}          says whether text of others became markup or ran, and how many hidden characters are unmarked
//   {do: "tab_through", page}      presses Tab until the focus comes back; says which controls it did not reach or does not show
//   {do: "heap"}                   says how many bytes the scripts of the page hold, after the garbage is collected
//   {do: "attack", url}            opens a page of another origin beside this one; says what it tried
//   {do: "fill", at, text}         writes a text into a field
//   {do: "read_through", at}       scrolls that text to its end, a screenful at a time; says the text
//   {do: "rows", at, names}        says these attributes and the text of everything that the selector finds
//   {do: "no_notifications"}       loads the page anew, hidden, with notifications that are allowed and whose constructor throws
//   {do: "links"}                  says in which states the connection was since then
//   {do: "wait"}                   prints "waiting" and goes on when a line comes on standard input
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { job, need, say } from './job.mjs';

const { chromium } = need('playwright-core');
const LIMIT = 60_000;

const browser = await chromium.launch({
  executablePath: process.env.TOOLGATE_CHROMIUM ?? '/usr/bin/chromium',
  args: [
    '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
    ...(job.near ? ['--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'] : [])
  ]
});
const page = await (await browser.newContext({ viewport: { width: 1100, height: 900 } })).newPage();
page.setDefaultTimeout(LIMIT);
page.on('console', m => m.type() === 'error' && say('page_error', { text: m.text() }));
page.on('dialog', dialog => dialog.accept());
page.on('pageerror', error => say('page_error', { text: String(error) }));

/** Opens a page of the console by its name in the address; the navigation may be folded. */
const open = name => page.evaluate(name => { location.hash = '#/' + name; }, name);
const row = id => page.locator(`[data-pending="${id}"]`);
const card = id => page.locator(`[data-detail="${id}"]`);

/** Shows a request beside the list; the name of a destructive tool is typed. */
async function decide(id) {
  await open(`inbox/${id}`);
  await card(id).locator('[data-arguments]').waitFor();
  const typed = card(id).locator('.typed:visible');
  if (await typed.count()) await typed.locator('input').fill(await typed.locator('b').innerText());
  return card(id);
}
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** Signs in at the pages of servers/oidc.mjs, and allows what is asked. */
async function at_oidc(name) {
  await page.locator('input[name="login"]').fill(name);
  await page.locator('input[name="password"]').fill('any');
  await page.locator('button[type="submit"]').click();
  await page.locator('input[name="prompt"][value="consent"]').waitFor({ state: 'attached' });
  await page.locator('button[type="submit"]').click();
}

/** Goes to the page where a user of a caller grants something, and comes back. */
async function granted(path) {
  await page.locator('#page:visible').waitFor();
  await page.screenshot({ path, fullPage: true });
  const told = await page.locator('#words').innerText();
  await page.locator('#page').click();
  await page.waitForURL(/\/sign-in\/back$/, { waitUntil: 'domcontentloaded' });
  await page.locator('#title', { hasText: /igned in$/ }).waitFor();
  const text = await page.locator('main').innerText();
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  const kept = await page.evaluate(() => JSON.stringify([location.href, { ...sessionStorage }, document.documentElement.outerHTML]));
  return { told, text, wide, kept };
}

const acts = {
  async pending({ holds }) {
    await open('inbox');
    const found = page.locator(`[data-pending][title*=${JSON.stringify(holds)}]`).first();
    await found.waitFor({ state: 'attached' });
    const id = await found.getAttribute('data-pending');
    const shown = await decide(id);
    return { id, text: await shown.innerText() };
  },
  async server({ id, state }) {
    await open('servers');
    const found = page.locator(`[data-server="${id}"][data-state="${state}"]`);
    await found.waitFor();
    return { text: await found.innerText() };
  },
  async issuer({ id, holds }) {
    await open('servers');
    const found = page.locator(`[data-issuer="${id}"]`, { hasText: holds });
    await found.waitFor({ state: holds ? 'visible' : 'detached' });
    return { text: holds ? await found.innerText() : '' };
  },
  async sign_in({ id, name, caller }) {
    const at = caller ? `[data-server="${id}"] [data-caller="${caller}"]` : `[data-server="${id}"]`;
    await page.locator(`${caller ? at : `${at} > header`} button[data-act="sign-in"]`).click();
    const ask = caller ? `${at} .own-ask` : `${at} > .own-ask`;
    await page.locator(`${ask}:visible`).waitFor();
    const told = await page.locator(ask).innerText();
    await page.locator(`${ask} button[data-act="go"]`).click();
    if (name) await at_oidc(name);
    await page.waitForURL(/\/console\/signed-in$/, { waitUntil: 'domcontentloaded' });
    await page.locator('#title', { hasText: /igned in$/ }).waitFor();
    const text = await page.locator('main').innerText();
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    await page.locator('main a').click();
    return { text, wide, told };
  },
  async sign_out({ id }) {
    const at = `[data-server="${id}"] > header`;
    const begin = await page.locator(`${at} button[data-act="sign-in"]`).innerText();
    await page.locator(`${at} button[data-act="sign-out"]`).click();
    await page.locator(`[data-server="${id}"][data-state="sign-in"]`).waitFor();
    await page.locator(`${at} button[data-act="sign-out"]`).waitFor({ state: 'hidden' });
    return { begin };
  },
  async own_sign_in({ url, wrong, key, path }) {
    await page.setViewportSize({ width: 375, height: 800 });
    await page.goto(url);
    const show = async one => {
      await page.locator('#key').fill(one);
      await page.locator('#who button').click();
    };
    await show(wrong);
    await page.locator('#error:visible').waitFor();
    const refused = await page.locator('#error').innerText();
    await show(key);
    return { wrong: refused, ...(await granted(path)) };
  },
  async own_sign_in_as({ url, name, path }) {
    await page.setViewportSize({ width: 375, height: 800 });
    // The link of before may be of the same page.
    await page.goto('about:blank');
    await page.goto(url);
    await page.locator('#issuer:visible').click();
    await at_oidc(name);
    await page.waitForURL(/\/sign-in\/shown$/, { waitUntil: 'domcontentloaded' });
    await page.locator('#page:visible, #error:visible').waitFor();
    if (await page.locator('#error').isVisible()) return { refused: await page.locator('#error').innerText() };
    return await granted(path);
  },
  async reload({ id }) {
    await page.reload();
    return { id };
  },
  async shot({ path }) {
    await page.screenshot({ path, fullPage: true });
    return { path };
  },
  async approve({ id }) {
    await (await decide(id)).locator('button[data-act="approve"]').click();
    await row(id).waitFor({ state: 'detached' });
    return { id };
  },
  async deny({ id, reason }) {
    const shown = await decide(id);
    await shown.locator('input[data-field="reason"]').fill(reason);
    await shown.locator('button[data-act="deny"]').click();
    await row(id).waitFor({ state: 'detached' });
    return { id };
  },
  async edit({ id, text }) {
    const shown = await decide(id);
    await shown.locator('button[data-act="edit"]').click();
    await shown.locator('[data-field="edit"]').fill('[1]');
    await shown.locator('button[data-act="approve-edited"]').click();
    await shown.locator('[data-panel="edit"] .error').waitFor();
    await shown.locator('[data-field="edit"]').fill(text);
    await shown.locator('button[data-act="approve-edited"]').click();
    await row(id).waitFor({ state: 'detached' });
    return { id };
  },
  async remember({ id, uses }) {
    const shown = await decide(id);
    await shown.locator('button[data-act="remember"]').click();
    await shown.locator('[data-field="uses"]').fill(String(uses));
    await shown.locator('button[data-act="approve-remembered"]').click();
    await row(id).waitFor({ state: 'detached' });
    return { id };
  },
  async grants() {
    await open('grants');
    await page.locator('[data-grant]').first().waitFor();
    return { text: await page.locator('#view-grants').innerText() };
  },
  async key({ name, holds }) {
    await open('keys');
    const row = page.locator(`[data-key="${name}"]`, { hasText: holds });
    await row.waitFor();
    return { text: await row.innerText(), buttons: await row.locator('button:visible').count() };
  },
  async revoke_key({ name }) {
    await page.locator(`[data-key="${name}"] button[data-act="revoke-key"]`).click();
    await page.locator(`[data-key="${name}"]`, { hasText: 'revoked' }).waitFor();
    return {};
  },
  async freeze({ reason }) {
    await page.locator('#freeze').click();
    await page.locator('[data-field="freeze-reason"]').fill(reason);
    await page.locator('button[data-act="freeze"]').click();
    await page.locator('[data-freeze="all"]').waitFor();
    return {};
  },
  async thaw({ what }) {
    await page.locator(`[data-freeze="${what}"] button[data-act="thaw"]`).click();
    await page.locator(`[data-freeze="${what}"]`).waitFor({ state: 'detached' });
    return {};
  },
  async call({ state }) {
    await open('calls');
    const row = page.locator(`[data-call][data-state="${state}"]`).first();
    await row.waitFor();
    return { id: await row.getAttribute('data-call'), text: await row.innerText() };
  },
  async stop({ id }) {
    const row = page.locator(`[data-call="${id}"]`);
    if (!(await row.locator('[data-act="stop"]').count())) await row.click();
    await page.locator('[data-act="stop"]').first().click();
    return { id };
  },
  async offered({ name }) {
    await open('tools');
    // Only the rows in view exist.
    await page.locator('#tools-filter').fill(name);
    const found = page.locator(`[data-tool="${name}"]`);
    await found.waitFor();
    const row = await found.innerText();
    await found.locator('button.open').click();
    const detail = page.locator('[data-tool-detail]');
    await detail.locator('.facts').waitFor();
    return { text: `${row}\n${await detail.innerText()}` };
  },
  async pin({ name, holds }) {
    await open('changes');
    const found = page.locator(`[data-pin="${name}"]`).filter({ hasText: holds });
    await found.waitFor();
    const all = selector => found.locator(selector).allInnerTexts();
    return { text: await found.innerText(), gone: await all('del'), came: await all('ins') };
  },
  async settle({ name, act }) {
    const found = page.locator(`[data-pin="${name}"]`);
    await found.locator(`button[data-act="${act}"]`).click();
    await (act === 'accept' ? found.waitFor({ state: 'detached' }) : found.filter({ hasText: 'rejected by' }).waitFor());
    return {};
  },
  async press({ name, act }) {
    await page.locator(`[data-pin="${name}"] button[data-act="${act}"]`).click();
    return {};
  },
  async task({ status }) {
    await open('tasks');
    const row = page.locator(`[data-task][data-status="${status}"]`).first();
    await row.waitFor();
    return { id: await row.getAttribute('data-task'), text: await row.innerText() };
  },
  async stop_task({ id }) {
    const row = page.locator(`[data-task="${id}"]`);
    await row.locator('button[data-act="stop-task"]').click();
    await page.locator(`[data-task="${id}"][data-status="cancelled"]`).waitFor();
    return { id, text: await row.innerText(), title: await page.title() };
  },
  async keys({ keys }) {
    for (const key of keys) await page.keyboard.press(key);
    return {};
  },
  async keys_at_once({ keys }) {
    await page.evaluate(all => {
      for (const key of all) document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
    }, keys);
    return {};
  },
  async gone({ name }) {
    await page.locator(`[data-pin="${name}"]`).waitFor({ state: 'detached' });
    return {};
  },
  async narrow({ width }) {
    await page.setViewportSize({ width, height: 800 });
    return { wide: await page.evaluate(() => document.documentElement.scrollWidth) };
  },
  async fetch({ url, init, read }) {
    return page.evaluate(async ({ url, init, read }) => {
      try {
        const res = await fetch(url, init);
        return { status: res.status, text: await res.text(), read: read ? res.headers.get(read) : null };
      } catch (error) {
        return { refused: String(error) };
      }
    }, { url, init, read });
  },
  async see({ at, holds }) {
    const found = page.locator(at, { hasText: holds ?? '' }).first();
    await found.waitFor({ state: 'visible' });
    // A part of a drawing has no innerText.
    return { text: await found.evaluate(node => node.innerText ?? node.textContent) };
  },
  async hidden({ at }) {
    await page.locator(at).first().waitFor({ state: 'hidden' });
    return {};
  },
  async click({ at }) {
    await page.locator(at).first().click();
    return {};
  },
  async fill({ at, text }) {
    await page.locator(at).first().fill(text);
    return {};
  },
  async read_through({ at }) {
    const text = page.locator(at).first();
    await text.evaluate(async node => {
      node.scrollTop = 0;
      while (node.scrollTop + node.clientHeight < node.scrollHeight - 2) {
        node.scrollTop += Math.floor(node.clientHeight * 0.8);
        await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
      }
    });
    return { text: await text.innerText() };
  },
  async go({ to }) {
    await page.evaluate(to => { location.hash = to; }, to);
    return {};
  },
  async size({ width, height = 900 }) {
    await page.setViewportSize({ width, height });
    return { width, wide: await page.evaluate(() => document.documentElement.scrollWidth), at: await page.evaluate(() => location.hash) };
  },
  async colors({ scheme }) {
    await page.emulateMedia({ colorScheme: scheme });
    return {};
  },
  async select({ at, value }) {
    await page.locator(at).first().selectOption(value);
    return {};
  },
  async count({ at }) {
    return { count: await page.locator(at).count() };
  },
  async view({ path }) {
    await page.screenshot({ path });
    return { path };
  },
  async axe({ page: name }) {
    if (!await page.evaluate(() => 'axe' in window)) await page.evaluate(readFileSync(need.resolve('axe-core/axe.min.js'), 'utf8'));
    const found = await page.evaluate(async () => {
      const { violations } = await window.axe.run(document, { resultTypes: ['violations'] });
      return violations.map(one => ({ id: one.id, impact: one.impact, nodes: one.nodes.slice(0, 3).map(node => node.html.slice(0, 200)) }));
    });
    return { page: name, violations: found };
  },
  async frames({ count }) {
    // The times between frames of the page, in milliseconds.
    return page.evaluate(count => new Promise(done => {
      const times = [];
      let last = performance.now();
      const next = now => {
        times.push(now - last);
        last = now;
        if (times.length < count) { requestAnimationFrame(next); return; }
        times.sort((a, b) => a - b);
        const at = part => Math.round(times[Math.floor(part * (times.length - 1))]);
        done({ median: at(0.5), p95: at(0.95), longest: at(1) });
      };
      requestAnimationFrame(next);
    }), count);
  },
  async usable({ at }) {
    // Loads the page again, and measures its first paint and the first frame that has what the selector finds. The page itself
    // looks, because the way to this script takes time too.
    await page.addInitScript(at => {
      const look = () => (document.querySelector(at)?.checkVisibility() ? (window.usable = { ...window.usable, [at]: performance.now() }) : requestAnimationFrame(look));
      requestAnimationFrame(look);
    }, at);
    await page.reload();
    const ready = await (await page.waitForFunction(at => window.usable?.[at], at)).jsonValue();
    return page.evaluate(ready => ({
      paint: Math.round(performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0), ready: Math.round(ready)
    }), ready);
  },
  async foreign({ page: name }) {
    return {
      page: name, ...await page.evaluate(() => ({
        ran: window.ran ?? null,
        markup: [...document.querySelectorAll('script:not([src]), [onerror], [onload], img:not([src^="blob:"]):not([src^="/"]), a[href^="javascript:"], iframe')].map(one => one.outerHTML.slice(0, 200)),
        hidden: (document.body.innerText.match(/[\u202a-\u202e\u2066-\u2069\u200b]/g) ?? []).length,
        shows: document.body.innerText.includes('onerror=')
      }))
    };
  },
  async tab_through({ page: name }) {
    // A dialog keeps the focus; of radio buttons, Tab reaches the chosen one.
    const wanted = await page.evaluate(() => {
      const controls = [...(document.querySelector('dialog[open]') ?? document).querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')];
      const usable = controls.filter(one => !one.disabled && one.tabIndex >= 0 && one.checkVisibility({ visibilityProperty: true }) && one.getClientRects().length && !(one.type === 'radio' && !one.checked));
      document.activeElement?.blur();
      return usable.map(one => one.outerHTML.slice(0, 160));
    });
    const reached = new Set(), unmarked = [];
    for (let i = 0; i < wanted.length + 10 || wanted.some(html => !reached.has(html)) && i < 2 * wanted.length + 20; i++) {
      await page.keyboard.press('Tab');
      const at = await page.evaluate(() => {
        const one = document.activeElement;
        if (!one || one === document.body) return null;
        const outlined = part => { const { outlineStyle, outlineWidth } = getComputedStyle(one, part); return outlineStyle !== 'none' && outlineWidth !== '0px'; };
        // A part of a date field has the mark of the browser itself.
        const marked = outlined() || outlined('::after') || getComputedStyle(one).strokeWidth === '2px' || one.type === 'datetime-local';
        return { marked, html: one.outerHTML.slice(0, 160) };
      });
      if (at) reached.add(at.html);
      if (at && !at.marked) unmarked.push(at.html);
    }
    // Something that a pointer can press has to be a control, or to be in one.
    const mouse = await page.evaluate(() => [...document.querySelectorAll('body *')].filter(one => getComputedStyle(one).cursor === 'pointer' && one.checkVisibility()
      && !one.closest('a[href], button, input, select, textarea, summary, label, [tabindex="0"], g:has(> [tabindex="0"])')).map(one => one.outerHTML.slice(0, 160)));
    return { page: name, controls: wanted.length, missed: wanted.filter(html => !reached.has(html)), unmarked, mouse };
  },
  async heap() {
    const devtools = await page.context().newCDPSession(page);
    await devtools.send('HeapProfiler.collectGarbage');
    const { usedSize } = await devtools.send('Runtime.getHeapUsage');
    await devtools.detach();
    return { bytes: usedSize };
  },
  async attack({ url }) {
    // A page of another origin, in the browser that is logged in.
    const other = await page.context().newPage();
    other.setDefaultTimeout(LIMIT);
    await other.goto(url);
    await other.locator('#done').waitFor({ state: 'attached' });
    const tries = await other.evaluate(() => window.tries);
    await other.close();
    return { tries };
  },
  async rows({ at, names }) {
    return {
      rows: await page.locator(at).evaluateAll((all, names) => all.map(one => ({
        text: one.innerText, ...Object.fromEntries(names.map(name => [name, one.getAttribute(name)]))
      })), names)
    };
  },
  async no_notifications() {
    await page.addInitScript(() => {
      window.Notification = class {
        static permission = 'granted';
        static async requestPermission() { return 'granted'; }
        constructor() {
          window.tried = (window.tried ?? 0) + 1;
          throw new TypeError('Illegal constructor');
        }
      };
      Object.defineProperty(document, 'hidden', { get: () => true });
      localStorage.setItem('toolgate.notify', '1');
      window.addEventListener('DOMContentLoaded', () => {
        const link = document.getElementById('link');
        window.links = [];
        new MutationObserver(() => window.links.push(link.dataset.link)).observe(link, { attributes: true });
      });
    });
    await page.reload();
    await page.locator('#link[data-link="live"]').waitFor();
    return {};
  },
  async links() {
    return page.evaluate(() => ({ links: window.links, tried: window.tried ?? 0 }));
  },
  async wait() {
    say('waiting');
    await lines.next();
    return {};
  },
  /** Opens the link of a request, whose id is the next line. */
  async open_request() {
    say('waiting');
    const id = (await lines.next()).value;
    await open(`inbox/${id}`);
    return { id };
  },
  async opened({ id }) {
    await card(id).locator('[data-arguments]').waitFor();
    return {};
  }
};

let last = {};
try {
  await page.goto(job.link);
  say('open', { url: page.url().replace(/#.*/, '') });
  for (const step of job.steps) {
    last = { id: last.id, ...(await acts[step.do]({ id: last.id, ...step })) };
    say(step.do, last);
  }
  say('done');
} catch (error) {
  if (job.on_error) await page.screenshot({ path: job.on_error, fullPage: true }).catch(() => {});
  say('error', { message: String(error.message ?? error) });
  process.exitCode = 1;
}
await browser.close();
process.exit();
