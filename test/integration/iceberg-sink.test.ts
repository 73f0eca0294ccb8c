import { icebergPlace } from '../support/iceberg-place.ts';
import { sinkSuite } from '../support/sink-suite.ts';

sinkSuite('Iceberg tables in a folder', () => icebergPlace());
