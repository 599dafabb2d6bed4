// People who sign in to the console at servers/oidc.mjs, each with a real Chromium and a fresh profile.
//
// A job is JSON in argv[2]: {url, names, issuer}, where the issuer may be absent if the page has one only. Says "session" with the cookie and the key of each person's session and what the
// page shows, or "refused" with the error of the page.
import { job, need, say } from './job.mjs';

const { chromium } = need('playwright-core');

const browser = await chromium.launch({
  executablePath: process.env.TOOLGATE_CHROMIUM ?? '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'],
});
try {
  for (const name of job.names) {
    const context = await browser.newContext();
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    page.on('pageerror', error => say('page_error', { message: String(error) }));
    await page.goto(job.url, { waitUntil: 'domcontentloaded' });
    await page.locator(`#login-issuers button${job.issuer ? `[data-issuer="${job.issuer}"]` : ''}`).click();
    await page.locator('input[name="login"]').fill(name);
    await page.locator('input[name="password"]').fill('any');
    await page.locator('button[type="submit"]').click();
    await page.locator('input[name="prompt"][value="consent"]').waitFor({ state: 'attached' });
    await page.locator('button[type="submit"]').click();
    await page.locator('#console:visible, #login-error:visible').first().waitFor();
    if (await page.locator('#login-error').isVisible()) {
      say('refused', { name, text: await page.locator('#login-error').innerText() });
    } else {
      const [cookie] = (await context.cookies(job.url)).filter(one => one.name.startsWith('toolgate_'));
      const key = await page.evaluate(() => localStorage.getItem('toolgate.key'));
      say('session', {
        name, cookie: `${cookie.name}=${cookie.value}`, key, address: page.url(), me: await page.locator('#me').innerText(),
        freeze: await page.locator('#freeze').isVisible(),
      });
    }
    await context.close();
  }
  say('done');
} catch (error) {
  say('error', { message: String(error.stack ?? error) });
  process.exitCode = 1;
}
await browser.close();
process.exit();
