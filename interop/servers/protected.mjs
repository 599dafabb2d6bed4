// A server of the TypeScript SDK 1.x that wants to know who calls, with what that SDK has for it. It asks the issuer about
// each token.
//
// A setting is JSON in argv[2]: {interop, issuer}. Prints {"event": "listening", "url": URL}.
//
//   read_note     needs the scope demo:read, as all that is asked of it
//   write_note    needs demo:write, which is said only where it is missing
import { randomUUID } from 'node:crypto';
import { need, setting, text } from './tools.mjs';

const sdk = '@modelcontextprotocol/sdk';
const express = need('express');
const { Server } = need(`${sdk}/server/index.js`);
const { CallToolRequestSchema, ListToolsRequestSchema } = need(`${sdk}/types.js`);
const { StreamableHTTPServerTransport } = need(`${sdk}/server/streamableHttp.js`);
const { getOAuthProtectedResourceMetadataUrl, mcpAuthMetadataRouter } = need(`${sdk}/server/auth/router.js`);
const { requireBearerAuth } = need(`${sdk}/server/auth/middleware/bearerAuth.js`);
const { InvalidTokenError } = need(`${sdk}/server/auth/errors.js`);

const { issuer } = setting;
const metadata = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json();
const basic = Buffer.from('gateway:secret-of-gateway-0123456789').toString('base64');

const verifier = {
  async verifyAccessToken(token) {
    const asked = await fetch(metadata.introspection_endpoint, {
      method: 'POST',
      headers: { authorization: `Basic ${basic}` },
      body: new URLSearchParams({ token })
    });
    const said = await asked.json();
    if (!said.active) throw new InvalidTokenError('it is not active');
    return {
      token,
      clientId: said.client_id,
      scopes: (said.scope ?? '').split(' '),
      expiresAt: said.exp,
      resource: new URL(said.aud),
      extra: { subject: said.sub }
    };
  }
};

const tool = name => ({ name, description: name, inputSchema: { type: 'object', properties: {} }, annotations: { readOnlyHint: true } });

function serve() {
  const server = new Server({ name: 'notes', version: '1.0.0' }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: ['read_note', 'write_note'].map(tool) }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }, { authInfo }) => text(`${params.name} for ${authInfo.extra.subject}`));
  return server;
}

const app = express();
const listening = app.listen(0, '127.0.0.1', () => {
  const url = new URL(`http://127.0.0.1:${listening.address().port}/mcp`);
  const resourceMetadataUrl = getOAuthProtectedResourceMetadataUrl(url);
  const needs = scope =>
    requireBearerAuth({ verifier, requiredScopes: [scope], resourceMetadataUrl, expectedResource: url });
  const [reads, writes] = [needs('demo:read'), needs('demo:write')];
  const sessions = new Map();
  app.use(mcpAuthMetadataRouter({ oauthMetadata: metadata, resourceServerUrl: url, scopesSupported: ['demo:read'] }));
  app.use(express.json());
  app.use('/mcp', reads);
  app.use('/mcp', (request, response, next) =>
    request.body?.params?.name === 'write_note' ? writes(request, response, next) : next());
  app.all('/mcp', async (request, response) => {
    const id = request.headers['mcp-session-id'];
    if (id && !sessions.has(id)) return response.status(404).end();
    if (id) return sessions.get(id).handleRequest(request, response, request.body);
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: id => sessions.set(id, transport)
    });
    await serve().connect(transport);
    return transport.handleRequest(request, response, request.body);
  });
  process.stdout.write(JSON.stringify({ event: 'listening', url: url.href }) + '\n');
});
