import { type Finished, freshPlace } from './cli.ts';
import { emptyEngine } from './engine.ts';
import { forThisFile } from './for-this-file.ts';
import type { SandboxOptions } from './odd-service/service.ts';
import { smallSandbox } from './sandbox.ts';

interface Commands {
  /** The name of the source, and its further settings. */
  source?: string;
  settings?: object;
  /** The rest of the config without `state`: by default tables in the state's database. */
  rest?: object | ((url: string) => object);
}

/** A folder with `t.yaml`, a service, and an empty database. For a whole test file. */
export async function commandsOn(
  service: SandboxOptions,
  { source = 'main', settings = { since: '30d' }, rest = {} }: Commands = {},
) {
  const [place, sandbox, { db, url }] = await Promise.all([
    freshPlace(),
    smallSandbox(service),
    forThisFile(emptyEngine()),
  ]);
  const { baseUrl, apiKey } = sandbox;
  await place.config(
    JSON.stringify({
      sources: { [source]: { baseUrl, apiKey, plan: 'enterprise', requestsPerSecond: 200, ...settings } },
      sinks: { warehouse: { type: 'postgres' } },
      state: { url },
      ...(typeof rest === 'function' ? rest(url) : rest),
    }),
  );
  return {
    place,
    sandbox,
    db,
    url,
    /** In this process. */
    tributary: (...args: string[]): Promise<Finished> => place.call([...args, '--config', 't.yaml']),
    /** In a separate process. */
    run: (...args: string[]): Promise<Finished> => place.run([...args, '--config', 't.yaml']),
  };
}
