/** What is wrong with the path of a lake; undefined where nothing is. */
export function lakePathFault(path: string): string | undefined {
  if (/(^|[\\/])\.\.([\\/]|$)/.test(path)) return 'must not climb with ..: write where the folder really is';
  if (/\p{Cc}/u.test(path)) return 'must not hold control characters';
  const isUrl = /^[a-z][a-z0-9+.-]*:\/\//i.test(path);
  return isUrl && !/^s3:\/\/[^/]/.test(path) ? 'must be a folder, or s3://bucket/prefix' : undefined;
}
