import { lakePlace } from '../support/lake-place.ts';
import { sinkSuite } from '../support/sink-suite.ts';

sinkSuite('a lake in a folder, by day', () => lakePlace());
