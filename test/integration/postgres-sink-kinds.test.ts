import { postgresPlace } from '../support/postgres-place.ts';
import { sinkSuite } from '../support/sink-suite.ts';

sinkSuite('Postgres, in another database than the state', () => postgresPlace({ sameDatabase: false }));
sinkSuite('Postgres, in monthly partitions', () => postgresPlace({ partition: 'month' }));
