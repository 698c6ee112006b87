import { KcertError } from '../errors/kcert-error.ts'
import type { CertificateReport, InspectionReport, Problem } from './report.ts'
import { summaryOf } from './summary.ts'

/** What `--only` may say; several with commas are any of them. */
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

/** What `--sort` may say. */
export const sortings = ['expiry', 'name', 'source', 'role', 'input'] as const
export type Sorting = (typeof sortings)[number]

export interface Selection {
  readonly only?: readonly Selector[] | undefined
  /** Default: the one that expires first comes first. */
  readonly sort?: Sorting | undefined
}

/** Returns the selectors of a text such as "expired,ca". Throws KCERT_USAGE. */
export function parseSelectors(text: string): Selector[] {
  return text.split(',').map((word) => {
    const found = selectors.find((selector) => selector === word.trim())
    if (found !== undefined) return found
    throw new KcertError('KCERT_USAGE', `--only ${JSON.stringify(word.trim())} is not known`, {
      next: ['take any of', selectors.join(', ')].join(' '),
    })
  })
}

/**
 * Returns the report with the certificates that are asked for, in the order that is asked for, and what belongs to them.
 * Problems of what is left out are left out, so that the exit code answers the question that was asked; problems of no
 * certificate (a file that could not be read) stay, because nobody knows what was in there.
 */
export function select(
  report: InspectionReport,
  { only, sort = 'expiry' }: Selection = {},
): InspectionReport {
  const certificates = sorted(report.certificates, sort)
  if (only === undefined || only.length === 0) return { ...report, certificates }
  const troubled = new Set(report.problems.filter(({ severity }) => severity !== 'info').map(placeKey))
  const kept = certificates.filter((certificate) =>
    only.some((selector) => matches(certificate, selector, troubled)),
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
    kubeconfigs: [],
    withoutCertificate: [],
    missing: isProblem ? report.missing : [],
    problems: isProblem ? report.problems : problems,
  }
  // What was looked at does not become less because little of it is shown.
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

function matches(certificate: CertificateReport, selector: Selector, troubled: ReadonlySet<string>): boolean {
  const { status, isCa, extendedKeyUsage, role } = certificate
  switch (selector) {
    case 'expiring':
      return status === 'warning' || status === 'critical'
    case 'expired':
    case 'not-yet-valid':
    case 'ok':
      return status === selector
    case 'ca':
      return isCa
    case 'leaf':
      return !isCa
    case 'client':
      return !isCa && extendedKeyUsage.includes('clientAuth')
    case 'server':
      return !isCa && extendedKeyUsage.includes('serverAuth')
    case 'kubelet':
      return role?.startsWith('kubelet') ?? false
    case 'problem':
      return troubled.has(placeKey(certificate))
  }
}

type Compare = (a: CertificateReport, b: CertificateReport) => number

// All times left are counted from the same moment.
const byExpiry: Compare = (a, b) => a.secondsLeft - b.secondsLeft
const bySource: Compare = (a, b) => order(a.source, b.source)
const byName: Compare = (a, b) =>
  order(a.subject.commonName ?? a.subject.text, b.subject.commonName ?? b.subject.text)
const byRole: Compare = (a, b) => order(a.role ?? '\uffff', b.role ?? '\uffff')

const comparisons: Readonly<Record<Exclude<Sorting, 'input'>, readonly Compare[]>> = {
  expiry: [byExpiry],
  name: [byName, byExpiry],
  source: [bySource],
  role: [byRole, byExpiry],
}

/** Equal ones keep their order. */
function sorted(certificates: readonly CertificateReport[], sort: Sorting): CertificateReport[] {
  if (sort === 'input') return [...certificates]
  const compares = comparisons[sort]
  return certificates.toSorted((a, b) => {
    for (const compare of compares) {
      const outcome = compare(a, b)
      if (outcome !== 0) return outcome
    }
    return 0
  })
}

// Without a locale, which differs from machine to machine.
function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
