import { KcertError } from '../errors/kcert-error.ts'
import type { InspectedReport } from './entry-reports.ts'
import type { CertificateReport, Problem } from './report.ts'
import { summaryOf } from './summary.ts'

/** Values of `--only`. Several, separated by commas, select any of them. */
export const selectors = [
  'expired',
  'expiring',
  'not-yet-valid',
  'ok',
  'ca',
  'leaf',
  'client',
  'server',
  'kubelet',
  'problem',
] as const
export type Selector = (typeof selectors)[number]

/** Values of `--sort`. */
export const sortings = ['expiry', 'name', 'source', 'role', 'input'] as const
export type Sorting = (typeof sortings)[number]

export interface Selection {
  readonly only?: readonly Selector[] | undefined
  /** Default: by expiry, the earliest first. */
  readonly sort?: Sorting | undefined
}

/** Returns the selectors of a text such as "expired,ca". Throws KCERT_USAGE. */
export function parseSelectors(text: string): Selector[] {
  return text.split(',').map((word) => {
    const found = selectors.find((selector) => selector === word.trim())
    if (found !== undefined) return found
    throw new KcertError('KCERT_USAGE', `--only ${JSON.stringify(word.trim())} is unknown`, {
      why: `the selectors are ${selectors.join(', ')}`,
      next: '--only problem',
    })
  })
}

/**
 * Returns the report with the selected certificates in the selected order, and their related entries. Problems of other
 * certificates are removed, so that the exit code matches the selection. Problems without a certificate (a file that could not be
 * read) stay, because the file's content is unknown.
 */
export function select(report: InspectedReport, { only, sort = 'expiry' }: Selection = {}): InspectedReport {
  const certificates = report.certificates.toSorted(comparisons[sort])
  if (only === undefined || only.length === 0) return { ...report, certificates }
  const troubled = new Set(report.problems.filter(({ severity }) => severity !== 'info').map(placeKey))
  const kept = certificates.filter((certificate) =>
    only.some((selector) => predicates[selector](certificate, troubled)),
  )
  const shown = new Set(kept.map(placeKey))
  const known = new Set([...report.certificates, ...report.keys, ...report.requests].map(placeKey))
  const problems = report.problems.filter(
    (problem) => shown.has(placeKey(problem)) || !known.has(placeKey(problem)),
  )
  const isProblem = only.includes('problem')
  const parts = {
    certificates: kept,
    requests: isProblem ? report.requests.filter((request) => troubled.has(placeKey(request))) : [],
    keys: isProblem ? report.keys.filter((key) => troubled.has(placeKey(key))) : [],
    tokens: [],
    kubeconfigs: [],
    withoutCertificate: [],
    missing: isProblem ? report.missing : [],
    problems: isProblem ? report.problems : problems,
  }
  // The number of inspected sources does not depend on the selection.
  const summary = { ...summaryOf(parts), sources: report.summary.sources }
  return {
    ...report,
    selection: { only: [...only], certificates: report.certificates.length },
    ...parts,
    summary,
  }
}

function placeKey({ source, entry }: Pick<Problem, 'source' | 'entry'>): string {
  return `${source}\0${entry}`
}

type Matches = (certificate: CertificateReport, troubled: ReadonlySet<string>) => boolean

const predicates: Readonly<Record<Selector, Matches>> = {
  expired: ({ status }) => status === 'expired',
  expiring: ({ status }) => status === 'warning' || status === 'critical',
  'not-yet-valid': ({ status }) => status === 'not-yet-valid',
  ok: ({ status }) => status === 'ok',
  ca: ({ isCa }) => isCa,
  leaf: ({ isCa }) => !isCa,
  client: ({ isCa, extendedKeyUsage }) => !isCa && extendedKeyUsage.includes('clientAuth'),
  server: ({ isCa, extendedKeyUsage }) => !isCa && extendedKeyUsage.includes('serverAuth'),
  kubelet: ({ role }) => role?.startsWith('kubelet') ?? false,
  problem: (certificate, troubled) => troubled.has(placeKey(certificate)),
}

type Compare = (a: CertificateReport, b: CertificateReport) => number

const nameOf = ({ subject }: CertificateReport) => subject.commonName ?? subject.text
// All remaining times are relative to the same moment.
const byExpiry: Compare = (a, b) => a.secondsLeft - b.secondsLeft

const comparisons: Readonly<Record<Sorting, Compare>> = {
  expiry: byExpiry,
  name: (a, b) => order(nameOf(a), nameOf(b)) || byExpiry(a, b),
  source: (a, b) => order(a.source, b.source),
  role: (a, b) => order(a.role ?? '\uffff', b.role ?? '\uffff') || byExpiry(a, b),
  input: () => 0,
}

/** Equal ones keep their order. */
// Without a locale, which differs between machines.
function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
