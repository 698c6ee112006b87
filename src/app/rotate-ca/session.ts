import { noTerminal } from '../../cli/consent.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { commandLine, fixed } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import type { Action } from '../../rotation/action.ts'
import { describeAction } from '../../rotation/effects.ts'
import { handshakeSubject } from '../../rotation/handshake-errors.ts'
import {
  changesIn,
  choicesIn,
  isOfFinished,
  type JournalEntry,
  readJournal,
  undoneIn,
} from '../../rotation/journal.ts'
import type { OldKeyFiles } from '../../rotation/old-keys.ts'
import { phaseRow } from '../../rotation/phase-table.ts'
import { phasePlan, phaseView, wholePlan } from '../../rotation/plan-report.ts'
import { phaseNumbered } from '../../rotation/playbook.ts'
import type { Executor, JournalFile, Observer, Pace } from '../../rotation/ports.ts'
import { outOfOrder, type PhaseStatus, progressOf, type RotationProgress } from '../../rotation/progress.ts'
import type {
  KeptKeys,
  PhasePlanView,
  RotationPlan,
  RotationRun,
  RotationRunbook,
  RotationStatus,
  RotationVerification,
} from '../../rotation/report.ts'
import { isNodeAct, type PrepareRunbook, runbookOf } from '../../rotation/runbook.ts'
import { type PlannedPhase, Rotation, type RotationEvent, refused } from '../../rotation/runner.ts'
import { type Snapshot, sectionNames } from '../../rotation/snapshot.ts'
import { nextOf, statusReport } from '../../rotation/status-report.ts'
import type { Target } from '../../rotation/target.ts'
import { defaultSettings, type Settings } from '../../rotation/target-reading.ts'
import { verificationReport } from '../../rotation/verification-report.ts'
import { timeOf } from '../../rotation/views.ts'
import { type Hook, PhaseHooks, type RunHook } from './hooks.ts'
import { type PauseBetween, pausing } from './pauses.ts'

// What the commands of rotate-ca do, on whatever observer, executor and journal they are given: the real ones, or the simulated
// cluster of a test. The commands themselves turn flags into this and its answers into text.

export interface RotationPorts {
  readonly observer: Observer
  readonly executor: Executor
  readonly journal: JournalFile
  readonly pace: Pace
  /** Absent where there are no nodes to read, as in some tests. */
  readonly prepareRunbook?: PrepareRunbook
  /** Absent where there are no nodes to read. */
  readonly oldKeys?: OldKeyFiles
}

/** The person at the terminal, or what stands in for one: gets questions and progress. */
export interface Operator {
  /** Undefined without a terminal. */
  readonly choose: ((message: string) => Promise<boolean>) | undefined
  /** Asked for the word itself: what is agreed to here cannot be taken back. */
  readonly type: ((message: string, word: string) => Promise<boolean>) | undefined
  readonly showPlan: (plan: PhasePlanView, isUndo: boolean) => void
  readonly tell: (event: RotationEvent) => void
  /** A line for the operator, on standard error. */
  readonly note: (text: string) => void
  readonly interrupted: AbortSignal
}

export interface SessionOptions {
  /** What the command line says; the rest is as the journal has it, or the default. */
  readonly settings: Partial<Settings>
  /** What holds where neither the command line nor the journal says otherwise. */
  readonly presets?: Partial<Settings>
  readonly yes: boolean
  readonly pauseBetween: PauseBetween | undefined
  /** Least time between the beginnings of two rolls of workloads, in milliseconds. */
  readonly rollEveryMs: number
  /** Commands of the inventory, and what runs them. */
  readonly hooks?: readonly Hook[]
  readonly runHook?: RunHook
  /** Acts on nodes are not done but named: scripts that people run there do them. */
  readonly byRunbook?: boolean
}

export interface RunAnswer {
  readonly report: RotationRun
  readonly exit: ExitCode
}

