/** What the codes of a failed connection mean for a person. The first row that matches is told. */
export const NETWORK_MEANINGS: ReadonlyArray<{ codes: RegExp; what: string; next: string }> = [
  {
    codes: /^ECONNREFUSED$/,
    what: 'nothing listens there',
    next: 'check baseUrl and its port, or wait for the service',
  },
  { codes: /^ENOTFOUND$/, what: 'the host name is unknown', next: 'check the host name in baseUrl, and the DNS' },
  { codes: /^EAI_/, what: 'the DNS did not answer', next: 'check the network and the DNS' },
  {
    codes: /CERT|^UNABLE_TO|^ERR_TLS_|SELF_SIGNED/,
    what: 'its TLS certificate is not trusted',
    next: 'check the certificate, the clock of this machine, and NODE_EXTRA_CA_CERTS where a proxy re-signs',
  },
  {
    codes: /^EPROTO$|^ERR_SSL_/,
    what: 'it does not speak TLS as expected',
    next: 'check that baseUrl names an https port, and any proxy between',
  },
  {
    codes: /^(ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN)$/,
    what: 'it cannot be reached',
    next: 'check the network and any firewall or proxy between',
  },
  {
    codes: /^(ECONNRESET|EPIPE|ECONNABORTED|UND_ERR_SOCKET|UND_ERR_RES_CONTENT_LENGTH_MISMATCH)$/,
    what: 'the connection was cut',
    next: 'run it again; if it stays, check any proxy between',
  },
  { codes: /^Z_/, what: 'the compressed answer is damaged', next: 'run it again' },
  { codes: /^HPE_/, what: 'what answers there is not HTTP', next: 'check baseUrl and its port' },
];

export const meaningOf = (code: string): (typeof NETWORK_MEANINGS)[number] | undefined =>
  NETWORK_MEANINGS.find(({ codes }) => codes.test(code));
