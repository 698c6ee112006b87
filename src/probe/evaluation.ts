import { type CommandLine, commandLine, embed, fixed } from '../errors/command-line.ts'
import { hostPort } from '../errors/host-port.ts'
import { timeText } from '../inspection/spans.ts'
import {
  hasServingName,
  servingNameRemedy,
  servingNameText,
  strangerOf,
  strangerText,
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

/** Returns what was seen at a target, and what is wrong with it. Throws nothing, whatever the server sent. */
export function evaluate(target: Target, observed: Observed | Unobserved, at: Date): EndpointReport {
  const place = placeOf(target, at)
  if ('reason' in observed) return { ...place, ...unseen(observed) }
  const { chain, problem } = parsed(observed.chain)
  const [served] = chain
  if (served === undefined)
    return {
      ...place,
      ...nothingRead,
      ...timesOf(observed),
      problems: problem ? [problem] : [],
      status: 'no',
    }
  const names = target.expectedNames.map((name) => ({ name, matches: isValidForHost(served, name) }))
  const verdicts = target.anchors.map((anchor) => verdictOf(anchor, target, chain, at))
  const client = clientVerdict(target, observed)
  const given = target.given && givenReport(target, target.given, served)
  const outOfTime = timeProblems(served, at)
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
    notes: [...target.notes, ...strangerNotes(target, served), ...servingNameNotes(target, served)],
    ...timesOf(observed),
    chain: chain.map(servedReport),
    names,
    verdicts,
    clientAuthorities: observed.clientAuthorities?.map(authorityText),
    client,
    given,
    problems,
    status: problems.length === 0 ? 'ok' : 'no',
  }
}

/** Returns the report of all that was probed. */
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
      no: count('no'),
      unreachable: count('unreachable'),
      nextExpiry: ends[0],
    },
  }
}

const nothingRead = { chain: [], names: [], verdicts: [] }

function placeOf({ name, kind, host, port, from, isVerified, notes }: Target, at: Date) {
  return { name, kind, host, port, from, at: timeText(at), isVerified, notes: [...notes] }
}

