// `mcp-proxy` of npm in front of a server over stdio. Its first word is the folder of the packages; the others are the
// command of the server. Prints its own URL as JSON when it listens.
import { connect, createServer } from 'node:net';
import { join } from 'node:path';

const [folder, ...server] = process.argv.slice(2);
const host = '127.0.0.1';
const port = await new Promise(resolve => {
  const probe = createServer().listen(0, host, () => {
    const { port } = probe.address();
    probe.close(() => resolve(port));
  });
});
// Only the URL goes to the output.
console.log = console.info = console.debug = console.error;
const cli = join(folder, 'node_modules/mcp-proxy/dist/bin/mcp-proxy.mjs');
const options = ['--host', host, '--port', port, '--server', 'stream', '--upstreamProtocol', 'auto'];
process.argv = [process.argv[0], cli, ...options.map(String), '--', ...server];
await import(cli);

const listens = () =>
  new Promise(resolve => {
    const socket = connect(port, host, () => resolve(true)).on('error', () => resolve(false));
    socket.on('connect', () => socket.end());
  });
while (!(await listens())) await new Promise(resolve => setTimeout(resolve, 50));
process.stdout.write(`${JSON.stringify({ url: `http://${host}:${port}/mcp` })}\n`);