export interface RunbookAnswer {
  readonly report: RotationRunbook
  /** Below the runbook's folder; keys may be in them. */
  readonly files: readonly { readonly path: string; readonly content: Uint8Array | string }[]
}

type PhaseRun = RotationRun['phases'][number]

/** A Lease of one who is gone lasts 15 to 18 s. */
const passingMs = 25_000

/** True when an earlier phase has a gap that no act of its plan closes, though it was run before. */
function isPassing(
  { phase, gaps, state }: PhaseStatus,
  numbers: readonly number[],
  observed: Snapshot,
  target: Target,
): boolean {
  if (gaps.length === 0 || state !== 'open' || phase.number >= Math.min(...numbers)) return false
  if (phase.risk === 'reads') return false
  const steps = phase.plan(observed, target)
  return steps.every((step) => step.kind === 'wait' || step.kind === 'probe')
}

/** One command's work on one rotation. */
export class RotationSession {
  private readonly rotation: Rotation
  private readonly ports: RotationPorts
  private readonly options: SessionOptions
  private readonly operator: Operator
  private readonly settings: Settings
  /** Of the phase that runs. */
  private actions = 0
  private remarks: readonly string[] = []
  private isUndoing = false
  private hooks: PhaseHooks | undefined

  private constructor(
    rotation: Rotation,
    ports: RotationPorts,
    options: SessionOptions,
    operator: Operator,
    settings: Settings,
  ) {
    this.rotation = rotation
    this.ports = ports
    this.options = options
    this.operator = operator
    this.settings = settings
  }

  /** Reads the journal. Throws KCERT_JOURNAL_DAMAGED, and KCERT_USAGE for --pause-between without a terminal. */
  static async open(
    ports: RotationPorts,
    options: SessionOptions,
    operator: Operator,
  ): Promise<RotationSession> {
    if (options.pauseBetween !== undefined && operator.choose === undefined) throw nobodyToPauseFor()
    const chosen = choicesIn(readJournal(await ports.journal.read()))
    const settings: Settings = { ...defaultSettings, ...options.presets, ...chosen, ...options.settings }
    const { executor, observer, journal } = ports
    let session: RotationSession
    const rotation = await Rotation.open({
      executor,
      observer,
      journal,
      pace: interruptible(ports.pace, operator.interrupted),
      settings,
      emit: (event) => session.watch(event),
      confirm: async (plan, { observed, target }) => {
        const isAgreed = await session.confirm(phaseView(plan, observed, target))
        if (isAgreed) await session.hooks?.beforePhase(plan.steps)
        return isAgreed
      },
      ask: (question, id) => session.ask(question, id),
      before: pausing({
        between: options.pauseBetween,
        rollEveryMs: options.rollEveryMs,
        pace: ports.pace,
        goesOn: (node) => session.goesOnWith(`node ${node}`),
        stop: () => interruption(operator.interrupted),
        begin: async (action) => {
          if (options.byRunbook && isNodeAct(action)) throw forRunbook(action, session.isUndoing)
          await session.hooks?.before(action)
        },
      }),
    })
    session = new RotationSession(rotation, ports, options, operator, settings)
    return session
  }

  async status(): Promise<RotationStatus> {
    const { observed, target } = await this.observeAll()
    const status = statusReport(observed, target, this.rotation.history)
    return { ...status, ...(await this.keptKeys(observed, status.state)) }
  }

  /** The plan of all phases, and what speaks against beginning. Nothing is written. */
  async plan(): Promise<RotationPlan> {
    const { observed, target } = await this.observeAll()
    return wholePlan(observed, target, this.options.rollEveryMs)
  }

