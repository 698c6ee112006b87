import { expect, test } from 'vitest'
import { KcertError } from '../../src/errors/kcert-error.ts'
import type { Action } from '../../src/rotation/action.ts'
import { SimulatedOperator } from './operator.ts'
import { Scene } from './scene.ts'

// A failure in the middle of a phase stops it, with what, why and next. After the cause is fixed, the same command has the same
// result.

const small = { controlPlanes: 2, workers: 1 } as const

interface Fault {
  readonly name: string
  readonly phase: number
  /** When the failure occurs: before this action. */
  readonly at: (action: Action) => boolean
  readonly breaks: (scene: Scene) => void
  readonly cures: (scene: Scene) => void
  readonly code: string
  readonly what: RegExp
  readonly why: RegExp
}

const isWrite = (action: Action, node: string, end: string): boolean =>
  action.kind === 'write-file' && action.node === node && action.path.endsWith(end)

const faults: readonly Fault[] = [
  {
    name: 'a node that is cut off',
    phase: 5,
    at: (action) => isWrite(action, 'w1', '/ca.crt'),
    breaks: ({ cluster }) => {
      cluster.nodes.get('w1')!.isUnreachable = true
    },
    cures: ({ cluster }) => {
      cluster.nodes.get('w1')!.isUnreachable = false
    },
    code: 'KCERT_UNREACHABLE',
    what: /^node w1$/,
    why: /timed out/,
  },
  {
    name: 'a kubelet that does not come back',
    phase: 9,
    at: (action) => action.kind === 'restart' && action.process === 'w1/kubelet',
    breaks: ({ cluster }) => {
      cluster.nodes.get('w1')!.isKubeletBroken = true
    },
    cures: ({ cluster }) => {
      cluster.nodes.get('w1')!.isKubeletBroken = false
    },
    code: 'KCERT_ROTATION_CHECK_FAILED',
    what: /^w1\/kubelet did not come back within 120 s$/,
    why: /no healthy process/,
  },
  {
    name: 'a kubelet that does not come back while the old CA is dropped',
    phase: 12,
    at: (action) => action.kind === 'restart' && action.process === 'cp2/kubelet',
    breaks: ({ cluster }) => {
      cluster.nodes.get('cp2')!.isKubeletBroken = true
    },
    cures: ({ cluster }) => {
      cluster.nodes.get('cp2')!.isKubeletBroken = false
    },
    code: 'KCERT_ROTATION_CHECK_FAILED',
    what: /^cp2\/kubelet did not come back within 120 s$/,
    why: /no healthy process/,
  },
  {
    name: 'an API server that goes down',
    phase: 9,
    at: (action) => isWrite(action, 'cp1', '/apiserver.crt'),
    breaks: ({ cluster }) => cluster.stop('cp1/kube-apiserver'),
    cures: ({ cluster }) => cluster.start('cp1/kube-apiserver', 8_000),
    code: 'KCERT_ROTATION_CHECK_FAILED',
    what: /^timed out after 60 s waiting until cp1\/kube-apiserver serves the certificate in its file$/,
    why: /cp1\/kube-apiserver \(does not answer\)/,
  },
  {
    name: 'a disk that is full in the middle of the last phase',
    phase: 12,
    at: (action) => isWrite(action, 'cp2', '/admin.conf'),
    breaks: ({ cluster }) => {
      cluster.nodes.get('cp2')!.isDiskFull = true
    },
    cures: ({ cluster }) => {
      cluster.nodes.get('cp2')!.isDiskFull = false
    },
    code: 'KCERT_FILE_NOT_WRITTEN',
    what: /^cp2:\/etc\/kubernetes\/admin.conf$/,
    why: /no space left/,
  },
  {
    name: 'a controller-manager whose manifest somebody edits',
    phase: 2,
    at: (action) => isWrite(action, 'cp1', '/kube-controller-manager.yaml'),
    breaks: ({ cluster }) => {
      const path = '/etc/kubernetes/manifests/kube-controller-manager.yaml'
      const { definition } = JSON.parse(cluster.read('cp1', path)!.text)
      cluster.write('cp1', path, { definition: { ...definition, annotations: { by: 'somebody' } } }, 0o600)
    },
    cures: () => {},
    code: 'KCERT_ROTATION_DRIFT',
    what: /^cp1:\/etc\/kubernetes\/manifests\/kube-controller-manager.yaml changed since kcert planned$/,
    why: /another program or person/,
  },
]

