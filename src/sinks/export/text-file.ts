import type { Value } from '../../model/coerce.ts';
import type { Kind } from '../../model/columns.ts';
import { toIso } from '../../model/instant.ts';
import { stringifyJson } from '../../model/json.ts';
import type { Stream } from '../../model/streams.ts';
import { type ByteTarget, exportColumns, type RowFile } from './row-file.ts';

/** One JSON object a line, every column named, integers exact. */
export function createNdjsonFile(stream: Stream, target: ByteTarget): RowFile {
  const names = exportColumns(stream);
  const kinds = kindsOf(stream);
  return textFile(target, undefined, (values) => {
    const object: Record<string, unknown> = {};
    for (const [i, name] of names.entries()) {
      const value = values[i] ?? null;
      object[name] = kinds[i] === 'timestamp' && typeof value === 'number' ? toIso(value) : value;
    }
    return stringifyJson(object);
  });
}

export interface CsvOptions {
  /** Leaves cells that begin with = + - @ as they are. Spreadsheets run them as formulas. */
  keepFormulas: boolean;
}

/** RFC 4180: commas, quotes where needed, one header line. Nothing at all is null; an empty text is "". */
export function createCsvFile(stream: Stream, target: ByteTarget, { keepFormulas }: CsvOptions): RowFile {
  const kinds = kindsOf(stream);
  const cell = (value: Value, kind: Kind): string => {
    if (value === null) return '';
    if (kind === 'timestamp' && typeof value === 'number') return toIso(value);
    const text = kind === 'json' ? stringifyJson(value) : String(value);
    // Numbers and times cannot be formulas: only what a stranger wrote can.
    const isStrangers = kind === 'text' || kind === 'json';
    return quoted(isStrangers && !keepFormulas && FORMULA.test(text) ? `'${text}` : text);
  };
  const header = exportColumns(stream).map(quoted).join(',');
  return textFile(target, header, (values) => kinds.map((kind, i) => cell(values[i] ?? null, kind)).join(','));
}

/** What spreadsheets take for the beginning of a formula; a tab or a line break before it does not stop them. */
const FORMULA = /^[\s]*[=+\-@]/;

const quoted = (text: string): string =>
  text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;

const kindsOf = (stream: Stream): Kind[] => [...stream.columns.map(({ kind }) => kind), 'json'];

function textFile(target: ByteTarget, header: string | undefined, line: (values: readonly Value[]) => string): RowFile {
  let isBegun = false;
  const begin = async (): Promise<void> => {
    if (!isBegun && header !== undefined) await target.write(`${header}\n`);
    isBegun = true;
  };
  return {
    async write(rows) {
      await begin();
      if (rows.length > 0)
        await target.write(rows.map(({ values, extra }) => `${line([...values, extra])}\n`).join(''));
    },
    async finish() {
      await begin();
      await target.finish();
    },
    abandon: () => target.abandon(),
  };
}