  /**
   * The plan of these phases: of the first one with something open exactly what a run would do, of the others what can be told
   * from the cluster as it is now. Throws what a run would refuse.
   */
  async dryRun(numbers: readonly number[]): Promise<RotationPlan> {
    const { observed, target, progress, todo } = await this.beginning(numbers)
    const first = todo.find((number) => progress.phases[number - 1]!.gaps.length > 0)
    const planned = await Promise.all(
      todo.map(async (number) => {
        if (number === first) return this.rotation.plan(number)
        const phase = phaseNumbered(number)
        const { gaps, remarks } = progress.phases[number - 1]!
        const steps = gaps.length === 0 ? [] : phase.plan(observed, target)
        return { number, title: phase.title, risk: phase.risk, gaps, steps, remarks }
      }),
    )
    return phasePlan(planned, observed, target)
  }

  /**
   * What a phase does next on nodes, as scripts to be run there. Nothing is changed. Throws what a run would refuse, and where an
   * act on the cluster itself comes first.
   */
  async runbook(number: number, folder: string): Promise<RunbookAnswer> {
    const [todo = number] = (await this.beginning([number])).todo
    const plan = await this.rotation.plan(todo)
    return this.scripts(plan, await this.observeAll(), folder, {
      next: commandLine`kcert rotate-ca --phase ${todo} --by-runbook`,
      ...(!phaseNumbered(todo).dropsOld && {
        back: commandLine`kcert rotate-ca runbook ${folder.replace(/\/+$/, '')}-back --phase ${todo} --undo`,
      }),
    })
  }

  /** The same of what takes a phase back: the last one that was begun. Throws what a rollback would refuse. */
  async runbookBack(number: number, folder: string): Promise<RunbookAnswer> {
    const [last] = await this.begun()
    if (last !== number) throw notLast(number, last, folder)
    const { plan, on } = await this.rotation.planUndo(number)
    // What kcert has done of it through the API server is not done again before every round of scripts.
    const done = undoneIn(this.rotation.history, number)
    const steps = plan.steps.filter((step) => step.kind !== 'patch-object' || !done.has(describeAction(step)))
    return this.scripts({ ...plan, steps }, on, folder, {
      next: commandLine`kcert rotate-ca rollback --to ${number - 1} --by-runbook`,
    })
  }

  private async scripts(
    plan: PlannedPhase,
    { observed, target }: { readonly observed: Snapshot; readonly target: Target },
    folder: string,
    commands: { readonly next: string; readonly back?: string },
  ): Promise<RunbookAnswer> {
    const runbook = runbookOf(observed, target, plan.steps)
    if (runbook.first !== undefined) throw clusterFirst(describeAction(runbook.first), commands.next)
    const { number, title } = plan
    const prepared = await this.ports.prepareRunbook?.(runbook, { number, title, next: commands.next })
    const groups = prepared ?? []
    const scripts = runbook.groups.flatMap(({ atOnce, scripts: its }, index) =>
      its.map(({ node, acts }) => ({
        order: index + 1,
        atOnce,
        node,
        path: `${folderOfScript(index + 1, node)}/run.sh`,
        acts: acts.map(describeAction),
      })),
    )
    const next = {
      command: commands.next,
      why:
        scripts.length === 0
          ? 'no script must run on a node before the next command'
          : 'after the scripts, kcert does the steps on the API server, waits and verifies',
    }
    const report: RotationRunbook = {
      apiVersion: 'kcert/v1',
      kind: 'RotationRunbook',
      generatedAt: timeOf(observed.atMs),
      phase: number,
      title,
      folder,
      scripts,
      next,
      ...(scripts.length > 0 && commands.back !== undefined && { back: commands.back }),
    }
    const files = groups.flatMap((group, index) =>
      group.flatMap(({ node, files: its }) =>
        its.map(({ name, content }) => ({ path: `${folderOfScript(index + 1, node)}/${name}`, content })),
      ),
    )
    return { report, files }
  }

  /** Runs these phases one after the other, until one is declined. Throws what stopped one. */
  async run(numbers: readonly number[]): Promise<RunAnswer> {
    const { todo } = await this.beginning(numbers)
    return this.inTurn(todo, 'forward', (number) => this.rotation.run(number))
  }

