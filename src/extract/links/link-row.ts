import { BadRecord } from '../../model/errors.ts';
import { createReadColumns, type Row, treatmentOf } from '../../model/flatten.ts';
import { LONGEST_ID } from '../../model/identity.ts';
import { createExtra, isObject } from '../../model/json.ts';
import { createWithhold, DEFAULT_PRIVACY, type Privacy, treat } from '../../model/privacy.ts';
import { LINKS } from '../../model/streams.ts';

/** Converts a link of the listing to a row: values in the order of the columns of `LINKS`, its creation time as the row's time. */
export type FlattenLink = (record: unknown) => Row;

const placeOf = (name: string): number => LINKS.columns.findIndex((column) => column.name === name);
const [ID, CREATED, UPDATED] = [placeOf('link_id'), placeOf('link_created_at'), placeOf('link_updated_at')];

/** Undefined if the service does not report it. */
export const updatedAt = ({ values }: Row): number | undefined => (values[UPDATED] as number | null) ?? undefined;

/**
 * The listing shows links as events do, so the same columns read them. Throws `BadRecord` if a record is not a link. Fields without a
 * column are dropped: the table of links has no `_extra`.
 */
export function createFlattenLink(privacy: Privacy = DEFAULT_PRIVACY): FlattenLink {
  const read = createReadColumns(LINKS.columns);
  const withhold = createWithhold(privacy);
  const treatments = LINKS.columns.map((column) => treatmentOf(column, privacy));
  return (record) => {
    if (!isObject(record)) throw new BadRecord('a link is not an object');
    const findings = { extra: createExtra(withhold), contradictions: [], typeMismatches: [] };
    const values = read({ link: record }, findings);
    const id = values[ID];
    if (typeof id !== 'string' || id === '' || id.length > LONGEST_ID) {
      throw new BadRecord(`a link has no id: \`id\` is missing, or is not text of at most ${LONGEST_ID} characters`);
    }
    LINKS.columns.forEach((_, i) => {
      values[i] = treat(values[i] ?? null, treatments[i] ?? 'keep', privacy.salt);
    });
    const { contradictions, typeMismatches } = findings;
    return { id, at: Number(values[CREATED] ?? 0), values, extra: null, contradictions, typeMismatches };
  };
}
