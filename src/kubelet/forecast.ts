import { commandLine } from '../errors/command-line.ts'
import { given } from '../errors/given.ts'
import { flagsOf } from '../pki/component-flags.ts'
import { formatDuration, parseDuration } from '../pki/duration.ts'
import {
  type ForeignSubject,
  foreignSubjectText,
  hasServingName,
  kubeletRotationWindow,
  servingNameRemedy,
  servingNameText,
} from '../pki/kubelet.ts'
import type { KubeletConfiguration } from '../pki/kubelet-configuration.ts'
import { rfc3339 } from '../pki/rfc3339.ts'
import type { Certificate } from '../x509/certificate.ts'
import type { ForecastCertificate, ForecastFinding, ForecastNode, ForecastReport } from './forecast-report.ts'

/** The facts of one node's kubelet. */
export interface KubeletFacts {
  readonly name: string
  /** Undefined when unreadable. */
  readonly configuration:
    | Pick<KubeletConfiguration, 'rotateCertificates' | 'serverTlsBootstrap' | 'tlsCertFile'>
    | undefined
  readonly certificates: readonly SeenCertificate[]
  readonly pending: ForecastNode['pending']
  /** The unavailable facts, with the reason. */
  readonly unread: readonly string[]
}

export interface SeenCertificate {
  readonly usage: 'client' | 'serving'
  readonly source: ForecastCertificate['source']
  readonly location?: string
  /** Undefined when only its expiry is known. */
  readonly notBeforeMs: number | undefined
  readonly notAfterMs: number
  readonly subject?: string
  /** Empty when it has none; absent when only its expiry is known. */
  readonly commonName?: string
  readonly isSelfSigned: boolean
  /** The subject of another server that responds at the node's address. */
  readonly stranger?: ForeignSubject
}

export interface ControllerManagerFacts {
  readonly node?: string
  readonly location: string
  readonly clusterSigningDurationMs: number
}

/** The default of kube-controller-manager. */
const defaultSigningDurationMs = 8760 * 3_600_000

/**
 * Returns the signing duration of a kube-controller-manager with this command line. Throws KCERT_USAGE for a value that Go
 * rejects.
 */
export function signingDurationMs(argv: readonly string[]): number {
  const flag = flagsOf(argv)['cluster-signing-duration']
  return flag === undefined ? defaultSigningDurationMs : parseDuration(flag, '--cluster-signing-duration')
}

/** How far kube-controller-manager backdates notBefore; it shortens lifetimes of eight hours and more by the same time. */
const backdateMs = 5 * 60_000
const shortLifeMs = 8 * 3_600_000

/** Returns a certificate in the form that the forecast reads. */
export function seenCertificate(
  certificate: Certificate,
  seen: Pick<SeenCertificate, 'usage' | 'source' | 'location'>,
): SeenCertificate {
  const { notBeforeMs, notAfterMs, subject, issuer, isSelfIssued } = certificate
  // The kubelet's own CA for one certificate: "w1-ca@1795298400".
  const isSelfSigned = isSelfIssued || /-ca@\d+$/.test(issuer.commonName ?? '')
  const { text, commonName = '' } = subject
  return { ...seen, notBeforeMs, notAfterMs, subject: text, commonName, isSelfSigned }
}

/** Returns when each certificate will be renewed, and what prevents it. */
export function forecastOf(
  kubelets: readonly KubeletFacts[],
  controllerManagers: readonly ControllerManagerFacts[],
  now: Date,
): ForecastReport {
  const signingMs = Math.min(...controllerManagers.map((one) => one.clusterSigningDurationMs))
  const lifeMs = lifeOf(controllerManagers.length === 0 ? defaultSigningDurationMs : signingMs)
  const sorted = [...kubelets].sort((one, other) => (one.name < other.name ? -1 : 1))
  const nodes = sorted.map((facts) => ({ facts, node: nodeOf(facts, lifeMs, now) }))
  return {
    apiVersion: 'kcert/v1',
    kind: 'KubeletForecast',
    generatedAt: rfc3339(now),
    nodes: nodes.map(({ node }) => node),
    controllerManagers: controllerManagers.map(({ clusterSigningDurationMs, ...where }) => ({
      ...where,
      clusterSigningDuration: formatDuration(clusterSigningDurationMs),
    })),
    findings: [
      ...durationFindings(controllerManagers),
      ...nodes.flatMap(({ facts, node }) => {
        const stranger = strangerAt(facts)
        return [
          ...nodeFindings(node, now, stranger),
          ...(stranger === undefined ? [] : [strangerFinding(facts.name, stranger)]),
          servingNameFinding(facts) ?? [],
        ].flat()
      }),
      ...kubelets.flatMap(({ name, unread }) =>
        unread.map((detail) => ({ id: 'not-read', node: name, isProblem: false, detail })),
      ),
    ],
  }
}

