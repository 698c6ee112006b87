import { KcertError } from '../errors/kcert-error.ts'
import { shortList } from '../errors/short-list.ts'
import {
  type Action,
  type ActionOf,
  type Condition,
  evidenceKey,
  type Step,
  type WaitUntil,
} from './action.ts'
import { missingFor, sectionsOf } from './conditions.ts'
import { describeAction } from './effects.ts'
import { helpFor } from './handshake-errors.ts'
import {
  actionDigest,
  choicesIn,
  choicesOf,
  evidenceIn,
  intentsIn,
  type JournalEntry,
  rememberedIn,
  sinceRollback,
  undoing,
  waiversIn,
} from './journal.ts'
import { JournalWriter } from './journal-writer.ts'
import { isOfCluster } from './kubeconfig-files.ts'
import { type PendingItem, type Phase, type Playbook, phaseOf, type Refusal } from './phase.ts'
import { type PhaseTable, phaseCommand } from './phase-table.ts'
import type { Executor, JournalFile, Observer, Pace } from './ports.ts'
import { earliestPhase } from './position.ts'
import { SharedObservations } from './shared-observations.ts'
import { fileAt, type SectionName, type Snapshot } from './snapshot.ts'
import { changeOf, plannedIn, type Target } from './target.ts'
import type { Settings } from './target-reading.ts'
import { downgradesIn } from './upgrades.ts'

// observe → plan → confirm → act → observe, until the phase has no pending items. To resume, run it again: kcert reads the
// position from the cluster, and completed work produces no action.

/** Events of a run, for the terminal, the log and tests. */
export type RotationEvent =
  | { readonly kind: 'phase-started'; readonly phase: number; readonly title: string; readonly gaps: number }
  | { readonly kind: 'action-started' | 'action-done'; readonly action: Action; readonly what: string }
  | {
      readonly kind: 'waiting'
      readonly action: Action
      readonly what: string
      readonly missing: readonly PendingItem[]
    }
  | { readonly kind: 'phase-completed'; readonly phase: number; readonly remarks: readonly string[] }
  | { readonly kind: 'phase-stopped'; readonly phase: number; readonly error: KcertError }

export interface PlannedPhase {
  readonly number: number
  readonly title: string
  readonly risk: Phase['risk']
  readonly gaps: readonly PendingItem[]
  readonly steps: readonly Step[]
  readonly remarks: readonly string[]
}

/** The state on which a phase is planned. */
interface On {
  readonly observed: Snapshot
  readonly target: Target
}

export interface Surroundings {
  readonly playbook: Playbook
  readonly observer: Observer
  readonly executor: Executor
  readonly journal: JournalFile
  readonly pace: Pace
  readonly settings: Settings
  readonly emit: (event: RotationEvent) => void
  /** Receives the plan and its snapshot. When it returns false, kcert does nothing. */
  readonly confirm: (plan: PlannedPhase, on: On) => Promise<boolean>
  /** Returns true when the operator confirms now. A waiver of `id` confirms in advance. */
  readonly ask: (asked: ActionOf<'confirm'>) => Promise<boolean>
  /** Returns when the action may start. An error stops the phase before the action is started or recorded. */
  readonly before?: (action: Action) => Promise<void>
}

export type PhaseOutcome = 'completed' | 'declined'

/** Interval at which a phase evaluates its conditions. */
const pollMs = 500

/** Longest time by which a snapshot lags behind an action: a kubelet's Lease, an informer, a mount. */
const settleMs = 90_000

/** A node may join in the middle of a phase, which adds work to the plan. */
const mostRounds = 4

/** Runs phases on one cluster. It reads its whole state from the cluster and the journal each time. */
export class Rotation {
  private readonly around: Surroundings
  private readonly journal: JournalWriter
  private readonly observations: SharedObservations

  private constructor(around: Surroundings, journal: JournalWriter) {
    this.around = around
    this.journal = journal
    this.observations = new SharedObservations(around.observer)
  }

  /** Reads the journal. Throws KCERT_JOURNAL_DAMAGED. */
  static async open(around: Surroundings): Promise<Rotation> {
    return new Rotation(around, await JournalWriter.open(around.journal, around.pace))
  }

  /** Observes and plans. Writes nothing, not even to the journal. Throws KCERT_ROTATION_REFUSED. */
  async plan(number: number): Promise<PlannedPhase> {
    const phase = phaseOf(this.playbook, number)
    const { observed, target } = await this.observe([...phase.sees, ...this.playbook.modelSections])
    return this.planOf(phase, observed, target)
  }

