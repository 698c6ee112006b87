import { describe, expect, test } from 'vitest'
import { inspect, named } from '../../test/pki/inspected.ts'
import {
  hasRecordedFiles,
  type RecordedFile,
  readRecorded,
  recordedFiles,
} from '../../test/truth/manifest.ts'

// What a single file is, and whether it is sound, is compared with Go in test/truth/x509.test.ts. Here: whatever is in a
// file, the answer is a report, and a file that Go refuses is one that the report says something about.

const now = new Date('2026-11-21T09:00:00Z')
const unreadable = new Set([
  'CERT_UNREADABLE',
  'PEM_BLOCK_BAD',
  'NOTHING_FOUND',
  'REQUEST_UNREADABLE',
  'REQUEST_SIGNATURE_WRONG',
])

async function verdictOf({
  path,
}: RecordedFile): Promise<{ found: number; certificates: number; codes: string[] }> {
  const { report } = await inspect(now, [named(path, readRecorded(path))])
  // Outputs read everything, so everything is computed.
  JSON.stringify(report)
  const { certificates, requests, keys, withoutCertificate } = report
  return {
    found: certificates.length + requests.length + keys.length + withoutCertificate.length,
    certificates: certificates.length,
    codes: report.problems.map(({ code }) => code),
  }
}

describe.skipIf(!hasRecordedFiles)('the recorded files', () => {
  test.each(['odd', 'good'] as const)(
    'of %s-certs each have an answer that is no defect',
    async (collection) => {
      for (const file of recordedFiles(collection)) {
        const { found, codes } = await verdictOf(file)
        expect({ path: file.path, codes }).not.toMatchObject({
          codes: expect.arrayContaining(['KCERT_DEFECT']),
        })
        expect({ path: file.path, said: found + codes.length }).not.toMatchObject({ said: 0 })
      }
    },
  )

  test.each(['odd', 'good'] as const)(
    'of %s-certs are said to be unreadable where Go refuses them, and only there',
    async (collection) => {
      const evaluated = recordedFiles(collection).filter(
        ({ go, kind }) => go !== undefined && kind !== 'pkcs7',
      )
      const differing: unknown[] = []
      for (const file of evaluated) {
        const { found, certificates, codes } = await verdictOf(file)
        const isRefused = codes.some((code) => unreadable.has(code))
        // One that is recorded as a certificate is a key.
        if (file.go ? found === 0 : !isRefused && certificates > 0)
          differing.push({ path: file.path, go: file.go, found, codes })
      }
      expect(differing).toEqual([])
    },
  )
})
