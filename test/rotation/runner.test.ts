import { describe, expect, test } from 'vitest'
import { KcertError } from '../../src/errors/kcert-error.ts'
import type { Action, Probe, Step } from '../../src/rotation/action.ts'
import type { CertificateRecord } from '../../src/rotation/certificate-record.ts'
import { type JournalRecord, readJournal } from '../../src/rotation/journal.ts'
import { JournalWriter } from '../../src/rotation/journal-writer.ts'
import { modelSections } from '../../src/rotation/model/check.ts'
import { phaseNumbered, playbook } from '../../src/rotation/playbook.ts'
import { Rotation, type RotationEvent, refused } from '../../src/rotation/runner.ts'
import { type Snapshot, sectionNames } from '../../src/rotation/snapshot.ts'
import { defaultSettings, type Settings, targetSections } from '../../src/rotation/target-reading.ts'
import { SimulatedJournal } from '../fakes/simulated-cluster-ports.ts'
import { type State, statesOf } from './phase-states.ts'

// What the runner records, reports, asks and refuses, on recorded states. No action is executed.

/** A runner on the successive snapshots that `see` returns. */
class Run {
  readonly journal = new SimulatedJournal()
  readonly events: RotationEvent[] = []
  readonly asked: string[] = []
  readonly acts: string[] = []
  /** Calls to the executor, by method. */
  readonly methods: string[] = []
  readonly confirmed: number[] = []
  readonly sections: string[][] = []
  /** CAs that the observer must recognize, for each observation. */
  readonly remembered: (readonly CertificateRecord[])[] = []
  /** The states that were shown for confirmation. */
  readonly shown: State[] = []
  nowMs: number
  observations = 0
  confirms = true
  answers = true
  before: ((action: Action) => Promise<void>) | undefined = async (action) => {
    this.acts.push(`before ${action.kind}`)
  }
  probe: (action: Probe) => Promise<{
    ok: boolean
    detail: string
    rate?: { errors: number; overMs: number }
    refusing?: string[]
  }> = async () => ({
    ok: true,
    detail: 'fine',
  })
  act: (action: Action) => Promise<void> = async () => {}
  settings: Settings = defaultSettings
  private readonly see: (observe: number) => Snapshot

  constructor(see: (observe: number) => Snapshot, nowMs = 0) {
    this.see = see
    this.nowMs = nowMs
  }

  open(): Promise<Rotation> {
    const by =
      (method: string) =>
      async (action: Action): Promise<void> => {
        this.methods.push(`${method} ${action.kind}`)
        this.acts.push(`${action.kind} at ${this.nowMs}`)
        await this.act(action)
      }
    return Rotation.open({
      playbook,
      observer: {
        observe: async (sections, remembered = []) => {
          this.sections.push([...sections])
          this.remembered.push(remembered)
          return this.see(this.observations++)
        },
      },
      executor: {
        write: by('write'),
        patch: by('patch'),
        restart: by('restart'),
        roll: by('roll'),
        probe: (action) => this.probe(action),
      },
      journal: this.journal,
      pace: {
        now: () => this.nowMs,
        sleep: async (ms) => {
          this.nowMs += ms
        },
      },
      settings: this.settings,
      emit: (event) => this.events.push(event),
      confirm: async ({ number }, on) => {
        this.confirmed.push(number)
        this.shown.push(on)
        return this.confirms
      },
      ask: async ({ question, id }) => {
        this.asked.push(`${id}: ${question}`)
        return this.answers
      },
      ...(this.before && { before: this.before }),
    })
  }

  /** Call it before the runner is opened. */
  async record(...records: readonly JournalRecord[]): Promise<void> {
    const writer = await JournalWriter.open(this.journal, { now: () => this.nowMs })
    for (const record of records) await writer.record(record)
  }

  prove({ observed }: State): Promise<void> {
    return this.record(
      ...[...observed.evidence.values()].map((one) => ({ kind: 'evidence', phase: 1, ...one }) as const),
    )
  }

  /** The entries of the journal, without times and digests. */
  get said(): string[] {
    return readJournal(this.journal.text).map(({ time: _, previous: __, ...entry }) => {
      const { kind, phase, event, what, key, id, detail } = entry as Record<string, unknown>
      return [kind, phase, event, what, key, id, detail].filter((part) => part !== undefined).join(' ')
    })
  }

