import { whyFailed } from '../../cli/operator-program.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import type { Action, Step } from '../../rotation/action.ts'
import { nodeOf } from '../../rotation/effects.ts'
import type { Inventory } from '../../rotation/inventory.ts'
import { manualRotation, type PhaseTable, phaseCommand } from '../../rotation/phase-table.ts'

// The operator's own commands before and after a phase and each of its nodes: to drain a load balancer, or to silence an alert.

export type Hook = NonNullable<Inventory['hooks']>[number]

/** Runs one command of the inventory. Throws KCERT_ROTATION_HOOK if it fails or times out. */
export type RunHook = (
  hook: Hook,
  around: { readonly phase: number; readonly node?: string },
) => Promise<void>

/** The hooks of one running phase. After each before hook, the matching after hook also runs if the phase stops. */
export class PhaseHooks {
  private readonly hooks: readonly Hook[]
  private readonly run: RunHook
  private readonly phase: number
  /** The number of remaining actions of each node; a node's after hooks run after the last one. */
  private readonly left = new Map<string, number>()
  private readonly begun = new Set<string>()
  private readonly ended: string[] = []
  private hasBegun = false

  constructor(hooks: readonly Hook[], run: RunHook, phase: number) {
    this.hooks = hooks.filter(({ phases }) => phases?.includes(phase) ?? true)
    this.run = run
    this.phase = phase
  }

  /** Runs after the plan was confirmed, before its first action. */
  async beforePhase(steps: readonly Step[]): Promise<void> {
    for (const step of steps) {
      for (const action of step.kind === 'together' ? step.lanes.flatMap((lane) => lane.steps) : [step]) {
        const node = nodeOf(action)
        if (node !== undefined) this.left.set(node, (this.left.get(node) ?? 0) + 1)
      }
    }
    this.hasBegun = true
    await this.all('before-phase')
  }

  async before(action: Action): Promise<void> {
    await this.endNodes()
    const node = nodeOf(action)
    if (node === undefined || this.begun.has(node)) return
    this.begun.add(node)
    await this.all('before-node', node)
  }

  done(action: Action): void {
    const node = nodeOf(action)
    const left = node === undefined ? undefined : this.left.get(node)
    if (node === undefined || left === undefined) return
    this.left.set(node, left - 1)
    if (left === 1) this.ended.push(node)
  }

  /** Runs the remaining after hooks, those of nodes first. */
  async afterPhase(): Promise<void> {
    await this.endNodes()
    for (const node of this.begun) await this.all('after-node', node)
    this.begun.clear()
    if (this.hasBegun) await this.all('after-phase')
    this.hasBegun = false
  }

  private async endNodes(): Promise<void> {
    for (let node = this.ended.shift(); node !== undefined; node = this.ended.shift()) {
      if (this.begun.delete(node)) await this.all('after-node', node)
    }
  }

  private async all(when: Hook['when'], node?: string): Promise<void> {
    for (const hook of this.hooks) {
      if (hook.when !== when || (node !== undefined && !(hook.nodes?.includes(node) ?? true))) continue
      await this.run(hook, { phase: this.phase, ...(node === undefined ? {} : { node }) })
    }
  }
}

/** Returns a function that runs hooks on this machine; their output goes to standard error. */
export function hookRunner(
  env: Readonly<Record<string, string | undefined>>,
  note: (text: string) => void,
  table: PhaseTable = manualRotation,
): RunHook {
  return async ({ name, when, argv, timeoutSeconds = 60 }, { phase, node }) => {
    const shown = name ?? argv.join(' ')
    note(`  hook ${when}${node === undefined ? '' : ` ${node}`}: ${shown}`)
    const own = { KCERT_PHASE: String(phase), KCERT_NODE: node ?? '', KCERT_WHEN: when }
    // Ctrl-C stops kcert between two actions; a running hook finishes.
    const processOptions = { timeoutMs: timeoutSeconds * 1000, detached: true, indent: '    ' }
    const why = await whyFailed(argv, { env: { ...env, ...own }, ...processOptions }, note)
    if (why !== undefined)
      throw new KcertError('KCERT_ROTATION_HOOK', `hook ${JSON.stringify(shown)} failed`, {
        why,
        next: phaseCommand(table, phase),
      })
  }
}
