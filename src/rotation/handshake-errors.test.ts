import { expect, test } from 'vitest'
import { allowedErrors, handshakeFailures, isVerificationFailure } from './handshake-errors.ts'

// Messages of Go 1.26: crypto/tls/alert.go and net/http/server.go.
test.each([
  'remote error: tls: unknown certificate authority',
  'remote error: tls: bad certificate',
  'remote error: tls: expired certificate',
  'remote error: tls: unknown certificate',
  'remote error: tls: revoked certificate',
  'remote error: tls: unsupported certificate',
  'remote error: tls: error decrypting message',
  // An OpenSSL client with TLS 1.3, as observed in the lab.
  'local error: tls: bad record MAC',
  'tls: failed to verify certificate: x509: certificate signed by unknown authority',
  "tls: failed to verify client's certificate: x509: certificate has expired or is not yet valid",
])('"%s" is a rejected certificate', (reason) => {
  expect(isVerificationFailure(reason)).toBe(true)
})

test.each([
  'EOF',
  'read tcp 10.0.0.1:6443->10.0.0.7:4123: read: connection reset by peer',
  'tls: first record does not look like a TLS handshake',
  'client sent an HTTP request to an HTTPS server',
  'remote error: tls: protocol version not supported',
  'tls: client offered only unsupported versions: [301]',
  'i/o timeout',
])('"%s" is another error', (reason) => {
  expect(isVerificationFailure(reason)).toBe(false)
})

test('reads lines of containers, units and JSON logs, and ignores others', () => {
  const text = [
    '2026-11-21T12:00:01.5+01:00 stderr F I1121 11:00:01.500000       1 log.go:245] http: TLS handshake error from 10.0.0.7:41234: EOF',
    '1795258802.250000 cp1 kube-apiserver[7]: I1121 http: TLS handshake error from [fd00::7]:4: remote error: tls: bad certificate',
    '2026-11-21T11:00:03Z stderr F {"ts":1.5,"msg":"http: TLS handshake error from 10.0.0.8:5: EOF\\n","v":5}',
    '2026-11-21T11:00:04Z stderr F I1121 something else',
    '2026-11-21T11:00:05Z stderr F http: TLS handshake error from $(reboot):5: \u001b[2J\u202eEOF',
    'yesterday stderr F http: TLS handshake error from 10.0.0.9:5: EOF',
    // Clients choose their user agents and paths.
    '2026-11-21T11:00:06Z stderr F I1121 11:00:06.0 1 httplog.go:134] "HTTP" userAgent="http: TLS handshake error from 10.0.0.9:5: EOF"',
    '2026-11-21T11:00:06Z stderr F {"ts":1.5,"msg":"HTTP","userAgent":"http: TLS handshake error from 10.0.0.9:5: EOF","v":3}',
  ].join('\n')
  expect(handshakeFailures(text, 500)).toEqual([
    { atMs: Date.parse('2026-11-21T11:00:01.000Z'), address: '10.0.0.7', reason: 'EOF' },
    { atMs: 1_795_258_801_750, address: 'fd00::7', reason: 'remote error: tls: bad certificate' },
    { atMs: Date.parse('2026-11-21T11:00:02.500Z'), address: '10.0.0.8', reason: 'EOF' },
    { atMs: Date.parse('2026-11-21T11:00:04.500Z'), address: '(no address)', reason: '?[2J?EOF' },
  ])
})

test.each([
  [undefined, 0],
  [{ errors: 0, overMs: 20_000 }, 0],
  [{ errors: 30, overMs: 20_000 }, 19],
  [{ errors: 1, overMs: 20_000 }, 2],
])('allows at a rate of %j this number in 10 s: %i', (before, allowed) => {
  expect(allowedErrors(before, 10_000)).toBe(allowed)
})