  get reported(): string[] {
    return this.events.map((event) => {
      const { kind, phase, what, gaps, missing } = event as Record<string, unknown>
      const open = (missing as { at: string; what: string }[] | undefined)?.map(
        (one) => `${one.at}: ${one.what}`,
      )
      return [kind, phase, what, gaps, open?.join(', ')].filter((part) => part !== undefined).join(' ')
    })
  }
}

async function state(after: number): Promise<State> {
  return (await statesOf('kubeadm'))[after]!
}

/** The error's code, message, why and next. */
async function stop(work: Promise<unknown>): Promise<KcertError> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(KcertError)
  return error as KcertError
}

const restart = (process: string): Action => ({ kind: 'restart', phase: 2, process, how: 'service' })
const write = (node: string): Action => ({
  kind: 'write-file',
  phase: 2,
  node,
  path: '/x',
  replaces: 'absent',
  content: { kind: 'nothing' },
  mode: 0,
})
const probing: Probe = {
  kind: 'probe',
  phase: 3,
  subject: { kind: 'signer', generation: 'new' },
  deadlineMs: 1,
}
const lanes = (atOnce: number, ...steps: Action[][]): Step => ({
  kind: 'together',
  atOnce,
  lanes: steps.map((its, index) => ({ name: `lane ${index}`, steps: its })),
})

async function inState(after: number, now = 0): Promise<Run> {
  const { observed } = await state(after)
  return new Run(() => observed, now)
}

describe('an observation', () => {
  test('fetches the sections of the phase and of the target, each once', async () => {
    const run = await inState(2)
    await (await run.open()).observe(phaseNumbered(3).sees)
    expect(run.sections).toEqual([[...new Set([...phaseNumbered(3).sees, ...targetSections])]])
  })

  test('of a plan also fetches the sections of the model', async () => {
    const run = await inState(2)
    await (await run.open()).plan(3)
    expect(run.sections).toEqual([
      [...new Set([...phaseNumbered(3).sees, ...modelSections, ...targetSections])],
    ])
  })

  test('of an undo fetches everything', async () => {
    const run = await inState(3)
    await (await run.open()).planUndo(3)
    expect(new Set(run.sections[0])).toEqual(new Set([...sectionNames, ...targetSections]))
  })

  test('takes evidence, intents, waivers and CAs from the journal, and planned CAs', async () => {
    const { observed: before } = await state(0)
    const certificates = new Map(
      [...before.certificates].filter(([digest]) => !digest.startsWith('planned:')),
    )
    const run = new Run(() => ({ ...before, certificates }))
    const rotation = await run.open()
    await rotation.performAll([
      probing,
      { kind: 'confirm', phase: 4, id: 'Pod a', question: 'A?' },
      { ...write('cp1'), phase: 2 } as Action,
    ])
    const { observed, target } = await rotation.observe(phaseNumbered(1).sees)
    expect([...observed.evidence.keys()]).toEqual(['signer new'])
    expect(observed.intents.map(({ phase, drops }) => [phase, drops])).toEqual([[2, false]])
    expect([...target.waivers]).toEqual(['Pod a'])
    expect(observed.certificates.get('planned:cluster/new')?.subject).toBe(target.changes[0]!.newCa.subject)
    expect(observed.certificates.get('planned:cluster/bridge')?.isCa).toBe(true)
    expect(observed.certificates.has('undefined')).toBe(false)
  })

  test('recognizes the CAs of the rotation in the journal, even if no file contains them', async () => {
    const run = await inState(1)
    const rotation = await run.open()
    await rotation.run(1)
    const { target } = await rotation.observe(phaseNumbered(3).sees)
    const cas = target.changes.flatMap(({ oldCa, newCa }) => [oldCa, newCa])
    expect(cas).toHaveLength(4)
    expect([run.remembered[0], run.remembered.at(-1)]).toEqual([[], cas])
  })

  test('omits kubeconfigs on nodes that belong to another cluster', async () => {
    const { observed } = await state(1)
    const [first, second] = observed.kubeconfigs
    const key = `${first!.at!.node}:${first!.at!.path}`
    const contains = { kind: 'kubeconfig', caData: ['another'] } as const
    const files = new Map([...observed.files, [key, { ...observed.files.get(key)!, contains }]])
    const exported = { id: 'exported', exported: { caData: ['another'] } }
    const snapshot = { ...observed, files, kubeconfigs: [first!, second!, exported] }
    const observe = async (settings: Settings, picked: Snapshot) => {
      const run = new Run(() => picked)
      run.settings = settings
      const inspected = await (await run.open()).observe(phaseNumbered(7).sees)
      return inspected.observed.kubeconfigs?.map(({ id }) => id)
    }
    expect(await observe(defaultSettings, snapshot)).toEqual([second!.id, 'exported'])
    expect(await observe({ ...defaultSettings, cas: ['front-proxy'] }, snapshot)).toEqual([
      first!.id,
      second!.id,
      'exported',
    ])
    const { kubeconfigs: _, ...unseen } = snapshot
    expect(await observe(defaultSettings, unseen as unknown as Snapshot)).toBeUndefined()
  })
})

