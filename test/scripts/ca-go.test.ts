import { afterAll, describe, expect, test } from 'vitest'
import { keyTypeNames } from '../../src/x509/new-key.ts'
import { buildGoPeer, GoVerifier } from '../peers/go-peer.ts'
import { certificateIn, folderWithCa, inFolder, opensslAccepts, opensslRequest } from './ca-files.ts'

// Certificates signed by kcert's CA, with every type of key, verified by Go, OpenSSL and kcert.

const peer = buildGoPeer()
if ('missing' in peer) process.stdout.write(`skipped: ${peer.missing}\n`)

describe.skipIf('missing' in peer)('a chain issued by kcert', () => {
  const go = new GoVerifier('path' in peer ? peer.path : '')
  afterAll(() => go.close())

  test.each(keyTypeNames)(
    'with a CA of %s is accepted only for its purpose, name and time',
    async (keyType) => {
      const at = folderWithCa('--key-type', keyType)
      const run = inFolder(at)
      opensslRequest(at, 'a', '-addext', 'subjectAltName=DNS:a.example.com')
      run([
        'ca',
        'sign',
        'a.csr',
        '--ca',
        'ca.pem',
        '--ca-key',
        'ca-key.pem',
        '--profile',
        'server',
        '--out',
        'a.crt',
      ])
      run(['ca', 'renew', '--ca', 'ca.pem', '--ca-key', 'ca-key.pem', '--out', 'renewed.pem'])
      expect(opensslAccepts(at, 'ca.pem', 'a.crt')).toBe(true)

      const leaf = certificateIn(at, 'a.crt')
      const ask = async (ca: string, purpose: 'server' | 'client', name: string, when: Date) => {
        const roots = [certificateIn(at, ca).der]
        return (await go.ask({ leaf: leaf.der, roots, intermediates: [], at: when, purpose, name })).ok
      }
      const during = new Date(leaf.notBefore.getTime() + 600_000)
      expect(await ask('ca.pem', 'server', 'a.example.com', during)).toBe(true)
      expect(await ask('renewed.pem', 'server', 'a.example.com', during)).toBe(true)
      expect(await ask('ca.pem', 'client', '', during)).toBe(false)
      expect(await ask('ca.pem', 'server', 'b.example.com', during)).toBe(false)
      expect(await ask('ca.pem', 'server', 'a.example.com', new Date(leaf.notBefore.getTime() - 1000))).toBe(
        false,
      )
      expect(await ask('ca.pem', 'server', 'a.example.com', new Date(leaf.notAfter.getTime() + 1000))).toBe(
        false,
      )
    },
  )
})
