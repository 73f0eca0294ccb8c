import { afterAll, beforeAll } from 'vitest';
import { icebergS3Place } from '../support/iceberg-place.ts';
import { type S3Server, startS3 } from '../support/s3-server.ts';
import { sinkSuite } from '../support/sink-suite.ts';

let server: S3Server;
beforeAll(async () => {
  server = await startS3();
  Object.assign(process.env, server.environment);
});
afterAll(() => server.close());

sinkSuite('Iceberg tables in S3', () => icebergS3Place(server));
