import { describe, expect, it } from 'vitest';
import { parseConfig } from '../../src/config/index.ts';

const clicks = (settings: string, rest = '') =>
  parseConfig(
    `sources: { main: { baseUrl: "https://a.example", apiKey: k, plan: pro, streams: { clicks: { ${settings} } } } }\n${rest}`,
    'f',
    {},
  ).config;
const scheduleOf = (settings: string) => clicks(settings).sources.main?.streams.clicks?.schedule;

describe('the schedule of a stream', () => {
  it('is every five minutes by default', () => {
    expect(scheduleOf('')).toEqual({ every: 300_000 });
    expect(scheduleOf('every: 90s')).toEqual({ every: 90_000 });
    expect(scheduleOf('cron: "0 6 * * *"')).toEqual({ cron: '0 6 * * *', timezone: 'UTC' });
    expect(scheduleOf('cron: "0 6 * * *", timezone: Europe/Berlin')).toMatchObject({ timezone: 'Europe/Berlin' });
  });

  it.each([
    ['both', 'every: 1m, cron: "0 6 * * *"', 'streams.clicks.cron: cannot be combined with every: keep one of them'],
    ['an invalid cron expression', 'cron: "0 6 * *"', 'streams.clicks.cron: must have five fields'],
    ['a time zone without cron', 'timezone: UTC', 'streams.clicks.timezone: is only for cron'],
    ['an unknown time zone', 'cron: "0 6 * * *", timezone: Mars', 'streams.clicks.timezone: is not a time zone'],
    ['always late', 'every: 5m, maxLag: 12m', 'streams.clicks.maxLag: must be longer than settle and every together'],
  ])('%s is a fault', (_name, settings, message) => {
    expect(() => clicks(settings)).toThrow(message);
  });
});

it.each([
  ['an hour by default', '', 3_600_000],
  ['the given value', 'maxLag: 2h', 7_200_000],
  ['a few polls if those take longer', 'every: 1h', 15_000_000],
  ['a few polls after the settle time', 'settle: 3h', 12_000_000],
  ['none for a cron expression, which may be weekly', 'cron: "0 6 * * 1"', undefined],
])('the maximal lag of a stream: %s', (_name, settings, ms) => {
  expect(clicks(settings).sources.main?.streams.clicks?.maxLag).toBe(ms);
});

it('a webhook must be a URL, and an invalid one is not quoted', () => {
  expect(clicks('', 'alerts: { webhook: "https://hooks.example/s3cret" }').alerts.webhook).toBe(
    'https://hooks.example/s3cret',
  );
  expect(() => clicks('', 'alerts: { webhook: "http://hooks.example/s3cret" }')).toThrow(
    /^(?!.*s3cret)[\s\S]*must use https/,
  );
  expect(() => clicks('', 'alerts: { webhook: "https://[64:ff9b::a9fe:a9fe]/s3cret" }')).toThrow(
    /^(?!.*s3cret)[\s\S]*link-local/,
  );
  expect(() => clicks('', 'alerts: { webhook: s3cret }')).toThrow(/^(?!.*s3cret)[\s\S]*alerts\.webhook: must be a URL/);
});
