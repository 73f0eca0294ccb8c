import { quoteIdent } from '../../cursor/sql.ts';
import { CUSTOMER_KNOWLEDGE } from '../../model/entities.ts';

/** Whether a reading knows anything of its customer; a deleted one comes as a placeholder that does not. */
export const customerIsKnown = (row: string): string =>
  `num_nonnulls(${CUSTOMER_KNOWLEDGE.map((name) => `${row}.${quoteIdent(name)}`).join(', ')}) > 0`;

/** The new value of a customer's column, unless a placeholder would overwrite what is known. */
export const keepKnownCustomer = (stored: string, read: string, column: string): string =>
  `case when ${customerIsKnown(read)} or not (${customerIsKnown(stored)})` +
  ` then ${read}.${quoteIdent(column)} else ${stored}.${quoteIdent(column)} end`;
