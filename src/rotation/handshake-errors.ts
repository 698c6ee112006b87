import { type CommandLine, commandLine, embed } from '../errors/command-line.ts'
import { shortList } from '../errors/short-list.ts'
import { evidenceKey, type ProbeSubject } from './action.ts'
import { isWaived } from './convergence.ts'
import type { ProbeAnswer } from './ports.ts'
import type { HandshakeRate, Observed, PodSnapshot } from './snapshot.ts'
import type { Target } from './target.ts'

// Distinguishes two causes of failed TLS handshakes at an API server. Every cluster has TCP checks of load balancers, scanners,
// and clients that close the connection. Other clients do not trust the new certificate. The counter
// apiserver_tls_handshake_errors_total counts both. The log contains address and reason, but only at verbosity 5
// (secure_serving.go, tlsHandshakeErrorWriter).

/** A log line "http: TLS handshake error from ADDRESS: REASON", with its time on kcert's clock. */
export interface HandshakeFailure {
  readonly atMs: number
  readonly address: string
  readonly reason: string
}

/** One reading of an API server's counter and log. */
export interface HandshakeReading {
  readonly atMs: number
  /** Value of the counter. */
  readonly count: number
  /** Failures in the log since the watch started. The log is read after the counter, so it contains every counted failure. */
  readonly failures: readonly HandshakeFailure[]
}

export interface HandshakeVerdict extends Omit<ProbeAnswer, 'rate'> {
  readonly accepted: readonly string[]
  /** True when the counter includes errors that the log does not show. */
  readonly isLogIncomplete: boolean
}

type HandshakeSubject = Extract<ProbeSubject, { kind: 'handshake-errors' }>
export type HandshakeTerms = Omit<HandshakeSubject, 'kind'>

// Go's messages for the alerts of a client that rejects a certificate (crypto/tls/alert.go), and of a server that rejects a
// client's. OpenSSL sends decrypt_error for a CA with the same name and another key. In TLS 1.3 it sends an alert about the
// certificate unencrypted, which Go reports as a bad record MAC (seen with OpenSSL 3.0 at kube-apiserver 1.36).
const verification =
  /remote error: tls: (?:bad|unsupported|revoked|expired|unknown) certificate|remote error: tls: (?:access denied|error decrypting message|certificate unobtainable)|local error: tls: bad record MAC|failed to verify certificate|x509: /

/** Returns true for a handshake that failed because one side does not accept the other's certificate. */
export function isVerificationFailure(reason: string): boolean {
  return verification.test(reason)
}

/** A failure is logged shortly after it is counted, and the node's clock is known only to some milliseconds. */
const slackMs = 3_000

/** Watches one API server until a whole window of time meets the requirements. */
export class HandshakeWatch {
  private readonly terms: HandshakeTerms
  private readings: HandshakeReading[] = []

  constructor(terms: HandshakeTerms) {
    this.terms = terms
  }

  /** Discards all readings: the next reading starts the window. */
  restart(): void {
    this.readings = []
  }

  /** Returns the result of the last window; undefined until the window is full. */
  add(reading: HandshakeReading): HandshakeVerdict | undefined {
    const last = this.readings.at(-1)
    // A restarted process counts from 0 again.
    if (last !== undefined && reading.count < last.count) this.restart()
    this.readings.push(reading)
    const startsBy = reading.atMs - this.terms.forMs
    const begin = this.readings.findLast(({ atMs }) => atMs <= startsBy)
    if (begin === undefined) return undefined
    this.readings = this.readings.filter(({ atMs }) => atMs >= begin.atMs)
    return verdictOf(begin, reading, this.terms)
  }

  /** Returns true when errors were counted since the start of the window that the log does not show. */
  isLogIncomplete(): boolean {
    const [begin, now] = [this.readings[0], this.readings.at(-1)]
    return begin !== undefined && now !== undefined && now.count - begin.count > shownSince(begin, now).length
  }
}

function shownSince(begin: HandshakeReading, now: HandshakeReading): readonly HandshakeFailure[] {
  return now.failures.filter(({ atMs }) => atMs > begin.atMs - slackMs)
}

function verdictOf(begin: HandshakeReading, now: HandshakeReading, terms: HandshakeTerms): HandshakeVerdict {
  const { at, before, waived } = terms
  const shown = shownSince(begin, now)
  const errors = now.count - begin.count
  const isWaived = ({ address }: HandshakeFailure): boolean => waived.includes(address)
  const own = shown.filter((one) => !isWaived(one))
  const refusing = own.filter(({ reason }) => isVerificationFailure(reason))
  const unnamed = Math.max(0, errors - shown.length)
  const isUnnamedWaived = unnamed > 0 && waived.includes(at)
  const others = Math.max(0, errors - (shown.length - own.length) - (isUnnamedWaived ? unnamed : 0))
  const overMs = now.atMs - begin.atMs
  const isLogIncomplete = unnamed > 0
  const time = `in ${seconds(overMs)} s`
  const rule =
    before === undefined
      ? 'the journal has no rate from before phase 1, so 0 is assumed'
      : `${before.errors} in ${seconds(before.overMs)} s before phase 1`
  const blind = isLogIncomplete
    ? `; its log does not show all of them, so kcert compares only their number (to accept the risk: --waive ${at})`
    : ''
  const accepted = [
    ...countsOf(shown.filter(isWaived)),
    ...(isUnnamedWaived ? [`errors missing from its log (${unnamed})`] : []),
  ]
  const common = { accepted, isLogIncomplete }
  const [first] = refusing
  if (first !== undefined) {
    const detail = `${at}: clients that reject its certificate, or whose certificate it rejects, ${time}: ${shortList(countsOf(refusing))}; to accept the risk for one: --waive ${first.address}`
    return { ok: false, detail, refusing: [...new Set(refusing.map(({ address }) => address))], ...common }
  }
  const ok = others <= allowedErrors(before, overMs)
  const risk = accepted.length === 0 ? '' : `; accepted: ${shortList(accepted)}`
  const clients = own.length === 0 ? '' : `: ${shortList(countsOf(own))}`
  const named = `${ok ? risk : clients}${others > 0 ? blind : ''}`
  return { ok, detail: `${at}: ${others} TLS handshake errors ${time} (${rule})${named}`, ...common }
}

