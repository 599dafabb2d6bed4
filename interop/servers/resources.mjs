// A server of the TypeScript SDK with resources: the SDK reads every URI with `new URL`, as most servers do.
//
// A server's setting is JSON in argv[2]:
//   interop: FOLDER     where the packages are
//   notes: FILE         one line for each URI that it read or subscribed to, as it understood it
import { appendFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const setting = JSON.parse(process.argv[2]);
const need = createRequire(join(setting.interop, 'node', 'package.json'));
const sdk = '@modelcontextprotocol/sdk';
const { McpServer, ResourceTemplate } = need(`${sdk}/server/mcp.js`);
const { StdioServerTransport } = need(`${sdk}/server/stdio.js`);
const { SubscribeRequestSchema } = need(`${sdk}/types.js`);

const note = line => appendFileSync(setting.notes, `${line}\n`);
const server = new McpServer(
  { name: 'resources', version: '1.0.0' },
  { capabilities: { resources: { subscribe: true, listChanged: true } } }
);

async function read(uri) {
  note(`read ${uri.href}`);
  return { contents: [{ uri: uri.href, text: `the text of ${uri.href}` }] };
}

const listed = [
  'file:///srv/private/k.txt',
  'file:///srv\\private\\listed.txt',
  'file:///srv/public/a.txt',
  'resource://example',
  'resource://greeting',
  'data://config'
];
for (const uri of listed) server.registerResource(uri, uri, {}, read);
for (const template of ['file:{+path}', 'https:{+rest}', 'resource://{x}/t']) {
  server.registerResource(template, new ResourceTemplate(template, { list: undefined }), {}, read);
}

const content = (name, block) => {
  server.registerTool(name, { annotations: { readOnlyHint: true } }, async () => ({ content: [block] }));
};
content('embed', { type: 'resource', resource: { uri: 'resource://example', mimeType: 'text/plain', text: 'embedded' } });
content('link', { type: 'resource_link', uri: 'resource://linked/t', name: 'linked' });
content('link_private', { type: 'resource_link', uri: 'file:/srv/private/linked.txt', name: 'private' });
content('link_script', { type: 'resource_link', uri: 'javascript:alert(1)', name: 'script' });
content('link_data', { type: 'resource_link', uri: 'data:text/html,%3Cscript%3E', name: 'document' });

server.server.setRequestHandler(SubscribeRequestSchema, async ({ params }) => {
  note(`subscribed ${new URL(params.uri).href}`);
  return {};
});
await server.connect(new StdioServerTransport());
