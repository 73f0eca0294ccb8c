import type { Sink } from '../../sinks/sink.ts';
import type { VerificationHead, VerifyRequest } from '../api-types.ts';
import { chooseSinks, chooseStreams } from '../choose.ts';
import type { ControlDeps } from '../deps.ts';
import { windowOf } from '../params.ts';
import { type Ask, Refusal, type Route } from '../route.ts';
import type { Verifications, VerifyJob } from '../verifications.ts';

type Deps = Pick<ControlDeps, 'sinks' | 'streams'>;

export const verificationRoutes = (deps: Deps, verifications: Verifications): Route[] => [
  {
    method: 'GET',
    path: '/api/verifications',
    summary: 'Comparisons that this process was asked for since it started, the newest first.',
    answer: 'Verifications',
    handle: async () => ({ verifications: verifications.all().map(headOf) }),
  },
  {
    method: 'POST',
    path: '/api/verifications',
    summary: 'Holds what the sinks have against the service, or two sinks against each other. It runs by itself.',
    body: 'VerifyRequest',
    status: 202,
    answer: 'Verification',
    handle: async (ask) => verifications.start(jobOf(deps, ask)),
  },
  {
    method: 'GET',
    path: '/api/verifications/{id}',
    summary: 'One of them, with what was found so far, by stream, sink and day.',
    answer: 'Verification',
    handle: async ({ params }) => verifications.find(params.id ?? ''),
  },
  {
    method: 'POST',
    path: '/api/verifications/{id}/cancel',
    summary: 'Ends it after the page in hand. What was found so far stays.',
    answer: 'Verification',
    handle: async ({ params }) => verifications.cancel(params.id ?? ''),
  },
];

const headOf = ({ verdicts: _, ...head }: VerificationHead & { verdicts: unknown }): VerificationHead => head;

function jobOf(deps: Deps, ask: Ask): VerifyJob {
  const { source, streams, sink, from, to, repair = false, between } = ask.body as VerifyRequest;
  if (between && repair)
    throw new Refusal(400, 'two sinks cannot repair each other', { next: 'leave out repair, or between' });
  return {
    jobs: chooseStreams(deps.streams, { ...(source && { source }), ...(streams && { streams }) }).map(({ job }) => job),
    sinks: chooseSinks(deps.sinks, sink),
    window: windowOf({ ...ask, params: { from, to } }, { start: 0, end: 0 }),
    repair,
    between: between && pairOf(deps.sinks, between),
  };
}

function pairOf(sinks: readonly Sink[], names: readonly string[]): [Sink, Sink] {
  const [first, second] = names.flatMap((name) => chooseSinks(sinks, name));
  if (first && second && first !== second) return [first, second];
  throw new Refusal(400, 'between takes two sinks', { next: 'name two different ones' });
}
