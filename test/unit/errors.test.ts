import { describe, expect, it } from 'vitest';
import { BadRecord, Cancelled, ConfigError, Fault, RetryLater, StopStream } from '../../src/model/errors.ts';

describe('the message of an error', () => {
  it('names the place, the event, what was kept and the next action', () => {
    const fault = new StopStream('the service refused the key', {
      where: { source: 'main', stream: 'clicks', window: '[a, b)' },
      kept: 'everything before a',
      next: 'check apiKey',
    });
    expect(fault.describe()).toBe(
      'main/clicks [a, b): the service refused the key\nkept: everything before a\nnext: check apiKey',
    );
  });

  it.each([
    [{}, 'lost'],
    [{ source: 'main' }, 'main: lost'],
    [{ stream: 'sales' }, 'sales: lost'],
    [{ window: '[a, b)' }, '[a, b): lost'],
    [{ source: 'main', window: '[a, b)' }, 'main [a, b): lost'],
  ])('leaves out what is unknown: %j', (where, text) => {
    expect(new BadRecord('lost', { where }).describe()).toBe(text);
  });

  it('lists the faults of a config one a line', () => {
    const error = new ConfigError('the config has 2 errors', { faults: ['line 3: no apiKey', 'line 9: unknown key'] });
    expect(error.describe()).toBe('the config has 2 errors\n  line 3: no apiKey\n  line 9: unknown key');
    expect(error.faults).toHaveLength(2);
    expect(new ConfigError('no config').describe()).toBe('no config');
  });
});

describe('the place of an error', () => {
  it('is completed by outer layers, and inner values stay', () => {
    const fault = new RetryLater('slow', { where: { stream: 'leads' } });
    const same = fault.at({ stream: 'clicks', window: '[a, b)' }).at({ source: 'main', window: '[c, d)' });
    expect(same).toBe(fault);
    expect(fault.where).toEqual({ source: 'main', stream: 'leads', window: '[a, b)' });
  });

  it("belongs to one error: the caller's object is not changed", () => {
    const where = { source: 'main' };
    new BadRecord('odd', { where }).at({ stream: 'clicks' });
    expect(where).toEqual({ source: 'main' });
  });
});

describe('each kind', () => {
  const cause = new Error('socket closed');
  const kinds = { RetryLater, StopStream, BadRecord, ConfigError, Cancelled };

  it.each(Object.entries(kinds))('%s carries its name and its cause', (name, Kind) => {
    const fault = new Kind('it happened', { cause });
    expect(fault).toBeInstanceOf(Fault);
    expect(fault).toMatchObject({ name, message: 'it happened', cause });
    expect('cause' in new Kind('it happened')).toBe(false);
  });

  it("carries the service's answer", () => {
    const answer = { status: 429, code: 'rate_limit_exceeded', message: 'slow down' };
    expect(new RetryLater('too many', { answer, afterMs: 3000 })).toMatchObject({ answer, afterMs: 3000 });
    expect(new StopStream('refused', { answer }).answer).toBe(answer);
  });

  it('Cancelled has a default message', () => {
    expect(new Cancelled('interrupted').describe()).toBe('interrupted');
  });
});
