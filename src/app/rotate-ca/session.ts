import { noTerminal } from '../../cli/consent.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { commandLine, embed, fixed } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import type { Action, ActionOf } from '../../rotation/action.ts'
import { describeAction } from '../../rotation/effects.ts'
import { changedChoices } from '../../rotation/fixed-choices.ts'
import { handshakeSubject } from '../../rotation/handshake-errors.ts'
import { choicesIn, isOfFinished, type JournalEntry, readJournal, undoneIn } from '../../rotation/journal.ts'
import { type OldKeyFiles, oldKeysIn } from '../../rotation/old-keys.ts'
import { type Playbook, phaseOf } from '../../rotation/phase.ts'
import { type PhaseTable, phaseCommand, phaseRow } from '../../rotation/phase-table.ts'
import { phasePlan, phaseView, wholePlan } from '../../rotation/plan-report.ts'
import type { Executor, JournalFile, Observer, Pace } from '../../rotation/ports.ts'
import { outOfOrder, type PhaseStatus, progressOf, type RotationProgress } from '../../rotation/progress.ts'
import type {
  KeptKeys,
  PhasePlanView,
  RotationPlan,
  RotationRun,
  RotationRunbook,
  RotationSources,
  RotationStatus,
  RotationVerification,
} from '../../rotation/report.ts'
import { isNodeAct, type PrepareRunbook, runbookOf } from '../../rotation/runbook.ts'
import { type PlannedPhase, Rotation, type RotationEvent, refused } from '../../rotation/runner.ts'
import { controlPlanes, type Snapshot } from '../../rotation/snapshot.ts'
import { type SourceSearch, searchOf } from '../../rotation/sources/searched-cas.ts'
import { nextOf, statusReport } from '../../rotation/status-report.ts'
import type { Target } from '../../rotation/target.ts'
import { defaultSettings, type Settings } from '../../rotation/target-reading.ts'
import { keyVerificationReport, verificationReport } from '../../rotation/verification-report.ts'
import { timeOf } from '../../rotation/views.ts'
import { type Hook, PhaseHooks, type RunHook } from './hooks.ts'
import { type PauseBetween, pausing } from './pauses.ts'

// The work of the rotate-ca commands, on any observer, executor and journal: the real ones, or the simulated
// cluster of a test. The commands only convert flags to arguments, and results to text.

export interface RotationPorts {
  readonly observer: Observer
  readonly executor: Executor
  readonly journal: JournalFile
  readonly pace: Pace
  /** Absent if there are no nodes to read, as in some tests. */
  readonly prepareRunbook?: PrepareRunbook
  /** Absent if there are no nodes to read. */
  readonly oldKeys?: OldKeyFiles
}

/** The person at the terminal, or a replacement in tests: receives prompts and progress. */
export interface Operator {
  /** Undefined without a terminal. */
  readonly choose: ((message: string) => Promise<boolean>) | undefined
  /** Asks the operator to type the word, because this confirmation cannot be undone. */
  readonly type: ((message: string, word: string) => Promise<boolean>) | undefined
  readonly showPlan: (plan: PhasePlanView, isUndo: boolean) => void
  readonly tell: (event: RotationEvent) => void
  /** Prints a line for the operator, on standard error. */
  readonly note: (text: string) => void
  readonly interrupted: AbortSignal
}

export interface SessionOptions {
  readonly playbook: Playbook
  /** The settings of the command line; other settings come from the journal, or are defaults. */
  readonly settings: Partial<Settings>
  /** Defaults for settings that neither the command line nor the journal has. */
  readonly presets?: Partial<Settings>
  readonly yes: boolean
  readonly pauseBetween: PauseBetween | undefined
  /** The minimum interval between two rollouts of workloads, in milliseconds. */
  readonly rollEveryMs: number
  /** The commands of the inventory. */
  readonly hooks?: readonly Hook[]
  readonly runHook?: RunHook
  /** Acts on nodes are not performed but written as scripts, which operators run there. */
  readonly byRunbook?: boolean
}

export interface RunAnswer {
  readonly report: RotationRun
  readonly exit: ExitCode
}

export interface RunbookAnswer {
  readonly report: RotationRunbook
  /** Files below the runbook's folder; they may contain keys. */
  readonly files: readonly { readonly path: string; readonly content: Uint8Array | string }[]
}

