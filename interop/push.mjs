// A person who lets the console notify them, in a real Chromium. The browser has no push service here, so it subscribes at the
// address and with the keys of the job; its service worker gets the message through the DevTools protocol.
//
// A job is JSON in argv[2]: {url, endpoint, keys}. Says "subscribed", then "waiting". After a line {message} on standard input,
// the worker gets the message: "shown" has the notification. Its click ends in "opened", with the address of the page.
import { job, need, say, line } from './job.mjs';
import { consoleWorker } from './service-worker.mjs';

const { chromium } = need('playwright-core');

const browser = await chromium.launch({
  executablePath: process.env.TOOLGATE_CHROMIUM ?? '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'],
});
try {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 } });
  await context.grantPermissions(['notifications'], { origin: new URL(job.url).origin });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  page.on('pageerror', error => say('page_error', { message: String(error) }));
  await page.addInitScript(({ endpoint, keys }) => {
    let made = null;
    PushManager.prototype.getSubscription = async () => made;
    PushManager.prototype.subscribe = async function (options) {
      const key = new Uint8Array(options.applicationServerKey);
      if (!options.userVisibleOnly || key.length !== 65 || key[0] !== 4) throw new Error('wrong options');
      made = { endpoint, toJSON: () => ({ endpoint, keys }), unsubscribe: async () => { made = null; return true; } };
      window.subscribed = true;
      return made;
    };
  }, job);
  await page.goto(job.url, { waitUntil: 'domcontentloaded' });
  await page.locator('#notify').click();
  await page.waitForFunction(() => document.getElementById('notify').getAttribute('aria-pressed') === 'true');
  // The button is pressed before the worker is active and the browser subscribed.
  await page.waitForFunction(() => window.subscribed);
  say('subscribed');

  const worker = await consoleWorker(context, page);
  say('waiting');
  const { message } = JSON.parse(await line());
  await worker.deliver(message);
  say('shown', { notification: await worker.shown() });

  await worker.click();
  await page.waitForFunction(() => location.hash.startsWith('#/inbox/'));
  say('opened', { address: page.url(), left: await page.evaluate(async () => (await (await navigator.serviceWorker.getRegistration('/console/sw.js')).getNotifications()).length) });
} catch (error) {
  say('error', { message: String(error.stack ?? error) });
  process.exitCode = 1;
}
await browser.close();
process.exit();
