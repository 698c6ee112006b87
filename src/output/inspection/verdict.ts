import { commandLine } from '../../errors/command-line.ts'
import type { CertificateReport, InspectionReport, Problem } from '../../inspection/report.ts'
import { shortPlaces } from '../places.ts'
import { adviceLines, indentedLines } from '../sections.ts'
import { timeLeft } from '../time.ts'
import type { View } from '../view.ts'

// The certificates of a control plane are created together and expire together: one cause, one command.

/** The problems that one command repairs, for any number of certificates. */
export interface Verdict {
  readonly text: string
  /** One command, ready to paste. */
  readonly next: string
  readonly isCritical: boolean
}

export interface Verdicts {
  readonly verdicts: readonly Verdict[]
  /** The problems that no command of a verdict repairs. */
  readonly others: readonly Problem[]
}

/** The problems that a renewal repairs. A wrong subject or key pair is not among them. */
const codes: ReadonlySet<string> = new Set(['CERT_EXPIRED', 'CERT_EXPIRING', 'CERT_EXPIRING_VERY_SOON'])
const nodeFolders = ['/etc/kubernetes/', '/var/lib/kubelet/pki/']

/**
 * Returns the problems that `kcert renew` repairs, on this node and on nodes of which a copy was inspected, and the other
 * problems.
 */
export function verdictsOf(report: InspectionReport): Verdicts {
  const due = dueCertificates(report)
  if (due.length === 0) return { verdicts: [], others: report.problems }
  const here = due.filter(isHere)
  const copied = due.filter((one) => !isHere(one))
  const places = new Set(due.map(placeKey))
  return {
    verdicts: [
      ...(here.length === 0 ? [] : [verdictOf(here, report, "this node's kubeadm certificates", '')]),
      ...(copied.length === 0
        ? []
        : [verdictOf(copied, report, copiedCertificates(copied), '; renew them on the node itself')]),
    ],
    others: report.problems.filter((problem) => !codes.has(problem.code) || !places.has(placeKey(problem))),
  }
}

/** Returns the verdicts as lines, each with its command. */
export function verdictLines(verdicts: readonly Verdict[], view: View): string[] {
  const { paint } = view
  return verdicts.flatMap(({ text, next, isCritical }) => [
    ...indentedLines(text, '', view).map((line) => paint.severity[isCritical ? 'critical' : 'warning'](line)),
    ...adviceLines({ next }, ''),
  ])
}

function isHere({ source }: CertificateReport): boolean {
  return nodeFolders.some((folder) => source.startsWith(folder))
}

function placeKey({ source, entry }: { readonly source: string; readonly entry: string }): string {
  return `${source}\0${entry}`
}

function dueCertificates({ certificates }: InspectionReport): CertificateReport[] {
  const due: CertificateReport[] = []
  const expiredCas = new Set<string>()
  for (const one of certificates) {
    const { status } = one
    if (status === 'ok' || status === 'not-yet-valid') continue
    if (one.renewalName !== undefined) due.push(one)
    else if (status === 'expired' && one.isCa) expiredCas.add(one.fingerprintSha256)
  }
  // A worker has no CA key to sign with.
  if (
    due.length === 0 ||
    !certificates.some(({ renewalName: name }) => name !== undefined && !name.startsWith('kubelet'))
  )
    return []
  // Renewal signs with the existing CA. An expired CA is replaced first.
  return expiredCas.size === 0
    ? due
    : due.filter(
        ({ issuerFound }) => issuerFound === undefined || !expiredCas.has(issuerFound.fingerprintSha256),
      )
}

function copiedCertificates(copied: readonly CertificateReport[]): string {
  const { heading } = shortPlaces(copied.map(({ source }) => source))
  return heading === '' ? 'the kubeadm certificates of other nodes' : `the kubeadm certificates in ${heading}`
}

function verdictOf(
  due: readonly CertificateReport[],
  report: InspectionReport,
  whose: string,
  where: string,
): Verdict {
  const expired = due.filter(({ status }) => status === 'expired')
  const expiring = due.filter(({ status }) => status !== 'expired')
  const [lead, rest] = expired.length === 0 ? [expiring, []] : [expired, expiring]
  const state = expired.length === 0 ? `expire soon (${first(expiring)})` : `expired (${oldest(expired)})`
  const more = rest.length === 0 ? '' : `, ${countOf(rest)} more expire soon (${first(rest)})`
  const text = `${countOf(lead)} of ${whose} ${state}${more}`
  return {
    text: `${text}${where}`,
    next: renewCommand(due, report),
    isCritical: due.some(({ status }) => status !== 'warning'),
  }
}

/** The certificate of kubelet.conf is found twice: in the kubelet's folder, and by the path in the kubeconfig. */
function countOf(certificates: readonly CertificateReport[]): number {
  return new Set(certificates.map(({ fingerprintSha256 }) => fingerprintSha256)).size
}

function oldest(expired: readonly CertificateReport[]): string {
  const least = expired.reduce((least, { secondsLeft }) => Math.min(least, secondsLeft), 0)
  return `${countOf(expired) === 1 ? '' : 'oldest '}${daysText(-least)} ago`
}

function first(expiring: readonly CertificateReport[]): string {
  const least = expiring.reduce((least, { secondsLeft }) => Math.min(least, secondsLeft), Infinity)
  return `${countOf(expiring) === 1 ? '' : 'first '}in ${daysText(least)}`
}

function daysText(seconds: number): string {
  const days = Math.floor(seconds / 86_400)
  return days === 0 ? timeLeft(seconds) : `${days} ${days === 1 ? 'day' : 'days'}`
}

/**
 * `--all` if plain `kcert renew` would take all of them now (30 days or 20 % of the lifetime; of a kubelet 10 %), else their
 * names.
 */
function renewCommand(due: readonly CertificateReport[], { at, generatedAt }: InspectionReport): string {
  const laterBy = (Date.parse(at) - Date.parse(generatedAt)) / 1000
  const isDueNow = ({ notBefore, notAfter, secondsLeft, role }: CertificateReport): boolean => {
    const left = secondsLeft + laterBy
    const lifetime = (Date.parse(notAfter) - Date.parse(notBefore)) / 1000
    const share = role?.startsWith('kubelet') ? 0.1 : 0.2
    return left <= Math.min(30 * 86_400, lifetime * share)
  }
  if (due.every(isDueNow)) return commandLine`sudo kcert renew --all`
  const names = [...new Set(due.flatMap(({ renewalName }) => renewalName ?? []))]
  return commandLine`sudo kcert renew ${names}`
}
