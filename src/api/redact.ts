/** Makes text of the service fit to be shown: one line, of bounded length, without the key. */
export type Redact = (text: string, maxLength?: number) => string;

const SHOWN = 120;

/**
 * Services echo the key in error messages and on HTML pages. Every text of theirs passes through here before it reaches
 * an error or a log line. The order matters: invisible characters go first, or a key cut by one would slip
 * through the mask; the length goes last, or half a key would remain at the edge.
 */
export function createRedact(key: string): Redact {
  const forms = [...new Set([key, encodeURIComponent(key), JSON.stringify(key).slice(1, -1)])];
  return (text, maxLength = SHOWN) => {
    let line = text
      .replace(/\s+/g, ' ')
      .replace(/\p{C}+/gu, '')
      .trim();
    for (const form of forms) line = line.replaceAll(form, '***');
    return line.length > maxLength ? `${line.slice(0, maxLength)}…` : line;
  };
}
