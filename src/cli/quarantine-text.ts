import type { Quarantined } from '../cursor/quarantined.ts';
import { parseJson, stringifyJson } from '../model/json.ts';
import { createRedact } from '../model/withhold.ts';
import type { Retried } from '../sync/retry-quarantined.ts';
import { table } from './terminal/table.ts';
import { counted, minute } from './terminal/words.ts';
import { wrap } from './terminal/wrap.ts';

/** Whatever the settings keep: a terminal is read over shoulders, and its text is pasted into tickets. */
const mask = createRedact({ linkPassword: 'drop', ip: 'drop', customer: 'drop' });

const shown = (record: string, raw: boolean): unknown => {
  const value = parseJson(record);
  return raw ? value : mask(value);
};

export function describeList(records: readonly Quarantined[], total: number, columns: number): string {
  if (records.length === 0) return 'nothing was set aside';
  const rows = records.map(({ id, source, stream, lastAt }) => [
    String(id),
    `${source}/${stream}`,
    minute(lastAt.toISOString()),
  ]);
  const headers = ['id', 'stream', 'last seen', 'reason'];
  const taken = [0, 1, 2].map((i) => Math.max(...[headers, ...rows].map((row) => row[i]?.length ?? 0)) + 2);
  const room = Math.max(12, columns - taken.reduce((a, b) => a + b, 0));
  for (const [i, row] of rows.entries()) {
    const { reason = '' } = records[i] ?? {};
    row.push(reason.length > room ? `${reason.slice(0, room - 1)}…` : reason);
  }
  const more = total > records.length ? ` · the newest ${records.length} of ${total}; --limit shows more` : '';
  return [table(headers, rows), '', `times in UTC${more}`].join('\n');
}

export function describeOne(record: Quarantined, raw: boolean): string {
  const { id, source, stream, reason, runId, firstAt, lastAt } = record;
  return [
    `record ${id} of ${source}/${stream}`,
    wrap(`reason: ${reason}`, 2),
    `seen:   ${minute(firstAt.toISOString())} to ${minute(lastAt.toISOString())} UTC, last by run ${runId}`,
    '',
    stringifyJson(shown(record.record, raw), 2),
  ].join('\n');
}

export function describeRetried(results: readonly Retried[], columns: number): string {
  if (results.length === 0) return 'nothing was set aside';
  const stuck = results.filter(({ reason }) => reason !== undefined);
  const done = results.length - stuck.length;
  return [
    `${counted(done, 'record')} written, ${stuck.length} still unusable`,
    ...stuck.map(({ id, reason }) => wrap(`${id}: ${reason}`, 2, columns)),
  ].join('\n');
}

const head = ({ id, source, stream, reason, runId, firstAt, lastAt }: Quarantined): object => ({
  id,
  source,
  stream,
  reason,
  run: runId,
  firstAt: firstAt.toISOString(),
  lastAt: lastAt.toISOString(),
});

export const listJson = (records: readonly Quarantined[], total: number): object => ({
  total,
  records: records.map(head),
});

/** Text, not an object: a record may hold integers that JSON.stringify does not know. */
export const oneJson = (record: Quarantined, raw: boolean): string =>
  stringifyJson({ ...head(record), record: shown(record.record, raw) }, 2);
