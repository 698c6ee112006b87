import { type CommandLine, commandLine } from '../errors/command-line.ts'
import { hostPort } from '../errors/host-port.ts'
import { timeText } from '../inspection/spans.ts'
import {
  foreignSubjectOf,
  foreignSubjectText,
  hasServingName,
  servingNameRemedy,
  servingNameText,
} from '../pki/kubelet.ts'
import { verify } from '../verification/verification.ts'
import { Certificate } from '../x509/certificate.ts'
import { isValidForHost } from '../x509/hostname.ts'
import { nameFields, parseName } from '../x509/name.ts'
import { clientVerdict } from './client-verdict.ts'
import type { ProblemCode } from './problems.ts'
import type {
  AnchorVerdict,
  ClientVerdict,
  EndpointReport,
  GivenReport,
  ProbeProblem,
  ProbeReport,
  ServedCertificate,
} from './report.ts'
import type { Anchor, GivenCertificate, Observed, Target, Unobserved } from './target.ts'

/** Returns the observations and problems of a target. Never throws, whatever the server sent. */
export function evaluate(target: Target, observed: Observed | Unobserved, at: Date): EndpointReport {
  const place = targetFields(target, at)
  if ('reason' in observed) return { ...place, ...unseen(observed) }
  const { chain, problem } = parsed(observed.chain, addressOf(target))
  const [served] = chain
  if (served === undefined)
    return {
      ...place,
      ...nothingRead,
      ...timesOf(observed),
      problems: problem ? [problem] : [],
      status: 'failed',
    }
  const names = target.expectedNames.map((name) => ({ name, matches: isValidForHost(served, name) }))
  const verdicts = target.anchors.map((anchor) => verdictOf(anchor, target, chain, at))
  const client = clientVerdict(target, observed)
  const given = target.given && givenReport(target, target.given, served)
  const outOfTime = timeProblems(served, addressOf(target), at)
  const problems = [
    ...outOfTime,
    ...(target.isVerified
      ? [...trustProblems(verdicts, outOfTime.length === 0), ...nameProblems(target, names)]
      : []),
    ...(given === undefined ? [] : givenProblems(target, given)),
    ...clientProblems(client, target),
  ]
  return {
    ...place,
    notes: [...target.notes, ...otherServerNotes(target, served), ...servingNameNotes(target, served)],
    ...timesOf(observed),
    chain: chain.map(servedReport),
    names,
    verdicts,
    clientCas: observed.clientAuthorities?.map(caText),
    client,
    issued: given,
    problems,
    status: problems.length === 0 ? 'ok' : 'failed',
  }
}

/** Returns the report of all probed targets. */
export function probeReport(
  endpoints: readonly EndpointReport[],
  notes: readonly string[],
  generatedAt: Date,
): ProbeReport {
  const count = (status: EndpointReport['status']): number =>
    endpoints.filter((one) => one.status === status).length
  const ends = endpoints.flatMap(({ chain }) => chain.slice(0, 1).map(({ notAfter }) => notAfter)).sort()
  return {
    apiVersion: 'kcert/v1',
    kind: 'ProbeReport',
    generatedAt: timeText(generatedAt),
    endpoints: [...endpoints],
    notes: [...notes],
    summary: {
      endpoints: endpoints.length,
      ok: count('ok'),
      failed: count('failed'),
      unreachable: count('unreachable'),
      nextExpiry: ends[0],
    },
  }
}

const nothingRead = { chain: [], names: [], verdicts: [] }

function targetFields({ name, kind, host, port, from, isVerified, notes }: Target, at: Date) {
  return { name, kind, host, port, from, at: timeText(at), isVerified, notes: [...notes] }
}

function unseen({ isReached, reason, next }: Unobserved) {
  const code: ProblemCode = isReached ? 'NO_CERTIFICATE' : 'UNREACHABLE'
  return {
    ...nothingRead,
    problems: [{ code, message: reason, next }],
    status: isReached ? ('failed' as const) : ('unreachable' as const),
  }
}

function timesOf({ connectMs, handshakeMs, version, cipher }: Observed) {
  return {
    connectMs: connectMs === undefined ? undefined : rounded(connectMs),
    handshakeMs: rounded(handshakeMs),
    version,
    cipher,
  }
}

function rounded(ms: number): number {
  return Math.round(ms * 10) / 10
}

