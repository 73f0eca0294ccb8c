import type { StreamName } from '../model/streams.ts';
import type { Sink } from '../sinks/sink.ts';
import type { ConfiguredStream } from './deps.ts';
import { Refusal } from './route.ts';

/** What somebody chose. What is left open means all of it; what is not there is refused, not passed over. */
export function chooseStreams(
  streams: readonly ConfiguredStream[],
  { source, streams: wanted = [] }: { source?: string; streams?: readonly StreamName[] },
): ConfiguredStream[] {
  const sources = [...new Set(streams.map((one) => one.source))];
  if (source !== undefined && !sources.includes(source))
    throw new Refusal(400, 'there is no such source in the config', { next: `use one of: ${sources.join(', ')}` });
  const chosen = streams.filter(
    (one) => (source === undefined || one.source === source) && (wanted.length === 0 || wanted.includes(one.stream)),
  );
  const idle = wanted.filter((stream) => !chosen.some((one) => one.stream === stream));
  if (idle.length > 0)
    throw new Refusal(400, `${idle.join(', ')} is not synced here`, { next: 'choose among the streams of the config' });
  return chosen;
}

/** One sink by its name, or all of them. */
export function chooseSinks(sinks: readonly Sink[], only: string | undefined): readonly Sink[] {
  const chosen = sinks.filter(({ name }) => name === (only ?? name));
  if (chosen.length > 0) return chosen;
  throw new Refusal(400, 'there is no such sink in the config', {
    next: `use one of: ${sinks.map(({ name }) => name).join(', ')}`,
  });
}
