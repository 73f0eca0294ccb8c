import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import timers from 'node:timers';
import promises from 'node:timers/promises';

/**
 * A preload for processes under test: pauses take a sixtieth and timeouts a twentieth. The product's own timeouts are tried in their own
 * order, and nobody waits for minutes. No timeout gets shorter than what a healthy server needs on a busy machine: a process that gives
 * up on one would be done before the fault has begun that it is to meet. The clock on the wall is left alone.
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
