// Tasks: calls that continue after their response. Running ones can be stopped here.

import { state, now, post } from "./api.js";
import { h, t, put, attr, keyed, button, visText, pageRoot, cell } from "./dom.js";
import { span, utc } from "./time.js";

const LEVEL = { working: "running", input_required: "waiting", completed: "calm", failed: "bad", cancelled: "idle" };
const WORDS = { input_required: "input required" };
const runs = (task) => task.status === "working" || task.status === "input_required";

/** How many run. */
const tasksRunning = () => state.tasks.filter(runs).length;

const root = pageRoot("tasks", "Tasks");
const error = h("p", { class: "error", role: "alert", hidden: true });
const none = h("div", { class: "empty", hidden: true }, h("h3", {}, "No tasks"), h("p", {}, "A call that takes longer than its client waits continues as a task, if the client supports tasks. The task is listed here until it expires."));
const list = h("tbody", {});
const head = ["Tool", "Caller", "State", "Age", "Expires in"].map((x) => h("th", { scope: "col" }, x));
const table = h("table", { class: "grants tasks" }, h("thead", {}, h("tr", {}, ...head, h("th", { scope: "col" }, h("span", { class: "sr" }, "Stop")))), list);
root.append(error, none, table);
const sync = keyed(list, (task) => task.call, makeTask);
let rows = new Map();

function renderTasks() {
  rows = sync([...state.tasks].sort((a, b) => runs(b) - runs(a) || b.created - a.created));
  attr(none, "hidden", state.tasks.length > 0);
  attr(table, "hidden", !state.tasks.length);
}

/** Moves the ages on. */
function tickTasks() {
  for (const part of rows.values()) part.tick();
}


function makeTask(first) {
  let task = first;
  const mark = h("span", { class: "state" }), words = h("small", { class: "dim" });
  const age = h("time", { title: utc(first.created) }), left = h("span", {});
  const stop = button("Stop", { class: "danger small", "data-act": "stop-task" }, async () => {
    stop.disabled = true;
    const res = await post("/console/api/tasks/stop", { id: first.call });
    put(error, res.error ? visText(res.error) : "");
    attr(error, "hidden", !res.error);
    stop.disabled = false;
  });
  const call = h("a", { href: "#/calls/" + encodeURIComponent(first.call) }, t("b", {}, first.tool));
  const node = h("tr", { "data-task": first.call }, cell("Tool", call), cell("Caller", t("span", {}, first.caller)),
    cell("State", h("span", {}, mark, words)), cell("Age", age), cell("Expires in", left), cell("", stop));
  const tick = () => {
    put(age, span(now() - task.created));
    put(left, span(task.created + task.ttl - now()));
  };
  return { node, tick, update(next) {
    task = next;
    attr(node, "data-status", task.status);
    put(mark, WORDS[task.status] ?? task.status);
    mark.className = "state " + (LEVEL[task.status] ?? "idle");
    put(words, task.message ?? "");
    attr(words, "hidden", !task.message);
    attr(stop, "hidden", !runs(task));
    tick();
  } };
}

export const page = { id: "tasks", label: "Tasks", letter: "x", topics: ["tasks"], draw: renderTasks, tick: tickTasks, count: () => tasksRunning() || "" };
