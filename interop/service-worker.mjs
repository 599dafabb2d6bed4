// The service worker of the console, driven through the DevTools protocol: the browser has no push service here.

/** The service worker of the console that a page has registered. */
export async function consoleWorker(context, page) {
  // A push message to a worker that does not run yet would be lost.
  await page.evaluate(async () => {
    const { installing, waiting, active } = await navigator.serviceWorker.getRegistration('/console/sw.js');
    const worker = installing ?? waiting ?? active;
    while (worker.state !== 'activated') await new Promise(done => worker.addEventListener('statechange', done, { once: true }));
  });
  const devtools = await context.newCDPSession(page);
  const registrations = new Map();
  devtools.on('ServiceWorker.workerRegistrationUpdated', ({ registrations: all }) => all.forEach(one => registrations.set(one.registrationId, one)));
  await devtools.send('ServiceWorker.enable');
  return {
    /** Delivers a push message, and waits until the worker has shown its notification. */
    async deliver(message) {
      const [worker] = context.serviceWorkers();
      // Chromium may lose a notification if a page asks for it just before it is shown.
      await worker.evaluate(() => {
        const { showNotification } = self.registration;
        self.hasShown = new Promise((resolve, reject) => {
          self.registration.showNotification = (...args) => showNotification.apply(self.registration, args).then(resolve, reject);
        });
      });
      const { origin } = new URL(page.url());
      const of = [...registrations.values()].find(one => one.scopeURL.startsWith(origin) && !one.isDeleted);
      await devtools.send('ServiceWorker.deliverPushMessage', { origin, registrationId: of.registrationId, data: JSON.stringify(message) });
      await worker.evaluate(() => self.hasShown);
    },
    /** The notification that the worker shows; null if there is none. */
    shown: () => page.evaluate(async () => {
      const worker = await navigator.serviceWorker.getRegistration('/console/sw.js');
      const [one] = await worker.getNotifications();
      return one ? { title: one.title, body: one.body, tag: one.tag, url: one.data.url } : null;
    }),
    /** Clicks the notification. */
    async click() {
      const [worker] = context.serviceWorkers();
      await worker.evaluate(async () => {
        const [notification] = await self.registration.getNotifications();
        self.dispatchEvent(new NotificationEvent('notificationclick', { notification }));
      });
    },
  };
}
