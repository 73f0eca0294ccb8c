import http from 'node:http';
import https from 'node:https';
import { syncBuiltinESMExports } from 'node:module';
import { plain, present, take, taking } from './steps.mjs';

/** Outgoing requests, by fetch and by `node:http`, which our client and those of object stores use. */

const { fetch } = globalThis;
globalThis.fetch = async (input, init) => {
  const one = present();
  if (!one) return fetch(input, init);
  const label = `${init?.method ?? 'GET'} ${new URL(input instanceof Request ? input.url : input).pathname}`;
  return taking(one, `${label}: answered`, async () => {
    const answer = fetch(input, init);
    // The request is sent; its answer is withheld once the case is paused.
    setImmediate(() => take(one, `${label}: sent`));
    return answer;
  });
};

for (const home of [http, https]) {
  const { request } = home;
  home.request = (...args) => {
    const one = present();
    const sent = request(...args);
    if (!one) return sent;
    const label = `${sent.method} ${kindOf(sent.path)}`;
    const { end, emit } = sent;
    sent.end = (...rest) => (one.isStill ? sent : end.apply(sent, rest));
    sent.emit = (event, ...rest) => {
      if (event === 'finish') take(one, `${label}: sent`);
      if (event === 'response' && !take(one, `${label}: answered`)) watchBody(one, rest[0], label);
      return one.isStill || emit.call(sent, event, ...rest);
    };
    return sent;
  };
}
syncBuiltinESMExports();

/** A page arrives in pieces; its end is a step of its own. */
function watchBody(one, message, label) {
  const { push } = message;
  message.push = (piece) =>
    !take(one, `${label}: ${piece === null ? 'all read' : 'a piece read'}`) && push.call(message, piece);
}

/** The object's name, or the operation on the bucket. */
function kindOf(path) {
  const { pathname, searchParams } = new URL(path, 'http://bucket');
  const name = decodeURIComponent(pathname).split('/').at(-1) ?? '';
  const asked = ['list-type', 'uploads', 'partNumber', 'uploadId'].find((key) => searchParams.has(key));
  return `${plain(name)}${asked ? ` ?${asked}` : ''}`;
}