  /** Runs one phase until it is complete. Throws an error with what stopped it, why, and the next command. */
  async run(number: number): Promise<PhaseOutcome> {
    const phase = phaseOf(this.playbook, number)
    try {
      return await this.carryOut(phase)
    } catch (error) {
      if (error instanceof KcertError) {
        this.around.emit({ kind: 'phase-stopped', phase: number, error })
        const stopped = { kind: 'phase', phase: number, event: 'stopped', detail: error.message } as const
        await this.journal.record(stopped).catch(() => {})
      }
      throw error
    }
  }

  /** Returns the entries of the journal, in order. */
  get history(): readonly JournalEntry[] {
    return this.journal.history
  }

  /** Observes, and plans how to undo a phase. Writes nothing. Throws KCERT_ROTATION_REFUSED. */
  async planUndo(number: number): Promise<{ plan: PlannedPhase; on: On }> {
    const phase = phaseOf(this.playbook, number)
    const { observed, target } = await this.observe(this.playbook.sections)
    const copies = observed.copies.filter((copy) => copy.phase === number)
    const undo = phase.undo(copies, observed, target)
    if (undo.kind === 'impossible') throw refused([undo.refusal])
    refuse(downgradesIn(observed, undo.steps))
    this.refuseBroken(observed, target, undo.steps)
    const { title, risk } = phase
    const plan = { number, title: `undo: ${title}`, risk, gaps: [], steps: undo.steps, remarks: [] }
    return { plan, on: { observed, target } }
  }

  /** Undoes the changes of a phase. Later phases must be undone first. */
  async undo(number: number): Promise<PhaseOutcome> {
    const { plan, on } = await this.planUndo(number)
    if (plan.steps.length > 0) {
      if (!(await this.around.confirm(plan, on))) return 'declined'
      await this.journal.record({ kind: 'phase', phase: number, event: 'started', detail: undoing })
    }
    await this.performAll(plan.steps)
    // A node that kcert cannot see may still have the changes. Run again, this rolls them back.
    refuse(this.playbook.unseenNodes(on.observed))
    await this.journal.record({ kind: 'phase', phase: number, event: 'rolled-back' })
    return 'completed'
  }

  /** Returns a snapshot of these sections, with the evidence and choices in the journal. */
  async observe(sections: readonly SectionName[]): Promise<On> {
    const { playbook, history } = this
    const wanted = [...new Set([...sections, ...playbook.targetSections])]
    const remembered = rememberedIn(history, playbook)
    const cas = remembered.changes.flatMap(({ oldCa, newCa }) => [oldCa, newCa])
    const read = (await this.around.observer.observe(wanted, cas)) as Snapshot
    const entries = sinceRollback(history, playbook)
    const intents = intentsIn(entries, playbook)
    const observed: Snapshot = { ...read, evidence: evidenceIn(entries), intents }
    const { settings } = this.around
    const confirmedAtMs = waiversIn(entries)
    const waivers = new Set([...settings.waivers, ...confirmedAtMs.keys()])
    const target = playbook.targetOf(observed, { ...settings, waivers, confirmedAtMs }, remembered)
    const certificates = new Map(observed.certificates)
    for (const { oldCa, newCa, bridge } of target.changes) {
      for (const one of [oldCa, newCa, bridge]) if (one !== undefined) certificates.set(one.digest, one)
    }
    return { observed: ofThisCluster({ ...observed, certificates }, target), target }
  }

  private get playbook(): Playbook {
    return this.around.playbook
  }

  /** Throws KCERT_ROTATION_REFUSED when the steps would break a connection, in any order and wherever they stop. */
  private refuseBroken(observed: Snapshot, target: Target, steps: readonly Step[]): void {
    const refusal = this.playbook.check(observed, target, steps)
    if (refusal !== undefined) throw refused([refusal])
  }

  private async carryOut(phase: Phase): Promise<PhaseOutcome> {
    const { number, title } = phase
    for (let round = 1; ; round++) {
      const { observed, target } = await this.observe(phase.sees)
      const gaps = phase.gaps(observed, target)
      if (gaps.length === 0) return this.completed(phase, observed, target)
      // The model needs all sections; a complete phase does not need the model.
      const plan = await this.plan(number)
      if (round === 1) {
        this.around.emit({ kind: 'phase-started', phase: number, title, gaps: gaps.length })
        if (!(await this.around.confirm(plan, { observed, target }))) return 'declined'
        // Record this before phase 12 removes the files that contain it.
        await this.remember(target)
        await this.journal.record({ kind: 'phase', phase: number, event: 'started' })
        if (phase.risk === 'irreversible') await this.rememberWaivers()
      }
      await this.performAll(plan.steps)
      const { open, on } = await this.settle(phase)
      if (open.length === 0) return this.completed(phase, on.observed, on.target)
      const asked = new Set(plan.steps.flatMap((step) => (step.kind === 'confirm' ? [step.id] : [])))
      const rest = phase.plan(on.observed, on.target)
      // The operator answered no. The same question again would get the same answer.
      const isAnswered =
        rest.length > 0 && rest.every((step) => step.kind === 'confirm' && asked.has(step.id))
      if (isAnswered || round === mostRounds) throw unclosed(this.playbook, phase, open)
    }
  }