/** Returns the total lifetime of a certificate with this signing duration. */
function lifeOf(signingDurationMs: number): number {
  return signingDurationMs < shortLifeMs ? signingDurationMs + backdateMs : signingDurationMs
}

interface Answered {
  readonly certificate: SeenCertificate
  readonly stranger: ForeignSubject
  /** False when it may be the kubelet after all, with a configured certificate file. */
  readonly isSure: boolean
}

/** Returns the certificate of a server that seems not to be the kubelet; a configured certificate file may have any name. */
function strangerAt({ configuration, certificates }: KubeletFacts): Answered | undefined {
  const certificate = certificates.find(({ stranger }) => stranger !== undefined)
  if (certificate?.stranger === undefined || configuration?.tlsCertFile) return undefined
  const isSure = configuration !== undefined || certificate.stranger.isOfAnotherNode
  return { certificate, stranger: certificate.stranger, isSure }
}

/**
 * Returns the certificates of the kubelet. The certificate of another server is ignored; the kubelet's metric then gives the
 * expiry.
 */
function ownCertificates(facts: KubeletFacts): readonly SeenCertificate[] {
  const { certificates } = facts
  if (strangerAt(facts)?.isSure) return certificates.filter(({ stranger }) => stranger === undefined)
  const isServedSeen = certificates.some(({ stranger }) => stranger !== undefined)
  return certificates.filter(
    ({ usage, source }) => !(isServedSeen && usage === 'serving' && source === 'metric'),
  )
}

function strangerFinding(name: string, { certificate, stranger, isSure }: Answered): ForecastFinding {
  const { location = 'its address' } = certificate
  const conclusion = stranger.isOfAnotherNode
    ? 'another server responds'
    : isSure
      ? '--tls-cert-file is not set there, so another server responds'
      : 'if --tls-cert-file is not set there, another server responds'
  return {
    id: 'not-the-kubelet',
    node: name,
    isProblem: false,
    detail: `${foreignSubjectText(stranger, location)}: ${conclusion}`,
    next: commandLine`kcert inspect ${location}`,
  }
}

function servingNameFinding(facts: KubeletFacts): ForecastFinding | undefined {
  const isNamed = ({ usage, commonName }: SeenCertificate): boolean =>
    usage !== 'serving' || commonName === undefined || hasServingName(commonName, facts.name)
  if (ownCertificates(facts).every(isNamed)) return undefined
  return {
    id: 'serving-common-name',
    node: facts.name,
    isProblem: false,
    detail: `its serving certificate has another common name: ${servingNameText}`,
    fix: servingNameRemedy,
  }
}

function nodeOf(facts: KubeletFacts, lifeMs: number, now: Date): ForecastNode {
  const { name, configuration, pending } = facts
  const { rotateCertificates, serverTlsBootstrap, tlsCertFile } = configuration ?? {}
  return {
    name,
    ...given({ rotateCertificates, serverTlsBootstrap }),
    ...(tlsCertFile ? { tlsCertFile } : {}),
    certificates: ownCertificates(facts).map((seen) =>
      certificateOf(seen, isRenewed(seen, configuration), lifeMs, now),
    ),
    pending: [...pending],
  }
}

/**
 * True when the certificate is renewed. Unknown settings count as enabled: a kubelet with a certificate store most likely
 * requests one.
 */
function isRenewed(
  { usage, isSelfSigned, stranger }: SeenCertificate,
  configuration: KubeletFacts['configuration'],
): boolean {
  if (usage === 'client') return configuration?.rotateCertificates !== false
  if (stranger !== undefined) return false
  return !isSelfSigned && configuration?.serverTlsBootstrap !== false && !configuration?.tlsCertFile
}

function certificateOf(
  { notBeforeMs, notAfterMs, location, subject, usage, source, isSelfSigned }: SeenCertificate,
  renewed: boolean,
  lifeMs: number,
  now: Date,
): ForecastCertificate {
  const begin = new Date(notBeforeMs ?? notAfterMs - lifeMs)
  const { earliest, latest } = kubeletRotationWindow(begin, new Date(notAfterMs))
  const state =
    now.getTime() > notAfterMs
      ? 'expired'
      : !renewed
        ? 'not-renewed'
        : now > latest
          ? 'overdue'
          : now >= earliest
            ? 'due'
            : 'not-due'
  return {
    usage,
    source,
    ...given({ location, subject }),
    ...(notBeforeMs === undefined ? {} : { notBefore: rfc3339(begin) }),
    notAfter: rfc3339(new Date(notAfterMs)),
    isSelfSigned,
    state,
    ...(renewed
      ? {
          renewal: {
            earliest: rfc3339(earliest),
            latest: rfc3339(latest),
            isEstimate: notBeforeMs === undefined,
          },
        }
      : {}),
  }
}

