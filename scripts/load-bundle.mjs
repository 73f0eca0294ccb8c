#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import Module, { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { Script } from 'node:vm';

/** The command line, dist/cli/main.js, as scripts/bundle.mjs makes it. Each part is loaded when it is used, compiled ahead where that was done for this Node. */

const FOLDER = fileURLToPath(new URL('../bundle', import.meta.url));
const COMPILED = `${FOLDER}/${process.version}-${process.platform}-${process.arch}`;

const outside = createRequire(import.meta.url);
const require = (name) => (name.startsWith('./') ? load(name.slice(2)) : outside(name));
const loaded = new Map();

function load(name) {
  const known = loaded.get(name);
  if (known) return known.exports;
  const module = { exports: {} };
  loaded.set(name, module);
  const filename = `${FOLDER}/${name}`;
  const source = readFileSync(filename, 'utf8');
  const part = process.sourceMapsEnabled
    ? mapped(source, filename)
    : new Script(source, { filename, cachedData: compiled(name) }).runInThisContext();
  part(module.exports, require, module, FOLDER);
  return module.exports;
}

/** Node takes source maps from modules, not from scripts. */
function mapped(source, filename) {
  const module = new Module(filename);
  module._compile(`module.exports = ${source}`, filename);
  return module.exports;
}

function compiled(name) {
  try {
    return readFileSync(`${COMPILED}/${name}.bin`);
  } catch {
    // Recovery: for another Node or another machine it is compiled now.
    return undefined;
  }
}

load('main.js');
