import { X509Certificate } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { certificateReport, goldenReport, reportOf } from '../../../test/reports/golden-report.ts'
import type { CertificateReport, InspectionReport } from '../../inspection/report.ts'
import { renderJson } from '../json.ts'
import { noPaint } from '../paint.ts'
import { wholeWidth } from '../view.ts'
import { displayWidth } from '../width.ts'
import { renderYaml } from '../yaml.ts'
import { nagiosUnknown, renderNagios } from './nagios.ts'
import { renderPem } from './pem.ts'
import { renderPrometheus } from './prometheus.ts'
import { renderText } from './text.ts'
import { renderTree } from './tree.ts'
import { renderWide } from './wide.ts'
import '../../../test/seeded.ts'

const narrow = { width: 80, paint: noPaint }

const views: Record<string, (report: InspectionReport) => string> = {
  text: (report) => renderText(report, narrow),
  'text in a pipe': (report) => renderText(report, { width: Infinity, paint: noPaint }),
  card: (report) => report.certificates.map((one) => renderText(reportOf(one), narrow)).join(''),
  'card of a request': (report) => renderText({ ...report, certificates: [] }, narrow),
  wide: (report) => renderWide(report, wholeWidth),
  tree: (report) => renderTree(report, narrow),
  json: renderJson,
  yaml: renderYaml,
  prometheus: renderPrometheus,
  nagios: (report) => renderNagios(report).line,
  pem: (report) =>
    renderPem(
      report.certificates.map((one) => ({ report: one, pem: '' })),
      report,
    ),
}

// C0 without the newlines of the layout, DEL, C1, bidirectional marks, zero-width and tag characters, lone surrogates.
const dangerous =
  /[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}\p{Cs}]/u

/** The golden report with a text in every string that an attacker, a file name or a server controls. */
function poisoned(text: string): InspectionReport {
  const poison = (value: unknown, key = ''): unknown => {
    const keptAsTheyAre = [
      'status',
      'severity',
      'notBefore',
      'notAfter',
      'expirationTimestamp',
      'generatedAt',
      'earliest',
      'latest',
      'kind',
      'code',
    ]
    if (key === 'next' && value === '') return value
    if (typeof value === 'string') return keptAsTheyAre.includes(key) ? value : `${value}${text}`
    if (Array.isArray(value)) return value.map((item) => poison(item))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, poison(item, name)]))
  }
  return poison(goldenReport) as InspectionReport
}

describe.each(Object.entries(views))('%s', (_name, render) => {
  test('escapes control, bidirectional, zero-width and tag characters of names', () => {
    const hostile = fc.oneof(
      fc.string({ unit: 'binary', minLength: 1, maxLength: 8 }),
      fc.constantFrom(
        '\x1b]0;title\x07',
        '\u009b2J',
        'a\r\nok',
        '\u202egnp.exe',
        '\u{e0041}\u{e0042}',
        '\ud800',
        '\u200b',
      ),
    )
    fc.assert(
      fc.property(hostile, (text) => {
        expect(render(poisoned(text))).not.toMatch(dangerous)
      }),
      { numRuns: 60 },
    )
  })

  test('adds no line for a name', () => {
    const lines = (report: InspectionReport) => render(report).split('\n').length
    if (_name !== 'text' && !_name.startsWith('card') && _name !== 'tree') {
      expect(lines(poisoned('\nforged: line'))).toBe(lines(poisoned('')))
    } else {
      expect(render(poisoned('\nforged: line'))).not.toMatch(/^forged/m)
    }
  })

  test('renders an empty report', () => {
    const empty = { ...reportOf(goldenReport.certificates[0]!), certificates: [], kubeconfigs: [] }
    const none = { ...empty, summary: { ...empty.summary, certificates: 0, ok: 0 } }
    expect(render(none)).toBeTypeOf('string')
    if (['text', 'wide', 'tree'].includes(_name))
      expect(render(none)).toBe('nothing found in 1 source; no problems\n')
  })
})

describe('text', () => {
  const signingCa = goldenReport.certificates.find(({ isCa }) => isCa)!
  const text = (certificates: CertificateReport[]) =>
    renderText({ ...reportOf(signingCa), certificates }, { width: 120, paint: noPaint })

  test('shows a CA once, in the file with no other content, with the number of copies', () => {
    const copy = {
      ...signingCa,
      source: 'admin.conf',
      entry: 'cluster c: certificate-authority-data',
      role: 'cluster CA',
    }
    const rows = text([copy, signingCa, { ...copy, source: 'kubelet.conf' }]).match(/^valid .*$/gm)
    expect(rows).toEqual([
      expect.stringMatching(/ ca +kubernetes +\/etc\/kubernetes\/pki\/ca\.crt \(and 2 more\)$/),
    ])
  })

  test('shows both of two CAs that share a name', () => {
    const other = {
      ...signingCa,
      source: 'admin.conf',
      entry: 'cluster c',
      fingerprintSha256: 'f'.repeat(64),
    }
    expect(text([signingCa, other]).match(/^valid .*$/gm)).toHaveLength(2)
  })
})

