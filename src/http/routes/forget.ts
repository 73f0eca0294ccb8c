import { knownSources } from '../../cursor/forgotten.ts';
import { holderOf } from '../../cursor/leases.ts';
import type { Erasure } from '../../sinks/sink.ts';
import { auditNoteOf, forget } from '../../sync/maintain/forget.ts';
import { checkConfirmed } from '../choices.ts';
import type { ControlDeps } from '../dependencies.ts';
import { HttpError } from '../http-error.ts';
import { type Route, route } from '../route.ts';
import { byName, count, longText, named, object, shortText, z } from '../shapes.ts';

/** The id comes in the body: addresses are written down by every proxy on the way. */
const ForgetRequest = named(
  'ForgetRequest',
  z.union([
    object({ source: shortText, customer: longText }),
    object({ source: shortText, click: longText }),
    object({
      source: shortText,
      everything: z.literal(true),
      confirm: shortText.describe('the name of the source once more: nothing of it is left'),
    }),
  ]),
);
type ForgetRequest = z.infer<typeof ForgetRequest>;

const Forgotten = named('Forgotten', object({ touched: byName(count).describe('rows, by table or place') }));

export type Forgotten = z.infer<typeof Forgotten>;

type Deps = Pick<ControlDeps, 'state' | 'sinks' | 'streams'>;

export const forgetRoute = (deps: Deps): Route =>
  route({
    method: 'POST',
    path: '/api/forget',
    summary: 'Erases a customer, a click or a whole source from every sink and the state. It cannot be undone.',
    role: 'admin',
    body: ForgetRequest,
    answer: Forgotten,
    audit: ({ body }) => auditNoteOf(erasureOf(body)),
    handle({ body }) {
      if ('everything' in body) checkConfirmed(body.confirm, body.source);
      return erase(deps, erasureOf(body));
    },
  });

async function erase({ state, sinks, streams }: Deps, erasure: Erasure): Promise<Forgotten> {
  const known = new Set([...streams.map(({ source }) => source), ...(await knownSources(state))]);
  // "Nothing there" would be a false comfort for a source that is only mistyped.
  if (!known.has(erasure.source))
    throw new HttpError(404, 'there is no such source, neither in the config nor in the state', {
      kept: 'nothing was changed',
      next: `use one of: ${[...known].join(', ')}`,
    });
  return { touched: await forget({ state, sinks, holder: holderOf('control room') }, erasure) };
}

function erasureOf(request: ForgetRequest): Erasure {
  const { source } = request;
  if ('customer' in request) return { source, kind: 'customer', id: request.customer };
  return 'click' in request ? { source, kind: 'click', id: request.click } : { source, kind: 'source' };
}
