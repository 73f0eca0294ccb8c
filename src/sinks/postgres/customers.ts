import { quoteIdent } from '../../cursor/sql.ts';
import { CUSTOMER_KNOWLEDGE } from '../../model/entities.ts';

/** Whether a reading knows any of these text columns. Some services write "" where there is nothing. */
export const isKnown = (row: string, knowledge: readonly string[]): string =>
  `num_nonnulls(${knowledge.map((name) => `nullif(${row}.${quoteIdent(name)}, '')`).join(', ')}) > 0`;

/** The new value of a customer's column, unless a placeholder would overwrite what is known of the same customer. */
export const keepKnownCustomer = (stored: string, read: string, column: string): string =>
  `case when ${isKnown(read, CUSTOMER_KNOWLEDGE)} or not (${isKnown(stored, CUSTOMER_KNOWLEDGE)})` +
  ` or ${stored}.customer_id is distinct from ${read}.customer_id` +
  ` then ${read}.${quoteIdent(column)} else ${stored}.${quoteIdent(column)} end`;