type PhaseRun = RotationRun['phases'][number]

/** A Lease of a stopped process expires after 15 to 18 s. An API server is ready 46 to 52 s after its manifest changed. */
const passingMs = 60_000

/** Returns true if an earlier phase, which has run before, has a difference that no act of its plan resolves. */
function isPassing(
  { phase, gaps, state }: PhaseStatus,
  numbers: readonly number[],
  observed: Snapshot,
  target: Target,
): boolean {
  if (gaps.length === 0 || state !== 'incomplete' || phase.number >= Math.min(...numbers)) return false
  if (phase.risk === 'reads') return false
  const steps = phase.plan(observed, target)
  return steps.every((step) => step.kind === 'wait' || step.kind === 'probe')
}

/** The work of one command on one rotation. */
export class RotationSession {
  private readonly rotation: Rotation
  private readonly ports: RotationPorts
  private readonly options: SessionOptions
  private readonly operator: Operator
  private readonly settings: Settings
  /** The number of actions of the running phase. */
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

  /**
   * Reads the journal. Throws KCERT_JOURNAL_DAMAGED, KCERT_USAGE for --pause-between without a terminal, and
   * KCERT_ROTATION_REFUSED for choices that changed since phase 1.
   */
  static async open(
    ports: RotationPorts,
    options: SessionOptions,
    operator: Operator,
  ): Promise<RotationSession> {
    if (options.pauseBetween !== undefined && operator.choose === undefined)
      throw new KcertError('KCERT_USAGE', '--pause-between requires a terminal to ask on', {
        why: 'without a terminal, run one phase at a time with --yes',
        next: commandLine`${fixed(options.playbook.command)}`,
      })
    const { playbook } = options
    const entries = readJournal(await ports.journal.read())
    const chosen = choicesIn(entries, playbook)
    const changed = changedChoices(playbook, entries, options.settings)
    if (changed.length > 0) throw refused(changed)
    const settings: Settings = { ...defaultSettings, ...options.presets, ...chosen, ...options.settings }
    const { executor, observer, journal } = ports
    let session: RotationSession
    const rotation = await Rotation.open({
      playbook,
      executor,
      observer,
      journal,
      pace: interruptible(ports.pace, operator.interrupted, playbook),
      settings,
      emit: (event) => session.watch(event),
      confirm: async (plan, { observed, target }) => {
        const isAgreed = await session.confirm(phaseView(plan, observed, target))
        if (isAgreed) await session.hooks?.beforePhase(plan.steps)
        return isAgreed
      },
      ask: (asked) => session.ask(asked),
      before: pausing({
        table: playbook,
        between: options.pauseBetween,
        rollEveryMs: options.rollEveryMs,
        pace: ports.pace,
        goesOn: (node) => session.goesOnWith(`node ${node}`),
        stop: () => interruption(operator.interrupted, commandLine`${fixed(playbook.command)}`),
        begin: async (action) => {
          if (options.byRunbook && isNodeAct(action)) {
            // Scripts write no journal, and this phase deletes what shows that the others are complete.
            if (!session.isUndoing && phaseOf(playbook, action.phase).dropsOld)
              await rotation.announce(action)
            throw forRunbook(playbook, action, session.isUndoing)
          }
          await session.hooks?.before(action)
        },
      }),
    })
    session = new RotationSession(rotation, ports, options, operator, settings)
    return session
  }

  private get playbook(): Playbook {
    return this.options.playbook
  }

  private get command() {
    return fixed(this.playbook.command)
  }

  async status(): Promise<RotationStatus> {
    const { observed, target } = await this.observeAll()
    const status = statusReport(this.playbook, observed, target, this.rotation.history)
    return { ...status, ...(await this.keptKeys(observed, status.state)) }
  }

  /**
   * Returns the plan of all phases, and what prevents a start; with `readSources`, also what the files of a repository need. Writes
   * nothing. Throws KCERT_NODE_UNREACHABLE if there are files to search but no CA could be read.
   */
  async plan(readSources?: (search: SourceSearch) => Promise<RotationSources>): Promise<RotationPlan> {
    const { observed, target } = await this.observeAll()
    const plan = wholePlan(this.playbook, observed, target, this.options.rollEveryMs)
    if (readSources === undefined) return plan
    const pemOf = (digest: string) => this.ports.oldKeys?.certificate(digest)
    return { ...plan, sources: await readSources(searchOf(target, this.settings.cas, pemOf)) }
  }

