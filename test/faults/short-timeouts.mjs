import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import timers from 'node:timers';
import promises from 'node:timers/promises';

/**
 * A preload for processes under test: divides pauses by sixty and timeouts by twenty. The product's timeouts expire in their
 * usual order, without minutes of waiting. Each stays long enough for a healthy server on a busy machine:
 * otherwise a process would give up before the test's fault begins. The wall clock is unchanged.
 */
const hurriedPause = (ms) => (ms >= 1000 ? Math.max(500, ms / 60) : ms);
const hurriedTimeout = (ms) => Math.max(Math.min(ms, 3000), ms / 20);

for (const home of [globalThis, timers]) {
  for (const name of ['setTimeout', 'setInterval']) {
    const usual = home[name];
    home[name] = Object.assign((work, ms, ...rest) => usual(work, hurriedTimeout(ms), ...rest), usual);
  }
}
const { setTimeout: sleep } = promises;
promises.setTimeout = (ms, ...rest) => sleep(hurriedPause(ms), ...rest);
const { setTimeout: setIdle } = net.Socket.prototype;
net.Socket.prototype.setTimeout = function (ms, ...rest) {
  return setIdle.call(this, hurriedTimeout(ms), ...rest);
};
syncBuiltinESMExports();
