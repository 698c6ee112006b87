import { setTimeout as pauseFor } from 'node:timers/promises'
import pMap from 'p-map'
import type { ChosenCluster } from '../../cli/flags.ts'
import { type ExitCode, exitCodes, worstExit } from '../../errors/codes.ts'
import { KcertError, messageOf } from '../../errors/kcert-error.ts'
import { tuneForManyCertificates } from '../../system/engine.ts'
import type { Member } from './members.ts'

/** The result of one cluster. */
export interface Result<Report> {
  readonly member: Member
  /** Absent if nothing could be read. With an error, it is incomplete. */
  readonly report?: Report
  readonly error?: KcertError
  readonly exit: ExitCode
  /** True if reading stopped at the deadline or a limit. */
  readonly isCut: boolean
}

/** What a command found in one cluster. */
export interface Found<Report> {
  readonly report?: Report
  /** Why the report is incomplete or absent. */
  readonly error?: KcertError | undefined
  readonly exit: ExitCode
}

export interface RunOptions {
  readonly deadlineMs: number
  readonly concurrency: number
  /** Aborted by Ctrl-C and SIGTERM. The results of the other clusters are still returned. */
  readonly interrupted: AbortSignal
}

/** After the deadline, what was read is still evaluated, if that is quick. */
const graceMs = 2_000
/** Estimated memory of everything that is kept of the clusters that are read at the same time. */
const mostKeptBytes = 64 * 1024 * 1024
/** V8 needs many times the size of a page: its bytes, its text and its objects. */
const mostPageBytes = 2 * 1024 * 1024

/** Evaluates each cluster within the limits, some at the same time, and passes on each result as soon as it is complete. */
export async function runFleet<Report>(
  members: readonly Member[],
  { deadlineMs, concurrency, interrupted }: RunOptions,
  evaluate: (chosen: ChosenCluster) => Promise<Found<Report>>,
  tell: (result: Result<Report>) => Promise<void>,
): Promise<void> {
  const memory = new SharedMemory(mostKeptBytes)
  tuneForManyCertificates()
  await pMap(
    members,
    async (member) => {
      const { selected } = member
      if (selected instanceof KcertError)
        return tell({ member, error: selected, exit: exitOf(selected), isCut: false })
      const ending = new AbortController()
      const end = (why: string): void => ending.abort(incomplete(why))
      const timer = setTimeout(
        end,
        deadlineMs,
        `no complete answer within ${deadlineMs / 1000} s (--deadline)`,
      )
      const interrupt = (): void => end('the run was interrupted')
      if (interrupted.aborted) interrupt()
      interrupted.addEventListener('abort', interrupt)
      // An endless list is not worth a report, which would take as much memory again.
      let isOverLimit = false
      const share = memory.shareOf((why) => {
        isOverLimit = true
        end(why)
      })
      const { signal } = ending
      try {
        const chosen = { selected, signal, mostPageBytes, onKept: (bytes: number) => share.add(bytes) }
        const settledAs = signal.aborted
          ? failed<Report>(signal.reason)
          : await settled(evaluate(chosen), signal)
        const found = isOverLimit ? failed<Report>(signal.reason) : settledAs
        const error = signal.aborted ? signal.reason : found.error
        const exit = worstExit([found.exit, ...(error === undefined ? [] : [exitOf(error)])])
        await tell({ member, ...found, ...(error && { error }), exit, isCut: signal.aborted })
      } finally {
        clearTimeout(timer)
        interrupted.removeEventListener('abort', interrupt)
        share.end()
      }
    },
    { concurrency },
  )
}

/** Returns the result. A while after the abort, returns without it: some work cannot be aborted. */
async function settled<Report>(work: Promise<Found<Report>>, signal: AbortSignal): Promise<Found<Report>> {
  const over = Promise.withResolvers<Found<Report>>()
  const stop = async (): Promise<void> => {
    await pauseFor(graceMs, undefined, { ref: false })
    over.resolve(failed(signal.reason))
  }
  signal.addEventListener('abort', stop, { once: true })
  return Promise.race([work.catch(failed<Report>), over.promise])
}

/** A defect that one cluster causes must not hide the results of the others. */
function failed<Report>(error: unknown): Found<Report> {
  const known =
    error instanceof KcertError
      ? error
      : new KcertError('KCERT_DEFECT', `unexpected error: ${messageOf(error)}`, { cause: error })
  return { error: known, exit: exitOf(known) }
}

function incomplete(why: string): KcertError {
  return new KcertError('KCERT_UNREACHABLE', 'the cluster was not read completely', { why })
}

/** A cluster without an answer is never "no": its state is unknown. */
function exitOf({ exitCode }: KcertError): ExitCode {
  const own: readonly ExitCode[] = [exitCodes.defect, exitCodes.refused, exitCodes.notPermitted]
  return own.includes(exitCode) ? exitCode : exitCodes.unreachable
}

/**
 * The memory of the clusters that are read at the same time. Above the limit, reading of the cluster that takes most of it ends: one
 * API server that sends an endless list must not take it from the others.
 */
class SharedMemory {
  readonly #mostBytes: number
  #bytes = 0
  readonly #shares = new Set<{ bytes: number; end: (why: string) => void }>()

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes
  }

  shareOf(end: (why: string) => void) {
    const share = { bytes: 0, end }
    this.#shares.add(share)
    return {
      add: (bytes: number): void => {
        if (!this.#shares.has(share)) return
        share.bytes += bytes
        this.#bytes += bytes
        if (this.#bytes > this.#mostBytes) this.#shrink()
      },
      end: (): void => this.#release(share),
    }
  }

  #release(share: { readonly bytes: number; readonly end: (why: string) => void }): void {
    if (this.#shares.delete(share)) this.#bytes -= share.bytes
  }

  #shrink(): void {
    const [most] = [...this.#shares].sort((a, b) => b.bytes - a.bytes)
    if (most === undefined) return
    this.#release(most)
    most.end(
      'its API server sent more objects than kcert keeps for all clusters of a fleet: inspect it alone',
    )
  }
}
