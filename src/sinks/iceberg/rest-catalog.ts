import { ConfigError, RetryLater } from '../../model/errors.ts';
import { parseJson, stringifyJson } from '../../model/json.ts';
import { changedMeanwhile } from './catalog.ts';
import { currentSnapshot, type Metadata, newMetadata } from './format/metadata.ts';
import { recordHead } from './heads.ts';
import { type Catalog, locationOf, tableFolder, type Version, type Warehouse } from './warehouse.ts';

export interface RestCatalogOptions {
  uri: string;
  /** A secret: it is only sent in the header of each request. */
  token: string | undefined;
  warehouse: string | undefined;
}

const SILENCE_MS = 30_000;

/** No transaction spans this catalog and the state: the table changes first, and recovery reads the commit from the table. */
export function createRestCatalog({ uri, token, warehouse: name }: RestCatalogOptions): Catalog {
  const base = uri.replace(/\/+$/, '');
  let prefix: Promise<string> | undefined;

  /** The status is undefined if there is no response: then it is unknown whether the request took effect. */
  const ask = async (method: string, path: string, body?: unknown) => {
    try {
      const response = await fetch(`${base}/v1/${path}`, {
        method,
        signal: AbortSignal.timeout(SILENCE_MS),
        headers: {
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: stringifyJson(body) }),
      });
      const text = await response.text();
      return { status: response.status, body: text === '' ? undefined : parseJson(text) };
    } catch {
      // Recovery: the caller looks up whether the request took effect.
      return { status: undefined, body: undefined };
    }
  };

  const findPrefix = async (): Promise<string> => {
    const query = name === undefined ? '' : `?warehouse=${encodeURIComponent(name)}`;
    const { status, body } = await ask('GET', `config${query}`);
    if (status !== 200) throw refused(base, status, 'its config');
    const { defaults = {}, overrides = {} } = body as Record<string, Record<string, string>>;
    const found = overrides.prefix ?? defaults.prefix;
    return found === undefined ? '' : `${found}/`;
  };

  const pathTo = async (...steps: string[]): Promise<string> => {
    prefix ??= findPrefix();
    try {
      return (await prefix) + steps.map(encodeURIComponent).join('/');
    } catch (error) {
      // Recovery: the next call requests the config again.
      prefix = undefined;
      throw error;
    }
  };

  const load = async (warehouse: Warehouse, table: string): Promise<Version | undefined> => {
    const { status, body } = await ask('GET', await pathTo('namespaces', warehouse.namespace, 'tables', table));
    if (status === 404) return undefined;
    if (status !== 200) throw refused(base, status, `${warehouse.namespace}.${table}`);
    return listedOf(body);
  };

  return {
    isInState: false,
    load,
    async create({ warehouse, later }, design) {
      const { namespace } = warehouse;
      const made = await ask('POST', await pathTo('namespaces'), { namespace: [namespace], properties: {} });
      if (made.status !== 200 && made.status !== 409) throw refused(base, made.status, `namespace ${namespace}`);
      const location = locationOf(warehouse, tableFolder(warehouse, design.name));
      const metadata = newMetadata(design, location, Date.now());
      const { status, body } = await ask('POST', await pathTo('namespaces', namespace, 'tables'), {
        name: design.name,
        location,
        schema: metadata.schemas[0],
        'partition-spec': metadata['partition-specs'][0],
        'write-order': metadata['sort-orders'][0],
        properties: metadata.properties,
        'stage-create': false,
      });
      // Another process may have created the table at the same time, or a request whose response was lost.
      const there = status === 200 ? listedOf(body) : await load(warehouse, design.name);
      if (!there) throw refused(base, status, `${namespace}.${design.name}`);
      later(recordHead(warehouse, design.name, there, null));
      return there;
    },
    async replace(draft, table, before, metadata) {
      const { warehouse } = draft;
      const { status, body } = await ask('POST', await pathTo('namespaces', warehouse.namespace, 'tables', table), {
        requirements: requirementsOf(before.metadata),
        updates: updatesOf(before.metadata, metadata),
      });
      if (status === 409) throw changedMeanwhile(warehouse, table);
      if (status !== undefined && status >= 400 && status < 500) throw refused(base, status, table);
      // From here on the table may reference the files even if the state's transaction fails, so they stay, at worst as orphans.
      draft.made.length = 0;
      // Without a response it is unknown whether the commit took effect, so look it up.
      const now = status === 200 ? listedOf(body) : await load(warehouse, table);
      const wanted = currentSnapshot(metadata)?.['snapshot-id'];
      const isThere = now?.metadata.snapshots.some((one) => String(one['snapshot-id']) === String(wanted));
      if (!now || (status !== 200 && !isThere)) throw refused(base, status, table);
      draft.later(recordHead(warehouse, table, now, before.location));
      return now;
    },
  };
}

