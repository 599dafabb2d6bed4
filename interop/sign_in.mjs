// A person who signs in at the pages of servers/oidc.mjs, with a real Chromium and a fresh profile.
//
// A job is JSON in argv[2]: {url, name, refuse}. Says "back" with the text of the page that the person came back to.
import { job, need, say } from './job.mjs';

const { chromium } = need('playwright-core');

const browser = await chromium.launch({
  executablePath: process.env.TOOLGATE_CHROMIUM ?? '/usr/bin/chromium',
  args: [
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--disable-dev-shm-usage',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    // The pages name a font elsewhere.
    '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'
  ]
});
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(60_000);
  await page.goto(job.url, { waitUntil: 'domcontentloaded' });
  say('page', { origin: new URL(page.url()).origin });
  await page.locator('input[name="login"]').fill(job.name);
  await page.locator('input[name="password"]').fill('any');
  await page.locator('button[type="submit"]').click();
  await page.locator('input[name="prompt"][value="consent"]').waitFor({ state: 'attached' });
  say('asked', { text: await page.locator('body').innerText() });
  if (job.refuse) await page.getByText('[ Cancel ]').click();
  else await page.locator('button[type="submit"]').click();
  await page.waitForURL(url => url.pathname === '/callback', { waitUntil: 'domcontentloaded' });
  say('back', { text: await page.locator('body').innerText() });
} catch (error) {
  say('error', { message: String(error.message ?? error) });
  process.exitCode = 1;
}
await browser.close();
process.exit();
