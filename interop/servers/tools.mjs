// The tools that every server of the tests has, whatever SDK it is written with.
//
// A server's setting is JSON in argv[2]:
//   interop: FOLDER     where the packages are
//   package: NAME       which of them
//   http: true | "sse"  serves HTTP on a free port and prints {"event": "listening", "url": URL}; else stdio
//   both: true          serves both eras, where the SDK can
//   picture: true       has a tool that shows a picture, too
//   notes: FILE         one line for everything that a caller cannot see: "step N", "cancelled", "counted to N"
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export const setting = JSON.parse(process.argv[2]);
export const need = createRequire(join(setting.interop, 'node', 'package.json'));

const object = (properties, required = Object.keys(properties)) => ({ type: 'object', properties, required });
const number = { type: 'number' };
const readOnly = { readOnlyHint: true };

/** What is asked in mid-call. */
export const question = {
  message: 'What is your name?',
  requestedSchema: object({ name: { type: 'string', title: 'Name' } })
};

const first = [
  { name: 'echo', description: 'Says it back.', inputSchema: object({ text: { type: 'string' } }), annotations: readOnly },
  {
    name: 'sum',
    description: 'Adds two numbers.',
    inputSchema: object({ a: number, b: number }),
    outputSchema: object({ sum: number }),
    annotations: readOnly
  },
  { name: 'fail', description: 'Fails, as tools do.', inputSchema: object({}), annotations: readOnly },
  { name: 'slow', description: 'Counts slowly.', inputSchema: object({ to: { type: 'integer' } }), annotations: readOnly },
  { name: 'grow', description: 'Adds a tool.', inputSchema: object({}), annotations: readOnly },
  { name: 'ask', description: 'Asks for a name.', inputSchema: object({}), annotations: readOnly }
];
const picture = { name: 'picture', description: 'Shows one dot.', inputSchema: object({}), annotations: readOnly };
// One red dot.
const dot = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
const later = { name: 'grown', description: 'Came later.', inputSchema: object({}), annotations: readOnly };

export const text = words => ({ content: [{ type: 'text', text: words }] });
export const wrong = words => ({ ...text(words), isError: true });
export const greet = answer => text(answer.action === 'accept' ? `hello, ${answer.content.name}` : `you said ${answer.action}`);

/** The tools, the same for all connections. */
export class Tools {
  list = [...first, ...(setting.picture ? [picture] : [])];

  /**
   * Uses a tool. `means` is what the SDK gives for the call at hand:
   * signal, progress(n, total), changed(), ask() with the answer or, where answers come later, the whole result.
   */
  async use(name, args, means) {
    switch (name) {
      case 'echo':
        return text(args.text);
      case 'sum': {
        const sum = { sum: args.a + args.b };
        return { ...text(JSON.stringify(sum)), structuredContent: sum };
      }
      case 'fail':
        return wrong('the printer is on fire');
      case 'slow':
        return await this.slow(args.to, means);
      case 'grow':
        if (!this.list.includes(later)) this.list.push(later);
        await means.changed();
        return text('grown');
      case 'grown':
        return text('here I am');
      case 'picture':
        return { content: [{ type: 'image', data: dot, mimeType: 'image/png' }] };
      case 'ask':
        return await means.ask();
      default:
        return undefined;
    }
  }

  async slow(to, { signal, progress }) {
    // Once more after the last step: some clients lose progress that comes together with the answer.
    for (let n = 1; n <= to + 1; n += 1) {
      await sleep(50);
      if (signal.aborted) break;
      if (n > to) continue;
      note(`step ${n}`);
      await progress(n, to);
    }
    // Some SDKs abort a call that ended well, too.
    note(signal.aborted ? 'cancelled' : `counted to ${to}`);
    return text(`counted to ${to}`);
  }
}

/** Serves requests of Node on a free port; `path` is where MCP is. */
export function listen(path, handler) {
  const server = createServer(handler);
  server.listen(0, '127.0.0.1', () => {
    const url = `http://127.0.0.1:${server.address().port}${path}`;
    process.stdout.write(JSON.stringify({ event: 'listening', url }) + '\n');
  });
}

function note(line) {
  if (setting.notes) appendFileSync(setting.notes, line + '\n');
}
