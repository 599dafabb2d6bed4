// A server of the TypeScript SDK 1.x: the oldest release and the newest have the same means.
import { Tools, greet, need, question, setting, wrong } from './tools.mjs';

const { Server } = need(`${setting.package}/server/index.js`);
const { StdioServerTransport } = need(`${setting.package}/server/stdio.js`);
const { CallToolRequestSchema, ErrorCode, ListToolsRequestSchema, McpError } = need(`${setting.package}/types.js`);

function serve() {
  const tools = new Tools();
  const server = new Server({ name: setting.package, version: '1.0.0' }, { capabilities: { tools: { listChanged: true } } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: tools.list }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    const result = await tools.use(params.name, params.arguments ?? {}, means(server, params, extra));
    if (!result) throw new McpError(ErrorCode.InvalidParams, `unknown tool: ${params.name}`);
    return result;
  });
  return server;
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

await serve().connect(new StdioServerTransport());
