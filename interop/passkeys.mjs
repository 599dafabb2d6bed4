// People at the console with virtual authenticators (WebAuthn), each with a context of its own in a real Chromium.
//
// Each line on standard input is a command in JSON; each is answered with one line, an event of its name:
//   {do: "open", who, link}            opens the link, with a new authenticator
//   {do: "enroll", who, label, admin}  adds a passkey; says the error, or the digest of the last change and the requests
//   {do: "sign", who}                  signs the first request that waits; says the error
//   {do: "remove", who, person, label} removes a passkey; says the error
//   {do: "approve", who, id}           presses the button of the request; says its label, and the error if the request stays
//   {do: "deny", who, id}              denies the request
//   {do: "verified", who, yes}         sets whether the authenticator verifies its user
//   {do: "end"}
import { line, need, say } from './job.mjs';

const { chromium } = need('playwright-core');

const browser = await chromium.launch({
  executablePath: process.env.TOOLGATE_CHROMIUM ?? '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost'],
});
const people = new Map();

async function open(who, link) {
  const context = await browser.newContext();
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  page.on('pageerror', error => say('page_error', { message: String(error) }));
  const devtools = await context.newCDPSession(page);
  await devtools.send('WebAuthn.enable');
  const { authenticatorId } = await devtools.send('WebAuthn.addVirtualAuthenticator', { options: {
    protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true,
  } });
  await page.goto(link, { waitUntil: 'domcontentloaded' });
  await page.locator('#console').waitFor();
  people.set(who, { page, devtools, authenticatorId });
  return { address: new URL(page.url()).origin };
}

/** Presses a button that posts one of the actions last; gives the error that the page shows, or null. */
async function press(page, button, root) {
  await page.locator(button).first().click();
  const error = page.locator(`${root} .error[role=alert]:visible`);
  // The page enables the button again, or replaces it, once the work is done.
  await page.waitForFunction(([selector, box]) => {
    const node = document.querySelector(selector);
    const shown = [...document.querySelectorAll(`${box} .error[role=alert]`)].some(one => !one.hidden);
    return shown || !node || !node.disabled;
  }, [button, root]);
  return (await error.count()) ? await error.first().innerText() : null;
}

const ROOT = '#view-passkeys';

async function passkeys(page) {
  await page.evaluate(() => { location.hash = '#/passkeys'; });
  await page.locator(`${ROOT}`).waitFor();
  await page.locator(`${ROOT} [data-act=approve-add-passkey]`).waitFor();
}

const commands = {
  open: ({ who, link }) => open(who, link),
  async enroll({ who, label, admin }) {
    const { page } = people.get(who);
    await passkeys(page);
    await page.locator(`${ROOT} [data-field=passkey-label]`).fill(label);
    if (admin) await page.locator(`${ROOT} [data-field=passkey-admin]`).check();
    const before = await page.locator(`${ROOT} [data-passkey]`).count();
    const error = await press(page, `${ROOT} [data-act=approve-add-passkey]`, ROOT);
    if (error) return { error };
    await page.waitForFunction(([root, rows]) => document.querySelectorAll(`${root} [data-passkey]`).length > rows, [ROOT, before]);
    return { error, digest: await page.locator(`${ROOT} [data-digest]`).first().innerText(), text: await page.locator(ROOT).innerText(),
      request: (await page.locator(`${ROOT} [data-request]`).count()) ? await page.locator(`${ROOT} [data-request]`).first().innerText() : null };
  },
  async sign({ who }) {
    const { page } = people.get(who);
    await passkeys(page);
    const requests = page.locator(`${ROOT} [data-act=approve-sign-passkey]`);
    await requests.first().waitFor();
    const before = await requests.count();
    await requests.first().click();
    await page.waitForFunction(([root, rows]) => {
      const shown = [...document.querySelectorAll(`${root} .error[role=alert]`)].some(one => !one.hidden);
      return shown || document.querySelectorAll(`${root} [data-act=approve-sign-passkey]`).length < rows;
    }, [ROOT, before]);
    const error = page.locator(`${ROOT} .error[role=alert]:visible`);
    return { error: (await error.count()) ? await error.first().innerText() : null };
  },
  async remove({ who, person, label }) {
    const { page } = people.get(who);
    await passkeys(page);
    const row = page.getByRole('button', { name: `Remove the passkey ${label} of ${person}` });
    await row.click();
    const error = page.locator(`${ROOT} .error[role=alert]:visible`);
    await Promise.race([row.waitFor({ state: 'detached' }), error.first().waitFor()]);
    return { error: (await error.count()) ? await error.first().innerText() : null };
  },
  async approve({ who, id }) {
    const { page } = people.get(who);
    await page.evaluate(id => { location.hash = '#/inbox/' + id; }, id);
    const card = page.locator(`[data-detail="${id}"]`);
    await card.waitFor();
    const button = card.locator('[data-act=approve]:enabled');
    await button.waitFor();
    const label = await button.innerText();
    await button.click();
    // The card is busy from the click until the gateway answers. Then it shows the error or goes away.
    await card.and(page.locator('[aria-busy=true]')).waitFor({ state: 'detached' });
    const errors = await card.locator('.error:visible').allInnerTexts();
    return { label, error: errors[0] ?? null };
  },
  async deny({ who, id }) {
    const { page } = people.get(who);
    await page.evaluate(id => { location.hash = '#/inbox/' + id; }, id);
    const card = page.locator(`[data-detail="${id}"]`);
    await card.locator('[data-act=deny]:enabled').click();
    await card.waitFor({ state: 'detached' });
    return {};
  },
  async verified({ who, yes }) {
    const { devtools, authenticatorId } = people.get(who);
    await devtools.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: yes });
    return {};
  },
};

try {
  say('ready');
  for (;;) {
    const command = JSON.parse(await line());
    if (command.do === 'end') break;
    say(command.do, await commands[command.do](command));
  }
} catch (error) {
  say('error', { message: String(error.stack ?? error) });
  process.exitCode = 1;
}
await browser.close();
process.exit();
