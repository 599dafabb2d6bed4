// Push messages: this browser hears of requests while the console is closed.

import { post } from "./api.js";

/** Whether this browser can get push messages: it needs a secure page and a push service. */
export const canPush = "serviceWorker" in navigator && "PushManager" in window && window.isSecureContext;

const SCRIPT = "/console/sw.js";

async function registration() {
  await navigator.serviceWorker.register(SCRIPT);
  // The worker controls no page, so `ready` would never come.
  const found = await navigator.serviceWorker.getRegistration(SCRIPT);
  for (let tries = 0; !found.active && tries < 100; tries++) await new Promise((done) => setTimeout(done, 50));
  return found;
}

const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));

/** Whether this browser gets push messages. */
export async function isSubscribed() {
  if (!canPush) return false;
  const worker = await navigator.serviceWorker.getRegistration(SCRIPT);
  return Boolean(await worker?.pushManager.getSubscription());
}

/** Subscribes this browser. Returns an error for a person, or null. */
export async function subscribe() {
  const key = await post("/console/api/push/key", {});
  if (!key.ok) return key.error;
  try {
    const worker = await registration();
    const before = await worker.pushManager.getSubscription();
    // Another key means another data directory; its subscription is of no use here.
    await before?.unsubscribe();
    const made = await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytes(JSON.parse(key.text).key) });
    const res = await post("/console/api/push/subscribe", made.toJSON());
    return res.ok ? null : res.error;
  } catch (e) {
    return "the browser cannot subscribe to push messages: " + e.message;
  }
}

/** Ends the subscription of this browser. Returns an error for a person, or null. */
export async function unsubscribe() {
  const worker = await navigator.serviceWorker.getRegistration(SCRIPT);
  const made = await worker?.pushManager.getSubscription();
  if (!made) return null;
  const res = await post("/console/api/push/unsubscribe", { endpoint: made.endpoint });
  await made.unsubscribe();
  return res.ok ? null : res.error;
}

// A click on a notification, which the worker hears.
if (canPush) {
  navigator.serviceWorker.addEventListener("message", (e) => {
    if (typeof e.data?.open === "string" && e.data.open.startsWith("#/")) location.hash = e.data.open;
  });
  navigator.serviceWorker.startMessages();
}