  /**
   * Returns the plan of these phases. For the first incomplete one it is exact; for the others it is derived from the cluster's
   * current
   * state. Throws the refusals of a run.
   */
  async dryRun(numbers: readonly number[]): Promise<RotationPlan> {
    const { observed, target, progress, todo } = await this.beginning(numbers)
    const phases = todo.flatMap((number) => progress.phases.filter(({ phase }) => phase.number === number))
    const first = phases.find(({ gaps }) => gaps.length > 0)
    const planned = await Promise.all(
      phases.map(async (one) => {
        const { phase, gaps, remarks } = one
        if (one === first) return this.rotation.plan(phase.number)
        const steps = gaps.length === 0 ? [] : phase.plan(observed, target)
        return { number: phase.number, title: phase.title, risk: phase.risk, gaps, steps, remarks }
      }),
    )
    return phasePlan(this.playbook, planned, observed, target)
  }

  /**
   * Returns the next acts of a phase on nodes, as scripts to run there. Changes nothing. Throws the refusals of a run, and if an
   * act on the cluster itself comes first.
   */
  async runbook(number: number, folder: string): Promise<RunbookAnswer> {
    const [todo = number] = (await this.beginning([number])).todo
    const plan = await this.rotation.plan(todo)
    return this.scripts(plan, await this.observeAll(), folder, {
      next: commandLine`${this.command} --phase ${todo} --by-runbook`,
      ...(!phaseOf(this.playbook, todo).dropsOld && {
        back: commandLine`${this.command} runbook ${folder.replace(/\/+$/, '')}-back --phase ${todo} --undo`,
      }),
    })
  }

  /** Returns the same for the rollback of the last phase that was started. Throws the refusals of a rollback. */
  async runbookBack(number: number, folder: string): Promise<RunbookAnswer> {
    const [last] = await this.begun()
    if (last !== number) throw notLast(this.playbook, number, last, folder)
    const { plan, on } = await this.rotation.planUndo(number)
    // kcert does not repeat its acts through the API server before each round of scripts.
    const done = undoneIn(this.rotation.history, number)
    const steps = plan.steps.filter((step) => step.kind !== 'patch-object' || !done.has(describeAction(step)))
    return this.scripts({ ...plan, steps }, on, folder, {
      next: commandLine`${this.command} rollback --to ${number - 1} --by-runbook`,
    })
  }