describe('a plan', () => {
  test('contains the output of the phase for the state', async () => {
    const run = await inState(2)
    const { observed, target } = await state(1)
    const plan = await (await new Run(() => observed).open()).plan(2)
    expect(plan).toMatchObject({ number: 2, risk: 'restarts', title: phaseNumbered(2).title })
    expect(plan.gaps).toEqual(phaseNumbered(2).gaps(observed, target))
    expect(plan.steps.length).toBeGreaterThan(3)
    expect(plan.remarks).toEqual([])
    const none = await (await run.open()).plan(8)
    expect([none.gaps, none.steps]).toEqual([[], []])
    expect(none.remarks).toEqual(['complete: no cloud-controller-manager with --root-ca-file'])
    expect(run.journal.text).toBe('')
  })

  test('of a complete phase is not refused', async () => {
    const { observed } = await state(8)
    const nodes = observed.nodes.map((node) => ({ ...node, unreachable: 'no route' }))
    const plan = await (await new Run(() => ({ ...observed, nodes })).open()).plan(8)
    expect([plan.gaps, plan.steps]).toEqual([[], []])
  })

  test('is refused because of the cluster, the position, or the phase', async () => {
    const { observed } = await state(0)
    const nodes = observed.nodes.map((node) => ({ ...node, layout: 'k3s' }))
    const foreign = await stop(new Run(() => ({ ...observed, nodes })).open().then((one) => one.plan(1)))
    expect([foreign.code, foreign.message]).toEqual([
      'KCERT_ROTATION_REFUSED',
      'kcert does not rotate k3s clusters: cp1, cp2, w1, w2',
    ])
    expect([foreign.why, foreign.next]).toEqual([
      'k3s creates and rotates the CAs of the cluster',
      'k3s certificate rotate-ca --help',
    ])
    const dropping = { ...(await state(11)).observed, evidence: new Map() }
    const begun = new Run(() => dropping)
    const rotation = await begun.open()
    await rotation.performAll([{ ...write('cp1'), phase: 12 } as Action])
    const spoiled = { ...dropping, components: dropping.components.map(({ process: _, ...one }) => one) }
    const again = new Run(() => spoiled)
    again.journal.text = begun.journal.text
    const taken = await stop(again.open().then((one) => one.plan(7)))
    expect(taken.message).toContain('phase 7 cannot run any more: the old CA is being removed')
    const stale = (await state(11)).observed
    const published = { ...stale, handshakes: (await state(8)).observed.handshakes }
    const presenting = await stop(new Run(() => published).open().then((one) => one.plan(12)))
    expect(presenting.message).toMatch(
      /^cp1\/kube-apiserver still serves a certificate of the old CA \(and \d+ more: /,
    )
  })

  test('is refused when it would break a connection', async () => {
    const { observed } = await state(4)
    const run = new Run(() => ({ ...observed, certificates: observed.certificates }))
    const error = await stop(run.open().then((one) => one.plan(9)))
    expect(error.code).toBe('KCERT_ROTATION_REFUSED')
    expect(error.message).toMatch(/^the plan of phase 9 breaks a connection: /)
  })

  test('fails for a number without a phase', async () => {
    await expect(
      inState(0)
        .then((run) => run.open())
        .then((one) => one.plan(13)),
    ).rejects.toThrow('no phase 13')
  })
})

describe('a phase', () => {
  test('is reported as complete once, with the CAs and the choices', async () => {
    const run = await inState(1)
    run.nowMs = 5
    await run.prove(await state(1))
    const rotation = await run.open()
    const known = run.said.length
    expect(await rotation.run(1)).toBe('completed')
    expect(await rotation.run(8)).toBe('completed')
    expect(run.said.slice(known)).toEqual(['rotation', 'phase 1 completed', 'phase 8 completed'])
    expect(run.reported).toEqual(['phase-completed 1', 'phase-completed 8'])
    const [, last] = run.events
    expect(last).toMatchObject({ remarks: ['complete: no cloud-controller-manager with --root-ca-file'] })
    expect(run.confirmed).toEqual([])
    run.settings = { ...defaultSettings, newKeys: true }
    const other = await run.open()
    await other.run(8)
    expect(run.said.slice(known + 3)).toEqual(['rotation', 'phase 8 completed'])
  })

  test('is incomplete while a node is not observed', async () => {
    const { observed } = await state(8)
    const run = new Run(() => ({ ...observed, kubelets: observed.kubelets.slice(1) }))
    const error = await stop(run.open().then((one) => one.run(8)))
    expect(error.message).toBe('no kubelet was found on node cp1')
    expect(run.said).toEqual(['phase 8 stopped no kubelet was found on node cp1'])
    expect(run.reported).toEqual(['phase-stopped 8'])
  })

  test('stops on request, even if the journal cannot be written', async () => {
    const { observed } = await state(8)
    const run = new Run(() => ({ ...observed, kubelets: [] }))
    run.journal.isBroken = true
    const error = await stop(run.open().then((one) => one.run(8)))
    expect(error.message).toContain('no kubelet was found on node cp1')
  })

  test('does not start when declined', async () => {
    const run = await inState(1)
    run.confirms = false
    expect(await (await run.open()).run(2)).toBe('declined')
    expect([run.said, run.acts, run.confirmed]).toEqual([[], [], [2]])
    expect(run.reported).toEqual(['phase-started 2 3'])
  })

  test('stops when its wait times out', async () => {
    const { observed } = await state(2)
    const lagging = (await state(1)).observed
    const open = { ...observed, published: lagging.published }
    const run = new Run(() => open)
    const error = await stop(run.open().then((one) => one.run(3)))
    expect([error.code, error.message]).toEqual([
      'KCERT_ROTATION_CHECK_FAILED',
      'timed out after 300 s waiting until kube-controller-manager has published both CAs to every namespace',
    ])
    expect(error.why).toMatch(/^still pending: ConfigMap default\/kube-root-ca.crt \(unchanged\), /)
    expect(run.nowMs).toBe(300_000)
    expect(run.reported).toEqual([
      `phase-started 3 ${open.published.length}`,
      'action-started wait until kube-controller-manager has published both CAs to every namespace',
      expect.stringMatching(
        /^waiting kube-controller-manager has published both CAs to every namespace ConfigMap default/,
      ),
      'phase-stopped 3',
    ])
  })

  test('is complete once its steps leave nothing pending', async () => {
    const { observed } = await state(2)
    const published = (await state(1)).observed.published
    // The observations for the phase and its plan, then the one for the wait.
    const run = new Run((observe) => (observe < 2 ? { ...observed, published } : observed))
    expect(await (await run.open()).run(3)).toBe('completed')
    expect(run.said).toEqual(['rotation', 'phase 3 started', 'phase 3 completed'])
    expect(run.reported).toEqual([
      `phase-started 3 ${published.length}`,
      'action-started wait until kube-controller-manager has published both CAs to every namespace',
      'action-done wait until kube-controller-manager has published both CAs to every namespace',
      'phase-completed 3',
    ])
    expect(run.acts).toEqual(['before wait'])
    expect(run.nowMs).toBe(0)
    // For the phase, its plan, the wait and the result. Each observation reads the whole cluster.
    expect(run.observations).toBe(4)
    const [shown] = run.shown
    expect(shown?.observed.published).toEqual(published)
    expect(shown?.target.changes.map(({ ca }) => ca)).toEqual(['cluster', 'front-proxy'])
  })

  test('waits 90 s, four times, for pending items without a step', async () => {
    const { observed } = await state(2)
    const silent = { ...observed, leases: observed.leases.map(({ holder: _, ...lease }) => lease) }
    const run = new Run(() => silent)
    await run.prove(await state(2))
    const error = await stop(run.open().then((one) => one.run(2)))
    expect([error.code, error.message, error.why, error.next]).toEqual([
      'KCERT_ROTATION_CHECK_FAILED',
      'phase 2 is incomplete: kube-controller-manager: no leader',
      'kcert finished the plan, but this is still pending',
      'kcert rotate-ca --phase 2',
    ])
    expect(run.nowMs).toBe(4 * 90_000)
    expect(run.confirmed).toEqual([2])
  })

  test('does not record CAs while one of them is only planned', async () => {
    const { observed } = await state(1)
    const files = new Map([...observed.files].filter(([key]) => !key.includes('/new/front-proxy-ca')))
    const run = new Run(() => ({ ...observed, files }))
    const rotation = await run.open()
    const { target } = await rotation.observe(sectionNames)
    const planned = target.changes.map(({ newCa }) => newCa.digest.startsWith('planned:'))
    expect(planned).toEqual([false, true])
    await rotation.run(8)
    expect(run.said).toEqual(['phase 8 completed'])
  })

  test('12 records each waiver once', async () => {
    const states = await statesOf('kubeadm')
    const run = new Run(() => states[11]!.observed)
    run.settings = { ...defaultSettings, waivers: new Set(['Pod a', 'Pod b']) }
    run.act = async () => {
      throw new KcertError('KCERT_UNREACHABLE', 'gone', { why: 'w', next: 'n' })
    }
    await run.record({ kind: 'waiver', id: 'Pod a' })
    await stop(run.open().then((one) => one.run(12)))
    expect(run.said.slice(0, 4)).toEqual(['waiver Pod a', 'rotation', 'phase 12 started', 'waiver Pod b'])
    const early = await inState(1)
    early.settings = run.settings
    early.act = run.act
    await stop(early.open().then((one) => one.run(2)))
    expect(early.said.filter((line) => line.startsWith('waiver'))).toEqual([])
  })

  test('stops after four rounds without a change, naming five pending items and counting the others', async () => {
    const run = await inState(0)
    const error = await stop(run.open().then((one) => one.run(1)))
    expect([error.code, error.next]).toEqual(['KCERT_ROTATION_CHECK_FAILED', 'kcert rotate-ca --phase 1'])
    expect(error.message).toMatch(
      /^phase 1 is incomplete: cp1:[^;]*\/new\/ca.key: not yet distributed; (?:[^;]*; ){3}[^;]* and \d+ more$/,
    )
    const begun = run.said.filter((line) => line.startsWith('intent'))
    expect(begun).toHaveLength(4 * new Set(begun).size)
    expect([run.nowMs, run.confirmed]).toEqual([0, [1]])
    expect(run.said.filter((line) => line === 'phase 1 started')).toHaveLength(1)
    // Nothing is recorded until phase 1 has created the CAs.
    expect(run.said).not.toContain('rotation')
  })
})

describe('an undo', () => {
  test('is refused when it is impossible', async () => {
    const run = await inState(12)
    const error = await stop(run.open().then((one) => one.undo(12)))
    expect([error.code, error.message]).toEqual(['KCERT_ROTATION_REFUSED', 'phase 12 cannot be rolled back'])
    expect(run.said).toEqual([])
  })

  test('asks nothing for a phase that changed nothing', async () => {
    const run = await inState(3)
    expect(await (await run.open()).undo(3)).toBe('completed')
    expect([run.said, run.confirmed]).toEqual([['phase 3 rolled-back'], []])
  })

  test('is confirmed, started, done and reported', async () => {
    const run = await inState(2)
    const rotation = await run.open()
    const { plan } = await rotation.planUndo(2)
    expect([plan.number, plan.title, plan.risk]).toEqual([2, `undo: ${phaseNumbered(2).title}`, 'restarts'])
    expect([plan.gaps, plan.remarks]).toEqual([[], []])
    const steps = plan.steps.flatMap((step) => (step.kind === 'together' ? [] : [step.kind]))
    expect(steps).toEqual(['patch-object', 'write-file', 'restart', 'write-file', 'restart', 'wait'])
    expect(await rotation.undo(2)).toBe('completed')
    expect(run.confirmed).toEqual([2])
    const [shown] = run.shown
    expect(shown?.observed.components).toEqual((await state(2)).observed.components)
    expect(shown?.target.changes.map(({ ca }) => ca)).toEqual(['cluster', 'front-proxy'])
    expect([run.said[0], run.said.at(-1)]).toEqual(['phase 2 started undo', 'phase 2 rolled-back'])
    expect(run.acts.filter((act) => !act.startsWith('before'))).toEqual(
      steps.slice(0, -1).map((kind) => `${kind} at 0`),
    )
  })

  test('does nothing when declined', async () => {
    const run = await inState(2)
    run.confirms = false
    expect(await (await run.open()).undo(2)).toBe('declined')
    expect([run.said, run.acts]).toEqual([[], []])
  })

  test('is refused when it would break a connection', async () => {
    const run = await inState(9)
    const error = await stop(run.open().then((one) => one.undo(5)))
    expect(error.message).toMatch(/certificates of the new CA are in use/)
    const kubeconfigs = await stop(run.open().then((one) => one.undo(2)))
    expect(kubeconfigs.message).toMatch(/^the plan of phase 2 /)
  })

  test('is refused when it would restore the manifests of an older version', async () => {
    const { observed } = await state(2)
    const components = observed.components.map((one) =>
      one.id === 'cp1/kube-controller-manager' ? { ...one, version: 'v1.99.0' } : one,
    )
    const run = new Run(() => ({ ...observed, components }))
    const error = await stop(run.open().then((one) => one.undo(2)))
    expect([error.code, error.next]).toEqual(['KCERT_ROTATION_REFUSED', 'kcert rotate-ca status'])
    expect(error.message).toMatch(
      /^upgraded since phase 1: cp1\/kube-controller-manager from v[\d.]+ to v1\.99\.0$/,
    )
    expect([run.said, run.acts]).toEqual([[], []])
  })
})

describe('steps', () => {
  test('are announced, done and reported in order', async () => {
    const run = await inState(2)
    await (await run.open()).performAll([restart('a'), write('n')])
    expect(run.said).toEqual([
      'intent 2 restart a',
      'done 2 restart a',
      'intent 2 remove n:/x',
      'done 2 remove n:/x',
    ])
    expect(run.reported).toEqual([
      'action-started restart a',
      'action-done restart a',
      'action-started remove n:/x',
      'action-done remove n:/x',
    ])
    expect(run.acts).toEqual(['before restart', 'restart at 0', 'before write-file', 'write-file at 0'])
  })

  test('start at once if nothing has to come before them', async () => {
    const run = await inState(2)
    run.before = undefined
    await (await run.open()).performAll([restart('a')])
    expect(run.acts).toEqual(['restart at 0'])
  })

  test('are executed by the matching part', async () => {
    const run = await inState(2)
    const object = { kind: 'Secret', name: 's' }
    await (await run.open()).performAll([
      { kind: 'patch-object', phase: 1, object, version: '1', change: { kind: 'delete' } },
      { kind: 'rollout', phase: 1, workload: 'w', annotation: 'a' },
    ])
    expect(run.acts.filter((act) => !act.startsWith('before'))).toEqual(['patch-object at 0', 'rollout at 0'])
  })

  test('in lanes run in parallel up to the limit', async () => {
    for (const atOnce of [1, 2, 3]) {
      const run = await inState(2)
      let now = 0
      let most = 0
      run.act = async () => {
        most = Math.max(most, ++now)
        await new Promise((resolve) => setImmediate(resolve))
        now--
      }
      await (await run.open()).performAll([lanes(atOnce, [restart('a')], [restart('b')], [restart('c')])])
      expect([atOnce, most, run.said.length]).toEqual([atOnce, atOnce, 6])
    }
  })

  test('do not start in any lane after one has failed', async () => {
    const run = await inState(2)
    const error = new KcertError('KCERT_UNREACHABLE', 'first', { why: 'w', next: 'n' })
    run.act = async (action) => {
      if (action.kind === 'restart' && action.process === 'a') throw error
      if (action.kind === 'restart' && action.process === 'b') {
        await new Promise((resolve) => setImmediate(resolve))
        throw new KcertError('KCERT_UNREACHABLE', 'second', { why: 'w', next: 'n' })
      }
      await new Promise((resolve) => setImmediate(resolve))
    }
    const rotation = await run.open()
    const steps = [
      lanes(3, [restart('a'), restart('a2')], [restart('b')], [restart('c'), restart('c2')], [restart('d')]),
      restart('e'),
    ]
    expect(await stop(rotation.performAll(steps))).toBe(error)
    expect(run.said.filter((line) => line.startsWith('intent'))).toEqual(
      ['a', 'b', 'c'].map((process) => `intent 2 restart ${process}`),
    )
    expect(run.said).toContain('failed 2 restart a first')
    expect(await stop(rotation.performAll([restart('a'), restart('z')]))).toBe(error)
    expect(run.said.join()).not.toContain('restart z')
  })
})

describe('a wait', () => {
  const until = (holder: string | undefined): Snapshot =>
    ({ leases: [{ name: 'x', ...(holder && { holder }), renewedAtMs: 0 }] }) as unknown as Snapshot
  const waiting: Action = {
    kind: 'wait',
    phase: 2,
    until: { kind: 'leader', lease: 'x' },
    because: 'x has a leader',
    deadlineMs: 2_000,
  }

  test('evaluates its condition every half second, reports pending items once, and ends', async () => {
    const run = new Run((observe) => until(observe < 3 ? undefined : 'cp1'))
    await (await run.open()).performAll([waiting])
    expect([run.observations, run.nowMs]).toEqual([4, 1_500])
    expect(run.reported).toEqual([
      'action-started wait until x has a leader',
      'waiting x has a leader x: no leader',
      'action-done wait until x has a leader',
    ])
    expect(run.sections[0]).toEqual(['leases'])
    expect(run.said).toEqual([])
  })

  test('ends at its deadline', async () => {
    const run = new Run(() => until(undefined))
    const error = await stop(run.open().then((one) => one.performAll([waiting])))
    expect([error.code, error.message, error.why, error.next]).toEqual([
      'KCERT_ROTATION_CHECK_FAILED',
      'timed out after 2 s waiting until x has a leader',
      'still pending: x (no leader); fix the cause first',
      'kcert rotate-ca',
    ])
    expect([run.observations, run.nowMs]).toEqual([5, 2_000])
  })

  test('names five pending items, and counts the others', async () => {
    const named = async (count: number): Promise<string | undefined> => {
      const published = Array.from({ length: count }, (_, index) => ({
        kind: 'ConfigMap',
        name: `n${index}`,
        isActive: true,
        trust: [],
        changedAtMs: 0,
      }))
      const run = new Run(() => ({ published }) as unknown as Snapshot)
      const wait = {
        ...waiting,
        until: { kind: 'published', bundles: true, contains: ['new'], lacks: [] },
      } as Action
      return (await stop(run.open().then((one) => one.performAll([wait])))).why
    }
    const five = [0, 1, 2, 3, 4].map((index) => `ConfigMap n${index} (unchanged)`).join(', ')
    expect(await named(5)).toBe(`still pending: ${five}; fix the cause first`)
    expect(await named(7)).toBe(`still pending: ${five} and 2 more; fix the cause first`)
  })

  test('continues while no API server responds, and stops at any other error', async () => {
    const failing = (code: 'KCERT_UNREACHABLE' | 'KCERT_ROTATION_DRIFT') =>
      new Run((observe) => {
        if (observe < 2) throw new KcertError(code, 'cannot connect', { why: 'w', next: 'n' })
        return until('cp1')
      })
    const run = failing('KCERT_UNREACHABLE')
    await (await run.open()).performAll([waiting])
    expect(run.reported[1]).toBe('waiting x has a leader API server: cannot connect')
    expect(run.nowMs).toBe(1_000)
    const other = await stop(
      failing('KCERT_ROTATION_DRIFT')
        .open()
        .then((one) => one.performAll([waiting])),
    )
    expect(other.code).toBe('KCERT_ROTATION_DRIFT')
    const odd = new Run(() => {
      throw Object.assign(new Error('odd'), { code: 'KCERT_UNREACHABLE' })
    })
    await expect(odd.open().then((one) => one.performAll([waiting]))).rejects.toThrow('odd')
  })
})

test('calls one method of the executor for each kind of action', async () => {
  const run = await inState(2)
  const patch: Action = {
    kind: 'patch-object',
    phase: 2,
    object: { kind: 'ConfigMap', namespace: 'a', name: 'b' },
    version: 'x',
    change: { kind: 'delete' },
  }
  const roll: Action = { kind: 'rollout', phase: 2, workload: 'Deployment a/b', annotation: '1' }
  await (await run.open()).performAll([write('cp1'), patch, restart('cp1/kubelet'), roll])
  expect(run.methods).toEqual(['write write-file', 'patch patch-object', 'restart restart', 'roll rollout'])
})

test('a bug in kcert does not count as the end of a phase: it is neither reported nor recorded', async () => {
  const defect = new TypeError('odd')
  const run = new Run(() => {
    throw defect
  })
  await expect(run.open().then((one) => one.run(2))).rejects.toBe(defect)
  expect([run.said, run.reported]).toEqual([[], []])
})

describe('a probe', () => {
  test('records evidence with its measurement on success', async () => {
    const run = await inState(2)
    run.nowMs = 7
    run.probe = async () => ({ ok: true, detail: 'fine', rate: { errors: 1, overMs: 2 } })
    await (await run.open()).performAll([probing])
    expect(run.said).toEqual(['evidence 3 signer new fine'])
    const [entry] = readJournal(run.journal.text)
    expect(entry).toMatchObject({ ok: true, atMs: 7, rate: { errors: 1, overMs: 2 } })
  })

  test('records evidence and stops on failure', async () => {
    const run = await inState(2)
    run.probe = async () => ({ ok: false, detail: 'refused' })
    const error = await stop(run.open().then((one) => one.performAll([probing])))
    expect([error.code, error.message, error.why, error.next]).toEqual([
      'KCERT_ROTATION_CHECK_FAILED',
      'not verified: signer new',
      'refused',
      'kcert rotate-ca --phase 3',
    ])
    const [entry] = readJournal(run.journal.text)
    expect(entry).toMatchObject({ kind: 'evidence', ok: false })
    expect(entry).not.toHaveProperty('rate')
    expect(run.reported).toEqual(['action-started check: signer new'])
    expect(run.sections).toEqual([])
  })

  test('names the pods of the clients that reject the server, if pods can be read', async () => {
    const pods = [{ id: 'shop/web-1', address: '10.0.0.5', workload: 'Deployment shop/web' }]
    const observed = { ...(await state(2)).observed, pods } as unknown as Snapshot
    const run = new Run(() => observed)
    run.probe = async () => ({ ok: false, detail: 'refused', refusing: ['10.0.0.5'] })
    const error = await stop(run.open().then((one) => one.performAll([probing])))
    expect([error.why, error.next]).toEqual([
      'refused; 10.0.0.5 is Pod shop/web-1 of Deployment shop/web',
      'kubectl rollout restart --namespace shop deployment/web && kcert rotate-ca --phase 3',
    ])
    expect(run.sections).toEqual([['published', 'pods']])

    const unread = new Run(() => {
      throw new KcertError('KCERT_UNREACHABLE', 'gone', { why: 'w', next: 'n' })
    })
    unread.probe = run.probe
    expect((await stop(unread.open().then((one) => one.performAll([probing])))).why).toBe('refused')
  })
})

test('a confirmed question is recorded as a waiver, a declined one is not', async () => {
  const ask: Action = { kind: 'confirm', phase: 4, id: 'Pod a', question: 'A?' }
  const run = await inState(2)
  await (await run.open()).performAll([ask])
  run.answers = false
  await (await run.open()).performAll([ask])
  expect(run.asked).toEqual(['Pod a: A?', 'Pod a: A?'])
  expect(run.said).toEqual(['waiver 4 Pod a'])
})

test('combines several refusals in one error that names all of them', () => {
  const refusal = (what: string) => ({ what, why: `why ${what}`, next: `next ${what}` })
  const one = refused([refusal('a')])
  expect([one.code, one.message, one.why, one.next]).toEqual([
    'KCERT_ROTATION_REFUSED',
    'a',
    'why a',
    'next a',
  ])
  expect(refused([refusal('a'), refusal('b'), refusal('c')]).message).toBe('a (and 2 more: b; c)')
})
