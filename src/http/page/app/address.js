/**
 * Everything a view shows follows from the address: it can be kept, sent to somebody, and gone back from.
 * `#/stream/main/clicks?zoom=year` is the view `stream`, the parts `main` and `clicks`, and a query.
 * @typedef {{ view: string, parts: string[], query: Record<string, string> }} Address
 */

/** @param {string} hash @returns {Address} */
export function parseAddress(hash) {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?');
  const [view = '', ...parts] = path.split('/').map(decoded);
  return { view, parts, query: Object.fromEntries(new URLSearchParams(query)) };
}

/**
 * @param {readonly (string | number)[]} path
 * @param {Record<string, string | number | null | undefined>} [query] What is empty is left out.
 */
export function href(path, query = {}) {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== '') params.set(name, String(value));
  }
  const tail = params.size > 0 ? `?${params}` : '';
  return `#/${path.map((part) => encodeURIComponent(part)).join('/')}${tail}`;
}

/** The same place with another query. @param {Address} address @param {Record<string, string | number | null>} changes */
export const here = ({ view, parts, query }, changes) => href([view, ...parts], { ...query, ...changes });

/** A percent sign that somebody typed is no reason to show nothing. @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
