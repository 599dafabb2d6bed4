// The servers behind the gateway.

import { state, post } from "./api.js";
import { h, t, put, attr, keyed, sizeNote } from "./dom.js";
import { freezeButton } from "./view-grants.js";

const LEVEL = { running: "calm", starting: "running", backoff: "warn", "sign-in": "warn", failed: "bad", stopped: "idle" };
const WORDS = { backoff: "restarting later", "sign-in": "needs a sign-in" };

const servers = document.getElementById("view-servers");
const serverList = h("div", { class: "servers" });
const noServers = h("p", { class: "empty", hidden: true }, "No server is configured. Add one to toolgate.toml.");
servers.append(h("h2", { class: "sr" }, "Servers"), noServers, serverList);
const syncServers = keyed(serverList, (s) => s.id, makeServer);

export function renderServers() {
  syncServers(state.servers);
  attr(noServers, "hidden", state.servers.length > 0);
}

function makeServer(first) {
  const mark = h("span", { class: "state" });
  const facts = h("span", { class: "dim" });
  const command = h("code", { class: "command" });
  const error = h("p", { class: "error", hidden: true });
  const signIn = h("button", { type: "button", class: "primary small", hidden: true, "data-act": "sign-in" }, "Sign in");
  const failed = h("p", { class: "error", role: "alert", hidden: true });
  signIn.addEventListener("click", () => goTo(first.id, signIn, failed));
  const size = h("span", { class: "dim" });
  const log = h("pre", { tabindex: "0", "aria-label": "Last lines of stderr of " + first.id });
  const logBox = h("details", { class: "log" }, h("summary", {}, "Last lines of stderr ", size), log);
  const node = h("article", { class: "server", "data-server": first.id },
    h("header", {}, t("h3", {}, first.id), mark, facts, signIn, freezeButton(() => "server " + first.id)), command, error, failed, logBox);
  let was = null;
  return { node, update(s) {
    attr(node, "data-state", s.state);
    put(mark, WORDS[s.state] ?? s.state);
    mark.className = "state " + (LEVEL[s.state] ?? "idle");
    put(facts, [`${s.tools} tool${s.tools === 1 ? "" : "s"}`, s.revision && "revision " + s.revision, s.restarts ? `${s.restarts} restart${s.restarts === 1 ? "" : "s"}` : null].filter(Boolean).join(", "));
    put(command, s.command ?? "");
    put(error, s.error ?? "");
    attr(error, "hidden", !s.error);
    attr(signIn, "hidden", !(s.signs_in && s.state === "sign-in"));
    attr(logBox, "hidden", Boolean(s.signs_in));
    if (was !== s.state && (s.state === "failed" || s.state === "backoff")) logBox.open = true;
    was = s.state;
    const text = (s.stderr ?? []).join("\n");
    const atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
    put(log, text, true);
    put(size, text ? sizeNote(text) : "nothing yet");
    if (atEnd) log.scrollTop = log.scrollHeight;
  } };
}

/** Goes to the page where a person signs in. The gateway says which, and has looked at it. */
async function goTo(server, button, failed) {
  button.disabled = true;
  const res = await post("/console/api/sign-in/begin", { server });
  const page = res.ok ? JSON.parse(res.text).page : "";
  if (/^https?:\/\//.test(page)) { location.assign(page); return; }
  button.disabled = false;
  put(failed, res.error ?? "the gateway named no page");
  attr(failed, "hidden", false);
}
