import { postgresPlace } from '../support/postgres-place.ts';
import { sinkSuite } from '../support/sink-suite.ts';

sinkSuite('Postgres, in the database of the state', () => postgresPlace({ sameDatabase: true }));