function unseen({ isReached, reason, next }: Unobserved) {
  const code: ProblemCode = isReached ? 'NO_CERTIFICATE' : 'UNREACHABLE'
  return {
    ...nothingRead,
    problems: [{ code, message: reason, next }],
    status: isReached ? ('no' as const) : ('unreachable' as const),
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

/** Reads what was sent as certificates; the problem where one of them is none. */
function parsed(ders: Observed['chain']): {
  readonly chain: readonly Certificate[]
  readonly problem?: ProbeProblem
} {
  try {
    return { chain: ders.map((der) => Certificate.parse(der)) }
  } catch (error) {
    const next = 'no component in Go reads it: issue it again'
    return {
      chain: [],
      problem: {
        code: 'CERT_UNREADABLE',
        message: error instanceof Error ? error.message : String(error),
        next,
      },
    }
  }
}

/** As it is written on a command line. */
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

function authorityText(der: Uint8Array): string {
  try {
    return parseName(der).text || '(empty name)'
  } catch {
    return '(no name that could be read)'
  }
}

function verdictOf(
  { by, source, roots, fault }: Anchor,
  target: Target,
  chain: readonly Certificate[],
  at: Date,
): AnchorVerdict {
  if (roots === undefined) return { by, source, reason: fault ?? 'it could not be read' }
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

function timeProblems({ notBefore, notAfter }: Certificate, at: Date): ProbeProblem[] {
  const isOver = at.getTime() > notAfter.getTime()
  if (!isOver && at.getTime() >= notBefore.getTime()) return []
  const message = isOver
    ? `it expired on ${timeText(notAfter)}`
    : `it is not valid before ${timeText(notBefore)}`
  const next = isOver ? 'renew it, and have the server take it' : 'compare the clocks: date -u'
  return [{ code: 'CERT_EXPIRED', message, next }]
}

function trustProblems(verdicts: readonly AnchorVerdict[], isInTime: boolean): ProbeProblem[] {
  return verdicts.flatMap(({ by, source, trusted, code, reason }): ProbeProblem[] => {
    const isOfLeaf = !isInTime && (code === 'CERT_EXPIRED' || code === 'CERT_NOT_YET_VALID')
    // What ends with the leaf's time is said once, as CERT_EXPIRED.
    if (trusted !== false || isOfLeaf) return []
    const next = commandLine`which CA signed it, and which are trusted: ${embed(inspection(by, source))}`
    return [{ code: 'NOT_TRUSTED', message: `by ${by} (${source}): ${reason ?? code}`, next }]
  })
}

/** Returns the command that shows what was read there: a file of this machine or of a node, an object, or the kubeconfig's user. */
function inspection(by: string, source: string): CommandLine {
  if (by === 'caBundle' || /^(?:configmap|kubeconfig) /.test(source))
    return commandLine`kcert inspect --cluster`
  return commandLine`kcert inspect ${source.replace(/^[^:/]+:(?=\/)/, '').replace(/, as in .*/, '')}`
}

function nameProblems(target: Target, asked: EndpointReport['names']): ProbeProblem[] {
  const missing = asked.filter(({ matches }) => !matches).map(({ name }) => name)
  if (missing.length === 0) return []
  const names = fixed(missing.length === 1 ? 'that name' : 'these names')
  const next = commandLine`issue it again with ${names}; what it has: kcert probe ${addressOf(target)} -o json`
  return [{ code: 'NAME_NOT_COVERED', message: `it is not valid for ${missing.join(', ')}`, next }]
}

/** Somebody else's certificate, unless it is of the name of that which the kubelet was given. */
function strangerAt({ kind, node, given }: Target, { subject }: Certificate) {
  if (kind !== 'kubelet' || given?.certificate?.subject.text === subject.text) return undefined
  return strangerOf(subject, node)
}

/** Never a problem by itself: with --tls-cert-file a kubelet shows whatever name its operator chose. */
function strangerNotes(target: Target, served: Certificate): string[] {
  const stranger = strangerAt(target, served)
  if (stranger === undefined) return []
  const { node = 'that node', from } = target
  const place = from === undefined ? addressOf(target) : `${addressOf(target)} on ${from}`
  const unless = stranger.isOfAnotherNode ? '' : 'if --tls-cert-file is not set there, '
  return [
    `${strangerText(stranger, place)}: ${unless}something else answers, and nothing here is of the kubelet of ${node}; on that node kcert kubelet doctor shows what its kubelet has`,
  ]
}

/** Of the kubelet alone: that another node's answers is said already. */
function servingNameNotes(target: Target, served: Certificate): string[] {
  const { kind, node } = target
  if (kind !== 'kubelet' || strangerAt(target, served)?.isOfAnotherNode) return []
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
    certificate.notBefore.getTime() > served.notBefore.getTime() && strangerAt(target, served) === undefined
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
    'it reads its files again by itself, but takes no certificate without its own key; inspect the files there, or restart it',
  kubelet: 'restart it there: systemctl restart kubelet',
  etcd: 'etcd reads its files at each handshake: is it this file that it was started with?',
}

function givenProblems({ kind }: Target, { state, source, notBefore }: GivenReport): ProbeProblem[] {
  if (state === 'renewed-not-served') {
    const message = `renewed, but still serving the old one: ${source} is of ${notBefore}`
    const next = restarts[kind] ?? 'restart it, so that it reads the file'
    return [{ code: 'OLD_CERTIFICATE_SERVED', message, next }]
  }
  if (state !== 'other') return []
  const message = `it serves another certificate than ${source}, which is of ${notBefore}`
  const next = 'find out where that one comes from: its flags, or what listens there'
  return [{ code: 'OTHER_CERTIFICATE_SERVED', message, next }]
}

/** No answer is not a yes: with TLS 1.3 a server may close the connection on a certificate that it refuses. */
function clientProblems({ verdict, detail = '' }: ClientVerdict, target: Target): ProbeProblem[] {
  const { subject = '', source = '' } = target.client ?? {}
  const what = `the client certificate ${subject} of ${source}: ${detail}`
  if (verdict === 'refused') {
    const next = commandLine`is it of a CA that the server takes, and in date? ${embed(inspection('', source))}`
    return [{ code: 'CLIENT_REFUSED', message: `it refuses ${what}`, next }]
  }
  if (verdict !== 'unknown') return []
  const next = commandLine`read the server's log, or connect with its own client: ${addressOf(target)} may not serve HTTP`
  return [{ code: 'CLIENT_UNKNOWN', message: `unknown whether it accepts ${what}`, next }]
}
