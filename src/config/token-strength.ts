const SHORTEST = 16;
const FEWEST_CHARACTERS = 8;
/** Characters that must be guessed one by one. */
const FEWEST_SURPRISES = 10;

export const A_TOKEN = `must have at least ${SHORTEST} characters, ${FEWEST_CHARACTERS} of them different, and be no word, sequence or repetition: openssl rand -hex 32 makes a good one`;

const WORDS = /change.?me|pass.?word|letmein|welcome|default|example|secret|tributary|token|admin|test|hello/g;
/** Whoever walks along one of these, in either direction, surprises nobody. */
const TRACKS = ['abcdefghijklmnopqrstuvwxyz', '01234567890', 'qwertyuiop', 'asdfghjkl', 'zxcvbnm'];
const STEPS = new Set(
  TRACKS.flatMap((track) =>
    [...track].flatMap((from, i) => [from + track[i + 1], `${track[i + 1]}${from}`, from + from]),
  ),
);

/** Whether a token cannot be guessed: what is left of it without common words, repetitions and sequences is long enough. */
export function isToken(token: string): boolean {
  if (token.length < SHORTEST || new Set(token).size < FEWEST_CHARACTERS) return false;
  const rest = token
    .toLowerCase()
    .replace(WORDS, ' ')
    .replace(/(.{2,}?)\1+/gs, '$1');
  const surprises = [...rest].filter((letter, i, all) => letter !== all[i - 1] && !STEPS.has(`${all[i - 1]}${letter}`));
  return surprises.length >= FEWEST_SURPRISES;
}
