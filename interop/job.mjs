// What every client script shares: the job from the command line, and one JSON line per thing that happened.
//
// A job is JSON in argv[2]:
//   http: URL              or  stdio: [COMMAND, ARG...] with env: {NAME: VALUE}
//   package: NAME                   which release of the SDK, where a script serves several
//   mode: "legacy" | "modern" | "sse"   which era the client is held to; the last is HTTP with SSE of 2024-11-05
//   headers: {NAME: VALUE}          sent with every HTTP request
//   elicit: null | [{action, content}...]   null declares no elicitation; else one answer per question, the last repeats
//   pages: true                     the client opens pages for its user, and shows no forms
//   steps: [{do: "list"} | {do: "call", name, arguments, cancel_after, leave_after, timeout_ms} | {do: "wait"} |
//           {do: "changed"} | {do: "ask", method, params} | {do: "updated", uri}]
//     ask                sends a request of another method and prints its result as it came
//     updated            waits until the server told that this resource changed, at any time before or now
//     cancel_after: N    cancels the call by the revision's own means after N progress messages
//     leave_after: N     ends the process at once after N progress messages: a lost connection, not a cancel
//     wait               prints "waiting" and goes on when a line comes on standard input
//     changed            waits until the server told that its list of tools changed, at any time before or now
//
// The packages live outside this folder (`cargo xtask test` installs them), so they are found by TOOLGATE_INTEROP.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { join } from 'node:path';

export const need = createRequire(join(process.env.TOOLGATE_INTEROP, 'node', 'package.json'));
export const job = JSON.parse(process.argv[2] ?? '{}');

export function say(event, more = {}) {
  process.stdout.write(JSON.stringify({ event, ...more }) + '\n');
}

/** What the client declares of questions to its user. */
export const asking = () => (job.elicit ? { elicitation: job.pages ? { url: {} } : {} } : {});

/** Answers the question at hand: only the asked fields of the prepared content are sent. */
export function answerer() {
  let asked = 0;
  return params => {
    const answer = job.elicit[Math.min(asked++, job.elicit.length - 1)];
    const fields = Object.keys(params.requestedSchema?.properties ?? {});
    say('asked', { message: params.message, fields, url: params.url ?? null });
    if (answer.action !== 'accept' || params.mode === 'url') return { action: answer.action };
    const known = Object.entries(answer.content ?? {}).filter(([name]) => fields.includes(name));
    return { action: 'accept', content: Object.fromEntries(known) };
  };
}

export function sayResult(result) {
  const content = result.content ?? [];
  say('result', {
    is_error: result.isError === true,
    text: content.filter(c => c.type === 'text').map(c => c.text).join('\n'),
    kinds: content.map(c => c.type),
    structured: result.structuredContent ?? null
  });
}

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

let heard;
const hearing = new Promise(resolve => (heard = resolve));

/** To be called when the server tells that its list of tools changed. */
export const changed = () => heard();

const WAYS = {
  'resources/list': 'listResources',
  'resources/templates/list': 'listResourceTemplates',
  'resources/read': 'readResource',
  'resources/subscribe': 'subscribeResource',
  'resources/unsubscribe': 'unsubscribeResource',
  'prompts/list': 'listPrompts',
  'prompts/get': 'getPrompt',
  'completion/complete': 'complete'
};

const updates = new Map();
function update(uri) {
  if (!updates.has(uri)) {
    let tell;
    const told = new Promise(resolve => (tell = resolve));
    updates.set(uri, { told, tell });
  }
  return updates.get(uri);
}

/** To be called when the server tells that a resource changed. */
export const updated = uri => update(uri).tell();

/** Runs the steps with `list()` and `call(params, options)` of one SDK, then `close()`. */
export async function run({ client, list, call, close }) {
  for (const step of job.steps) {
    try {
      if (step.do === 'list') sayTools(await list());
      else if (step.do === 'changed') await hearing.then(() => say('changed'));
      else if (step.do === 'updated') await update(step.uri).told.then(() => say('updated', { uri: step.uri }));
      else if (step.do === 'ask') say('answer', { result: await client[WAYS[step.method]](step.params) });
      else if (step.do === 'wait') await wait();
      else await oneCall(step, call);
    } catch (error) {
      say('error', { code: error.code ?? null, message: String(error.message ?? error) });
    }
  }
  await close();
  say('done');
  process.exit(0);
}

function sayTools(tools) {
  say('tools', { names: tools.map(tool => tool.name), tools });
}

async function wait() {
  say('waiting');
  await lines.next();
}

async function oneCall(step, call) {
  const cancel = new AbortController();
  let seen = 0;
  const onprogress = progress => {
    say('progress', progress);
    seen += 1;
    if (seen === step.leave_after) process.exit(0);
    if (seen === step.cancel_after) cancel.abort('the user changed their mind');
  };
  const options = { onprogress, signal: cancel.signal, timeout: step.timeout_ms ?? 60_000, resetTimeoutOnProgress: true };
  try {
    sayResult(await call({ name: step.name, arguments: step.arguments ?? {} }, options));
  } catch (error) {
    if (!cancel.signal.aborted) throw error;
    say('cancelled');
  }
}

/** The next line on standard input. */
export const line = async () => (await lines.next()).value;