  private planOf(phase: Phase, observed: Snapshot, target: Target): PlannedPhase {
    const { number, title, risk } = phase
    const gaps = phase.gaps(observed, target)
    const remarks = phase.remarks(observed, target)
    if (gaps.length === 0) return { number, title, risk, gaps, steps: [], remarks }
    refuse([
      ...this.playbook.preflight(observed, target, phase),
      ...earliestPhase(this.playbook, target, number),
      ...phase.refusals(observed, target),
    ])
    const steps = phase.plan(observed, target)
    this.refuseBroken(observed, target, steps)
    return { number, title, risk, gaps, steps, remarks }
  }

  private async completed(phase: Phase, observed: Snapshot, target: Target): Promise<'completed'> {
    const { number } = phase
    refuse(this.playbook.unseenNodes(observed))
    const remarks = phase.remarks(observed, target)
    this.around.emit({ kind: 'phase-completed', phase: number, remarks })
    await this.remember(target)
    await this.journal.record({ kind: 'phase', phase: number, event: 'completed' })
    return 'completed'
  }

  /** Records the CAs or the key in the journal once they exist. The last phase needs it when kcert's folder is partly deleted. */
  private async remember(target: Target): Promise<void> {
    const { key, keyType, etcdClients } = target
    const before = rememberedIn(this.history, this.playbook)
    const changes = target.changes.map(({ ca, oldCa, newCa }) => ({ ca, oldCa, newCa }))
    const isPlanned = plannedIn(target).length > 0
    const remembered = isPlanned ? before : { changes, ...(key && { key }) }
    const settings = choicesOf({ ...this.around.settings, etcdClients })
    const known = [before, choicesIn(this.history, this.playbook)]
    // Without these choices, a run that continues phase 1 would give the next CA another type, or forget the unknown clients.
    if (isPlanned && keyType === undefined && etcdClients === 'known') return
    if (JSON.stringify([remembered, settings]) === JSON.stringify(known)) return
    await this.journal.record({ kind: 'rotation', ...remembered, settings })
  }

  /** Records the waivers: risks that are accepted when the old CA is dropped stay accepted, and `verify` uses them afterwards. */
  private async rememberWaivers(): Promise<void> {
    const known = waiversIn(sinceRollback(this.history, this.playbook))
    for (const id of this.around.settings.waivers) {
      if (!known.has(id)) await this.journal.record({ kind: 'waiver', id })
    }
  }

  /** Waits while the snapshot lags behind the actions. Returns the items that stay pending, with their snapshot. */
  private async settle(phase: Phase): Promise<{ open: readonly PendingItem[]; on: On }> {
    const { pace } = this.around
    const deadline = pace.now() + settleMs
    for (;;) {
      const on = await this.observe(phase.sees)
      const { observed, target } = on
      const open = phase.gaps(observed, target)
      // The next round handles items that a plan can complete.
      if (open.length === 0 || pace.now() >= deadline || phase.plan(observed, target).length > 0)
        return { open, on }
      await pace.sleep(pollMs)
    }
  }

  /** Performs the steps in order, and writes each to the journal beforehand. */
  async performAll(steps: readonly Step[]): Promise<void> {
    // Once one lane has failed, the others finish their current action and start no other.
    let failure: unknown
    for (const step of steps) {
      if (step.kind !== 'together') {
        await this.perform(step)
        continue
      }
      const queue = [...step.lanes]
      const work = async (): Promise<void> => {
        for (let lane = queue.shift(); lane !== undefined; lane = queue.shift()) {
          for (const action of lane.steps) {
            if (failure !== undefined) return
            await this.perform(action).catch((error: unknown) => {
              failure ??= error
            })
          }
        }
      }
      await Promise.all(Array.from({ length: step.atOnce }, work))
      if (failure !== undefined) throw failure
    }
  }

  /** Records an action that a script performs, at any time from now on. */
  async announce(action: Action): Promise<void> {
    const announced = { phase: action.phase, action: actionDigest(action), what: describeAction(action) }
    await this.journal.record({ kind: 'intent', ...announced })
  }

  private async perform(action: Action): Promise<void> {
    const what = describeAction(action)
    await this.around.before?.(action)
    this.around.emit({ kind: 'action-started', action, what })
    const { phase } = action
    if (action.kind === 'wait') await this.wait(action)
    else if (action.kind === 'confirm') await this.ask(action)
    else if (action.kind === 'probe') await this.probe(action)
    else {
      const announced = { phase, action: actionDigest(action), what }
      await this.journal.around(announced, () => this.act(action))
    }
    this.around.emit({ kind: 'action-done', action, what })
  }

