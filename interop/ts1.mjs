// The TypeScript SDK 1.x over Streamable HTTP, the older HTTP with SSE, or stdio; each release has its newest revision.
import { answerer, asking, changed, job, need, run, say, updated } from './job.mjs';

const sdk = job.package ?? '@modelcontextprotocol/sdk';
const { Client } = need(`${sdk}/client/index.js`);
const types = need(`${sdk}/types.js`);
const { CallToolResultSchema, ElicitRequestSchema, ToolListChangedNotificationSchema } = types;

/** Older releases do not tell which revision was agreed on. */
class Telling extends Client {
  async request(request, ...more) {
    const result = await super.request(request, ...more);
    if (request.method === 'initialize') this.revision = result.protocolVersion;
    return result;
  }
}

// Elicitation came with 2025-06-18.
const asks = job.elicit && ElicitRequestSchema;
const capabilities = asks ? asking() : {};
const client = new Telling({ name: 'interop-ts1', version: '1.0.0' }, { capabilities });
client.setNotificationHandler(ToolListChangedNotificationSchema, changed);
client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, told => updated(told.params.uri));
if (asks) {
  const answer = answerer();
  client.setRequestHandler(ElicitRequestSchema, async request => answer(request.params));
}

function connection() {
  if (job.http) {
    const options = { requestInit: { headers: job.headers ?? {} } };
    // The oldest release does not have the newer transport.
    if (job.mode === 'sse') return new (need(`${sdk}/client/sse.js`).SSEClientTransport)(new URL(job.http), options);
    return new (need(`${sdk}/client/streamableHttp.js`).StreamableHTTPClientTransport)(new URL(job.http), options);
  }
  const { StdioClientTransport } = need(`${sdk}/client/stdio.js`);
  const [command, ...args] = job.stdio;
  return new StdioClientTransport({ command, args, env: { ...process.env, ...job.env } });
}

const transport = connection();
await client.connect(transport);
say('connected', { revision: client.revision, server: client.getServerVersion() ?? null, instructions: client.getInstructions?.() ?? null });

await run({
  client,
  list: async () => (await client.listTools()).tools,
  call: (params, options) => client.callTool(params, CallToolResultSchema, options),
  close: async () => {
    await transport.terminateSession?.();
    await client.close();
  }
});
