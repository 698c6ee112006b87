import { expect, test } from 'vitest'
import { parseEndpoint } from './endpoint.ts'

test.each([
  ['example.com:6443', 'example.com:6443', 'example.com', 6443],
  ['192.0.2.1:10250', '192.0.2.1:10250', '192.0.2.1', 10250],
  ['[2001:db8::1]:6443', '[2001:db8::1]:6443', '2001:db8::1', 6443],
  ['[fe80::1%eth0]:6443', '[fe80::1%eth0]:6443', 'fe80::1%eth0', 6443],
  ['https://example.com:6443/livez?verbose', 'example.com:6443', 'example.com', 6443],
  ['https://example.com', 'example.com:443', 'example.com', 443],
  ['https://[2001:db8::1]', '[2001:db8::1]:443', '2001:db8::1', 443],
])('parses %s', (text, name, host, port) => {
  expect(parseEndpoint(text)).toEqual({ name, host, port })
})

test.each([
  'example.com',
  'example.com:',
  'example.com:0',
  'example.com:65536',
  'example.com:6443x',
  'pki/ca.crt:1',
  '2001:db8::1:6443',
  '[192.0.2.1]:6443',
  '[2001:db8::zz]:6443',
  'user@example.com:6443',
  'http://example.com:80',
  'a b:1',
  ':6443',
  '-',
  '',
])('rejects "%s"', (text) => {
  expect(parseEndpoint(text)).toBeUndefined()
})
