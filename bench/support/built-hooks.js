const [SOURCE, BUILT] = ['../../src/', '../../dist/'].map((path) => new URL(path, import.meta.url).href);

/** @type {import('node:module').ResolveHook} */
export async function resolve(specifier, context, next) {
  const found = await next(specifier, context);
  const [url] = found.url.split('?');
  if (!url?.startsWith(SOURCE) || !url.endsWith('.ts')) return found;
  return { ...found, url: `${BUILT}${url.slice(SOURCE.length, -'.ts'.length)}.js`, format: 'module' };
}
