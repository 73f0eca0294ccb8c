import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkFilters, checkParams } from '../../src/api/filters.ts';
import { PARAMS } from '../../src/api/params.ts';

const sent = (filters: unknown) => {
  const { query, faults } = checkFilters('sales', filters);
  expect(faults).toEqual([]);
  return query;
};
const faultOf = (filters: unknown) => {
  const { faults } = checkFilters('sales', filters);
  expect(faults).toHaveLength(1);
  return faults[0] ?? { path: [], message: '' };
};

describe('filters from YAML and the command line', () => {
  it('accept text, integers, booleans and lists', () => {
    expect(sent({ country: 'US', utm_campaign: 2026, root: true, tagId: ['a', 7], qr: 'false' })).toEqual({
      country: 'US',
      utm_campaign: '2026',
      root: 'true',
      tagId: 'a,7',
      qr: 'false',
    });
    expect(sent(undefined)).toEqual({});
    expect(sent({ country: 'US, CA' })).toEqual({ country: 'US,CA' });
    expect(sent({ city: 'New York' })).toEqual({ city: 'New York' });
  });

  it.each([
    ['-US', '-US'],
    ['-US,-CA', '-US,-CA'],
    [['-US', '-CA'], '-US,-CA'],
    [['-US'], '-US'],
    [[' -US ', '- CA'], '-US,-CA'],
  ])('sends exclusion %j as %s: a - before every value', (value, text) => {
    expect(sent({ country: value })).toEqual({ country: text });
  });

  it.each([[['-US', 'CA']], [['US', '-CA']], ['US,-CA'], ['-US,CA'], ['-US,-CA,GB']])(
    'refuses %j, which excludes and includes at once',
    (value) => {
      expect(faultOf({ country: value }).message).toMatch(/excludes some values and includes others/);
    },
  );

  it.each([
    ['', /empty/],
    ['  ', /empty/],
    ['-', /empty/],
    ['US,,CA', /empty/],
    ['US,', /empty/],
    ['--US', /- too many/],
    [null, /no value/],
    [Number.NaN, /quotes/],
    [1.5, /quotes/],
    [2 ** 53, /quotes/],
    [true, /quotes/],
    [{ a: 1 }, /must be a text/],
    [[], /empty list/],
    ['a\0b', /control character/],
    ['\ud800', /half a character/],
  ])('refuses the value %j', (value, message) => {
    const fault = faultOf({ city: value });
    expect(fault.path).toEqual(['city']);
    expect(fault.message).toMatch(message);
  });

  it('name all wrong entries of a list at once', () => {
    const { faults } = checkFilters('clicks', { city: ['Rome', 'Washington, D.C.', null, ['Oslo'], 'Bern'] });
    expect(faults.map((fault) => fault.path)).toEqual([
      ['city', 1],
      ['city', 2],
      ['city', 3],
    ]);
    expect(faults[0]?.message).toContain('comma');
  });

  it('accept lists only where the contract has advanced filtering', () => {
    expect(faultOf({ customerId: ['a', 'b'] }).message).toMatch(/one value, not a list/);
    expect(sent({ customerId: 'a,b' })).toEqual({ customerId: 'a,b' });
  });

  it('warn of unknown words where vocabularies may grow, and refuse them where the contract closes them', () => {
    const open = checkFilters('clicks', { trigger: 'deeplink', country: ['US', 'Unknown'], region: 'Bavaria' });
    expect(open.faults).toEqual([]);
    expect(open.query).toEqual({ trigger: 'deeplink', country: 'US,Unknown', region: 'Bavaria' });
    expect(open.warnings).toHaveLength(3);
    expect(open.warnings[0]).toContain('deeplink');
    expect(faultOf({ continent: ['EU', '-XX'] }).message).toContain('excludes some');
    expect(faultOf({ continent: '-XX' }).message).toContain('AF, AN, AS, EU, NA, OC, SA, not "XX"');
    expect(faultOf({ saleType: 'first' }).message).toContain('new, recurring');
    expect(faultOf({ root: 'yes' }).message).toContain('true or false');
  });

  it.each([
    ['UK', 'GB'],
    ['us', 'US'],
    ['Germany', 'DE'],
    ['usa', 'US'],
  ])('refuses the country %s and asks whether %s was meant', (country, meant) => {
    expect(faultOf({ country }).message).toContain(`did you mean ${meant}?`);
    expect(faultOf({ country: ['US', `${country}`] }).message).toContain(`did you mean ${meant}?`);
  });
  it('refuse a country that resembles none, without a suggestion', () => {
    expect(faultOf({ country: 'QQ' }).message).toBe('country must be a 2-letter ISO 3166-1 country code, not "QQ"');
  });

  it('refuse a name with a comma, which would become two, and show how to write two', () => {
    const { message } = faultOf({ city: 'Washington, D.C.' });
    expect(message).toMatch(/"Washington, D.C." holds a comma.*write a list/);
    expect(sent({ city: 'Paris,London' })).toEqual({ city: 'Paris,London' });
    expect(sent({ city: ['Paris', 'London'] })).toEqual({ city: 'Paris,London' });
  });

  it.each([
    [{ key: 'k' }, /together with domain/],
    [{ key: 'k', domain: '-a.link' }, /exactly one domain/],
    [{ key: 'k', domain: 'a.link,b.link' }, /exactly one domain/],
    [{ key: 'k', domain: ['a.link', 'b.link'] }, /exactly one domain/],
    [{ qr: true, trigger: 'link' }, /qr conflicts with trigger/],
    [{ tagIds: 'a', tagId: 'b' }, /tagIds conflicts with tagId/],
  ])('refuses %j', (filters, message) => {
    expect(faultOf(filters).message).toMatch(message);
  });
  it('accept a key with one domain, also as a list of one', () => {
    expect(sent({ key: 'k', domain: ['a.link'] })).toEqual({ key: 'k', domain: 'a.link' });
  });

  it.each(['clicks', 'leads'] as const)('refuses saleType on %s', (stream) => {
    expect(checkFilters(stream, { saleType: 'new' }).faults[0]?.message).toBe(
      `saleType works on sales only, not on ${stream}`,
    );
  });

  it('suggest the nearest parameter for an unknown one', () => {
    expect(faultOf({ contry: 'US' }).message).toContain('did you mean country?');
    expect(faultOf({ utmSource: 'x' }).message).toContain('did you mean utm_source?');
    expect(faultOf({ completelyDifferentThing: 'x' }).message).not.toContain('did you mean');
    expect(faultOf(JSON.parse('{"__proto__":"x"}')).path).toEqual(['__proto__']);
    expect(faultOf({ constructor: 'x' }).path).toEqual(['constructor']);
  });

  it.each(PARAMS.filter((param) => param.reserved).map((param) => param.name))(
    'refuses %s: the reader sets it',
    (name) => {
      expect(faultOf({ [name]: 'x' }).message).toMatch(/set by the reader itself: \w/);
    },
  );
  it('name the replacements of start and end', () => {
    expect(faultOf({ start: '2026-01-01' }).message).toContain('--from');
    expect(faultOf({ end: '2026-01-01' }).message).toContain('--to');
  });

  it.each([
    ['programId', 'p', 'defaultProgramId'],
    ['tagIds', 't', 'tagId'],
    ['qr', true, 'trigger'],
  ])('accepts the deprecated %s with a warning that names the replacement', (name, value, replacement) => {
    const { query, faults, warnings } = checkFilters('clicks', { [name]: value });
    expect(faults).toEqual([]);
    expect(query).toEqual({ [name]: String(value) });
    expect(warnings.join()).toContain(replacement);
  });

  it('check the form, length and streams of query', () => {
    expect(sent({ query: "metadata['plan']:'it''s gold'" })).toBeTruthy();
    expect(faultOf({ query: 'plan:gold' }).message).toContain("metadata['<key>']:'<value>'");
    const long = (length: number) => `metadata['k']:'${'x'.repeat(length - 16)}'`;
    expect(long(10_000)).toHaveLength(10_000);
    expect(sent({ query: long(10_000) })).toBeTruthy();
    expect(faultOf({ query: long(10_001) }).message).toContain('10001 characters');
    expect(checkFilters('clicks', { query: long(20) }).faults[0]?.message).toContain('not on clicks');
  });

  it.each([null, [], 'country=US', 5, new Date(), new Map()])('refuses filters that are no mapping: %s', (filters) => {
    expect(faultOf(filters)).toEqual({ path: [], message: expect.stringContaining('mapping') });
  });

  it('never throw, and accept their own output unchanged', () => {
    const names = PARAMS.map((param) => param.name);
    const value = fc.oneof(fc.anything(), fc.string(), fc.array(fc.string()), fc.constantFrom('-US,-CA', ['-a', '-b']));
    const anyFilters = fc.oneof(fc.anything(), fc.dictionary(fc.oneof(fc.constantFrom(...names), fc.string()), value));
    fc.assert(
      fc.property(fc.constantFrom('clicks', 'leads', 'sales'), anyFilters, (stream, filters) => {
        const { query, faults } = checkFilters(stream, filters);
        for (const fault of faults) expect(fault.message.length).toBeGreaterThan(5);
        if (faults.length > 0) return;
        const again = checkFilters(stream, query);
        expect(again.faults).toEqual([]);
        expect(again.query).toEqual(query);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('a complete request', () => {
  it.each([
    [{ limit: 1001 }, 'limit'],
    [{ limit: 0 }, 'limit'],
    [{ limit: '1e3' }, 'limit'],
    [{ page: -1 }, 'page'],
    [{ page: 1.5 }, 'page'],
    [{ page: Number.POSITIVE_INFINITY }, 'page'],
    [{ sortOrder: 'up' }, 'sortOrder'],
    [{ sortBy: 'amount' }, 'sortBy'],
    [{ event: 'click' }, 'event'],
    [{ interval: '25h' }, 'interval'],
    [{ timezone: 'Mars/Olympus' }, 'timezone'],
  ])('refuses %j', (raw, name) => {
    expect(checkParams(raw).faults.map((fault) => fault.path)).toEqual([[name]]);
  });

  it('accepts order with a warning that names sortOrder', () => {
    const { query, faults, warnings } = checkParams({ event: 'leads', order: 'asc', timezone: 'Europe/Berlin' });
    expect(faults).toEqual([]);
    expect(query).toEqual({ event: 'leads', order: 'asc', timezone: 'Europe/Berlin' });
    expect(warnings).toEqual([expect.stringContaining('sortOrder')]);
  });
});
