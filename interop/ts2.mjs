// The TypeScript SDK 2.x: pinned to 2026-07-28 ("modern"), or held to the handshake ("legacy").
import { answerer, asking, changed, job, need, run, say, updated } from './job.mjs';

const { Client, StreamableHTTPClientTransport } = need('@modelcontextprotocol/client');
const { StdioClientTransport } = need('@modelcontextprotocol/client/stdio');

const mode = job.mode === 'legacy' ? 'legacy' : { pin: '2026-07-28' };
const capabilities = asking();
const listChanged = { tools: { autoRefresh: false, onChanged: changed } };
const options = { capabilities, listChanged, versionNegotiation: { mode } };
const client = new Client({ name: 'interop-ts2', version: '1.0.0' }, options);
client.setNotificationHandler('notifications/resources/updated', told => updated(told.params.uri));
if (job.elicit) {
  const answer = answerer();
  client.setRequestHandler('elicitation/create', async request => answer(request.params));
}

const transport = job.http
  ? new StreamableHTTPClientTransport(new URL(job.http), { requestInit: { headers: job.headers ?? {} } })
  : new StdioClientTransport({ command: job.stdio[0], args: job.stdio.slice(1), env: { ...process.env, ...job.env } });

await client.connect(transport);
say('connected', { revision: client.getNegotiatedProtocolVersion() ?? null, server: client.getServerVersion() ?? null, instructions: client.getInstructions() ?? null });

await run({
  client,
  list: async () => (await client.listTools()).tools,
  call: (params, options) => client.callTool(params, options),
  close: () => client.close()
});
