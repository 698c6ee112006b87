import { connect as connectTcp } from 'node:net'
import type { Duplex } from 'node:stream'
import { commandLine } from '../errors/command-line.ts'
import { hostPort } from '../errors/host-port.ts'
import { questionFor } from '../probe/client-verdict.ts'
import type { Observed, Target, Unobserved } from '../probe/target.ts'
import { handshake, type TlsVersion } from '../tls/handshake.ts'
import { nextAfter, reasonOf } from '../tls/served.ts'

/** A target with everything needed to connect to it. */
export interface ProbeTarget extends Target {
  /** Sent as SNI if it is a DNS name. */
  readonly serverName: string
  /** Returns a connection that does not start on this machine. */
  readonly dial?: () => Duplex
  /** PEM; presented to a server that requests a certificate. */
  readonly pair?: ClientPair
  /** Set if it is already known that there is nothing to connect to. */
  readonly unseen?: Unobserved
}

export interface ClientPair {
  readonly certificate: string
  readonly key: string
}

export interface DialOptions {
  readonly timeoutMs: number
  readonly version?: TlsVersion | undefined
}

/** Returns what was observed at a target, or why nothing was. Never throws. */
export async function observe(
  target: ProbeTarget,
  { timeoutMs, version }: DialOptions,
): Promise<Observed | Unobserved> {
  const { host, port, serverName, dial, pair, kind, unseen } = target
  if (unseen !== undefined) return unseen
  try {
    const connection = dial?.() ?? connectTcp({ host, port })
    const ask = pair && questionFor(kind)
    return await handshake(connection, { host: serverName, timeoutMs, version, client: pair, ask })
  } catch (error) {
    return unseenBy(target, error as Error, { timeoutMs, version })
  }
}

function unseenBy(target: ProbeTarget, error: NodeJS.ErrnoException, options: DialOptions): Unobserved {
  const isReached = error.code?.startsWith('ERR_SSL') ?? false
  return {
    isReached,
    reason: lacksServingCertificate(target, error)
      ? `${reasonOf(error, options.timeoutMs)}; its serving certificate is not issued yet`
      : reasonOf(error, options.timeoutMs),
    next: nextStep(target, error, options.version),
  }
}

/** Returns true for the error of a kubelet whose request waits for an approver. */
function lacksServingCertificate({ kind }: ProbeTarget, { code = '' }: NodeJS.ErrnoException): boolean {
  return code.endsWith('ALERT_INTERNAL_ERROR') && kind === 'kubelet'
}

function nextStep(
  target: ProbeTarget,
  error: NodeJS.ErrnoException,
  version: TlsVersion | undefined,
): string {
  const { kind, from, host, port } = target
  const { code = '' } = error
  if (lacksServingCertificate(target, error)) return 'kcert csr list --signer kubernetes.io/kubelet-serving'
  if (version !== undefined && code.endsWith('PROTOCOL_VERSION'))
    return commandLine`kcert probe ${hostPort(host, port)}`
  if (from !== undefined) return commandLine`kcert probe ${hostPort(host, port)}`
  return kind === 'webhook' || kind === 'aggregated-api' || kind === 'conversion-webhook'
    ? 'kcert probe --webhooks -i kcert.yaml'
    : nextAfter(error, { host, port })
}
