import { BlockList, isIP } from 'node:net';

/** Loopback addresses: the only ones where plain HTTP does not send the key over a network. */
const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

/** Link-local addresses: cloud metadata services give out credentials there. No attribution service runs on one. */
const LINK_LOCAL = new BlockList();
LINK_LOCAL.addSubnet('169.254.0.0', 16, 'ipv4');
LINK_LOCAL.addSubnet('fe80::', 10, 'ipv6');
LINK_LOCAL.addAddress('fd00:ec2::254', 'ipv6');
for (const address of ['100.100.100.200', '168.63.129.16', '192.0.0.192']) LINK_LOCAL.addAddress(address, 'ipv4');
const METADATA_NAMES = new Set(['metadata', 'metadata.google.internal', 'metadata.goog', 'instance-data']);

/** The base URL, normalized (no trailing slash), or why it is not valid. Strict, because the key is sent there. */
export function checkBaseUrl(value: unknown): { value: string } | { fault: string } {
  if (typeof value !== 'string' || value === '') return { fault: 'must be an address such as https://api.example.com' };
  // The URL parser accepts blanks, backslashes and missing slashes; such an address was mistyped.
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^\s\\/?#]/i.test(value) || /[\s\\]/.test(value) || !URL.canParse(value)) {
    return { fault: 'is not an address: write it in full, such as https://api.example.com' };
  }
  const url = new URL(value);
  if (url.username || url.password) return { fault: 'must not hold a user name or password: the key goes into apiKey' };
  if (/[?#]/.test(value)) return { fault: 'must not hold a query (?) or a fragment (#)' };
  const fault = hostFault(url);
  return fault ? { fault } : { value: url.origin + url.pathname.replace(/\/+$/, '') };
}

/** Why no secret may be sent to this host. */
export function hostFault({ protocol, hostname }: URL): string | undefined {
  if (protocol !== 'https:' && protocol !== 'http:') return `must start with https://, not ${protocol}//`;
  const host = hostname.replace(/^\[|\]$|\.$/g, '');
  if (METADATA_NAMES.has(host) || isIn(LINK_LOCAL, host))
    return `${host} is a link-local or metadata address: no service of this kind is there`;
  if (protocol === 'http:' && host !== 'localhost' && !isIn(LOOPBACK, host))
    return `must use https: over http the key would travel to ${host} in the clear`;
  return undefined;
}

/** Also IPv4 addresses inside IPv6 ones: a network with NAT64 routes them to the embedded address. */
function isIn(list: BlockList, host: string): boolean {
  const family = isIP(host);
  if (family === 0) return false;
  return list.check(host, family === 4 ? 'ipv4' : 'ipv6') || (family === 6 && list.check(innerAddress(host), 'ipv4'));
}

/** The IPv4 address inside ::/96, ::ffff:0:0/96, 64:ff9b::/96 and 64:ff9b:1::/48; an unused address for any other. */
function innerAddress(host: string): string {
  const translated = /^(?:::|::ffff:|::ffff:0:|64:ff9b::|64:ff9b:1:(?:.*:)?)([0-9a-f]{0,4}):([0-9a-f]{1,4})$/.exec(
    host,
  );
  const single = /^(?:64:ff9b::|64:ff9b:1::)([0-9a-f]{1,4})$/.exec(host);
  const [high, low] = translated ? [translated[1], translated[2]] : ['0', single?.[1] ?? '0'];
  const bytes = [high, low].map((word) => Number.parseInt(word || '0', 16)).flatMap((word) => [word >> 8, word & 255]);
  return bytes.join('.');
}
