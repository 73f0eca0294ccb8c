import { afterAll, beforeAll } from 'vitest';
import { s3Place } from '../support/lake-place.ts';
import { type S3Server, startS3 } from '../support/s3-server.ts';
import { sinkSuite } from '../support/sink-suite.ts';

let server: S3Server;
beforeAll(async () => {
  server = await startS3();
  Object.assign(process.env, server.environment);
});
afterAll(() => server.close());

sinkSuite('a lake in S3, by hour', () => s3Place(server, { scheme: 'hour', compression: 'snappy' }));
