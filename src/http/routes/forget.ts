import { knownSources } from '../../cursor/forgotten.ts';
import { holderOf } from '../../cursor/leases.ts';
import type { Erasure } from '../../sinks/sink.ts';
import { forget } from '../../sync/forget.ts';
import type { ForgetRequest, Forgotten } from '../api-types.ts';
import type { ControlDeps } from '../deps.ts';
import { type Ask, Refusal, type Route } from '../route.ts';

type Deps = Pick<ControlDeps, 'state' | 'sinks' | 'streams'>;

/** The id comes in the body: addresses are written down by every proxy on the way. */
export const forgetRoute = (deps: Deps): Route => ({
  method: 'POST',
  path: '/api/forget',
  summary: 'Erases a customer, a click or a whole source from every sink and the state. It cannot be undone.',
  body: 'ForgetRequest',
  answer: 'Forgotten',
  handle: (ask) => erase(deps, ask),
});

async function erase({ state, sinks, streams }: Deps, { body }: Ask): Promise<Forgotten> {
  const erasure = erasureOf(body as ForgetRequest);
  const known = new Set([...streams.map(({ source }) => source), ...(await knownSources(state))]);
  // "Nothing there" would be a false comfort for a source that is only mistyped.
  if (!known.has(erasure.source))
    throw new Refusal(404, 'there is no such source, neither in the config nor in the state', {
      kept: 'nothing was changed',
      next: `use one of: ${[...known].join(', ')}`,
    });
  return { touched: await forget({ state, sinks, holder: holderOf('control room') }, erasure) };
}

function erasureOf({ source, customer, click, everything }: ForgetRequest): Erasure {
  const asked = [customer, click, everything].filter((one) => one !== undefined);
  if (asked.length !== 1)
    throw new Refusal(400, 'say what to forget', { next: 'give one of customer, click or everything' });
  if (customer !== undefined) return { source, kind: 'customer', id: customer };
  return click === undefined ? { source, kind: 'source' } : { source, kind: 'click', id: click };
}