  /** Rolls back phases, the last one first, to the state after phase `to`; without `to`, only the last phase. */
  async rollback(to: number | undefined): Promise<RunAnswer> {
    const begun = await this.begun()
    const least = to ?? (begun[0] ?? 0) - 1
    const numbers = begun.filter((number) => number > least)
    this.isUndoing = true
    return this.inTurn(numbers, 'back', (number) => this.rotation.undo(number))
  }

  /** What a rollback would do first, exactly; the phases after it are planned when their turn comes. */
  async dryRollback(to: number | undefined): Promise<RotationPlan> {
    const begun = await this.begun()
    const [last] = begun
    if (last === undefined || last <= (to ?? last - 1)) {
      const { observed, target } = await this.observeAll()
      return phasePlan([], observed, target)
    }
    const { plan, on } = await this.rotation.planUndo(last)
    return phasePlan([plan], on.observed, on.target)
  }

  /** Phase 11's questions at any time, with the counters of handshake errors watched for the soak time. Changes nothing. */
  async verify(): Promise<RotationVerification> {
    const { observed, target } = await this.observeAll()
    const { executor, pace } = this.ports
    const apis = observed.components.filter(({ name }) => name === 'kube-apiserver')
    const counted = await Promise.all(
      apis.map(async ({ id }) => {
        const subject = handshakeSubject(observed, target, id, this.settings.soakMs)
        const deadlineMs = this.settings.soakMs + 60_000
        const answer = await executor.probe({
          kind: 'probe',
          phase: phaseRow('verify').number,
          subject,
          deadlineMs,
        })
        return { at: id, ...answer, atMs: pace.now() }
      }),
    )
    return verificationReport(observed, target, this.rotation.history, counted)
  }

  private async inTurn(
    numbers: readonly number[],
    direction: RotationRun['direction'],
    act: (number: number) => Promise<'held' | 'declined'>,
  ): Promise<RunAnswer> {
    const { pace } = this.ports
    const phases: PhaseRun[] = []
    for (const [index, number] of numbers.entries()) {
      if (index > 0 && !(await this.goesOnWithPhase(number))) break
      this.actions = 0
      this.remarks = []
      const beganAt = timeOf(pace.now())
      const outcome = await this.withHooks(number, act)
      const { title } = phaseNumbered(number)
      const { actions, remarks } = this
      phases.push({
        number,
        title,
        outcome,
        beganAt,
        endedAt: timeOf(pace.now()),
        actions,
        remarks: [...remarks],
      })
      if (outcome === 'declined') break
    }
    const isDone = phases.length === numbers.length && phases.every(({ outcome }) => outcome === 'held')
    const { observed, target } = await this.observeAll()
    const progress = progressOf(observed, target)
    const next = nextOf(progress)
    const report: RotationRun = {
      apiVersion: 'kcert/v1',
      kind: 'RotationRun',
      generatedAt: timeOf(observed.atMs),
      direction,
      outcome: isDone ? 'done' : 'declined',
      phases,
      ...(next === undefined ? {} : { next }),
      ...(await this.keptKeys(observed, progress.state)),
    }
    return { report, exit: isDone ? exitCodes.done : exitCodes.no }
  }

  /** Where the old CA's key is after the rotation: operators should know that they still have it. */
  private async keptKeys(
    observed: Snapshot,
    state: RotationProgress['state'],
  ): Promise<{ oldKeys?: KeptKeys }> {
    const { ports, rotation } = this
    if (state !== 'finished' || ports.oldKeys === undefined || !isOfFinished(rotation.history)) return {}
    const { findOldKeys } = await import('./find-old-keys.ts')
    const names = observed.nodes.filter(({ isControlPlane }) => isControlPlane).map(({ name }) => name)
    const olds = changesIn(rotation.history).map(({ ca, oldCa }) => ({ ca, ...oldCa }))
    // Who may not read these folders learns all the rest all the same.
    const found = await findOldKeys(ports.oldKeys, observed, names, olds).catch(withoutRefusal)
    const { files, encrypted } = found ?? { files: [], encrypted: [] }
    if (files.length + encrypted.length === 0) return {}
    return {
      oldKeys: {
        files: files.map(({ node, path, ca }) => ({ node, path, ...(ca === undefined ? {} : { ca }) })),
        ...(encrypted.length > 0 && { encrypted: [...encrypted] }),
        archive: commandLine`kcert rotate-ca --archive-old-key old-ca-keys`,
        destroy: commandLine`kcert rotate-ca --destroy-old-key`,
      },
    }
  }

