import { forThisFile } from '../support/for-this-file.ts';
import { icebergS3Place } from '../support/iceberg-place.ts';
import { startS3 } from '../support/s3-server.ts';
import { sinkSuite } from '../support/sink-suite.ts';

const server = await forThisFile(startS3());
Object.assign(process.env, server.environment);

sinkSuite('Iceberg tables in S3', () => icebergS3Place(server));
