import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { plain, present, take, taking } from './steps.mjs';

/**
 * Records every function of Node's that changes something on disk. All count except those known to change nothing, so
 * a function used for the first time is recorded as well.
 */
const HARMLESS = new Set([
  ...['access', 'exists', 'lstat', 'stat', 'statfs', 'fstat', 'readFile', 'readdir', 'readlink', 'realpath', 'opendir'],
  ...['read', 'readv', 'readLines', 'readableWebStream', 'close', 'getAsyncId', 'glob'],
  ...['watch', 'watchFile', 'unwatchFile', 'createReadStream', 'createWriteStream', 'openAsBlob', 'constructor'],
]);
const isStep = (name) => /^[a-z]/.test(name) && !HARMLESS.has(name.replace(/Sync$/, ''));
const isToRead = (name, [, flags]) =>
  /^open(Sync)?$/.test(name) && (typeof flags === 'string' ? flags === 'r' : ((flags ?? 0) & 3) === 0);
/** Output is no state. */
const isPrinted = ([target]) => target === 0 || target === 1 || target === 2;

const nameOf = (target) => plain(basename(target instanceof URL ? fileURLToPath(target) : String(target)));
/** Of two paths, the second is the new one. */
const labelOf = (name, [first, second]) => {
  const isTwo = /^(rename|link|symlink|copyFile|cp)(Sync)?$/.test(name);
  return `${name} ${nameOf(isTwo ? second : first)}`;
};

function watchAll(home, wrap) {
  for (const name of Object.getOwnPropertyNames(home)) {
    const original = Object.getOwnPropertyDescriptor(home, name)?.value;
    if (typeof original === 'function' && isStep(name)) home[name] = wrap(name, original);
  }
}

watchAll(
  fs,
  (name, original) =>
    function (...args) {
      const one = present();
      if (!one || isToRead(name, args) || isPrinted(args)) return original.apply(this, args);
      const done = args.at(-1);
      if (typeof done === 'function') {
        if (one.isStill) return undefined;
        const callback = (...answer) => take(one, labelOf(name, args)) || done(...answer);
        return original.apply(this, [...args.slice(0, -1), callback]);
      }
      const result = one.isStill ? undefined : original.apply(this, args);
      // A synchronous function cannot pause.
      if (take(one, labelOf(name, args))) throw new Error('this case stands still');
      return result;
    },
);

const paths = new WeakMap();
watchAll(fs.promises, (name, original) => async (...args) => {
  const one = present();
  const result =
    !one || isToRead(name, args)
      ? await original(...args)
      : await taking(one, labelOf(name, args), () => original(...args));
  if (name === 'open') paths.set(result, args[0]);
  return result;
});

const handle = await fs.promises.open(process.execPath, 'r');
watchAll(
  Object.getPrototypeOf(handle),
  (name, original) =>
    function (...args) {
      const one = present();
      const work = () => original.apply(this, args);
      return one ? taking(one, labelOf(name, [paths.get(this) ?? '']), work) : work();
    },
);
await handle.close();
syncBuiltinESMExports();
