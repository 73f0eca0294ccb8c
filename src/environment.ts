import type { Environment } from './config-document.ts';
import { createLog } from './log.ts';
import type { Log } from './model/log.ts';

/** The one place that reads the environment. It loads next to nothing, since every start passes through here. */

export const variables = (): Environment => process.env;

export const logOfEnvironment = (): Log =>
  createLog({ level: process.env.TRIBUTARY_LOG || 'warn', isForPeople: process.stderr.isTTY === true });

export const wantsNoColour = (): boolean => (process.env.NO_COLOR ?? '') !== '' || process.env.TERM === 'dumb';
