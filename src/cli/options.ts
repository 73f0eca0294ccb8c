import type { Command } from 'commander';
import { ConfigError } from '../model/errors.ts';
import { STREAM_NAMES, type StreamName } from '../model/streams.ts';

/** Options that several commands share, each in one place. */
export const withConfig = (command: Command): Command =>
  command.option('--config <FILE>', 'the config file (default: config/tributary.yaml)');

export const withSource = (command: Command): Command => command.option('--source <NAME>', 'only this source');

export const withSink = (command: Command): Command => command.option('--sink <NAME>', 'only this sink');

export const withJson = (command: Command): Command =>
  command.option('--json', 'print JSON for machines instead of text for people');

/** Stream names as typed; every unknown one is named at once. */
export function parseStreams(names: readonly string[]): StreamName[] {
  const isStream = (name: string): name is StreamName => (STREAM_NAMES as readonly string[]).includes(name);
  const unknown = names.filter((name) => !isStream(name));
  if (unknown.length > 0) {
    throw new ConfigError(`unknown stream: ${unknown.join(', ')}`, { next: `use ${STREAM_NAMES.join(', ')}` });
  }
  return names.filter(isStream);
}
