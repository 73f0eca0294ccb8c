#!/usr/bin/env node
import { builtHelp } from './help.ts';

const help = builtHelp(process.argv.slice(2));
// Everything else is loaded on demand, so that a help text appears immediately.
if (help === undefined) void import('./launch.ts').then(({ launch }) => launch());
else process.stdout.on('error', () => {}).write(`${help}\n`); // A reader that has left, as with `| head`, is not an error.
