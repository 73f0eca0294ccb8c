import { appendFileSync } from 'node:fs';

/** One case of what `npm run prove` counts: was it survived, and how many rows were lost or stood there twice. */
export interface ProofCase {
  suite: string;
  name: string;
  survived: boolean;
  /** Absent where there are no rows, or nothing that could hold one twice. */
  lost?: number;
  doubled?: number;
  /** Survived, and something was never called complete. */
  open?: boolean;
  /** Stands for so many cases. */
  times?: number;
}

/** Writes the case down for the table of `npm run prove`; in a plain test run there is nobody to read it. */
export function recordCase(proof: ProofCase): void {
  const file = process.env.TRIBUTARY_PROOF;
  if (file) appendFileSync(file, `${JSON.stringify(proof)}\n`);
}

/** The case, by the rows that must be there and those that are. */
export function rowsOf(wanted: readonly string[], found: readonly string[]): { lost: number; doubled: number } {
  const there = new Set(found);
  return { lost: wanted.filter((id) => !there.has(id)).length, doubled: found.length - there.size };
}

/** Survived if the check passes. What it throws is thrown on. */
export async function proveCase(proof: Omit<ProofCase, 'survived'>, check: () => Promise<void> | void): Promise<void> {
  let survived = false;
  try {
    await check();
    survived = true;
  } finally {
    recordCase({ ...proof, survived });
  }
}
