import { appendFileSync } from 'node:fs';

export interface ProofCase {
  suite: string;
  name: string;
  survived: boolean;
  lost: number;
  doubled: number;
}

/** Adds a case to the file that TRIBUTARY_PROOF names; nothing where it is unset. Called before asserting, so that failures count too. */
export function recordCase(proof: ProofCase): void {
  const file = process.env.TRIBUTARY_PROOF;
  if (file) appendFileSync(file, `${JSON.stringify(proof)}\n`);
}
