import { setTimeout as pause } from 'node:timers/promises'
import { wordsOf } from '../errors/kcert-error.ts'
import { flagsOf } from '../pki/component-flags.ts'
import type { NodeAccess, ProcessFacts } from '../pki/node-access.ts'
import type { ProbeSubject } from '../rotation/action.ts'
import {
  type HandshakeFailure,
  type HandshakeVerdict,
  HandshakeWatch,
  handshakeFailures,
} from '../rotation/handshake-errors.ts'
import type { ProbeAnswer } from '../rotation/ports.ts'
import { nodeOfProcess, type ProcessId } from '../rotation/snapshot.ts'
import { printedLog } from '../site/component-log.ts'
import type { ControlPlanes } from '../site/control-planes.ts'
import type { Site } from '../site/site.ts'
import type { OwnIdentity } from './own-identity.ts'

export const handshakeErrors = 'apiserver_tls_handshake_errors_total'
const pollMs = 2_000

/** klog verbosity at which an API server logs the address of each client whose handshake fails. */
export const telling = 5

type Subject<Kind extends ProbeSubject['kind']> = Extract<ProbeSubject, { readonly kind: Kind }>

interface WatchingOptions {
  readonly site: Pick<Site, 'clock' | 'clockAheadMs'>
  readonly planes: Pick<ControlPlanes, 'node'>
  readonly identity: Pick<OwnIdentity, 'call'>
  /** Waits for this number of milliseconds (default real time). */
  readonly sleep?: (ms: number) => Promise<unknown>
}

/**
 * Reads the TLS handshake errors that API servers count and log. An unreadable counter or log fails the probe, with the reason.
 */
export class WatchingHandshakes {
  private readonly options: WatchingOptions

  constructor(options: WatchingOptions) {
    this.options = options
  }

  /** Measures how many handshakes fail within `forMs`. */
  async rate({ at, forMs }: Subject<'handshake-rate'>, deadline: number): Promise<ProbeAnswer> {
    const { sleep = pause } = this.options
    let detail = ''
    do {
      try {
        const begun = this.now()
        const first = await this.count(at)
        await sleep(forMs)
        const errors = (await this.count(at)) - first
        const overMs = this.now() - begun
        const time = `in ${Math.round(overMs / 1000)} s`
        if (errors >= 0)
          return {
            ok: true,
            detail: `${at}: ${errors} TLS handshake errors ${time}`,
            rate: { errors, overMs },
          }
        detail = `${at} restarted while kcert watched its ${handshakeErrors}`
      } catch (error) {
        detail = wordsOf(error)
        await sleep(pollMs)
      }
    } while (this.now() < deadline)
    return { ok: false, detail }
  }

  /** Watches until a whole window of `forMs` meets the requirements, or until the deadline. */
  async errors(subject: Subject<'handshake-errors'>, deadline: number): Promise<ProbeAnswer> {
    const { sleep = pause } = this.options
    const { at } = subject
    const watch = new HandshakeWatch(subject)
    const begunMs = this.now()
    let answer: ProbeAnswer = {
      ok: false,
      detail: `${handshakeErrors} of ${at} was not watched for the whole time`,
    }
    /** Why the verbosity could not be raised: '' when it was raised, undefined when this was not necessary. */
    let refusal: string | undefined
    try {
      for (;;) {
        try {
          const count = await this.count(at)
          const log = await this.log(at, begunMs)
          const said = watch.add({ atMs: this.now(), count, failures: log.failures })
          if (said !== undefined) answer = withReasons(said, [log.why, refusal])
          if (answer.ok) return answer
          if (log.why === undefined && refusal === undefined && watch.isLogIncomplete()) {
            refusal = await this.setVerbosity(at, telling)
            // The log does not contain earlier failures, so the window restarts.
            if (refusal === '') watch.restart()
          }
        } catch (error) {
          answer = { ok: false, detail: wordsOf(error) }
          watch.restart()
        }
        if (this.now() >= deadline) return answer
        await sleep(pollMs)
      }
    } finally {
      if (refusal === '') await this.restoreVerbosity(at)
    }
  }

