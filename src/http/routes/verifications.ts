import type { Sink } from '../../sinks/sink.ts';
import { date, HttpError, named, shortText, stream, z } from '../answers.ts';
import { type ControlDeps, chooseSinks, chooseStreams, chooseWindow } from '../dependencies.ts';
import { type Route, route } from '../route.ts';
import { Verification, VerificationHead, type VerificationRuns, type VerifyJob } from '../verification-runs.ts';

const Verifications = named('Verifications', { verifications: z.array(VerificationHead) });

export type Verifications = z.infer<typeof Verifications>;

const VerifyRequest = named('VerifyRequest', {
  source: shortText.optional().describe('default: all sources'),
  streams: z.array(stream).max(3).optional().describe('default: all streams'),
  sink: shortText.optional().describe('default: every sink'),
  from: date,
  to: date,
  repair: z.boolean().default(false).describe('reads again what differs, and compares again'),
  between: z
    .array(shortText)
    .length(2)
    .optional()
    .describe('two sinks: the second is compared with the first, without requests to the service'),
});

type Deps = Pick<ControlDeps, 'sinks' | 'streams'>;

export const verificationRoutes = (deps: Deps, runs: VerificationRuns): Route[] => [
  route('GET /api/verifications', {
    summary: 'Comparisons of this process since it started, newest first.',
    answer: Verifications,
    handle: async () => ({ verifications: runs.all().map(({ results: _, ...head }) => head) }),
  }),
  route('POST /api/verifications', {
    summary:
      'Compares what the sinks have with the service, or two sinks with each other. It runs by itself, one at a time.',
    body: VerifyRequest,
    status: 202,
    answer: Verification,
    audit: ({ body: { source = '*', streams = ['*'], from, to, repair } }) => ({
      action: repair ? 'verification.repair' : 'verification.start',
      target: streams.map((name) => `${source}/${name}`).join(', '),
      detail: { from, to },
    }),
    handle: async ({ body }) => runs.start(jobOf(deps, body)),
  }),
  route('GET /api/verifications/{id}', {
    summary: 'One of them, with what was found so far, by stream, sink and day.',
    answer: Verification,
    handle: async ({ id }) => runs.find(id),
  }),
  route('POST /api/verifications/{id}/cancel', {
    summary: 'Stops after the current page. What was found so far stays.',
    answer: Verification,
    audit: ({ id }) => ({ action: 'verification.cancel', target: id }),
    handle: async ({ id }) => runs.cancel(id),
  }),
];

function jobOf(deps: Deps, body: z.infer<typeof VerifyRequest>): VerifyJob {
  const { source, streams, sink, repair, between } = body;
  if (between && repair)
    throw new HttpError(409, 'two sinks cannot repair each other', { next: 'leave out repair, or between' });
  return {
    jobs: chooseStreams(deps.streams, { source, streams }).map(({ job }) => job),
    sinks: chooseSinks(deps.sinks, sink),
    window: chooseWindow(body),
    repair,
    between: between && pairOf(deps.sinks, between),
  };
}

function pairOf(sinks: readonly Sink[], names: readonly string[]): [Sink, Sink] {
  const [first, second] = names.flatMap((name) => chooseSinks(sinks, name));
  if (first && second && first !== second) return [first, second];
  throw new HttpError(409, 'between takes two sinks', { next: 'name two different ones' });
}