  /** What hooks began is ended also when the phase stops; then its own error is the one that counts. */
  private async withHooks<Outcome>(
    number: number,
    act: (number: number) => Promise<Outcome>,
  ): Promise<Outcome> {
    const { hooks = [], runHook } = this.options
    this.hooks = runHook === undefined ? undefined : new PhaseHooks(hooks, runHook, number)
    let outcome: Outcome
    try {
      outcome = await act(number)
    } catch (error) {
      await this.hooks?.afterPhase().catch(({ message }: Error) => this.operator.note(message))
      throw error
    }
    await this.hooks?.afterPhase()
    return outcome
  }

  /** Returns the state, and which of these phases to run. Throws KCERT_ROTATION_REFUSED if another one must be complete before. */
  private async beginning(numbers: readonly number[]) {
    const { pace } = this.ports
    const deadlineMs = pace.now() + passingMs
    let { observed, target } = await this.observeAll()
    let progress = progressOf(observed, target)
    // A leader that was just restarted is not yet followed by another: what no act would close, time does.
    while (
      pace.now() < deadlineMs &&
      progress.phases.some((one) => isPassing(one, numbers, observed, target))
    ) {
      await pace.sleep(1_000)
      ;({ observed, target } = await this.observeAll())
      progress = progressOf(observed, target)
    }
    const refusals = outOfOrder(progress, numbers)
    if (refusals.length > 0) throw refused(refusals)
    // Once the old CA is being dropped there is only one way.
    const dropping = phaseRow('drop-old').number
    const todo = target.isDropping && numbers.includes(dropping) ? [dropping] : numbers
    return { observed, target, progress, todo }
  }

  private observeAll(): Promise<{ observed: Snapshot; target: Target }> {
    return this.rotation.observe(sectionNames)
  }

  /** Phases that changed something and were not taken back, the last one first; by the journal, and by the copies on the nodes. */
  private async begun(): Promise<readonly number[]> {
    const { observed } = await this.observeAll()
    return begunPhases(
      this.rotation.history,
      observed.copies.map(({ phase }) => phase),
    )
  }

  private watch(event: RotationEvent): void {
    if (event.kind === 'action-done') {
      this.actions++
      this.hooks?.done(event.action)
    }
    if (event.kind === 'phase-held') this.remarks = event.remarks
    this.operator.tell(event)
  }

  private async confirm(plan: PhasePlanView): Promise<boolean> {
    const { choose, type, showPlan } = this.operator
    showPlan(plan, this.isUndoing)
    if (this.options.yes || plan.risk === 'reads') return true
    if (choose === undefined || type === undefined) throw unconfirmed(plan)
    const question = this.isUndoing ? `Roll back phase ${plan.number}?` : `Run phase ${plan.number}?`
    if (plan.risk !== 'no-return') return choose(question)
    return type(`${question} It cannot be undone. Type "drop" to continue:`, 'drop')
  }

  private async ask(question: string, id: string): Promise<boolean> {
    const { choose, note } = this.operator
    // --yes agrees to the plan; what somebody else must have done is answered one by one.
    if (choose === undefined || this.options.yes) {
      note([`not confirmed: ${question}`, commandLine`  to accept the risk: --waive ${id}`].join('\n'))
      return false
    }
    return choose(`${question} Done?`)
  }

  private async goesOnWithPhase(number: number): Promise<boolean> {
    return this.options.pauseBetween !== 'phases' || this.goesOnWith(`phase ${number}`)
  }

