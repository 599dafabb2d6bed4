// A person who lets the console notify them, in a real Chromium. The browser has no push service here, so it subscribes at the
// address and with the keys of the job; its service worker gets the message through the DevTools protocol.
//
// A job is JSON in argv[2]: {url, endpoint, keys}. Says "subscribed", then "waiting". After a line {message} on standard input,
// the worker gets the message: "shown" has the notification. Its click ends in "opened", with the address of the page.
import { job, need, say, line } from './job.mjs';

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

  const devtools = await context.newCDPSession(page);
  const registrations = new Map();
  devtools.on('ServiceWorker.workerRegistrationUpdated', ({ registrations: all }) => all.forEach(one => registrations.set(one.registrationId, one)));
  await devtools.send('ServiceWorker.enable');
  say('waiting');
  const { message } = JSON.parse(await line());
  const origin = new URL(job.url).origin;
  const of = [...registrations.values()].find(one => one.scopeURL.startsWith(origin) && !one.isDeleted);
  await devtools.send('ServiceWorker.deliverPushMessage', { origin, registrationId: of.registrationId, data: JSON.stringify(message) });
  let notification = null;
  for (const end = Date.now() + 30_000; !notification && Date.now() < end;) {
    notification = await page.evaluate(async () => {
      const worker = await navigator.serviceWorker.getRegistration('/console/sw.js');
      const [one] = await worker.getNotifications();
      return one ? { title: one.title, body: one.body, tag: one.tag, url: one.data.url } : null;
    });
  }
  say('shown', { notification });

  const [worker] = context.serviceWorkers();
  await worker.evaluate(async () => {
    const [notification] = await self.registration.getNotifications();
    self.dispatchEvent(new NotificationEvent('notificationclick', { notification }));
  });
  await page.waitForFunction(() => location.hash.startsWith('#/inbox/'));
  say('opened', { address: page.url(), left: await page.evaluate(async () => (await (await navigator.serviceWorker.getRegistration('/console/sw.js')).getNotifications()).length) });
} catch (error) {
  say('error', { message: String(error.stack ?? error) });
  process.exitCode = 1;
}
await browser.close();
process.exit();
