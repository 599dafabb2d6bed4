// A server of the TypeScript SDK 1.x: the oldest release and the newest have the same means.
import { randomUUID } from 'node:crypto';
import { Tools, greet, listen, need, question, setting, wrong } from './tools.mjs';

const { Server } = need(`${setting.package}/server/index.js`);
const { CallToolRequestSchema, ErrorCode, ListToolsRequestSchema, McpError } = need(`${setting.package}/types.js`);

const tools = new Tools();

function serve() {
  const server = new Server({ name: setting.package, version: '1.0.0' }, { capabilities: { tools: { listChanged: true } } });
  server.setRequestHandler(ListToolsRequestSchema, ({ params }) => page(Number(params?.cursor ?? 0)));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    const result = await tools.use(params.name, params.arguments ?? {}, means(server, params, extra));
    if (!result) throw new McpError(ErrorCode.InvalidParams, `unknown tool: ${params.name}`);
    return result;
  });
  return server;
}

/** A list in pages of four, so that whoever lists must ask again. */
function page(from) {
  const to = from + 4;
  return { tools: tools.list.slice(from, to), ...(to < tools.list.length && { nextCursor: String(to) }) };
}

function means(server, params, extra) {
  // Only newer releases can tell which call a notification belongs to; over one pipe all arrive.
  const notify = extra.sendNotification ?? (message => server.notification(message));
  const progressToken = params._meta?.progressToken;
  return {
    signal: extra.signal,
    changed: () => server.notification({ method: 'notifications/tools/list_changed' }),
    async progress(progress, total) {
      if (progressToken === undefined) return;
      await notify({ method: 'notifications/progress', params: { progressToken, progress, total } });
    },
    async ask() {
      if (!server.elicitInput) return wrong('this SDK cannot ask');
      if (!server.getClientCapabilities()?.elicitation) return wrong('the client cannot be asked');
      return greet(await server.elicitInput(question));
    }
  };
}

/** HTTP with SSE, which is all that the oldest release has: a stream for each session, and an address to post to. */
function overSse(SSEServerTransport) {
  const sessions = new Map();
  listen('/sse', async (request, response) => {
    if (request.method === 'GET') {
      const transport = new SSEServerTransport('/messages', response);
      sessions.set(transport.sessionId, transport);
      response.on('close', () => sessions.delete(transport.sessionId));
      return serve().connect(transport);
    }
    const session = sessions.get(new URL(request.url, 'http://here').searchParams.get('sessionId'));
    return session ? session.handlePostMessage(request, response) : response.writeHead(404).end();
  });
}

/** Streamable HTTP: the header names the session, and a request without one opens one. */
function overHttp(StreamableHTTPServerTransport) {
  const sessions = new Map();
  listen('/mcp', async (request, response) => {
    const id = request.headers['mcp-session-id'];
    if (id && !sessions.has(id)) return response.writeHead(404).end();
    if (id) return sessions.get(id).handleRequest(request, response);
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: id => sessions.set(id, transport)
    });
    await serve().connect(transport);
    return transport.handleRequest(request, response);
  });
}

if (!setting.http) await serve().connect(new (need(`${setting.package}/server/stdio.js`).StdioServerTransport)());
else if (setting.http === 'sse') overSse(need(`${setting.package}/server/sse.js`).SSEServerTransport);
else overHttp(need(`${setting.package}/server/streamableHttp.js`).StreamableHTTPServerTransport);