  private async goesOnWith(what: string): Promise<boolean> {
    return (await this.operator.choose?.(`Continue with ${what}?`)) ?? true
  }
}

function withoutRefusal(error: unknown): undefined {
  if (!(error instanceof KcertError)) throw error
}

function folderOfScript(order: number, node: string): string {
  return `${String(order).padStart(2, '0')}-${node}`
}

function forRunbook(action: Action, isUndoing: boolean): KcertError {
  return new KcertError('KCERT_ROTATION_GATE', `the next step is on a node: ${describeAction(action)}`, {
    why: 'with --by-runbook, kcert does not change nodes: write the scripts and run them there',
    next: commandLine`kcert rotate-ca runbook ${`phase-${action.phase}${isUndoing ? '-back' : ''}`} --phase ${action.phase}${fixed(isUndoing ? ' --undo' : '')}`,
  })
}

function notLast(number: number, last: number | undefined, folder: string): KcertError {
  if (last === undefined || last < number) {
    return new KcertError('KCERT_ROTATION_REFUSED', `phase ${number} has nothing to roll back`, {
      why:
        last === undefined
          ? 'no phase has changed anything'
          : `phase ${last} is the last phase that changed something`,
      next: commandLine`kcert rotate-ca status`,
    })
  }
  return new KcertError('KCERT_ROTATION_REFUSED', `roll back phase ${last} before phase ${number}`, {
    why: 'phases are rolled back in reverse order',
    next: commandLine`kcert rotate-ca runbook ${folder} --phase ${last} --undo`,
  })
}

function clusterFirst(what: string, next: string): KcertError {
  return new KcertError('KCERT_ROTATION_REFUSED', `a step on the API server comes first: ${what}`, {
    why: 'scripts only change nodes; kcert does the steps on the API server',
    next,
  })
}

/** Returns the phases that were begun and not taken back since, the last one first. */
export function begunPhases(history: readonly JournalEntry[], copied: readonly number[]): readonly number[] {
  // 0 is the number of a recovery: no phase, and nothing to take back.
  const begun = new Set(copied.filter((phase) => phase > 0))
  for (const entry of history) {
    if (entry.kind === 'intent') begun.add(entry.phase)
    if (entry.kind !== 'phase') continue
    if (entry.event === 'undone') begun.delete(entry.phase)
    // Started again, by scripts that do not write to the journal.
    else if (entry.event === 'begun' && copied.includes(entry.phase)) begun.add(entry.phase)
  }
  return [...begun].sort((a, b) => b - a)
}

/** A sleep that ends when the operator presses Ctrl-C: waiting is no act that must be brought to its end. */
function interruptible(pace: Pace, interrupted: AbortSignal): Pace {
  return {
    now: () => pace.now(),
    sleep: async (ms) => {
      interruption(interrupted)
      await pace.sleep(ms)
      interruption(interrupted)
    },
  }
}

/** Throws KCERT_ROTATION_INTERRUPTED when the operator has pressed Ctrl-C. */
export function interruption(interrupted: AbortSignal, command = commandLine`kcert rotate-ca`): void {
  if (!interrupted.aborted) return
  throw new KcertError('KCERT_ROTATION_INTERRUPTED', 'stopped by the operator', {
    why: 'the current action was finished and no new one was started; the same command continues from here',
    next: command,
  })
}

function unconfirmed({ number, title }: PhasePlanView): KcertError {
  return new KcertError('KCERT_ROTATION_UNCONFIRMED', `phase ${number} (${title}) requires confirmation`, {
    why: noTerminal,
    next: commandLine`kcert rotate-ca --phase ${number} --dry-run`,
  })
}

function nobodyToPauseFor(): KcertError {
  return new KcertError('KCERT_USAGE', '--pause-between requires a terminal to ask on', {
    why: 'without a terminal, run one phase at a time with --yes',
    next: 'kcert rotate-ca',
  })
}