test.for(faults)('$name stops phase $phase, which continues once that is fixed', async (fault) => {
  const { phase, at, breaks, cures, code, what, why } = fault
  const scene = new Scene(small)
  await scene.runAll(1, phase - 1)
  if (phase === 12) scene.clients.expectsBridge = false
  let isBroken = false
  scene.kill = ({ action }) => {
    if (!isBroken && at(action)) {
      isBroken = true
      breaks(scene)
    }
    return undefined
  }
  const stopped = await scene.run(phase).then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(stopped).toBeInstanceOf(KcertError)
  const error = stopped as KcertError
  expect([error.code, error.message]).toEqual([code, expect.stringMatching(what)])
  expect(error.why).toMatch(why)
  expect(error.next?.length).toBeGreaterThan(10)
  cures(scene)
  await scene.cluster.time.pass(30_000)
  await scene.runAll(phase, 12)
  expect(scene.clients.failures).toEqual([])
  expect(scene.remainsOfOldCa()).toEqual([])
})

test.for([5, 9, 12])(
  'names the phases that kubeadm upgrade reverted in a manifest before phase %i, and runs them again',
  async (before) => {
    const scene = new Scene(small)
    const { cluster } = scene
    const operator = new SimulatedOperator(scene)
    const path = cluster.definitionPath('kube-controller-manager')
    const own = cluster.read('cp1', path)!.text
    const run = async (from: number, to: number): Promise<void> => {
      for (let phase = from; phase <= to; phase++) {
        if (phase === 12) scene.clients.expectsBridge = false
        await operator.command((session) => session.run([phase]), { yes: true })
        if (phase === 9) cluster.reissueHandlers(scene.newCa())
      }
    }
    await run(1, before - 1)
    cluster.write('cp1', path, own, 0o600)
    await cluster.time.pass(60_000)
    await expect(run(before, before)).rejects.toMatchObject({ next: 'kcert rotate-ca --phase 2' })
    await run(2, 12)
    expect(scene.clients.failures).toEqual([])
    expect(scene.remainsOfOldCa()).toEqual([])
  },
)

test('repeats the measurements of phase 11 when an hour passes before phase 12', async () => {
  const scene = new Scene(small)
  const operator = new SimulatedOperator(scene)
  const upTo = (last: number): number[] => Array.from({ length: last }, (_, index) => index + 1)
  await operator.command((session) => session.run(upTo(9)), { yes: true })
  scene.cluster.reissueHandlers(scene.newCa())
  await operator.command((session) => session.run([10, 11]), { yes: true })
  await scene.cluster.time.pass(3_700_000)
  scene.clients.expectsBridge = false
  const twelve = () => operator.command((session) => session.run([12]), { yes: true })
  await expect(twelve()).rejects.toMatchObject({
    message: 'phase 12 cannot start before phase 11 is complete',
    next: 'kcert rotate-ca --phase 11',
  })
  await operator.command((session) => session.run([11]), { yes: true })
  await twelve()
  expect(scene.remainsOfOldCa()).toEqual([])
})

test('restarts pods with unknown volumes once new pods get both CAs, and new namespaces change nothing', async () => {
  const scene = new Scene(small)
  const { cluster, observer } = scene
  const pods = observer.pods.bind(observer)
  observer.pods = () =>
    pods().map(({ volume, ...pod }) => (pod.node === 'w1' || volume === undefined ? pod : { ...pod, volume }))
  await scene.runAll(1, 3)
  await scene.run(4)
  const started = [...cluster.pods.values()].flatMap(({ node, startedAtMs }) =>
    node === 'w1' ? [startedAtMs] : [],
  )
  expect(started.length).toBeGreaterThan(0)
  cluster.addNamespace('born-later')
  await scene.runAll(5)
  expect(scene.clients.failures).toEqual([])
  expect(scene.remainsOfOldCa()).toEqual([])
})
