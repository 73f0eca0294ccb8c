import { environment, hasState, withApp, withSinks } from '../app/index.ts';
import { type Config, DEFAULT_CONFIG } from '../config/index.ts';
import type { Database } from '../cursor/database/index.ts';
import { knownSources } from '../cursor/forgotten.ts';
import type { Sink } from '../sinks/sink.ts';
import { type Context, checkSource, type Options } from './command.ts';

/** The config of a command that needs a source; its warnings are printed. */
export function configFor({ terminal }: Pick<Context, 'terminal'>, { config: path = DEFAULT_CONFIG }: Options): Config {
  const { config, warnings } = environment.config(path);
  for (const warning of warnings) terminal.err(`note: ${warning}\n`);
  return config;
}

/** For commands that only read. Without a state they get `nothing`, because they must not create a database. */
export async function readState<T>(
  { log }: Context,
  { config: path, source }: Options,
  nothing: (config: Config) => T,
  read: (state: Database) => Promise<T>,
): Promise<T> {
  const { config } = environment.configOrDefaults(path);
  if (!hasState(config)) return nothing(config);
  return withApp({ config, log }, async ({ state }) => {
    await checkKnown(state, config, source);
    return read(state);
  });
}

/** Opens the state and every sink, for commands that change stored data. */
export function withStored<T>(
  { log }: Context,
  { config: path, source }: Options,
  work: (stored: { config: Config; state: Database; sinks: readonly Sink[] }) => Promise<T>,
): Promise<T> {
  const { config } = environment.configOrDefaults(path);
  return withSinks({ config, log }, async (app) => {
    await checkKnown(app.state, config, source);
    return work({ config, ...app });
  });
}

export const checkKnown = async (state: Database, config: Config, source: string | undefined): Promise<void> =>
  checkSource(source, [...Object.keys(config.sources), ...(source === undefined ? [] : await knownSources(state))]);
