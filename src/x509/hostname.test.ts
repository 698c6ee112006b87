import { describe, expect, test } from 'vitest'
import { issued } from '../../test/scripts/small-pki.ts'
import { Certificate } from './certificate.ts'
import { isNamedByCommonNameOnly, isValidForHost } from './hostname.ts'

function certificateFor(dns: readonly string[], ip: readonly string[] = [], commonName = 'x'): Certificate {
  return Certificate.parse(issued({ subject: { commonName }, subjectAltNames: { dns, ip } }).der)
}

describe('isValidForHost', () => {
  test.for<[certificate: string, host: string, isValid: boolean]>([
    ['a.example.com', 'A.Example.COM', true],
    ['a.example.com', 'a.example.com.', true],
    ['a.example.com.', 'a.example.com', false],
    ['*.example.com', 'a.example.com', true],
    ['*.example.com', 'example.com', false],
    ['*.example.com', 'a.b.example.com', false],
    ['*.com', 'example.com', true],
    ['f*.example.com', 'foo.example.com', false],
    ['a.*.com', 'a.example.com', false],
    ['*', 'a', false],
    ['*', '*', true],
    ['under_score', 'under_score', true],
    // These are not host names: only the same text matches, ignoring case.
    ['system:node', 'SYSTEM:NODE', true],
    ['-a.example.com', '-a.example.com', true],
    ['-a.example.com', '-a.example.com.', false],
    // The Kelvin sign becomes a k in lower case, but not in a host name.
    ['k.example.com', '\u212a.example.com', false],
    ['', '', false],
  ])('%s for %s', ([name, host, isValid]) => {
    expect(isValidForHost(certificateFor([name]), host)).toBe(isValid)
  })

  test('matches an IP address only to an IP address, in any notation', () => {
    const certificate = certificateFor(['10.0.0.1', 'fd00::2'], ['10.0.0.2', 'fd00::1'])
    const valid = (host: string) => isValidForHost(certificate, host)
    expect(['10.0.0.2', '::ffff:10.0.0.2', '[10.0.0.2]', 'fd00:0::1', '[fd00::1]'].map(valid)).toEqual(
      Array(5).fill(true),
    )
    expect(['10.0.0.1', 'fd00::2', '10.0.0.02'].map(valid)).toEqual([false, false, false])
  })

  test('never matches the common name', () => {
    const certificate = certificateFor([], [], 'a.example.com')
    expect(isValidForHost(certificate, 'a.example.com')).toBe(false)
    expect(isNamedByCommonNameOnly(certificate, 'A.example.com')).toBe(true)
    expect(isNamedByCommonNameOnly(certificateFor(['b'], [], 'a'), 'a')).toBe(false)
  })
})
