import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Creates a certificate authority by openssl, for tests only. */
export function createAuthority() {
  const folder = mkdtempSync(join(tmpdir(), 'tributary-tls-'));
  const at = (name: string): string => join(folder, name);
  const openssl = (...args: string[]): void => void execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' });
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl('req', '-x509', ...newKey, '-keyout', 'ca.key', '-out', 'ca.pem', '-subj', '/CN=a test', '-days', '2');
  // Only `openssl ca` accepts dates; it needs an index file.
  writeFileSync(at('index.txt'), '');
  writeFileSync(at('ca.cnf'), CA_CONFIG);
  let made = 0;
  return {
    /** For NODE_EXTRA_CA_CERTS. */
    file: at('ca.pem'),
    folder,
    /** A certificate for this machine by default. */
    sign({ host = 'IP:127.0.0.1', isExpired = false, isSelfSigned = false } = {}) {
      made += 1;
      const [key, request, cert] = [`${made}.key`, `${made}.csr`, `${made}.pem`];
      const named = ['-subj', `/CN=server ${made}`, '-addext', `subjectAltName=${host}`];
      if (isSelfSigned) {
        openssl('req', '-x509', ...newKey, '-keyout', key, '-out', cert, ...named, '-days', '2');
      } else {
        openssl('req', ...newKey, '-keyout', key, '-out', request, ...named);
        const dates = isExpired ? ['-startdate', '200101000000Z', '-enddate', '200102000000Z'] : ['-days', '2'];
        openssl('ca', '-batch', '-config', 'ca.cnf', '-in', request, '-out', cert, '-notext', ...dates);
      }
      return { key: readFileSync(at(key)), cert: readFileSync(at(cert)) };
    },
  };
}

const CA_CONFIG = `
[ca]
default_ca = own
[own]
dir = .
database = index.txt
new_certs_dir = .
certificate = ca.pem
private_key = ca.key
rand_serial = yes
default_md = sha256
policy = any
copy_extensions = copy
unique_subject = no
[any]
commonName = supplied
`;
