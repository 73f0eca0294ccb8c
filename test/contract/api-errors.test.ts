import { describe, expect, it } from 'vitest';
import { createClient } from '../../src/api/client.ts';
import { SERVICE_CODES } from '../../src/api/service-errors.ts';
import { RetryLater, StopStream } from '../../src/model/errors.ts';
import { contractTable } from '../support/contract.ts';
import { serve } from '../support/http-server.ts';

const rows = contractTable('Errors');
const DAY = 86_400_000;
const query = { stream: 'clicks', start: 0, end: DAY, sortOrder: 'asc', page: 1, limit: 1000, filters: {} } as const;

describe('error codes of the contract', () => {
  it('the table here is the table there', () => {
    expect(SERVICE_CODES.map(({ code, status }) => ({ code, status }))).toEqual(
      rows.map((row) => ({ code: row.code, status: Number(row['HTTP status']) })),
    );
  });

  it.each(rows.map((row) => [row.code ?? '', Number(row['HTTP status']), row.Condition] as const))(
    '%s (%d) arrives as a typed error with the answer of the service',
    async (code, status, condition) => {
      const docUrl = `https://docs.example.com/errors#${code}`;
      const server = await serve((_request, response) => {
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ error: { code, message: condition, doc_url: docUrl } }));
      });
      const error = await createClient({ baseUrl: server.baseUrl, apiKey: 'k_123' })
        .get(query)
        .catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(status === 429 || status >= 500 ? RetryLater : StopStream);
      expect(error).toMatchObject({ answer: { status, code, message: condition, docUrl } });
      expect((error as StopStream).next).toBeTruthy();
      expect((error as StopStream).message).toContain(String(status));
    },
  );
});
