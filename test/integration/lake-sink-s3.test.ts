import { forThisFile } from '../support/for-this-file.ts';
import { s3Place } from '../support/lake-place.ts';
import { startS3 } from '../support/s3-server.ts';
import { sinkSuite } from '../support/sink-suite.ts';

const server = await forThisFile(startS3());
Object.assign(process.env, server.environment);

sinkSuite('a lake in S3, by hour', () => s3Place(server, { scheme: 'hour', compression: 'snappy' }));