  private act(action: Exclude<Action, { kind: 'wait' | 'confirm' | 'probe' }>): Promise<void> {
    const { executor } = this.around
    if (action.kind === 'write-file') return executor.write(action)
    if (action.kind === 'patch-object') return executor.patch(action)
    return action.kind === 'restart' ? executor.restart(action) : executor.roll(action)
  }

  /** Returns the pending items. An API server that does not respond is pending too, so kcert waits for it. */
  private async missing(until: Condition): Promise<readonly PendingItem[]> {
    try {
      const observed = await this.observations.observe(sectionsOf(until))
      return missingFor(until, observed as Snapshot)
    } catch (error) {
      if (!(error instanceof KcertError) || error.code !== 'KCERT_UNREACHABLE') throw error
      return [{ at: 'API server', what: error.message }]
    }
  }

  private async wait(action: WaitUntil): Promise<void> {
    const { until, because, deadlineMs } = action
    const { pace, emit } = this.around
    const deadline = pace.now() + deadlineMs
    let reported = ''
    for (;;) {
      const missing = await this.missing(until)
      if (missing.length === 0) return
      const news = JSON.stringify(missing)
      if (news !== reported) emit({ kind: 'waiting', action, what: because, missing })
      reported = news
      if (pace.now() >= deadline) throw overdue(this.playbook, because, missing, deadlineMs)
      await pace.sleep(pollMs)
    }
  }

  private async probe(action: ActionOf<'probe'>): Promise<void> {
    const { executor, observer, pace } = this.around
    const { ok, detail, rate, refusing = [] } = await executor.probe(action)
    const key = evidenceKey(action.subject)
    const said = { ok, atMs: pace.now(), detail, ...(rate && { rate }) }
    await this.journal.record({ kind: 'evidence', phase: action.phase, key, ...said })
    if (ok) return
    // The names of pods are only a help. A failure to read them must not hide the original failure.
    const observing = refusing.length > 0 ? observer.observe(['published', 'pods']) : undefined
    const observed = await observing?.catch(() => undefined)
    const { why, next } = helpFor(refusing, observed?.pods ?? [], action.phase)
    throw new KcertError('KCERT_ROTATION_CHECK_FAILED', `not verified: ${key}`, { why: detail + why, next })
  }

  private async ask(asked: ActionOf<'confirm'>): Promise<void> {
    const { id, phase } = asked
    if (await this.around.ask(asked)) await this.journal.record({ kind: 'waiver', id, phase })
  }
}

/** Returns the snapshot without the kubeconfigs on nodes that belong to another cluster or to none. */
function ofThisCluster(observed: Snapshot, target: Target): Snapshot {
  const change = changeOf(target, 'cluster')
  if (change === undefined || observed.kubeconfigs === undefined) return observed
  const kubeconfigs = observed.kubeconfigs.filter(
    ({ at }) => at === undefined || isOfCluster(observed, fileAt(observed, at.node, at.path), change),
  )
  return { ...observed, kubeconfigs }
}

/** Throws KCERT_ROTATION_REFUSED when there are refusals. */
function refuse(refusals: readonly Refusal[]): void {
  if (refusals.length > 0) throw refused(refusals)
}

/** Returns an error for one or more refusals: the first one, followed by the names of the others. */
export function refused([first, ...others]: readonly Refusal[]): KcertError {
  const more =
    others.length === 0 ? '' : ` (and ${others.length} more: ${others.map(({ what }) => what).join('; ')})`
  const { what = '', why = '', next = '' } = first ?? {}
  return new KcertError('KCERT_ROTATION_REFUSED', `${what}${more}`, { why, next })
}

function unclosed(table: PhaseTable, { number }: Phase, open: readonly PendingItem[]): KcertError {
  const named = shortList(
    open.map(({ at, what }) => `${at}: ${what}`),
    '; ',
  )
  return new KcertError('KCERT_ROTATION_CHECK_FAILED', `phase ${number} is incomplete: ${named}`, {
    why: 'kcert finished the plan, but this is still pending',
    next: phaseCommand(table, number),
  })
}

function overdue(
  { command }: PhaseTable,
  because: string,
  missing: readonly PendingItem[],
  deadlineMs: number,
): KcertError {
  const named = shortList(missing.map(({ at, what }) => `${at} (${what})`))
  return new KcertError(
    'KCERT_ROTATION_CHECK_FAILED',
    `timed out after ${deadlineMs / 1000} s waiting until ${because}`,
    {
      why: `still pending: ${named}; fix the cause first`,
      next: command,
    },
  )
}
