/** Every view of the control room, by its address. */
const DAY = new Date(Date.now() - 3 * 86_400_000).toISOString().slice(0, 10);
export const VIEWS = {
  streams: '#/',
  'a stream by the year': `#/stream/main/clicks?zoom=year&day=${DAY}`,
  'a stream by the month': '#/stream/main/clicks?zoom=month',
  'a stream in all': '#/stream/main/clicks?zoom=all&per=day',
  backfills: '#/backfills',
  runs: '#/runs',
  'a run': '#/run/run-5',
  budget: '#/budget',
  quarantine: '#/quarantine',
  'a record': '#/quarantine/17',
  schema: '#/schema',
  links: '#/links',
  audit: '#/audit',
};
