// Receivers of notifications, on free ports of the loopback. It says "ready" with their addresses, and "got" for each
// message, with the time. What reads the messages is not ours: smtp-server and mailparser, standardwebhooks, http_ece.
//
// A job is JSON in argv[2]: {secret, fail}. `secret` signs the webhooks. With `fail: N`, each receiver answers its first N
// messages with an error.
//
//   smtp://…             a mail server
//   http://…/webhook     a webhook in the format of Standard Webhooks
//   http://…/            an ntfy server: JSON is published to it
//   http://…/slack       an incoming webhook of Slack; /teams one of Teams; /reply what Slack calls a response URL
//   http://…/push/ID     a push service; "ready" has the keys of a browser that subscribed
import { createECDH, createPublicKey, randomBytes, verify } from 'node:crypto';
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';
import { job, need, say } from '../job.mjs';

const load = name => import(pathToFileURL(need.resolve(name)));
const { SMTPServer } = await load('smtp-server');
const { simpleParser } = await load('mailparser');
const { Webhook } = await load('standardwebhooks');
const ece = need('http_ece');

let failures = { smtp: job.fail ?? 0, http: job.fail ?? 0 };
const got = (channel, message) => say('got', { channel, at: Date.now(), message });

// The keys of a browser.
const browser = createECDH('prime256v1');
browser.generateKeys();
const auth = randomBytes(16);

function vapid(header, origin) {
  const [, token, key] = /^vapid t=([^,]+), k=(.+)$/.exec(header) ?? [];
  const [head, claims, signature] = token.split('.');
  const point = Buffer.from(key, 'base64url');
  const jwk = { kty: 'EC', crv: 'P-256', x: point.subarray(1, 33).toString('base64url'), y: point.subarray(33).toString('base64url') };
  const valid = verify('sha256', Buffer.from(`${head}.${claims}`), { key: createPublicKey({ key: jwk, format: 'jwk' }), dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url'));
  const { aud, exp, sub } = JSON.parse(Buffer.from(claims, 'base64url'));
  const now = Date.now() / 1000;
  return { valid: valid && aud === origin && exp > now && exp <= now + 24 * 3600, sub, key };
}

const http = createServer((request, response) => {
  const parts = [];
  request.on('data', part => parts.push(part));
  request.on('end', () => {
    const body = Buffer.concat(parts);
    const end = (status, text = '') => { response.writeHead(status); response.end(text); };
    if (failures.http > 0) { failures.http -= 1; return end(503); }
    try {
      const path = request.url;
      if (path === '/webhook') {
        // Throws if the signature or the time is wrong.
        const message = new Webhook(job.secret).verify(body.toString(), request.headers);
        got('webhook', { ...message, id: request.headers['webhook-id'] });
        return end(204);
      }
      if (path === '/') {
        const message = JSON.parse(body);
        if (typeof message.topic !== 'string') throw new Error('no topic');
        got('ntfy', { ...message, authorization: request.headers.authorization });
        return end(200, JSON.stringify({ id: 'x', event: 'message' }));
      }
      if (path.startsWith('/push/')) {
        const origin = `http://127.0.0.1:${http.address().port}`;
        const known = vapid(request.headers.authorization, origin);
        if (!known.valid || request.headers['content-encoding'] !== 'aes128gcm') return end(403);
        if (path.endsWith('/gone')) return end(410);
        const text = ece.decrypt(body, { version: 'aes128gcm', privateKey: browser, authSecret: auth.toString('base64url') });
        got('web_push', { ...JSON.parse(text), vapid: known, ttl: request.headers.ttl, urgency: request.headers.urgency });
        return end(201);
      }
      if (['/slack', '/teams', '/reply'].includes(path)) {
        got(path.slice(1), JSON.parse(body));
        return end(200, 'ok');
      }
      end(404);
    } catch (error) {
      say('bad', { path: request.url, message: String(error.message ?? error) });
      end(400);
    }
  });
});

const smtp = new SMTPServer({
  authOptional: true,
  disabledCommands: ['STARTTLS'],
  allowInsecureAuth: true,
  onAuth: (auth, _session, done) => auth.username === 'toolgate' && auth.password === 'mail-password'
    ? done(null, { user: auth.username }) : done(new Error('wrong')),
  onMailFrom: (_address, _session, done) => {
    if (failures.smtp > 0) { failures.smtp -= 1; return done(Object.assign(new Error('later'), { responseCode: 451 })); }
    done();
  },
  onData: (stream, session, done) => simpleParser(stream).then(mail => {
    got('email', {
      from: mail.from.text, to: mail.to.text, subject: mail.subject, text: mail.text, user: session.user,
      recipients: session.envelope.rcptTo.map(one => one.address),
    });
    done();
  }, done),
});

smtp.listen(0, '127.0.0.1', () => http.listen(0, '127.0.0.1', () => say('ready', {
  http: `http://127.0.0.1:${http.address().port}`,
  smtp: `smtp://127.0.0.1:${smtp.server.address().port}`,
  keys: { p256dh: browser.getPublicKey('base64url'), auth: auth.toString('base64url') },
})));
