import dns from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';

/** A preload: the first few lookups of `later.invalid` fail, as after a move; then it resolves to this machine. */
const UNKNOWN_FOR = 3;
let asked = 0;
const { lookup } = dns;
dns.lookup = (name, options, done = options) => {
  if (name !== 'later.invalid') return lookup(name, options, done);
  asked += 1;
  if (asked <= UNKNOWN_FOR) {
    const error = Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: 'ENOTFOUND', hostname: name });
    return void setImmediate(done, error);
  }
  return lookup('127.0.0.1', options, done);
};
syncBuiltinESMExports();
