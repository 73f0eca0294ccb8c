import { createHash } from 'node:crypto';
import { Redis } from 'ioredis';
import { present, take } from './steps.mjs';

/** Commands sent to Redis and their answers. A script is labelled by its name, not by its digest. */
const { sendCommand, defineCommand } = Redis.prototype;
const scripts = new Map();
const met = new WeakSet();

Redis.prototype.defineCommand = function (name, definition) {
  scripts.set(createHash('sha1').update(definition.lua).digest('hex'), name.replace(/:.*/, ''));
  return defineCommand.call(this, name, definition);
};
Redis.prototype.sendCommand = function (command, ...rest) {
  const one = present();
  if (!one) return sendCommand.call(this, command, ...rest);
  if (one.isStill) return command.promise;
  const label = scripts.get(command.args[0]) ?? command.name;
  const { resolve } = command;
  // A command that waited for the connection passes here again.
  if (!met.has(command)) {
    met.add(command);
    command.resolve = (answer) => take(one, `${label}: answered`) || resolve(answer);
  }
  const result = sendCommand.call(this, command, ...rest);
  take(one, `${label}: sent`);
  return result;
};