const listedOf = (body: unknown): Version => {
  const { 'metadata-location': location, metadata } = body as { 'metadata-location': string; metadata: Metadata };
  // Servers omit empty fields.
  const full = { ...metadata, snapshots: metadata.snapshots ?? [], refs: metadata.refs ?? {} };
  const logs = { 'snapshot-log': full['snapshot-log'] ?? [], 'metadata-log': full['metadata-log'] ?? [] };
  return { location, metadata: { ...full, properties: full.properties ?? {}, ...logs } };
};

/** Requires the same table, at the snapshot that the change is based on. */
const requirementsOf = (before: Metadata): object[] => [
  { type: 'assert-table-uuid', uuid: before['table-uuid'] },
  { type: 'assert-ref-snapshot-id', ref: 'main', 'snapshot-id': currentSnapshot(before)?.['snapshot-id'] ?? null },
  { type: 'assert-current-schema-id', 'current-schema-id': before['current-schema-id'] },
];

function updatesOf(before: Metadata, after: Metadata): object[] {
  const updates: object[] = [];
  if (after['current-schema-id'] !== before['current-schema-id']) {
    const schema = after.schemas.find((one) => one['schema-id'] === after['current-schema-id']);
    updates.push({ action: 'add-schema', schema, 'last-column-id': after['last-column-id'] });
    // −1 is the schema added last.
    updates.push({ action: 'set-current-schema', 'schema-id': -1 });
  }
  const properties = Object.entries(after.properties).filter(([key, value]) => before.properties[key] !== value);
  if (properties.length > 0) updates.push({ action: 'set-properties', updates: Object.fromEntries(properties) });
  const removals = Object.keys(before.properties).filter((key) => !(key in after.properties));
  if (removals.length > 0) updates.push({ action: 'remove-properties', removals });
  const [had, has] = [before, after].map(
    ({ snapshots }) => new Set(snapshots.map((snapshot) => String(snapshot['snapshot-id']))),
  ) as [Set<string>, Set<string>];
  for (const snapshot of after.snapshots.filter((one) => !had.has(String(one['snapshot-id'])))) {
    const ref = { 'ref-name': 'main', type: 'branch', 'snapshot-id': snapshot['snapshot-id'] };
    updates.push({ action: 'add-snapshot', snapshot }, { action: 'set-snapshot-ref', ...ref });
  }
  const gone = before.snapshots.map((one) => one['snapshot-id']).filter((id) => !has.has(String(id)));
  if (gone.length > 0) updates.push({ action: 'remove-snapshots', 'snapshot-ids': gone });
  return updates;
}

function refused(base: string, status: number | undefined, what: string): RetryLater | ConfigError {
  if (status === 401 || status === 403) {
    return new ConfigError(`the Iceberg catalog at ${base} refused ${what} (${status})`, {
      kept: 'everything; nothing was changed',
      next: 'check that catalog.token is correct and may read and write this namespace',
    });
  }
  return new RetryLater(
    status === undefined
      ? `the Iceberg catalog at ${base} did not answer for ${what}`
      : `the Iceberg catalog at ${base} answered ${status} for ${what}`,
    { kept: 'whatever was committed before', next: 'run again once the catalog works' },
  );
}
