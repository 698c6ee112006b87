import { describe, expect, test } from 'vitest'
import { inspect, named } from '../../test/pki/inspected.ts'
import {
  hasRecordedFiles,
  type RecordedFile,
  readRecorded,
  recordedFiles,
} from '../../test/truth/manifest.ts'

// test/truth/x509.test.ts compares the type and validity of each file with Go. Here, every file must give a report, and the
// report must have a problem for each file that Go rejects.

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
  // Outputs read every field, so every field is computed.
  JSON.stringify(report)
  const { certificates, requests, keys, withoutCertificate } = report
  return {
    found: certificates.length + requests.length + keys.length + withoutCertificate.length,
    certificates: certificates.length,
    codes: report.problems.map(({ code }) => code),
  }
}

describe.skipIf(!hasRecordedFiles)('recorded files', () => {
  test.each(['odd', 'good'] as const)(
    'give a report without a defect for each of %s-certs',
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
    'are reported as unreadable in %s-certs exactly if Go rejects them',
    async (collection) => {
      const evaluated = recordedFiles(collection).filter(
        ({ go, kind }) => go !== undefined && kind !== 'pkcs7',
      )
      const differing: unknown[] = []
      for (const file of evaluated) {
        const { found, certificates, codes } = await verdictOf(file)
        const isRefused = codes.some((code) => unreadable.has(code))
        // One recorded certificate is in fact a key.
        if (file.go ? found === 0 : !isRefused && certificates > 0)
          differing.push({ path: file.path, go: file.go, found, codes })
      }
      expect(differing).toEqual([])
    },
  )
})
