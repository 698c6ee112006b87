import { describe, expect, test } from 'vitest'
import { inspect, named } from '../../test/pki/inspected.ts'
import { certificatePem, keyPem, signedBy, testCa, testKey } from '../../test/pki/kubeadm-tree.ts'
import { parseSelectors, type Selection, select } from './selection.ts'

const now = new Date('2026-11-21T09:00:00Z')
const notBefore = new Date('2026-06-01T08:00:00Z')
const key = testKey('leaf')
const ca = testCa('kubernetes', testKey('ca'), notBefore)
const leaf = (commonName: string, notAfter: string, usage = 'clientAuth', start = notBefore) =>
  certificatePem(
    signedBy(ca, {
      commonName,
      key,
      notBefore: start,
      notAfter: new Date(notAfter),
      extendedKeyUsage: [usage],
      subjectAltNames: { dns: ['x'] },
    }),
  )

const { report } = await inspect(now, [
  named('z-expired', leaf('gone', '2026-11-01T00:00:00Z')),
  named('a-ok', leaf('fine', '2027-11-01T00:00:00Z', 'serverAuth')),
  named('m-warning', leaf('soon', '2026-12-10T00:00:00Z')),
  named('k-critical', leaf('now', '2026-11-25T00:00:00Z')),
  named('b-future', leaf('later', '2027-12-01T00:00:00Z', 'clientAuth', new Date('2026-12-01'))),
  named('ca', certificatePem(ca.certificate)),
  named('leaf.key', keyPem(key), 0o644),
  { name: 'lost', reason: 'permission', detail: 'EACCES' },
])

const sources = (selection: Selection) => select(report, selection).certificates.map(({ source }) => source)

describe('select', () => {
  test.each([
    ['expired', ['z-expired']],
    ['expiring', ['k-critical', 'm-warning']],
    ['not-yet-valid', ['b-future']],
    ['ok', ['a-ok', 'ca']],
    ['ca', ['ca']],
    ['leaf', ['z-expired', 'k-critical', 'm-warning', 'a-ok', 'b-future']],
    ['server', ['a-ok']],
    ['client', ['z-expired', 'k-critical', 'm-warning', 'b-future']],
    ['problem', ['z-expired', 'k-critical', 'm-warning', 'b-future']],
    ['expired,ca', ['z-expired', 'ca']],
  ])('only %s', (text, expected) => {
    expect(sources({ only: parseSelectors(text) })).toEqual(expected)
  })

  test.each([
    ['expiry', ['z-expired', 'k-critical', 'm-warning', 'a-ok', 'b-future', 'ca']],
    ['name', ['a-ok', 'z-expired', 'ca', 'b-future', 'k-critical', 'm-warning']],
    ['source', ['a-ok', 'b-future', 'ca', 'k-critical', 'm-warning', 'z-expired']],
    ['input', ['z-expired', 'a-ok', 'm-warning', 'k-critical', 'b-future', 'ca']],
  ] as const)('sorted by %s', (sort, expected) => {
    expect(sources({ sort })).toEqual(expected)
  })

  test('removes problems of hidden certificates, and keeps those without a certificate', () => {
    const codes = (text: string) =>
      select(report, { only: parseSelectors(text) }).problems.map(({ code }) => code)
    expect(codes('ca')).toEqual(['SOURCE_UNREADABLE'])
    expect(codes('expired')).toEqual(['CERT_EXPIRED', 'SOURCE_UNREADABLE'])
    expect(codes('problem')).toHaveLength(report.problems.length)
  })

  test('counts only the selected certificates in the summary', () => {
    const { summary } = select(report, { only: ['expired'] })
    expect(summary).toMatchObject({
      certificates: 1,
      expired: 1,
      ok: 0,
      keys: 0,
      problems: { critical: 1, warning: 1, info: 0 },
    })
  })

  test('accepts an empty selection: the sources are still counted, and nagios reports OK', async () => {
    const { report: healthy } = await inspect(now, [
      named('a', leaf('fine', '2027-11-01T00:00:00Z', 'serverAuth')),
      named('ca', certificatePem(ca.certificate)),
    ])
    const none = select(healthy, { only: ['expired', 'not-yet-valid'] })
    expect(none.selection).toEqual({ only: ['expired', 'not-yet-valid'], certificates: 2 })
    expect(none.summary).toMatchObject({ certificates: 0, sources: 2 })
  })

  test('returns the report unchanged without options', () => {
    const before = report.certificates.map(({ source }) => source)
    expect(select(report)).toMatchObject({
      summary: report.summary,
      problems: report.problems,
      keys: report.keys,
    })
    expect(report.certificates.map(({ source }) => source)).toEqual(before)
  })
})

test('rejects an unknown word and lists the known ones', () => {
  expect(() => parseSelectors('ca,expried')).toThrow(/--only "expried" is unknown/)
})