/** Returns the certificates that were sent, or the problem if one cannot be read. */
function parsed(
  ders: Observed['chain'],
  address: string,
): {
  readonly chain: readonly Certificate[]
  readonly problem?: ProbeProblem
} {
  try {
    return { chain: ders.map((der) => Certificate.parse(der)) }
  } catch (error) {
    return {
      chain: [],
      problem: {
        code: 'CERT_UNREADABLE',
        message: `${error instanceof Error ? error.message : String(error)}; reissue it, because components in Go cannot read it`,
        next: commandLine`kcert inspect ${address}`,
      },
    }
  }
}

/** Returns the address in the form of a command-line argument. */
export function addressOf({ host, port }: Pick<Target, 'host' | 'port'>): string {
  return hostPort(host, port)
}

function servedReport(certificate: Certificate): ServedCertificate {
  const { serialNumber, notBefore, notAfter, isCa, subjectAltNames, fingerprintSha256 } = certificate
  return {
    subject: nameFields(certificate.subject),
    issuer: nameFields(certificate.issuer),
    serialNumber,
    notBefore: timeText(notBefore),
    notAfter: timeText(notAfter),
    isCa,
    dnsNames: [...subjectAltNames.dns],
    ipAddresses: [...subjectAltNames.ip],
    fingerprintSha256,
  }
}

function caText(der: Uint8Array): string {
  try {
    return parseName(der).text || '(empty name)'
  } catch {
    return '(unreadable name)'
  }
}

function verdictOf(
  { by, source, roots, fault }: Anchor,
  target: Target,
  chain: readonly Certificate[],
  at: Date,
): AnchorVerdict {
  if (roots === undefined) return { by, source, reason: fault ?? 'it cannot be read' }
  const certificates = chain.map((certificate, index) => ({
    ...{ source: addressOf(target), entry: `certificate ${index + 1}` },
    certificate,
  }))
  const leaf = { certificates, unreadable: [], isKubeconfig: false }
  const { trusted, code, reason, goError } = verify(
    { leaf, roots: [roots], intermediates: [] },
    { now: at, at, purpose: 'server' },
  )
  return { by, source, trusted, code, reason, goError }
}

function timeProblems({ notBefore, notAfter }: Certificate, address: string, at: Date): ProbeProblem[] {
  const isOver = at.getTime() > notAfter.getTime()
  if (!isOver && at.getTime() >= notBefore.getTime()) return []
  const message = isOver
    ? `it expired on ${timeText(notAfter)}; renew it, and restart the server unless it reloads its files`
    : `it is not valid before ${timeText(notBefore)}; compare the clocks`
  const next = isOver ? commandLine`kcert inspect ${address}` : 'date -u'
  return [{ code: 'CERT_EXPIRED', message, next }]
}

function trustProblems(verdicts: readonly AnchorVerdict[], isInTime: boolean): ProbeProblem[] {
  return verdicts.flatMap(({ by, source, trusted, code, reason }): ProbeProblem[] => {
    const isOfLeaf = !isInTime && (code === 'CERT_EXPIRED' || code === 'CERT_NOT_YET_VALID')
    // Errors because of the leaf's expiry are reported once, as CERT_EXPIRED.
    if (trusted !== false || isOfLeaf) return []
    const next = inspection(by, source)
    return [{ code: 'NOT_TRUSTED', message: `by ${by} (${source}): ${reason ?? code}`, next }]
  })
}

/** Returns the command that shows the source: a file of this machine or of a node, an object, or the kubeconfig's user. */
function inspection(by: string, source: string): CommandLine {
  if (by === 'caBundle' || /^(?:configmap|kubeconfig) /.test(source))
    return commandLine`kcert inspect --cluster`
  return commandLine`kcert inspect ${source.replace(/^[^:/]+:(?=\/)/, '').replace(/, as in .*/, '')}`
}

function nameProblems(target: Target, asked: EndpointReport['names']): ProbeProblem[] {
  const missing = asked.filter(({ matches }) => !matches).map(({ name }) => name)
  if (missing.length === 0) return []
  const message = `it is not valid for ${missing.join(', ')}; reissue it with ${missing.length === 1 ? 'this name' : 'these names'}`
  const next = commandLine`kcert probe ${addressOf(target)} -o json`
  return [{ code: 'NAME_NOT_COVERED', message, next }]
}

/** Returns the certificate of another server. A certificate with the subject of the one issued to the kubelet is not one. */
function otherServerAt({ kind, node, given }: Target, { subject }: Certificate) {
  if (kind !== 'kubelet' || given?.certificate?.subject.text === subject.text) return undefined
  return foreignSubjectOf(subject, node)
}