  /** Returns the counter. Throws when the counter is missing: a missing counter is not 0. */
  private async count(at: ProcessId): Promise<number> {
    const path = '/metrics'
    const { status, body } = await this.options.identity.call(nodeOfProcess(at), {
      method: 'GET',
      path,
      timeoutMs: 20_000,
    })
    if (status !== 200) throw new Error(`${at} answers ${status} for ${path}`)
    const value = new RegExp(`^${handshakeErrors}(?:\\{[^}\\n]*\\})? (\\S+)`, 'm').exec(body)?.[1]
    const count = Number(value)
    if (value === undefined) throw new Error(`${at} does not export the metric ${handshakeErrors}`)
    if (!Number.isFinite(count) || count < 0)
      throw new Error(`${handshakeErrors} of ${at} is not a number: ${value.slice(0, 40)}`)
    return count
  }

  private async log(
    at: ProcessId,
    sinceMs: number,
  ): Promise<{ failures: readonly HandshakeFailure[]; why?: string }> {
    const { planes, site } = this.options
    const node = nodeOfProcess(at)
    try {
      const { failures } = await loggedHandshakes(site, planes.node(node), sinceMs)
      return { failures: failures.filter(({ atMs }) => atMs >= sinceMs - pollMs) }
    } catch (error) {
      return { failures: [], why: `its log cannot be read: ${wordsOf(error)}` }
    }
  }

  /** Returns why the API server rejects the verbosity, or '' on success. Requires --profiling, which is on by default. */
  private async setVerbosity(at: ProcessId, level: number): Promise<string> {
    try {
      const call = { method: 'PUT', path: '/debug/flags/v', text: String(level) }
      const { status } = await this.options.identity.call(nodeOfProcess(at), call)
      return status === 200 ? '' : `its log verbosity cannot be set (HTTP status ${status})`
    } catch (error) {
      return `its log verbosity cannot be set: ${wordsOf(error)}`
    }
  }

  /** Restores the verbosity of the command line. */
  private async restoreVerbosity(at: ProcessId): Promise<void> {
    const process = await running(this.options.planes.node(nodeOfProcess(at))).catch(() => undefined)
    const level = Number(flagsOf(process?.argv ?? []).v ?? 0)
    await this.setVerbosity(at, Number.isInteger(level) ? level : 0)
  }

  private now(): number {
    return this.options.site.clock().getTime()
  }
}

/** Adds the reasons when the log does not show every counted failure. */
function withReasons(
  { isLogIncomplete, detail, ...answer }: HandshakeVerdict,
  reasons: readonly (string | undefined)[],
): ProbeAnswer {
  const given = isLogIncomplete ? reasons.filter((reason) => reason !== undefined && reason !== '') : []
  return { ...answer, detail: [detail, ...given].join('; ') }
}

const mostLines = 5_000

/** Returns the failed handshakes in the log of the API server that runs on a node. Throws if there is none, or its log cannot be read. */
export async function loggedHandshakes(site: Pick<Site, 'clockAheadMs'>, node: NodeAccess, sinceMs: number) {
  const aheadMs = await site.clockAheadMs(node.name)
  const process = await running(node)
  const query = { pattern: 'TLS handshake error from', sinceMs: sinceMs + aheadMs, lines: mostLines }
  const text = await printedLog(node, process, query)
  const isCut = text.split('\n').length > mostLines
  return { failures: handshakeFailures(text, aheadMs), isCut, process }
}

async function running(node: NodeAccess): Promise<ProcessFacts> {
  const [process] = await node.processes(['kube-apiserver'])
  if (process === undefined) throw new Error(`no kube-apiserver runs on ${node.name}`)
  return process
}
