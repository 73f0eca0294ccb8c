import { describe, expect, it } from 'vitest';
import { checkFilters, checkParams } from '../../src/api/filters.ts';
import { findParam, PARAMS, type Param } from '../../src/api/params.ts';
import { contractTable } from '../support/contract.ts';

const rows = contractTable('Query parameters');
const words = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '');

/** A value that the contract allows for this parameter. */
function sample(param: Param): string {
  if (param.values) return param.values[0] ?? '';
  if (param.type === 'boolean') return 'true';
  if (param.type === 'number') return '7';
  const samples: Record<string, string> = {
    externalId: 'ext_1',
    query: "metadata['plan']:'gold'",
    timezone: 'Europe/Berlin',
    country: 'US',
    region: 'US-CA',
  };
  return samples[param.name] ?? 'abc';
}

describe('query parameters of the contract', () => {
  it('the table here and the table there have the same names in the same order', () => {
    expect(rows).toHaveLength(43);
    expect(PARAMS.map((param) => param.name)).toEqual(rows.map((row) => row.Parameter));
  });

  it.each(rows.map((row) => [row.Parameter ?? '', row] as const))('%s', (name, row) => {
    const param = findParam(name);
    if (!param) throw new Error(`no parameter ${name}`);
    const type = row['Type / allowed values'] ?? '';
    const meaning = row.Meaning ?? '';
    expect(param.type).toBe(/^(enum|boolean|number|string)/.exec(type)?.[1]);
    expect(param.advanced ?? false).toBe(/\bAF\b/.test(type));
    if (param.type === 'enum') expect(param.values).toEqual(words(type));
    if (name === 'trigger' || name === 'continent') expect(param.values).toEqual(words(meaning));
    const max = /maximum (?:length )?(\d+)/.exec(type)?.[1];
    expect(param.max ?? param.maxLength).toBe(max ? Number(max) : undefined);
    const fixedDefault = words(row.Default ?? '')[0] ?? /^\d+$/.exec(row.Default ?? '')?.[0];
    if (fixedDefault) expect(String(param.default)).toBe(fixedDefault);
    else expect(param.default).toBeUndefined();
    expect(param.deprecated !== undefined).toBe(meaning.includes('deprecated'));
    const replacement = /deprecated, use `(\w+)`/.exec(meaning)?.[1];
    if (replacement) expect(param.deprecated).toContain(replacement);

    // And the row is alive: a sound value passes, alone or with what it needs, on a stream that it works on.
    const request = { event: 'sales', ...(param.needs && { [param.needs]: 'd.link' }), [name]: sample(param) };
    expect(checkParams(request).faults).toEqual([]);
    expect(checkParams({ ...request, [name]: '' }).faults).toHaveLength(1);
    const { event: _event, ...filters } = request;
    const faults = checkFilters('sales', { ...filters, ...(param.name === 'event' && request) }).faults;
    expect(faults.map((fault) => fault.path)).toEqual(param.reserved ? [[name]] : []);
  });

  it('rules in the words of the contract: key with domain, ext_, query only for leads and sales, limit 1000', () => {
    expect(checkParams({ key: 'k' }).faults[0]?.message).toContain('domain');
    expect(checkParams({ externalId: '12' }).faults[0]?.message).toContain('ext_');
    expect(checkParams({ query: "metadata['a']:'b'" }).faults[0]?.message).toContain('leads and sales');
    expect(checkParams({ event: 'leads', query: "metadata['a']:'b'" }).faults).toEqual([]);
    expect(checkParams({ limit: 1000 }).faults).toEqual([]);
    expect(checkParams({ limit: 1001 }).faults).toHaveLength(1);
    const constants = Object.fromEntries(contractTable('Other constants').map((row) => [row.Item, row.Value]));
    expect(constants['`GET /events` `limit` maximum']).toContain(String(findParam('limit')?.max));
    expect(constants['`GET /events` `query` maximum length']).toContain(String(findParam('query')?.maxLength));
  });
});
