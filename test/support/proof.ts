import { appendFileSync } from 'node:fs';

/** A case for `npm run prove`: whether it survived, and how many rows were lost or doubled. */
export interface ProofCase {
  suite: string;
  name: string;
  survived: boolean;
  /** Absent without rows, or without a sink that could double one. */
  lost?: number;
  doubled?: number;
  /** Survived, but something was never certified. */
  open?: boolean;
  /** Counts as so many cases. */
  times?: number;
}

/** Records the case for the table of `npm run prove`; other runs ignore it. */
export function recordCase(proof: ProofCase): void {
  const file = process.env.TRIBUTARY_PROOF;
  if (file) appendFileSync(file, `${JSON.stringify(proof)}\n`);
}

/** The losses, from the expected and the stored rows. */
export function rowsOf(wanted: readonly string[], found: readonly string[]): { lost: number; doubled: number } {
  const there = new Set(found);
  return { lost: wanted.filter((id) => !there.has(id)).length, doubled: found.length - there.size };
}

/** Survived if the check passes. Its error is rethrown. */
export async function proveCase(proof: Omit<ProofCase, 'survived'>, check: () => Promise<void> | void): Promise<void> {
  let survived = false;
  try {
    await check();
    survived = true;
  } finally {
    recordCase({ ...proof, survived });
  }
}
