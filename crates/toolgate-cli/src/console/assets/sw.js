// Service worker of the console: shows push messages. It decides nothing; a click opens the request in the console.

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (e) => e.waitUntil(self.clients.claim()));

self.addEventListener("push", (e) => {
  let message = {};
  try { message = e.data.json(); } catch { /* not one of ours */ }
  const title = String(message.title ?? "Approval needed");
  const options = { body: String(message.body ?? ""), icon: "/console/icon.svg", data: { url: String(message.url ?? "/") }, requireInteraction: true };
  if (message.tag) options.tag = String(message.tag);
  e.waitUntil(self.registration.showNotification(title, options));
});

self.addEventListener("notificationclick", (e) => {
  e.notification.close();
  e.waitUntil(open(e.notification.data?.url));
});

/** Opens a page of this console, in a window of it if there is one. */
async function open(address) {
  let url = new URL("/", self.location.origin);
  try {
    const wanted = new URL(address, self.location.origin);
    // The message may name the console by another host name; its page is the same one here.
    url.hash = wanted.hash;
  } catch { /* the start page */ }
  const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const console = windows.find((one) => new URL(one.url).pathname === "/");
  if (!console) return self.clients.openWindow(url.href);
  console.postMessage({ open: url.hash });
  return console.focus();
}