describe('json and yaml', () => {
  test('keep the data: escaped text parses to the original', async () => {
    const { parse } = await import('yaml')
    const report = poisoned('\u202e\u{e0041}\x1b\u009b\u200b"\\')
    expect(JSON.parse(renderJson(report))).toEqual(report)
    expect(parse(renderYaml(report))).toEqual(report)
  })
})

describe('the summary', () => {
  const of = (parts: Partial<InspectionReport['summary']>) => {
    const report = reportOf(goldenReport.certificates[2]!)
    const certificates = [...report.certificates, goldenReport.certificates[3]!]
    const summary = { ...report.summary, ...parts }
    return renderText({ ...report, certificates, summary }, { width: 200, paint: noPaint })
  }

  test('counts valid certificates regardless of problems', () => {
    const problems = { info: 0, warning: 0, critical: 1 }
    expect(of({ certificates: 3, ok: 3 })).toContain('3 certificates in 1 source: all valid; ')
    expect(of({ certificates: 3, ok: 3, problems })).toContain('; problems: 1 critical')
    expect(of({ certificates: 3, ok: 2, expired: 1 })).toContain(
      '3 certificates in 1 source: 1 expired, 2 valid; ',
    )
  })
})

describe('keys and requests', () => {
  const report = {
    ...reportOf(goldenReport.certificates[2]!),
    certificates: [],
    keys: goldenReport.keys.slice(0, 2),
    requests: goldenReport.requests,
  }

  test('are reported as left out in a view of certificates alone', () => {
    expect(renderPem([], report)).toBe('# not shown: 1 request, 2 keys (-o text shows them)\n')
    expect(renderTree(report, { width: 80, paint: noPaint })).toContain(
      'not shown: 1 request, 2 keys (-o text shows them)\n',
    )
  })
})

describe('tree', () => {
  const named = (name: string, issuer: string | undefined) =>
    certificateReport({
      source: `${name}.crt`,
      notAfter: '2027-01-01T00:00:00Z',
      status: 'ok',
      subject: { text: `CN=${name}`, commonName: name, organization: [] },
      fingerprintSha256: name,
      ...(issuer === undefined
        ? {}
        : { issuerFound: { source: `${issuer}.crt`, entry: '', fingerprintSha256: issuer } }),
    })
  const tree = (certificates: CertificateReport[], width = 80) =>
    renderTree({ ...reportOf(certificates[0]!), certificates }, { width, paint: noPaint })
      .split('\n\n')[1]!
      .trimEnd()
      .split('\n')

  test('names a CA by its own file, as the tables do, and never shortens a path', () => {
    const own = { ...named('root', 'root'), role: 'ca', source: '/etc/kubernetes/pki/ca.crt' }
    const copy = {
      ...own,
      source: '/etc/kubernetes/admin.conf',
      entry: 'cluster k: certificate-authority-data',
      role: 'cluster CA',
    }
    expect(tree([copy, own], 40)).toEqual(
      [
        'ca: root  valid, 40d',
        '   /etc/kubernetes/admin.conf: cluster k: certificate-authority-data',
        '   /etc/kubernetes/pki/ca.crt',
      ].map((line) => expect.stringContaining(line.trimStart())),
    )
  })

  test('shows every certificate once, below its issuer, with all its locations', () => {
    const copy = { ...named('leaf', 'middle'), source: 'copy.crt' }
    expect(tree([named('leaf', 'middle'), named('root', 'root'), named('middle', 'root'), copy])).toEqual([
      'root  valid, 40d',
      '│  root.crt',
      '└─ middle  valid, 40d',
      '   │  middle.crt',
      '   └─ leaf  valid, 40d',
      '         leaf.crt',
      '         copy.crt',
    ])
  })

  test('cuts a cycle of cross-signed CAs at one of them and loses none', () => {
    expect(tree([named('a', 'b'), named('b', 'a'), named('leaf', 'a')])).toEqual([
      'a  valid, 40d',
      '│  a.crt',
      '├─ b  valid, 40d',
      '│     b.crt',
      '└─ leaf  valid, 40d',
      '      leaf.crt',
    ])
  })

  test('renders a chain of 20,000 within the terminal width and the time limit', () => {
    const chain = Array.from({ length: 20_000 }, (_, i) => named(`c${i}`, i === 0 ? 'c0' : `c${i - 1}`))
    const lines = tree(chain, 100)
    expect(lines).toHaveLength(40_000)
    expect(Math.max(...lines.map(displayWidth))).toBeLessThanOrEqual(100)
  })
})