/**
 * Returns the largest number of errors that counts as unchanged: the expected number at the earlier rate plus its square root,
 * the standard deviation of a count of independent events. If nothing failed earlier, the result is 0.
 */
export function allowedErrors(before: HandshakeRate | undefined, overMs: number): number {
  if (before === undefined) return 0
  const expected = (before.errors * overMs) / before.overMs
  return Math.ceil(expected + Math.sqrt(expected))
}

function countsOf(failures: readonly HandshakeFailure[]): string[] {
  const groups = Map.groupBy(failures, ({ address, reason }) => `${address} (${reason}`)
  return [...groups]
    .toSorted(([, a], [, b]) => b.length - a.length)
    .map(([what, its]) => `${what}, ${its.length} ${its.length === 1 ? 'time' : 'times'})`)
}

function seconds(ms: number): number {
  return Math.round(ms / 1000)
}

const isAddress = /^[\da-f.:]+$/i

// Text of a client, such as its user agent, is quoted in a log line. So nothing quoted may precede the message, except in JSON.
const line =
  /^(\S+) (?:[^"]*?|[^"{]*\{"ts":[\d.]+,(?:"caller":"[^"]*",)?"msg":")http: TLS handshake error from (\S+): (.*)$/
/** Go's messages are shorter. */
const longestLine = 4096

/**
 * Returns the failed handshakes in log lines. Each line starts with its time: RFC 3339 as container runtimes write it, or Unix
 * time in seconds as `journalctl -o short-unix` prints it. `aheadMs`: how far the node's clock is ahead.
 */
export function handshakeFailures(text: string, aheadMs: number): HandshakeFailure[] {
  return text.split('\n').flatMap((one) => {
    const [, time = '', from = '', rest = ''] = line.exec(one.slice(0, longestLine)) ?? []
    const atMs = /^\d+(\.\d+)?$/.test(time) ? Number(time) * 1000 : Date.parse(time)
    if (from === '' || Number.isNaN(atMs)) return []
    // JSON logs end the message with \n" and contain more fields.
    const reason = rest
      .replace(/(?:\\n)?".*$/, '')
      .replace(/[^ -~]/g, '?')
      .trim()
      .slice(0, 120)
    return [{ atMs: atMs - aheadMs, address: addressIn(from), reason }]
  })
}

/** "10.0.0.7:41234" → "10.0.0.7", "[fd00::7]:41234" → "fd00::7". Other text gets a name that no waiver can have. */
function addressIn(from: string): string {
  const address = from.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')
  return isAddress.test(address) ? address : '(no address)'
}

/**
 * Returns the subject of a watch at an API server: the rate from before phase 1 in the journal, and the waived clients, by
 * address or as a pod with its own address.
 */
export function handshakeSubject(
  observed: Observed<'evidence' | 'pods'>,
  target: Target,
  at: string,
  forMs: number,
): HandshakeSubject {
  const before = observed.evidence.get(evidenceKey({ kind: 'handshake-rate', at, forMs }))?.rate
  const ofPods = observed.pods.flatMap((pod) => (isWaived(pod, target) ? (pod.address ?? []) : []))
  const waived = [...new Set([...target.waivers, ...ofPods])]
    .filter((id) => id === at || isAddress.test(id))
    .toSorted()
  return { kind: 'handshake-errors', at, forMs, waived, ...(before && { before }) }
}

/**
 * Returns advice for clients at these addresses that reject an API server's certificate: their pods, and the command that
 * restarts the pods that have an owner, so that they read both CAs.
 */
export function helpFor(
  addresses: readonly string[],
  pods: readonly PodSnapshot[],
  phase: number,
): { readonly why: string; readonly next: CommandLine } {
  const its = pods.filter(({ address }) => address !== undefined && addresses.includes(address))
  const why = its
    .map(({ id, address, workload }) => `; ${address} is Pod ${id}${workload ? ` of ${workload}` : ''}`)
    .join('')
  const again = commandLine`kcert rotate-ca --phase ${phase}`
  const restarts = [...new Set(its.flatMap(({ workload }) => workload ?? []))].flatMap((workload) => {
    const [, kind, namespace, name] =
      /^(Deployment|StatefulSet|DaemonSet) ([^/]+)\/(.+)$/.exec(workload) ?? []
    return kind === undefined
      ? []
      : [commandLine`kubectl rollout restart --namespace ${namespace} ${`${kind.toLowerCase()}/${name}`}`]
  })
  return {
    why,
    next: restarts.reduceRight((rest, one) => commandLine`${embed(one)} && ${embed(rest)}`, again),
  }
}
