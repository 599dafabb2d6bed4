// An approver with a phone: a real Chromium with a touch screen of 390 by 844 pixels, over TLS at an address of the network.
// The browser has no push service here, so it subscribes at the address and with the keys of the job; its service worker gets
// the message through the DevTools protocol.
//
// A job is JSON in argv[2]: {link, certificate, endpoint, keys, data, shots}. `certificate` is the PEM file that the browser
// trusts, `data` a folder for its profile, and `shots` a prefix of screenshots. Says "subscribed" after the sign-in. After a
// line {message} on standard input, the worker gets the message: "shown" has the notification. A tap on it ends in "opened".
// The page is closed then, and the address of the notification opened, as another program of the phone does: "linked". A tap
// on the button that approves ends in "decided". Each has the width of the page and what axe-core finds.
import { createHash, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { job, need, say, line } from './job.mjs';
import { consoleWorker } from './service-worker.mjs';

const { chromium, devices } = need('playwright-core');
const WIDTH = 390;
const certificate = new X509Certificate(readFileSync(job.certificate));
const trusted = createHash('sha256').update(certificate.publicKey.export({ type: 'spki', format: 'der' })).digest('base64');

const context = await chromium.launchPersistentContext(job.data, {
  executablePath: process.env.TOOLGATE_CHROMIUM ?? '/usr/bin/chromium',
  headless: true,
  ...devices['Pixel 7'], viewport: { width: WIDTH, height: 844 }, hasTouch: true, isMobile: true, permissions: ['notifications'],
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', `--ignore-certificate-errors-spki-list=${trusted}`],
});

/** A page of the phone, as a tap on a link opens one. */
async function open(address) {
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  page.on('pageerror', error => say('page_error', { message: String(error) }));
  await page.addInitScript(({ endpoint, keys }) => {
    const stored = 'test.subscribed';
    const made = () => localStorage.getItem(stored) === '1'
      ? { endpoint, toJSON: () => ({ endpoint, keys }), unsubscribe: async () => { localStorage.removeItem(stored); return true; } } : null;
    PushManager.prototype.getSubscription = async () => made();
    PushManager.prototype.subscribe = async () => { localStorage.setItem(stored, '1'); return made(); };
  }, { endpoint: job.endpoint, keys: job.keys });
  await page.goto(address, { waitUntil: 'domcontentloaded' });
  return page;
}

/** Says where the page is, how wide it is, and what is wrong with it for people who use assistive technology. */
async function report(event, page, more = {}) {
  if (!await page.evaluate(() => 'axe' in window)) await page.evaluate(readFileSync(need.resolve('axe-core/axe.min.js'), 'utf8'));
  const violations = await page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ['violations'], rules: { 'target-size': { enabled: true } } });
    return violations.map(one => ({ id: one.id, nodes: one.nodes.slice(0, 3).map(node => node.html.slice(0, 200)) }));
  });
  await page.screenshot({ path: `${job.shots}-${event}.png`, fullPage: true });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  say(event, { address: page.url(), wide, violations, ...more });
}

try {
  let page = await open(job.link);
  await page.locator('#notify').tap();
  await page.waitForFunction(() => document.getElementById('notify').getAttribute('aria-pressed') === 'true');
  // The button is pressed before the worker is active and the browser subscribed.
  await page.waitForFunction(() => localStorage.getItem('test.subscribed') === '1');
  const secure = await page.evaluate(() => window.isSecureContext);
  const worker = await consoleWorker(context, page);
  await report('subscribed', page, { secure });

  const { message } = JSON.parse(await line());
  await worker.deliver(message);
  const notification = await worker.shown();
  say('shown', { notification });

  await worker.click();
  const detail = page => page.locator(`[data-detail="${notification.tag}"]`);
  await detail(page).locator('[data-arguments]').waitFor();
  await report('opened', page);

  await page.close();
  page = await open(notification.url);
  await detail(page).locator('[data-arguments]').waitFor();
  const text = await detail(page).innerText();
  await report('linked', page, { text });

  await detail(page).locator('button[data-act="approve"]').tap();
  await page.locator(`[data-pending="${notification.tag}"]`).waitFor({ state: 'detached' });
  await report('decided', page);
} catch (error) {
  say('error', { message: String(error.stack ?? error) });
  process.exitCode = 1;
}
await context.close();
process.exit();