  private async scripts(
    plan: PlannedPhase,
    { observed, target }: { readonly observed: Snapshot; readonly target: Target },
    folder: string,
    commands: { readonly next: string; readonly back?: string },
  ): Promise<RunbookAnswer> {
    const runbook = runbookOf(this.playbook, observed, target, plan.steps)
    if (runbook.first !== undefined) throw clusterFirst(describeAction(runbook.first), commands.next)
    const { number, title } = plan
    const { command } = this.playbook
    const prepared = await this.ports.prepareRunbook?.(runbook, {
      command,
      number,
      title,
      next: commands.next,
    })
    const groups = prepared ?? []
    const scripts = runbook.groups.flatMap(({ atOnce, scripts: its }, index) =>
      its.map(({ node, acts }) => ({
        order: index + 1,
        maxUnavailable: atOnce,
        node,
        path: `${folderOfScript(index + 1, node)}/run.sh`,
        actions: acts.map(describeAction),
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
      ...(scripts.length > 0 && commands.back !== undefined && { rollback: commands.back }),
    }
    const files = groups.flatMap((group, index) =>
      group.flatMap(({ node, files: its }) =>
        its.map(({ name, content }) => ({ path: `${folderOfScript(index + 1, node)}/${name}`, content })),
      ),
    )
    return { report, files }
  }

  /** Runs these phases one after the other, until one is declined. Throws the error that stopped one. */
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
    return this.inTurn(numbers, 'rollback', (number) => this.rotation.undo(number))
  }

  /** Returns the exact first steps of a rollback; later phases are planned when they are reached. */
  async dryRollback(to: number | undefined): Promise<RotationPlan> {
    const begun = await this.begun()
    const [last] = begun
    if (last === undefined || last <= (to ?? last - 1)) {
      const { observed, target } = await this.observeAll()
      return phasePlan(this.playbook, [], observed, target)
    }
    const { plan, on } = await this.rotation.planUndo(last)
    return phasePlan(this.playbook, [plan], on.observed, on.target)
  }

  /**
   * Checks at any time what still uses the old CA, and watches the counters of handshake errors for the soak time; or what still uses the
   * old service account key. Changes nothing.
   */
  async verify(): Promise<RotationVerification> {
    const { observed, target } = await this.observeAll()
    if (this.playbook.replaces === 'key')
      return keyVerificationReport(observed, target, this.rotation.history)
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
    act: (number: number) => Promise<'completed' | 'declined'>,
  ): Promise<RunAnswer> {
    const { pace } = this.ports
    const phases: PhaseRun[] = []
    for (const [index, number] of numbers.entries()) {
      if (index > 0 && !(await this.goesOnWithPhase(number))) break
      this.actions = 0
      this.remarks = []
      const startedAt = timeOf(pace.now())
      const outcome = await this.withHooks(number, act)
      const { title } = phaseOf(this.playbook, number)
      const { actions, remarks } = this
      phases.push({
        number,
        title,
        outcome,
        startedAt,
        finishedAt: timeOf(pace.now()),
        actions,
        remarks: [...remarks],
      })
      if (outcome === 'declined') break
    }
    const isDone = phases.length === numbers.length && phases.every(({ outcome }) => outcome === 'completed')
    const { observed, target } = await this.observeAll()
    const progress = progressOf(this.playbook, observed, target)
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

  /** Returns where an old key is after the rotation: operators should know that they still have it. */
  private async keptKeys(
    observed: Snapshot,
    state: RotationProgress['state'],
  ): Promise<{ oldKeys?: KeptKeys }> {
    const { ports, rotation } = this
    const isFinished = state === 'finished' && isOfFinished(rotation.history, this.playbook)
    if (!isFinished || ports.oldKeys === undefined) return {}
    const { findOldKeys, keyFileView } = await import('./find-old-keys.ts')
    const names = controlPlanes(observed).map(({ name }) => name)
    const olds = oldKeysIn(rotation.history, this.playbook)
    // A user who may not read these folders still gets the other results.
    const found = await findOldKeys(ports.oldKeys, observed, names, olds).catch(withoutRefusal)
    const { files, encrypted } = found ?? { files: [], encrypted: [] }
    if (files.length + encrypted.length === 0) return {}
    return {
      oldKeys: {
        files: files.map(keyFileView),
        ...(encrypted.length > 0 && { encrypted: [...encrypted] }),
        archive: commandLine`${this.command} --archive-old-key old-keys`,
        destroy: commandLine`${this.command} --destroy-old-key`,
      },
    }
  }

  /** The after hooks also run if the phase stops; then the phase's own error is thrown. */
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
    let progress = progressOf(this.playbook, observed, target)
    // After a leader restarted, no other process may have taken over yet. Such a difference resolves without an act.
    while (
      pace.now() < deadlineMs &&
      progress.phases.some((one) => isPassing(one, numbers, observed, target))
    ) {
      await pace.sleep(1_000)
      ;({ observed, target } = await this.observeAll())
      progress = progressOf(this.playbook, observed, target)
    }
    const refusals = outOfOrder(progress, numbers)
    if (refusals.length > 0) throw refused(refusals)
    // While the old CA is being dropped, only that phase can run.
    const dropping = this.playbook.rows.find(({ dropsOld }) => dropsOld)?.number
    const isLast = target.isDropping && dropping !== undefined && numbers.includes(dropping)
    const todo = isLast ? [dropping] : numbers
    return { observed, target, progress, todo }
  }

  private observeAll(): Promise<{ observed: Snapshot; target: Target }> {
    return this.rotation.observe(this.playbook.sections)
  }

  /**
   * Returns the phases that changed something and were not rolled back, the last one first: from the journal and the copies on
   * nodes.
   */
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
    if (event.kind === 'phase-completed') this.remarks = event.remarks
    this.operator.tell(event)
  }

  private async confirm(plan: PhasePlanView): Promise<boolean> {
    const { choose, type, showPlan } = this.operator
    showPlan(plan, this.isUndoing)
    if (this.options.yes || plan.risk === 'reads') return true
    if (choose === undefined || type === undefined) throw unconfirmed(this.playbook, plan)
    const question = this.isUndoing ? `Roll back phase ${plan.number}?` : `Run phase ${plan.number}?`
    if (plan.risk !== 'irreversible') return choose(question)
    return type(`${question} It cannot be undone. Type "drop" to continue:`, 'drop')
  }

  private async ask({ id, question, phase, hook }: ActionOf<'confirm'>): Promise<boolean> {
    const { choose, note } = this.operator
    const { hooks = [], runHook } = this.options
    const own = hook === undefined ? [] : hooks.filter(({ when }) => when === hook)
    if (own.length > 0 && runHook !== undefined) {
      for (const one of own) await runHook(one, { phase })
      return true
    }
    // --yes confirms only the plan. Each manual step needs a separate confirmation or --waive.
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

function forRunbook({ command }: PhaseTable, action: Action, isUndoing: boolean): KcertError {
  return new KcertError(
    'KCERT_ROTATION_CHECK_FAILED',
    `the next step is on a node: ${describeAction(action)}`,
    {
      why: 'with --by-runbook, kcert does not change nodes: write the scripts and run them there',
      next: commandLine`${fixed(command)} runbook ${`phase-${action.phase}${isUndoing ? '-back' : ''}`} --phase ${action.phase}${fixed(isUndoing ? ' --undo' : '')}`,
    },
  )
}

function notLast(
  { command }: PhaseTable,
  number: number,
  last: number | undefined,
  folder: string,
): KcertError {
  if (last === undefined || last < number) {
    return new KcertError('KCERT_ROTATION_REFUSED', `phase ${number} has nothing to roll back`, {
      why:
        last === undefined
          ? 'no phase has changed anything'
          : `phase ${last} is the last phase that changed something`,
      next: commandLine`${fixed(command)} status`,
    })
  }
  return new KcertError('KCERT_ROTATION_REFUSED', `roll back phase ${last} before phase ${number}`, {
    why: 'phases are rolled back in reverse order',
    next: commandLine`${fixed(command)} runbook ${folder} --phase ${last} --undo`,
  })
}

function clusterFirst(what: string, next: string): KcertError {
  return new KcertError('KCERT_ROTATION_REFUSED', `a step on the API server comes first: ${what}`, {
    why: 'scripts only change nodes; kcert does the steps on the API server',
    next,
  })
}

/** Returns the phases that were started and not rolled back since, the last one first. */
export function begunPhases(history: readonly JournalEntry[], copied: readonly number[]): readonly number[] {
  // 0 is the number of a recovery, which is not a phase and cannot be rolled back.
  const begun = new Set(copied.filter((phase) => phase > 0))
  for (const entry of history) {
    if (entry.kind === 'intent') begun.add(entry.phase)
    if (entry.kind !== 'phase') continue
    if (entry.event === 'rolled-back') begun.delete(entry.phase)
    // Started again by scripts, which do not write to the journal.
    else if (entry.event === 'started' && copied.includes(entry.phase)) begun.add(entry.phase)
  }
  return [...begun].sort((a, b) => b - a)
}

/** Returns a sleep that Ctrl-C ends: a wait need not be finished, unlike an act. */
function interruptible(pace: Pace, interrupted: AbortSignal, { command }: PhaseTable): Pace {
  const again = commandLine`${fixed(command)}`
  return {
    now: () => pace.now(),
    sleep: async (ms) => {
      interruption(interrupted, again)
      await pace.sleep(ms)
      interruption(interrupted, again)
    },
  }
}

/** Throws KCERT_ROTATION_INTERRUPTED if the operator has pressed Ctrl-C. */
export function interruption(interrupted: AbortSignal, command = commandLine`kcert rotate-ca`): void {
  if (!interrupted.aborted) return
  throw new KcertError('KCERT_ROTATION_INTERRUPTED', 'stopped by the operator', {
    why: 'the current action was finished and no new one was started; the same command continues from here',
    next: command,
  })
}

function unconfirmed(table: PhaseTable, { number, title }: PhasePlanView): KcertError {
  return new KcertError('KCERT_ROTATION_UNCONFIRMED', `phase ${number} (${title}) requires confirmation`, {
    why: noTerminal,
    next: commandLine`${embed(phaseCommand(table, number))} --dry-run`,
  })
}
