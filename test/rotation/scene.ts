import type { Action } from '../../src/rotation/action.ts'
import type { Playbook } from '../../src/rotation/phase.ts'
import { playbook } from '../../src/rotation/playbook.ts'
import type { Executor } from '../../src/rotation/ports.ts'
import { Rotation, type RotationEvent, type Surroundings } from '../../src/rotation/runner.ts'
import { defaultSettings, type Settings } from '../../src/rotation/target-reading.ts'
import { type ClusterShape, SimulatedCluster } from '../fakes/simulated-cluster.ts'
import { SimulatedClients } from '../fakes/simulated-cluster-clients.ts'
import { SimulatedExecutor, SimulatedJournal, SimulatedObserver } from '../fakes/simulated-cluster-ports.ts'

/** kcert was killed. The process is gone, and its current command on a node may or may not continue. */
export class Killed extends Error {}

/** The twelve phases in order. */
export const allPhases: readonly number[] = Array.from({ length: 12 }, (_, index) => index + 1)

/** When kcert is killed. */
export type Kill = (act: {
  readonly number: number
  readonly action: Action
}) => 'before' | 'after' | undefined

/** A cluster, clients that connect continuously, and kcert. */
export class Scene {
  readonly playbook: Playbook
  readonly cluster: SimulatedCluster
  readonly clients: SimulatedClients
  readonly journal = new SimulatedJournal()
  readonly events: RotationEvent[] = []
  readonly observer: SimulatedObserver
  settings: Settings
  kill: Kill = () => undefined
  /** Number of executed actions in all runs. */
  acts = 0
  confirms: number[] = []

  constructor(shape: ClusterShape = {}, settings: Partial<Settings> = {}, book: Playbook = playbook) {
    this.playbook = book
    this.cluster = new SimulatedCluster(shape)
    this.cluster.copiesIndex = book.copiesIndex
    this.clients = new SimulatedClients(this.cluster)
    this.clients.attach()
    this.observer = new SimulatedObserver(this.cluster)
    this.observer.peersOf = (member) => this.clients.peersOf(member)
    this.settings = { ...defaultSettings, ...settings }
  }

  /** Returns a new CA. Its key is lost with the process that created it, unless it is on a node. */
  newCa() {
    return new SimulatedExecutor(this.cluster, this.clients).newCa('cluster')
  }

  /** Runs one phase as a separate process. */
  async run(phase: number): Promise<void> {
    await this.asProcess((rotation) => rotation.run(phase))
    // The webhook's owner reissues its certificate between phases, once both CAs are in the caBundle.
    if (phase === 9 && this.settings.cas.includes('cluster')) this.cluster.reissueHandlers(this.newCa())
  }

  async undo(phase: number): Promise<void> {
    if (phase === 9) this.cluster.reissueHandlers(this.cluster.oldCa)
    await this.asProcess((rotation) => rotation.undo(phase))
  }

  /** Runs phases in sequence. */
  async runAll(from = 1, to = 12): Promise<void> {
    for (let phase = from; phase <= to; phase++) await this.runInTurn(phase)
  }

  /**
   * Runs a step for each of these phases. Kills it once at every action, before or after it, and runs it again until it is done.
   * Returns the number of kills. Values that are new in each run (replaced digests, new keys, dated names) do not count as
   * another action.
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

  /** Runs one phase of a whole rotation. From phase 12 on, clients do not expect the bridge certificate. */
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
    const { playbook: book, cluster, observer, journal, settings } = this
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
      playbook: book,
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

  /** Returns bytes and modes of every file, except kcert's own copies. */
  files(): Record<string, string> {
    return Object.fromEntries(
      [...this.cluster.files]
        .filter(([key]) => !key.includes('/var/lib/kcert/'))
        .map(([key, { text, mode }]) => [key, `${mode.toString(8)} ${text}`])
        .sort(),
    )
  }

  /** Returns the data of every object. */
  objects(): Record<string, unknown> {
    return Object.fromEntries(
      [...this.cluster.objects].map(([name, { data }]) => [name, data] as const).sort(),
    )
  }

  /** Returns where the old CA is still present, except in kcert's copies. */
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
