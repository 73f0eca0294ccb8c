import { ConfigError } from '../model/errors.ts';

/** A type of trait value: its description, its parser, and what the bare name means. */
export interface Kind<T> {
  values: string;
  /** The value of `name` without `=value`; undefined if a value is required. */
  bare: string | undefined;
  /** Undefined if the text is not such a value. */
  read(text: string): T | undefined;
}

const UNITS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

export const choice = <const T extends string>(...values: readonly [T, ...T[]]): Kind<T> => ({
  values: values.join('|'),
  bare: values[0],
  read: (text) => values.find((value) => value === text),
});

export const flag = (): Kind<boolean> => ({
  values: 'true|false',
  bare: 'true',
  read: (text) => (text === 'true' ? true : text === 'false' ? false : undefined),
});

export const count = (bare: number): Kind<number> => ({
  values: 'N',
  bare: String(bare),
  read: (text) => (/^\d+$/.test(text) ? Number(text) : undefined),
});

export const share = (bare: number): Kind<number> => ({
  values: '0..1',
  bare: String(bare),
  read: (text) => (/^\d*\.?\d+$/.test(text) && Number(text) <= 1 ? Number(text) : undefined),
});

export const duration = (bare: string): Kind<number> => ({
  values: 'milliseconds, or 90s, 5m, 2h, 30d',
  bare,
  read(text) {
    const match = /^(-?\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(text);
    return match ? Number(match[1]) * (UNITS[match[2] ?? 'ms'] ?? 1) : undefined;
  },
});

export interface TraitRow<T> {
  kind: Kind<T>;
  doc: string;
}

export const row = <T>(kind: Kind<T>, doc: string): TraitRow<T> => ({ kind, doc });

/** Behaviours that a user may want to test a client with. A row defines the trait's type, its parser and its line of help. */
export const SWITCHES = {
  limitCap: row(count(50), 'a larger limit or pageSize is silently reduced to this'),
  sortOrder: row(choice('ignored'), 'sortOrder is ignored: rows are always newest first'),
  repeatRows: row(share(0.1), 'this share of rows appears twice on its page'),
  lateness: row(duration('90s'), 'new events become visible only this much later'),
  oldAliasesOnly: row(flag(), 'fields with a deprecated alias are sent only under the alias'),
  noAliases: row(flag(), 'deprecated aliases are not sent'),
} as const;

type ValueOf<R> = R extends TraitRow<infer T> ? T : never;
export type TraitsOf<S> = { -readonly [K in keyof S]?: ValueOf<S[K]> | undefined };
export type Traits = TraitsOf<typeof SWITCHES>;

export const TRAITS = Object.entries(SWITCHES).map(([name, { kind, doc }]) => ({ name, ...kind, doc }));

/** Reads `name`, `name=value` or `name=` (off) into the traits and returns them. */
export type ReadTrait<T> = (text: string, into?: T) => T;

export function traitReader<S extends Record<string, TraitRow<unknown>>>(switches: S): ReadTrait<TraitsOf<S>> {
  return (text, into = {}) => {
    const sign = text.indexOf('=');
    const name = (sign < 0 ? text : text.slice(0, sign)).trim();
    const kind = Object.hasOwn(switches, name) ? switches[name]?.kind : undefined;
    if (!kind) {
      const names = Object.keys(switches).join(', ');
      throw new ConfigError(`the sandbox has no trait "${name}"`, { next: `use one of: ${names}` });
    }
    const given = sign < 0 ? kind.bare : text.slice(sign + 1).trim();
    if (given === '') {
      delete into[name];
      return into;
    }
    const value = given === undefined ? undefined : kind.read(given);
    if (value === undefined) {
      throw new ConfigError(`trait ${name} cannot be "${given ?? ''}"`, { next: `give ${name}=${kind.values}` });
    }
    return Object.assign(into, { [name]: value });
  };
}

export const readTrait = traitReader(SWITCHES);
