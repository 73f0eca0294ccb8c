import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import timers from 'node:timers';
import promises from 'node:timers/promises';

/**
 * A preload for processes under test: whatever they would wait for a second or longer takes a sixtieth, and half a second at least.
 * The product's own timeouts are tried in their own order, and nobody waits for minutes. The clock on the wall is left alone.
 */
const hurried = (ms) => (ms >= 1000 ? Math.max(500, ms / 60) : ms);

for (const home of [globalThis, timers]) {
  for (const name of ['setTimeout', 'setInterval']) {
    const usual = home[name];
    home[name] = Object.assign((work, ms, ...rest) => usual(work, hurried(ms), ...rest), usual);
  }
}
const { setTimeout: sleep } = promises;
promises.setTimeout = (ms, ...rest) => sleep(hurried(ms), ...rest);
const { setTimeout: setIdle } = net.Socket.prototype;
net.Socket.prototype.setTimeout = function (ms, ...rest) {
  return setIdle.call(this, hurried(ms), ...rest);
};
syncBuiltinESMExports();
