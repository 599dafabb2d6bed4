// A client of the TypeScript SDK 2.x. Its first word is the folder of the packages; the others are those of `src/job.rs`,
// and `--server PROGRAM`.
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [interop, ...words] = process.argv.slice(2);
const word = name => (words.includes(name) ? words[words.indexOf(name) + 1] : undefined);
const need = createRequire(join(interop, 'node', 'package.json'));
const { Client, StreamableHTTPClientTransport } = need('@modelcontextprotocol/client');
const { StdioClientTransport } = need('@modelcontextprotocol/client/stdio');

const core = word('--core') ? ['--core', word('--core')] : [];
const transport = word('--url')
  ? new StreamableHTTPClientTransport(new URL(word('--url')))
  : new StdioClientTransport({ command: word('--server'), args: ['--breaking', ...core] });
const client = new Client({ name: 'bench', version: '1.0.0' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
await client.connect(transport);

const calls = Number(word('--calls'));
let taken = 0;

async function work() {
  for (;;) {
    taken += 1;
    if (taken > calls) return;
    const text = `${String(taken).padStart(8, '0')} .......`;
    const { content } = await client.callTool({ name: 'echo', arguments: { text } });
    if (content[0].text !== text) throw new Error(`not ${text}: ${content[0].text}`);
  }
}

const begin = performance.now();
await Promise.all(Array.from({ length: Number(word('--flight')) }, work));
const took = (performance.now() - begin) / 1000;
await client.close();
console.log(took);
