import { appendFileSync } from 'node:fs';

/** One case of what `npm run prove` counts: was it survived, and how many rows were lost or stood there twice. */
export interface ProofCase {
  suite: string;
  name: string;
  survived: boolean;
  lost: number;
  doubled: number;
}

/** Writes the case down for the table of `npm run prove`; in a plain test run there is nobody to read it. */
export function recordCase(proof: ProofCase): void {
  const file = process.env.TRIBUTARY_PROOF;
  if (file) appendFileSync(file, `${JSON.stringify(proof)}\n`);
}
