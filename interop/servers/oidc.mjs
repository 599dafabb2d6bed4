// A real authorization server: oidc-provider, on a free port of the loopback. It says its address when
// it is ready. What is ours is the list of clients, and how tokens for a resource look:
//
//   client "agent.ALG"   gets tokens that are signed by ALG; "agent.opaque" gets some that only the server can read
//   client "gateway"     may ask about tokens and withdraw them
//   GET /clock/back/N    sets its clock back by N seconds, so that what it gives out has expired
//
// With {key: JWK} there is "agent.ES256.key", which signs with that key.
//
// With {groups: {NAME: [GROUP]}}, tokens of that client or person name these groups.
//
// With {hands_out: URL} the token endpoint returns a token of another server: what a GET of URL returns.
//
// With {people: {life, opaque}} in argv[2] people sign in, on the pages that it has for development: any name, any password.
// Clients register by themselves; "app" is one that has. Tokens live `life` seconds; `opaque` ones only it can read.
//
//   GET /told            what was asked of the token endpoint, what came of it, and what was given back
//   GET /withdraw        takes back all that people allowed
//   GET /of/NAME?RESOURCE  a token for a resource, as "app" would have it from a person of that name
import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';
import { job, need, say } from '../job.mjs';

const { default: Provider } = await import(pathToFileURL(need.resolve('oidc-provider')));

const now = Date.now;
let back = 0;
Date.now = () => now() - back * 1000;

// The pair is encoded as it is generated: `privateKey.export({ format: 'jwk' })` can hang in Node 20, when the garbage
// collector runs during the call and waits for the lock of the same key.
function key(type, options, alg) {
  const jwk = { format: 'jwk' };
  const { privateKey } = generateKeyPairSync(type, { ...options, privateKeyEncoding: jwk, publicKeyEncoding: jwk });
  return { ...privateKey, kid: alg, alg, use: 'sig' };
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

const people = job.people;
const app = {
  client_id: 'app',
  application_type: 'native',
  token_endpoint_auth_method: 'none',
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  redirect_uris: ['http://127.0.0.1/callback', 'http://127.0.0.1/sign-in/shown', 'http://127.0.0.1/console/identity'],
};
const signs = {
  client_id: 'agent.ES256.key',
  token_endpoint_auth_method: 'private_key_jwt',
  jwks: { keys: [{ ...job.key, use: 'sig', alg: 'ES256' }] },
  grant_types: ['client_credentials'],
  response_types: [],
  redirect_uris: [],
  scope,
};
const told = [];
const allowed = new Set();

let answer = (_request, response) => response.end();
let withdraw = async () => {};
let of = async () => '';
const server = createServer((request, response) => {
  const shift = /^\/clock\/back\/(\d+)$/.exec(request.url);
  if (shift) {
    back = Number(shift[1]);
    return response.end('ok');
  }
  if (request.url === '/told') return response.end(JSON.stringify({ told }));
  if (request.url === '/withdraw') return withdraw().then(() => response.end('ok'));
  const asks = /^\/of\/(\w+)\?(.+)$/.exec(request.url);
  if (asks) return of(asks[1], decodeURIComponent(asks[2])).then(token => response.end(JSON.stringify({ token })));
  return answer(request, response);
});
function infoOf(resource, client) {
  const alg = client.split('.')[1] ?? (people?.opaque ? 'opaque' : 'ES256');
  const look =
    alg === 'opaque'
      ? { accessTokenFormat: 'opaque' }
      : { accessTokenFormat: 'jwt', jwt: { sign: { alg, kid: alg } } };
  return { scope, audience: resource, accessTokenTTL: people?.life ?? 600, ...look };
}

server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [...[...agents, 'gateway'].map(client), ...(people ? [app] : []), ...(job.key ? [signs] : [])],
    jwks: { keys },
    extraTokenClaims: (_context, token) => {
      const groups = job.groups?.[token.accountId ?? token.clientId];
      return groups ? { groups } : undefined;
    },
    scopes: [...scope.split(' '), ...(people ? ['offline_access'] : [])],
    enabledJWA: {
      dPoPSigningAlgValues: ['ES256', 'EdDSA'],
    },
    features: {
      devInteractions: { enabled: Boolean(people) },
      registration: { enabled: Boolean(people) },
      clientCredentials: { enabled: true },
      dPoP: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      revocation: { enabled: true, allowedPolicy: () => true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context, resource, asking) => infoOf(resource, asking.clientId),
      },
    },
  });
  const note = (what, context, error) =>
    told.push({ what, grant: context.oidc.params?.grant_type, client: context.oidc.client?.clientId, scope: context.oidc.params?.scope, error });
  provider.on('grant.success', context => note('granted', context));
  provider.on('grant.error', (context, error) => note('refused', context, error.error));
  provider.on('grant.revoked', context => note('revoked', context));
  for (const model of ['access_token', 'refresh_token']) {
    provider.on(`${model}.saved`, token => allowed.add(token.grantId));
  }
  withdraw = async () => {
    for (const id of allowed) {
      await provider.RefreshToken.revokeByGrantId(id);
      await provider.AccessToken.revokeByGrantId(id);
      await (await provider.Grant.find(id))?.destroy();
    }
    allowed.clear();
  };
  of = async (name, resource) => {
    const client = await provider.Client.find('app');
    const grantId = await new provider.Grant({ accountId: name, clientId: 'app' }).save();
    const token = new provider.AccessToken({ client, accountId: name, grantId, gty: 'authorization_code', scope: 'demo:read' });
    token.resourceServer = new provider.ResourceServer(resource, infoOf(resource, 'app'));
    return token.save();
  };
  const callback = provider.callback();
  answer = !job.hands_out ? callback : async (request, response) => {
    if (request.url !== '/token') return callback(request, response);
    const { token } = await (await fetch(job.hands_out)).json();
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ access_token: token, token_type: 'Bearer', expires_in: 300 }));
  };
  say('ready', { issuer });
});
