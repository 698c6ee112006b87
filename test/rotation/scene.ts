import type { Action } from '../../src/rotation/action.ts'
import type { Executor } from '../../src/rotation/ports.ts'
import { Rotation, type RotationEvent, type Surroundings } from '../../src/rotation/runner.ts'
import { defaultSettings, type Settings } from '../../src/rotation/target-reading.ts'
import { type ClusterShape, SimulatedCluster } from '../fakes/simulated-cluster.ts'
import { SimulatedClients } from '../fakes/simulated-cluster-clients.ts'
import { SimulatedExecutor, SimulatedJournal, SimulatedObserver } from '../fakes/simulated-cluster-ports.ts'

/** kcert was killed: the process is gone, and what it had begun on a node goes on or does not. */
export class Killed extends Error {}

/** The twelve phases, in their order. */
export const allPhases: readonly number[] = Array.from({ length: 12 }, (_, index) => index + 1)

/** When kcert is killed. */
export type Kill = (act: {
  readonly number: number
  readonly action: Action
}) => 'before' | 'after' | undefined

/** A cluster, clients that try all the time, and kcert. */
export class Scene {
  readonly cluster: SimulatedCluster
  readonly clients: SimulatedClients
  readonly journal = new SimulatedJournal()
  readonly events: RotationEvent[] = []
  readonly observer: SimulatedObserver
  settings: Settings
  kill: Kill = () => undefined
  /** Acts that were carried out, by all runs together. */
  acts = 0
  confirms: number[] = []

  constructor(shape: ClusterShape = {}, settings: Partial<Settings> = {}) {
    this.cluster = new SimulatedCluster(shape)
    this.clients = new SimulatedClients(this.cluster)
    this.clients.attach()
    this.observer = new SimulatedObserver(this.cluster)
    this.settings = { ...defaultSettings, ...settings }
  }

  /** The key of a new CA is lost with the process that made it, unless it lies on a node. */
  newCa() {
    return new SimulatedExecutor(this.cluster, this.clients).newCa('cluster')
  }

  /** Runs one phase as a process of its own. */
  async run(phase: number): Promise<void> {
    await this.asProcess((rotation) => rotation.run(phase))
    // What others do between phases: the owner of the webhook re-issues its certificate once both CAs are in the caBundle.
    if (phase === 9 && this.settings.cas.includes('cluster')) this.cluster.reissueHandlers(this.newCa())
  }

  async undo(phase: number): Promise<void> {
    if (phase === 9) this.cluster.reissueHandlers(this.cluster.oldCa)
    await this.asProcess((rotation) => rotation.undo(phase))
  }

  /** Runs phases one after the other. */
  async runAll(from = 1, to = 12): Promise<void> {
    for (let phase = from; phase <= to; phase++) await this.runInTurn(phase)
  }

  /**
   * Does a step for each of these phases, killed once at every act, before it or behind it, and run again until it is done. Returns how
   * often it was killed. What is new in each run (digests that are replaced, new keys, dated names) makes no other act.
   */
  async killedAtEachAct(
    when: 'before' | 'after',
    phases: readonly number[],
    step: (phase: number) => Promise<void>,
  ): Promise<number> {
    const done = new Set<string>()
    this.kill = ({ action }) => {
      const { replaces: _, version: __, content: ___, ...rest } = action as unknown as Record<string, unknown>
      const act = JSON.stringify(rest).replace(/-20\d\d(-\d\d){5}/g, '')
      if (done.has(act)) return undefined
      done.add(act)
      return when
    }
    let kills = 0
    for (let index = 0; index < phases.length; ) {
      try {
        await step(phases[index]!)
        index++
      } catch (error) {
        if (!(error instanceof Killed)) throw error
        kills++
        await this.cluster.time.pass(1_000)
      }
    }
    return kills
  }

  /** One phase of a whole rotation: from 12 on nobody expects the bridge any more. */
  async runInTurn(phase: number): Promise<void> {
    if (phase === 12) this.clients.expectsBridge = false
    await this.run(phase)
  }

  async asProcess<Result>(work: (rotation: Rotation) => Promise<Result>): Promise<Result> {
    let die: (error: Killed) => void = () => {}
    const death = new Promise<never>((_, reject) => {
      die = reject
    })
    death.catch(() => {})
    const around = this.surroundings(die)
    const alive = Rotation.open(around).then(work)
    alive.catch(() => {})
    return this.cluster.time.until(Promise.race([alive, death]))
  }

  private surroundings(die: (error: Killed) => void): Surroundings {
    const { cluster, observer, journal, settings } = this
    const executor = new SimulatedExecutor(cluster, this.clients, settings.given)
    let isDead = false
    const never = new Promise<never>(() => {})
    const killed = (): Promise<never> => {
      isDead = true
      die(new Killed())
      return never
    }
    const act = async <Result>(action: Action, perform: () => Promise<Result>): Promise<Result> => {
      if (isDead) return never
      const number = ++this.acts
      const when = this.kill({ number, action })
      if (when === 'before') return killed()
      const result = await perform()
      if (isDead) return never
      return when === 'after' ? killed() : result
    }
    const mortal: Executor = {
      write: (action) => act(action, () => executor.write(action)),
      patch: (action) => act(action, () => executor.patch(action)),
      restart: (action) => act(action, () => executor.restart(action)),
      roll: (action) => act(action, () => executor.roll(action)),
      probe: (action) => act(action, () => executor.probe(action)),
    }
    return {
      observer: {
        observe: async (sections) => {
          const observed = await observer.observe(sections)
          return isDead ? never : observed
        },
      },
      executor: mortal,
      journal: {
        read: () => journal.read(),
        append: async (line) => (isDead ? never : journal.append(line)),
      },
      pace: { now: cluster.time.now, sleep: cluster.time.sleep },
      settings,
      emit: (event) => this.events.push(event),
      confirm: async (plan) => {
        this.confirms.push(plan.number)
        return true
      },
      ask: async () => false,
    }
  }

  /** Bytes and modes of every file, without kcert's own copies. */
  files(): Record<string, string> {
    return Object.fromEntries(
      [...this.cluster.files]
        .filter(([key]) => !key.includes('/var/lib/kcert/'))
        .map(([key, { text, mode }]) => [key, `${mode.toString(8)} ${text}`])
        .sort(),
    )
  }

  /** Data of every object. */
  objects(): Record<string, unknown> {
    return Object.fromEntries(
      [...this.cluster.objects].map(([name, { data }]) => [name, data] as const).sort(),
    )
  }

  /** Where the old CA is still to be found; the owner's copies aside. */
  remainsOfOldCa(): string[] {
    const { oldCa, oldFrontProxyCa, certificates } = this.cluster
    const digests = [oldCa.digest, oldFrontProxyCa.digest]
    const leaves = [...certificates.values()]
      .filter(({ signedBy }) => signedBy === oldCa.spki || signedBy === oldFrontProxyCa.spki)
      .map(({ digest }) => digest)
    const needles = [...new Set([...digests, ...leaves, oldCa.spki, oldFrontProxyCa.spki])]
    const holds = (text: string): boolean => needles.some((needle) => text.includes(needle))
    return [
      ...Object.entries(this.files()).flatMap(([key, text]) => (holds(text) ? [key] : [])),
      ...Object.entries(this.objects()).flatMap(([key, data]) => (holds(JSON.stringify(data)) ? [key] : [])),
      ...[...this.cluster.processes.values()].flatMap(({ id, loaded }) =>
        [...loaded.values()].some(holds) ? [`process ${id}`] : [],
      ),
    ]
  }
}
