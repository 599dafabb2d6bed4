// The TypeScript SDK 1.x: the revisions with a handshake over Streamable HTTP, the older HTTP with SSE, or stdio.
import { answerer, job, need, run, say } from './job.mjs';

const { Client } = need('@modelcontextprotocol/sdk/client/index.js');
const { SSEClientTransport } = need('@modelcontextprotocol/sdk/client/sse.js');
const { StdioClientTransport } = need('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport } = need('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { CallToolResultSchema, ElicitRequestSchema } = need('@modelcontextprotocol/sdk/types.js');

const capabilities = job.elicit ? { elicitation: {} } : {};
const client = new Client({ name: 'interop-ts1', version: '1.0.0' }, { capabilities });
if (job.elicit) {
  const answer = answerer();
  client.setRequestHandler(ElicitRequestSchema, async request => answer(request.params));
}

const overHttp = job.mode === 'sse' ? SSEClientTransport : StreamableHTTPClientTransport;
const transport = job.http
  ? new overHttp(new URL(job.http), { requestInit: { headers: job.headers ?? {} } })
  : new StdioClientTransport({ command: job.stdio[0], args: job.stdio.slice(1), env: { ...process.env, ...job.env } });

await client.connect(transport);
say('connected', { revision: transport.protocolVersion ?? null, server: client.getServerVersion() ?? null });

await run({
  list: async () => (await client.listTools()).tools.map(tool => tool.name),
  call: (params, options) => client.callTool(params, CallToolResultSchema, options),
  close: async () => {
    await transport.terminateSession?.();
    await client.close();
  }
});
