import pg from 'pg';
import { present, take } from './steps.mjs';

/** Statements sent to Postgres and their answers, at the level of the protocol: every sender passes here. */
const { prototype } = pg.Connection;
const { query, parse, sync, emit, _send } = prototype;
const asked = new WeakMap();

prototype._send = function (buffer) {
  return present()?.isStill ? true : _send.call(this, buffer);
};
prototype.query = function (text) {
  asked.set(this, { label: labelOf(text), isSent: true });
  query.call(this, text);
  sent(this);
};
prototype.parse = function (statement) {
  asked.set(this, { label: labelOf(statement.text), isSent: false });
  parse.call(this, statement);
};
/** The last message of a statement with values. */
prototype.sync = function () {
  sync.call(this);
  if (asked.get(this)?.isSent === false) sent(this);
};
prototype.emit = function (event, ...rest) {
  const one = present();
  if (!one) return emit.call(this, event, ...rest);
  const label = asked.get(this)?.label ?? 'connect';
  if (event === 'readyForQuery') take(one, `${label}: answered`);
  // The server waits for rows, which are withheld.
  if (event === 'copyInResponse') take(one, `${label}: rows begin`);
  return one.isStill || emit.call(this, event, ...rest);
};

function sent(connection) {
  const statement = asked.get(connection);
  statement.isSent = true;
  const one = present();
  if (one) take(one, `${statement.label}: sent`);
}

/** Verb and object: `insert tributary.runs`, `copy attribution.leads`, `select pg_advisory_xact_lock`. */
function labelOf(text) {
  const words = text.trim().replace(/\s+/g, ' ').toLowerCase();
  const verb = words.match(/^\w+/)?.[0] ?? '';
  const object =
    words.match(/\b(?:into|from|update|table|schema|view|index|copy)(?: only| if not exists)? ([a-z_."]+)/)?.[1] ??
    words.match(/\b([a-z_]+)\(/)?.[1] ??
    '';
  return `${verb} ${object.replaceAll('"', '')}`.trim();
}
