import type { RotationEvent } from '../../rotation/runner.ts'
import type { Paint } from '../paint.ts'
import { printable } from '../terminal.ts'
import { displayWidth, shortened } from '../width.ts'
import { someOf } from './cas.ts'

// The progress of a rotation, on standard error. On a terminal, each finished action becomes a line, and the last line is updated
// with the current action or wait. Elsewhere all output is lines, for logs.

export interface ProgressView {
  readonly write: (text: string) => void
  readonly isTerminal: boolean
  readonly width: number
  readonly paint: Paint
  readonly nowMs: () => number
}

export interface RotationProgress {
  readonly tell: (event: RotationEvent) => void
  /** Redraws the last line. Called every second on a terminal, to show how long an action takes. */
  readonly tick: () => void
  /** Clears the last line so that other text can be written. The next event restores it. */
  readonly clear: () => void
}

/** The interval between two log lines about the same wait. */
const repeatMs = 15_000

interface RunningAction {
  readonly what: string
  readonly sinceMs: number
  waitsFor?: string
}

/** Returns the handler that turns a rotation's events into lines. */
export function rotationProgress(view: ProgressView): RotationProgress {
  const { write, isTerminal, paint, nowMs } = view
  const running = new Map<object, RunningAction>()
  let lastReportedMs = Number.NEGATIVE_INFINITY
  let hasLastLine = false

  const clear = (): void => {
    if (hasLastLine) write('\r\u001b[K')
    hasLastLine = false
  }
  const line = (text: string): void => {
    clear()
    write(`${text}\n`)
  }
  const tick = (): void => {
    if (!isTerminal) return
    const [first, ...others] = running.values()
    const shown = running.values().find((one) => one.waitsFor !== undefined) ?? first
    if (shown === undefined) return
    const { what, sinceMs, waitsFor } = shown
    const elapsed = `${Math.floor((nowMs() - sinceMs) / 1000)} s`
    const beside = others.length === 0 ? '' : ` (and ${others.length} more in parallel)`
    const detail = waitsFor === undefined ? '' : `${waitsFor}; `
    const text = shortened(
      printable(`  … ${elapsed}${beside} ${detail}${what}`),
      Math.max(20, view.width - 1),
    )
    write(`\r\u001b[K${paint.faint(text)}`)
    hasLastLine = displayWidth(text) > 0
  }

  const tell = (event: RotationEvent): void => {
    switch (event.kind) {
      // The plan with its title is shown before.
      case 'phase-started':
        return
      case 'action-started':
        running.set(event.action, { what: event.what, sinceMs: nowMs() })
        tick()
        return
      case 'action-done': {
        const tookMs = nowMs() - (running.get(event.action)?.sinceMs ?? nowMs())
        running.delete(event.action)
        line(`  ${paint.status.ok('done')} ${printable(event.what)}${tookText(tookMs)}`)
        tick()
        return
      }
      case 'waiting': {
        const missing = `${event.missing.length.toLocaleString('en')} pending: ${someOf(
          event.missing.map(({ at, what }) => `${at} (${what})`),
          3,
        )}`
        const one = running.get(event.action)
        if (one !== undefined) one.waitsFor = missing
        if (isTerminal) tick()
        else if (nowMs() - lastReportedMs >= repeatMs) {
          lastReportedMs = nowMs()
          line(`  waiting until ${printable(event.what)}; ${printable(missing)}`)
        }
        return
      }
      case 'phase-completed':
        running.clear()
        line(`${paint.heading(`phase ${event.phase}`)} ${paint.status.ok('complete')}`)
        return
      case 'phase-stopped':
        running.clear()
        line(`${paint.heading(`phase ${event.phase}`)} ${paint.severity.critical('stopped')}`)
    }
  }
  return { tell, tick, clear }
}

function tookText(ms: number): string {
  return ms < 950 ? '' : ` (${(ms / 1000).toFixed(ms < 9_950 ? 1 : 0)} s)`
}
