// A server of the TypeScript SDK 2.x that speaks 2026-07-28 and nothing else, or with `both` in its setting, sessions too.
import { Tools, greet, listen, need, question, setting } from './tools.mjs';

const { McpServer, createMcpHandler, fromJsonSchema, inputRequired } = need('@modelcontextprotocol/server');
const { serveStdio } = need('@modelcontextprotocol/server/stdio');

const tools = new Tools();

function serve() {
  const server = new McpServer({ name: 'typescript-2', version: '1.0.0' }, { capabilities: { tools: { listChanged: true } } });
  const add = ({ name, inputSchema, outputSchema, ...config }) => {
    const schemas = { inputSchema: fromJsonSchema(inputSchema), ...(outputSchema && { outputSchema: fromJsonSchema(outputSchema) }) };
    server.registerTool(name, { ...config, ...schemas }, (args, cx) => tools.use(name, args, means(cx)));
  };
  const means = cx => ({
    signal: cx.mcpReq.signal,
    // Over HTTP each request has a server of its own. Over stdio the SDK itself tells of every tool that is added.
    changed: () => (http ? http.notify.toolsChanged() : add(tools.list.at(-1))),
    async progress(progress, total) {
      const progressToken = cx.mcpReq._meta?.progressToken;
      if (progressToken === undefined) return;
      await cx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total } });
    },
    ask() {
      const answer = cx.mcpReq.inputResponses?.name;
      return answer ? greet(answer) : inputRequired({ inputRequests: { name: inputRequired.elicit(question) } });
    }
  });
  tools.list.forEach(add);
  return server;
}

const eras = setting.both ? {} : { legacy: 'reject' };
const http = setting.http && createMcpHandler(serve, eras);
if (http) listen('/mcp', need('@modelcontextprotocol/node').toNodeHandler(http));
else serveStdio(serve, eras);
