import { describe, expect, it } from 'vitest';
import { parseConfig } from '../../src/config/index.ts';

const clicks = (settings: string, rest = '') =>
  parseConfig(
    `sources: { main: { baseUrl: "https://a.example", apiKey: k, plan: pro, streams: { clicks: { ${settings} } } } }\n${rest}`,
    'f',
    {},
  ).config;
const scheduleOf = (settings: string) => clicks(settings).sources.main?.streams.clicks?.schedule;

describe('when a stream is read', () => {
  it('every five minutes, unless it says otherwise', () => {
    expect(scheduleOf('')).toEqual({ every: 300_000 });
    expect(scheduleOf('every: 90s')).toEqual({ every: 90_000 });
    expect(scheduleOf('cron: "0 6 * * *"')).toEqual({ cron: '0 6 * * *', timezone: 'UTC' });
    expect(scheduleOf('cron: "0 6 * * *", timezone: Europe/Berlin')).toMatchObject({ timezone: 'Europe/Berlin' });
  });

  it.each([
    ['both', 'every: 1m, cron: "0 6 * * *"', 'streams.clicks.cron: cannot be combined with every: keep one of them'],
    ['a broken line', 'cron: "0 6 * *"', 'streams.clicks.cron: must have five fields'],
    ['a zone without a line', 'timezone: UTC', 'streams.clicks.timezone: is only for cron'],
    ['no such zone', 'cron: "0 6 * * *", timezone: Mars', 'streams.clicks.timezone: is not a time zone'],
    ['always late', 'every: 5m, maxLag: 12m', 'streams.clicks.maxLag: must be longer than settle and every together'],
  ])('%s is a fault', (_name, settings, message) => {
    expect(() => clicks(settings)).toThrow(message);
  });
});

it.each([
  ['an hour, unless it says otherwise', '', 3_600_000],
  ['what is said', 'maxLag: 2h', 7_200_000],
  ['a few polls where those take longer', 'every: 1h', 15_000_000],
  ['a few polls after what settles', 'settle: 3h', 12_000_000],
  ['nothing by itself for a cron line, which may be weekly', 'cron: "0 6 * * 1"', undefined],
])('how late a stream may be: %s', (_name, settings, ms) => {
  expect(clicks(settings).sources.main?.streams.clicks?.maxLag).toBe(ms);
});

it('a webhook must be an address, and is not quoted where it is none', () => {
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