function durationFindings(controllerManagers: readonly ControllerManagerFacts[]): ForecastFinding[] {
  const [one] = controllerManagers
  if (one === undefined)
    return [
      {
        id: 'controller-manager-not-seen',
        isProblem: false,
        detail:
          'the signing duration is unknown, and 8760h is assumed: kube-controller-manager was not found',
        next: 'kcert kubelet forecast --all-nodes',
      },
    ]
  const durations = new Set(controllerManagers.map((each) => each.clusterSigningDurationMs))
  const shortest = Math.min(...durations)
  const firstRenewalMs = lifeOf(shortest) * 0.7 - (shortest < shortLifeMs ? backdateMs : 0)
  return [
    ...(durations.size > 1
      ? [
          {
            id: 'signing-durations-differ',
            isProblem: false,
            detail: `--cluster-signing-duration is not the same on each control plane: ${[...durations].map(formatDuration).join(', ')}; the leader determines the validity; set the same value on each`,
            next: 'grep cluster-signing-duration /etc/kubernetes/manifests/kube-controller-manager.yaml',
          },
        ]
      : []),
    ...(firstRenewalMs < 10 * 60_000
      ? [
          {
            id: 'signing-duration-short',
            isProblem: true,
            detail: `--cluster-signing-duration=${formatDuration(shortest)}: certificates are backdated by five minutes, so kubelets request the next one ${firstRenewalMs <= 0 ? 'immediately and repeatedly' : `after only ${formatDuration(firstRenewalMs)}`}`,
            fix: 'set --cluster-signing-duration to an hour or more in the manifest of kube-controller-manager',
          },
        ]
      : []),
  ]
}

function nodeFindings(node: ForecastNode, now: Date, stranger: Answered | undefined): ForecastFinding[] {
  const { name, rotateCertificates, serverTlsBootstrap, tlsCertFile, certificates, pending } = node
  const serving = certificates.find(({ usage }) => usage === 'serving')
  const found = certificates.flatMap((certificate) => lateFinding(name, certificate, pending) ?? [])
  if (rotateCertificates === false)
    found.push({
      id: 'rotation-off',
      node: name,
      isProblem: true,
      detail:
        'rotateCertificates is off: the API server rejects the kubelet once its client certificate has expired',
      fix: 'set rotateCertificates: true in /var/lib/kubelet/config.yaml, and restart the kubelet',
    })
  if (serverTlsBootstrap === true && serving === undefined && stranger === undefined)
    found.push({
      id: 'no-serving-certificate',
      node: name,
      isProblem: true,
      detail: 'serverTLSBootstrap is on, and no certificate is served: logs and exec do not work',
      next: pending.some(({ usage }) => usage === 'serving')
        ? 'kcert csr approve --policy kubelet-serving'
        : `kcert csr list --signer kubernetes.io/kubelet-serving`,
    })
  if (serving?.isSelfSigned && !tlsCertFile && stranger === undefined)
    found.push({
      id: 'serving-self-signed',
      node: name,
      isProblem: false,
      detail:
        'its serving certificate is self-signed: clients cannot verify it, and it is not renewed, not even by a restart',
      fix: 'set serverTLSBootstrap: true, with an approver: docs/guides/approve-kubelet-serving.md',
    })
  for (const request of pending) {
    const ageMs = now.getTime() - Date.parse(request.creationTimestamp ?? '')
    found.push({
      id: 'request-waits',
      node: name,
      isProblem: ageMs > waitingLongMs,
      detail: `its request ${request.name} for a ${request.usage} certificate ${request.state === 'pending' ? 'waits for its approval' : 'is approved, and not signed yet'}`,
      next:
        request.state === 'pending'
          ? commandLine`kcert csr check ${request.name}`
          : commandLine`kcert csr explain ${request.name}`,
    })
  }
  return found
}

/** After this time, a kubelet gives up on a request and creates another. */
const waitingLongMs = 15 * 60_000

function lateFinding(
  node: string,
  { usage, state, notAfter, renewal }: ForecastCertificate,
  pending: ForecastNode['pending'],
): ForecastFinding | undefined {
  if (state !== 'expired' && state !== 'overdue') return undefined
  const request = pending.find((one) => one.usage === usage)
  const isExpired = state === 'expired'
  return {
    id: isExpired ? 'expired' : 'overdue',
    node,
    isProblem: true,
    detail: isExpired
      ? `its ${usage} certificate expired at ${notAfter}`
      : `its ${usage} certificate should have been renewed by ${renewal?.latest}, and expires at ${notAfter}`,
    next:
      request !== undefined
        ? commandLine`kcert csr explain ${request.name}`
        : isExpired && usage === 'client'
          ? commandLine`kcert kubelet doctor --node ${node} --inventory kcert.yaml`
          : commandLine`kcert kubelet doctor --node ${node} --inventory kcert.yaml`,
  }
}
