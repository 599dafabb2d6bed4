// A real authorization server: oidc-provider, on a free port of the loopback. It says its address when
// it is ready. What is ours is the list of clients, and how tokens for a resource look:
//
//   client "agent.ALG"   gets tokens that are signed by ALG; "agent.opaque" gets some that only the server can read
//   client "gateway"     may ask about tokens and withdraw them
//   GET /clock/back/N    sets its clock back by N seconds, so that what it gives out has expired
import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';
import { need, say } from '../job.mjs';

const { default: Provider } = await import(pathToFileURL(need.resolve('oidc-provider')));

const now = Date.now;
let back = 0;
Date.now = () => now() - back * 1000;

function key(type, options, alg) {
  const { privateKey } = generateKeyPairSync(type, options);
  return { ...privateKey.export({ format: 'jwk' }), kid: alg, alg, use: 'sig' };
}

const rsa = { modulusLength: 2048 };
const keys = [
  key('rsa', rsa, 'RS256'),
  key('rsa', rsa, 'PS256'),
  key('ec', { namedCurve: 'P-256' }, 'ES256'),
  key('ed25519', {}, 'EdDSA'),
];
const scope = 'demo:read demo:write demo:all';
const secret = (id) => `secret-of-${id}-0123456789`;
const client = (id) => ({
  client_id: id,
  client_secret: secret(id),
  grant_types: ['client_credentials'],
  response_types: [],
  redirect_uris: [],
  scope,
});
const agents = ['RS256', 'PS256', 'ES256', 'EdDSA', 'opaque'].map((alg) => `agent.${alg}`);

let answer = (_request, response) => response.end();
const server = createServer((request, response) => {
  const shift = /^\/clock\/back\/(\d+)$/.exec(request.url);
  if (shift) {
    back = Number(shift[1]);
    return response.end('ok');
  }
  return answer(request, response);
});
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [...agents, 'gateway'].map(client),
    jwks: { keys },
    scopes: scope.split(' '),
    enabledJWA: {
      dPoPSigningAlgValues: ['ES256', 'EdDSA'],
    },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      dPoP: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      revocation: { enabled: true, allowedPolicy: () => true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context, resource, asking) => {
          const alg = asking.clientId.split('.')[1] ?? 'ES256';
          const look =
            alg === 'opaque'
              ? { accessTokenFormat: 'opaque' }
              : { accessTokenFormat: 'jwt', jwt: { sign: { alg, kid: alg } } };
          return { scope, audience: resource, accessTokenTTL: 600, ...look };
        },
      },
    },
  });
  answer = provider.callback();
  say('ready', { issuer });
});