/** Not a problem by itself: with --tls-cert-file, a kubelet serves a certificate with any name. */
function otherServerNotes(target: Target, served: Certificate): string[] {
  const other = otherServerAt(target, served)
  if (other === undefined) return []
  const { node = 'that node', from } = target
  const place = from === undefined ? addressOf(target) : `${addressOf(target)} on ${from}`
  const unless = other.isOfAnotherNode ? '' : 'if --tls-cert-file is not set there, '
  return [
    `${foreignSubjectText(other, place)}: ${unless}another server responds, not the kubelet of ${node}; on that node, run kcert kubelet doctor`,
  ]
}

/** For the kubelet only: another node's kubelet at that address is reported elsewhere. */
function servingNameNotes(target: Target, served: Certificate): string[] {
  const { kind, node } = target
  if (kind !== 'kubelet' || otherServerAt(target, served)?.isOfAnotherNode) return []
  if (hasServingName(served.subject.commonName, node)) return []
  return [`its serving certificate has another common name: ${servingNameText}; ${servingNameRemedy}`]
}

function givenReport(
  target: Target,
  { source, certificate, besides = [], fault }: GivenCertificate,
  served: Certificate,
): GivenReport {
  if (certificate === undefined) return { source, state: 'unknown', fault }
  const isSame = [certificate, ...besides].some(
    ({ fingerprintSha256 }) => fingerprintSha256 === served.fingerprintSha256,
  )
  const isNewer =
    certificate.notBefore.getTime() > served.notBefore.getTime() &&
    otherServerAt(target, served) === undefined
  // A certificate issued without a CSR, as in a CA rotation, leaves the last CSR behind.
  const isOutdated =
    isRequest(source) &&
    certificate.notBefore.getTime() < served.notBefore.getTime() &&
    certificate.subject.text === served.subject.text
  if (isOutdated && !isSame) return { source, state: 'unknown', fault: 'older than the served certificate' }
  return {
    source,
    state: isSame ? 'served' : isNewer ? 'renewed-not-served' : 'other',
    notBefore: timeText(certificate.notBefore),
    notAfter: timeText(certificate.notAfter),
    fingerprintSha256: certificate.fingerprintSha256,
  }
}

const restarts: Readonly<Partial<Record<Target['kind'], string>>> = {
  'api-server':
    'API servers reload their files, but reject a certificate that does not match its key; inspect both files, or restart the API server',
  kubelet: 'restart the kubelet on its node',
  etcd: 'etcd reads its files at each handshake, so check whether its flags name this file',
}
const restartCommands: Readonly<Partial<Record<Target['kind'], string>>> = {
  kubelet: 'systemctl restart kubelet',
}

const isRequest = (source: string): boolean => source.startsWith('csr/')

function givenCommand(source: string): string {
  return isRequest(source)
    ? commandLine`kcert csr describe ${source.slice('csr/'.length)}`
    : inspection('', source)
}

function givenProblems({ kind }: Target, { state, source, notBefore }: GivenReport): ProbeProblem[] {
  if (state === 'renewed-not-served') {
    const message = `renewed, but still serving the old certificate: ${source} is valid from ${notBefore}; ${restarts[kind] ?? 'restart the server'}`
    return [{ code: 'OLD_CERTIFICATE_SERVED', message, next: restartCommands[kind] ?? givenCommand(source) }]
  }
  if (state !== 'other') return []
  const message = `it serves another certificate than ${source}, which is valid from ${notBefore}; check its flags, and which process listens on this port`
  return [{ code: 'OTHER_CERTIFICATE_SERVED', message, next: givenCommand(source) }]
}

/** No response does not mean accepted: with TLS 1.3, a server may close the connection if it refuses the certificate. */
function clientProblems({ verdict, detail = '' }: ClientVerdict, target: Target): ProbeProblem[] {
  const { subject = '', source = '' } = target.client ?? {}
  const what = `the client certificate ${subject} of ${source}: ${detail}`
  if (verdict === 'refused') {
    const message = `it refuses ${what}; check the issuer and expiry of the client certificate`
    return [{ code: 'CLIENT_REFUSED', message, next: inspection('', source) }]
  }
  if (verdict !== 'unknown') return []
  const message = `unknown whether it accepts ${what}; check the log of the server, which may not serve HTTP`
  return [{ code: 'CLIENT_UNKNOWN', message, next: commandLine`kcert probe ${addressOf(target)} -o json` }]
}
