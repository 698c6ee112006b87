import type { RotationEvent } from '../../rotation/runner.ts'
import type { Paint } from '../paint.ts'
import { printable } from '../terminal.ts'
import { displayWidth, shortened } from '../width.ts'
import { someOf } from './cas.ts'

// A rotation as it goes, on standard error. On a terminal each thing that is done becomes a line, and the last line says what
// is being done or waited for, over and over; elsewhere there are only lines, so that a log can be read.

export interface ProgressView {
  readonly write: (text: string) => void
  readonly isTerminal: boolean
  readonly width: number
  readonly paint: Paint
  readonly nowMs: () => number
}

export interface RotationProgress {
  readonly tell: (event: RotationEvent) => void
  /** Writes the last line again: called every second on a terminal, to show how long an action takes. */
  readonly tick: () => void
  /** Takes the last line away, so that something else can be written; the next event brings it back. */
  readonly clear: () => void
}

/** How long a log says nothing new of the same wait. */
const repeatMs = 15_000

interface Doing {
  readonly what: string
  readonly sinceMs: number
  waitsFor?: string
}

/** Returns what turns a rotation's events into lines. */
export function rotationProgress(view: ProgressView): RotationProgress {
  const { write, isTerminal, paint, nowMs } = view
  const doing = new Map<object, Doing>()
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
    const [first, ...others] = doing.values()
    const shown = doing.values().find((one) => one.waitsFor !== undefined) ?? first
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
      // Its plan is shown before, with its title.
      case 'phase-begun':
        return
      case 'action-begun':
        doing.set(event.action, { what: event.what, sinceMs: nowMs() })
        tick()
        return
      case 'action-done': {
        const tookMs = nowMs() - (doing.get(event.action)?.sinceMs ?? nowMs())
        doing.delete(event.action)
        line(`  ${paint.status.ok('done')} ${printable(event.what)}${tookText(tookMs)}`)
        tick()
        return
      }
      case 'waiting': {
        const missing = `${event.missing.length.toLocaleString('en')} pending: ${someOf(
          event.missing.map(({ at, what }) => `${at} (${what})`),
          3,
        )}`
        const one = doing.get(event.action)
        if (one !== undefined) one.waitsFor = missing
        if (isTerminal) tick()
        else if (nowMs() - lastReportedMs >= repeatMs) {
          lastReportedMs = nowMs()
          line(`  waiting until ${printable(event.what)}; ${printable(missing)}`)
        }
        return
      }
      case 'phase-held':
        doing.clear()
        line(`${paint.heading(`phase ${event.phase}`)} ${paint.status.ok('complete')}`)
        for (const remark of event.remarks) line(`  ${paint.faint('note:')} ${printable(remark)}`)
        return
      case 'phase-stopped':
        doing.clear()
        line(`${paint.heading(`phase ${event.phase}`)} ${paint.severity.critical('stopped')}`)
    }
  }
  return { tell, tick, clear }
}

function tookText(ms: number): string {
  return ms < 950 ? '' : ` (${(ms / 1000).toFixed(ms < 9_950 ? 1 : 0)} s)`
}