describe('prometheus', () => {
  const line =
    /^(?:# (?:HELP|TYPE) [a-z_]+ .+|[a-z_]+(?:\{(?:[a-z]+="(?:[^"\\\n]|\\[\\"n])*",?)+\})? -?\d+(?:\.\d+)?)$/

  test('is valid text format for any name', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const lines = renderPrometheus(poisoned(text)).split('\n')
        expect(lines.pop()).toBe('')
        for (const one of lines) expect(one).toMatch(line)
      }),
      { numRuns: 100 },
    )
  })

  test('has each label set once, with the time of the certificate that expires first', () => {
    const certificate = goldenReport.certificates[0]!
    const twin = { ...certificate, notAfter: '2030-01-01T00:00:00Z', secondsLeft: 1e8 }
    const text = renderPrometheus({ ...reportOf(certificate), certificates: [twin, certificate] })
    const samples = text.split('\n').filter((one) => one.startsWith('kcert_certificate_not_after'))
    expect(samples).toHaveLength(1)
    expect(samples[0]).toMatch(/ 1794988800$/)
    const sets = text.split('\n').filter((one) => one && !one.startsWith('#'))
    expect(new Set(sets.map((one) => one.slice(0, one.lastIndexOf(' ')))).size).toBe(sets.length)
  })
})

describe('nagios', () => {
  const problem = goldenReport.problems[0]!
  const withProblems = (...severities: ('info' | 'warning' | 'critical')[]) => ({
    ...reportOf(goldenReport.certificates[0]!),
    problems: severities.map((severity) => ({ ...problem, severity })),
  })

  test.each([
    [[], 'OK - ', 0],
    [['info'], 'OK - ', 0],
    [['info', 'warning'], 'WARNING - ', 1],
    [['warning', 'critical', 'info'], 'CRITICAL - ', 2],
  ] as const)('problems %j are %s and exit %i', (severities, begin, exit) => {
    const verdict = renderNagios(withProblems(...severities))
    expect([verdict.line.slice(0, begin.length), verdict.exit]).toEqual([begin, exit])
  })

  test('reports OK and the total when --only selects nothing', () => {
    const none = {
      ...goldenReport,
      certificates: [],
      requests: [],
      keys: [],
      tokens: [],
      missing: [],
      problems: [],
      selection: { only: ['expired', 'not-yet-valid'], certificates: 20 },
      summary: {
        ...goldenReport.summary,
        sources: 27,
        certificates: 0,
        requests: 0,
        keys: 0,
        tokens: 0,
        problems: { info: 0, warning: 0, critical: 0 },
      },
    }
    const verdict = renderNagios(none)
    expect(verdict.exit).toBe(0)
    expect(verdict.line).toMatch(
      /^OK - none of 20 certificates in 27 sources has expired or is not yet valid; no problems\|/,
    )
  })

  test('--only problem does not report healthy certificates when other files have problems, and shows the full row of a single missing file', () => {
    const [missing] = goldenReport.missing
    const lone = {
      ...goldenReport,
      certificates: [],
      requests: [],
      keys: [],
      tokens: [],
      kubeconfigs: [],
      withoutCertificate: [],
      missing: [missing!],
      problems: [],
      selection: { only: ['problem'], certificates: 21 },
      summary: {
        ...goldenReport.summary,
        sources: 27,
        certificates: 0,
        requests: 0,
        keys: 0,
        tokens: 0,
        problems: { info: 0, warning: 0, critical: 2 },
      },
    }
    const lines = renderText(lone, { width: Infinity, paint: noPaint }).split('\n')
    expect(lines.slice(0, 4)).toEqual([
      'problems: 2 critical, none of them concerns the 21 certificates in 27 sources',
      '',
      expect.stringMatching(/^MISSING +EXPECTED AT$/),
      `${missing!.role}  ${missing!.source}`,
    ])
  })

  test('reports UNKNOWN when nothing is found or the inspection fails', () => {
    const report = reportOf(goldenReport.certificates[0]!)
    const verdict = renderNagios({
      ...report,
      certificates: [],
      summary: { ...report.summary, certificates: 0 },
    })
    expect([verdict.line.slice(0, 10), verdict.exit]).toEqual(['UNKNOWN - ', 3])
    expect(nagiosUnknown('x|y', 'no\x1b')).toEqual({ line: 'UNKNOWN - x\\u007cy: no\\u001b\n', exit: 3 })
  })

  test('is one line with one bar, short enough to keep its performance data, for any name', () => {
    const { line } = renderNagios(poisoned(`|\n${'x'.repeat(10_000)}`))
    expect(line.match(/\|/g)).toHaveLength(1)
    expect(line.indexOf('\n')).toBe(line.length - 1)
    expect(line.length).toBeLessThan(4096)
  })
})

test('pem is readable by OpenSSL, including comments', () => {
  const pem = `-----BEGIN CERTIFICATE-----\n${'A'.repeat(64)}\n-----END CERTIFICATE-----\n`
  const text = renderPem([{ report: goldenReport.certificates[0]!, pem }], goldenReport)
  // The block is found. The error comes from its content, not from its armour.
  expect(() => new X509Certificate(text)).toThrow(/asn1|ASN1/)
  expect(text.match(/-----BEGIN/g)).toHaveLength(1)
})
