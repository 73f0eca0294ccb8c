import { describe, expect, it } from 'vitest';
import { checkBaseUrl } from '../../src/api/base-url.ts';

describe('base URL', () => {
  it.each([
    ['https://api.example.com', 'https://api.example.com'],
    ['https://api.example.com/', 'https://api.example.com'],
    ['https://API.example.com:8443/v1//', 'https://api.example.com:8443/v1'],
    ['https://10.0.0.7', 'https://10.0.0.7'],
    ['http://localhost:3000', 'http://localhost:3000'],
    ['http://127.0.0.1:8080/api', 'http://127.0.0.1:8080/api'],
    ['http://127.9.9.9', 'http://127.9.9.9'],
    ['http://[::1]:8080', 'http://[::1]:8080'],
  ])('accepts %s', (value, url) => {
    expect(checkBaseUrl(value)).toEqual({ value: url });
  });

  it.each([
    ['http://api.example.com', /https/],
    ['http://localhost.example.com', /https/],
    ['http://128.0.0.1', /https/],
    ['http://0.0.0.0', /https/],
    ['http://[::2]', /https/],
    ['file:///etc/passwd', /address/],
    ['ftp://example.com', /https/],
    ['javascript:alert(1)', /address/],
    ['https://user:secret@api.example.com', /user name or password/],
    ['https://secret@api.example.com', /user name or password/],
    ['https://api.example.com/?a=1', /query/],
    ['https://api.example.com/?', /query/],
    ['https://api.example.com/#x', /fragment/],
    ['https://169.254.169.254/latest', /link-local/],
    ['http://169.254.169.254', /link-local/],
    ['https://0xA9FE0001', /link-local/],
    ['https://[fe80::1]', /link-local/],
    ['https://[febf::1]', /link-local/],
    ['https://[::ffff:169.254.169.254]', /link-local/],
    ['https://[::169.254.169.254]', /link-local/],
    ['https://[::ffff:0:169.254.169.254]', /link-local/],
    ['https://[64:ff9b::a9fe:a9fe]', /link-local/],
    ['https://[64:ff9b:1::169.254.169.254]', /link-local/],
    ['https://[64:ff9b::100.100.100.200]/hook', /link-local/],
    ['https://[fd00:ec2::254]', /link-local/],
    ['https://metadata.google.internal', /metadata/],
    ['https://metadata.google.internal.', /metadata/],
    ['api.example.com', /address/],
    ['https:api.example.com', /address/],
    [' https://api.example.com', /address/],
    ['https://api.example.com\\@evil.example', /address/],
    ['https://', /address/],
    ['', /address/],
    [undefined, /address/],
    [42, /address/],
  ])('refuses %s', (value, fault) => {
    const result = checkBaseUrl(value);
    expect(result).toEqual({ fault: expect.stringMatching(fault) });
    expect(JSON.stringify(result)).not.toContain('secret');
  });
});
