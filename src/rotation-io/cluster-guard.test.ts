import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { ApiObject } from '../cluster/malformed.ts'
import { metadataOf, type ObjectsApi } from '../cluster/objects.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { journalLine } from '../rotation/journal.ts'
import { ClusterGuard, mirroredJournal } from './cluster-guard.ts'

const machine = vi.hoisted(() => ({ boot: 'boot 1', namespace: 'pid:[1]' }))
vi.mock('../system/process-identity.ts', () => ({
  bootId: () => machine.boot,
  processNamespace: () => machine.namespace,
}))

const now = new Date('2026-11-21T12:00:00Z')

beforeEach(() => {
  machine.boot = 'boot 1'
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
})
afterEach(() => {
  vi.useRealTimers()
})

test('creates the Lease with its holder, and releases it', async () => {
  const { objects, lease } = memory()
  const { given } = aging(objects)
  const guard = await ClusterGuard.acquire(given)
  const digest = createHash('sha256').update('boot 1 pid:[1] /a/kcert.jsonl').digest('hex').slice(0, 8)
  const time = '2026-11-21T12:00:00.000000Z'
  expect(lease()).toEqual({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'kcert-rotation', namespace: 'kube-system', resourceVersion: '1' },
    spec: {
      holderIdentity: `${hostname()}_${digest}_000000000001`,
      leaseDurationSeconds: 30,
      acquireTime: time,
      renewTime: time,
      leaseTransitions: 1,
    },
  })
  expect(() => guard.check()).not.toThrow()
  await guard.release()
  expect(lease().spec).toMatchObject({ holderIdentity: '', leaseDurationSeconds: 1, leaseTransitions: 1 })
})

test('does not keep the process running to renew the Lease', async () => {
  const { objects } = memory()
  const started = vi.spyOn(globalThis, 'setInterval')
  await ClusterGuard.acquire(aging(objects).given)
  expect(started.mock.results.map(({ value }) => value.hasRef())).toEqual([false])
})

test('takes over a released Lease at once, and counts the transition', async () => {
  const { objects, lease } = memory()
  const { given, slept } = aging(objects)
  await (await ClusterGuard.acquire({ ...given, journalPath: '/b/kcert.jsonl' })).release()
  await ClusterGuard.acquire(given)
  expect(slept()).toBe(0)
  expect(lease().spec).toMatchObject({ leaseTransitions: 2 })
})

test('takes over at once a Lease that this machine abandoned for the same journal', async () => {
  const { objects, holder } = memory()
  const { given, slept } = aging(objects)
  await ClusterGuard.acquire(given)
  const dead = holder()
  await ClusterGuard.acquire(given)
  expect(holder()).not.toBe(dead)
  expect(slept()).toBe(0)
})

test.each([
  ['for another journal', () => ({ journalPath: '/b/kcert.jsonl' })],
  [
    'on a machine with the same name',
    () => {
      machine.boot = 'boot 2'
      return {}
    },
  ],
])('waits until a Lease %s was not renewed for its duration', async (_, other) => {
  const { objects, holder } = memory()
  const { given, slept } = aging(objects)
  await ClusterGuard.acquire(given)
  const dead = holder()
  await ClusterGuard.acquire({ ...given, ...other() })
  expect(holder()).not.toBe(dead)
  expect(slept()).toBe(30_000)
})

test('waits for the duration in the Lease, or 30 s if the Lease has none', async () => {
  for (const [leaseDurationSeconds, ms] of [
    [7, 7_000],
    [300, 300_000],
    [undefined, 30_000],
  ]) {
    const { objects, put } = memory()
    const { given, slept } = aging(objects)
    put('leases', { spec: { holderIdentity: 'another', leaseDurationSeconds } })
    await ClusterGuard.acquire(given)
    expect(slept()).toBe(ms)
  }
})

test.each([0, -1, Number.NaN])('takes over a Lease of %d s only after 30 s', async (leaseDurationSeconds) => {
  const { objects, put } = memory()
  const { given, slept } = aging(objects)
  put('leases', { spec: { holderIdentity: 'another', leaseDurationSeconds } })
  await ClusterGuard.acquire(given)
  expect(slept()).toBe(30_000)
})

test.each([301, 2 ** 31 - 1, Number.POSITIVE_INFINITY])(
  'refuses a Lease of %d s at once, and takes it over once it is released',
  async (leaseDurationSeconds) => {
    const { objects, put, holder } = memory()
    const { given, slept } = aging(objects)
    put('leases', { spec: { holderIdentity: 'another', leaseDurationSeconds } })
    await expect(ClusterGuard.acquire(given)).rejects.toMatchObject({
      code: 'KCERT_LOCKED',
      why: `the Lease kube-system/kcert-rotation is held by another for ${leaseDurationSeconds} s; kcert waits at most 300 s. If the holder no longer runs, delete the Lease`,
      next: 'kubectl -n kube-system get lease kcert-rotation -o yaml',
    })
    expect([slept(), holder()]).toEqual([0, 'another'])
    put('leases', { spec: { holderIdentity: '', leaseDurationSeconds } })
    await ClusterGuard.acquire(given)
    expect(slept()).toBe(0)
  },
)

test('refuses a Lease that its holder renews', async () => {
  const { objects, put } = memory()
  const spec = { holderIdentity: 'another', leaseDurationSeconds: 1 }
  put('leases', { spec })
  const { given } = aging(objects, () => put('leases', { spec }))
  await expect(ClusterGuard.acquire(given)).rejects.toMatchObject({
    code: 'KCERT_LOCKED',
    message: 'another rotation of this cluster is in progress',
    why: expect.stringContaining('is held by another and renewed; wait until it finishes'),
    next: expect.stringContaining('kubectl -n kube-system get lease kcert-rotation'),
  })
})

test('refuses when another run takes over an abandoned Lease first', async () => {
  const { objects, put } = memory()
  put('leases', { spec: { holderIdentity: 'dead', leaseDurationSeconds: 1 } })
  const { given } = aging(objects)
  const { replace } = objects
  objects.replace = (target, object) => {
    put('leases', { spec: { holderIdentity: 'quicker' } })
    return replace(target, object)
  }
  await expect(ClusterGuard.acquire(given)).rejects.toMatchObject({
    code: 'KCERT_LOCKED',
    why: expect.stringContaining('is held by quicker'),
  })
})

test('fails when the API server cannot create the Lease', async () => {
  const { objects } = memory()
  objects.create = async () => {
    throw new KcertError('KCERT_API_FORBIDDEN', 'no')
  }
  await expect(ClusterGuard.acquire(aging(objects).given)).rejects.toMatchObject({
    code: 'KCERT_API_FORBIDDEN',
  })
  objects.create = async () => {
    throw new TypeError('broken')
  }
  await expect(ClusterGuard.acquire(aging(objects).given)).rejects.toThrow('broken')
})

test('renews the Lease every 10 s, without a transition, until its release', async () => {
  const { objects, lease } = memory()
  const { given, pass } = aging(objects)
  const guard = await ClusterGuard.acquire(given)
  pass(10_000)
  await vi.advanceTimersByTimeAsync(10_000)
  expect(lease().spec).toMatchObject({
    renewTime: '2026-11-21T12:00:10.000000Z',
    acquireTime: '2026-11-21T12:00:00.000000Z',
    leaseTransitions: 1,
  })
  await guard.release()
  expect(vi.getTimerCount()).toBe(0)
})

test('creates a deleted Lease again', async () => {
  const { objects, holder, forget } = memory()
  const { given } = aging(objects)
  const guard = await ClusterGuard.acquire(given)
  forget('leases')
  await vi.advanceTimersByTimeAsync(10_000)
  expect(holder()).toMatch(/_000000000001$/)
  expect(() => guard.check()).not.toThrow()
})

test('stops once another run has the Lease, and does not change Lease or mirror', async () => {
  const { objects, holder, renewBySomebody, mirror } = memory()
  const guard = await ClusterGuard.acquire(aging(objects).given)
  renewBySomebody('another')
  await vi.advanceTimersByTimeAsync(10_000)
  const lost = { code: 'KCERT_LOCKED', why: expect.stringContaining('is held by another') }
  expect(() => guard.check()).toThrow(expect.objectContaining(lost))
  await expect(guard.confirm()).rejects.toMatchObject(lost)
  expect(vi.getTimerCount()).toBe(0)
  guard.follow('line\n')
  await guard.release()
  expect([holder(), mirror()]).toEqual(['another', undefined])
})

test('confirms without a request a Lease renewed less than its duration ago', async () => {
  const { objects, reads } = memory()
  const { given, pass, slept } = aging(objects)
  const guard = await ClusterGuard.acquire(given)
  const before = reads()
  pass(29_999)
  await guard.confirm()
  expect([reads() - before, slept()]).toEqual([0, 0])
  pass(1)
  await guard.confirm()
  expect([reads() - before, slept()]).toEqual([1, 0])
})

test('counts the duration from before the renewal request', async () => {
  const { objects, reads } = memory()
  const { given, pass } = aging(objects)
  const { create } = objects
  objects.create = (target, object) => {
    pass(20_000)
    return create(target, object)
  }
  const guard = await ClusterGuard.acquire(given)
  const before = reads()
  pass(10_000)
  await guard.confirm()
  expect(reads() - before).toBe(1)
})

test('after a sleep longer than the Lease, renews it or stops if another run has it', async () => {
  const { objects, holder, renewBySomebody } = memory()
  const { given, pass } = aging(objects)
  const guard = await ClusterGuard.acquire(given)
  pass(3_600_000)
  await guard.confirm()
  pass(3_600_000)
  renewBySomebody('another')
  await expect(guard.confirm()).rejects.toMatchObject({ code: 'KCERT_LOCKED' })
  expect(holder()).toBe('another')
})

test('waits 60 s for an API server to confirm the Lease, then fails', async () => {
  const { objects } = memory()
  const { given, pass, slept } = aging(objects)
  const guard = await ClusterGuard.acquire(given)
  pass(60_000)
  const { get } = objects
  objects.get = async () => {
    throw new KcertError('KCERT_UNREACHABLE', 'connection refused')
  }
  await expect(guard.confirm()).rejects.toMatchObject({
    code: 'KCERT_UNREACHABLE',
    message: 'Lease kube-system/kcert-rotation could not be renewed',
    why: expect.stringContaining('for 60 s'),
    next: 'kcert rotate-ca',
  })
  expect(slept()).toBe(60_000)
  objects.get = get
  await guard.confirm()
})

test('mirrors the last line after 3 s, and later lines at the release of the Lease', async () => {
  const { objects, mirror, stored } = memory()
  let wake = (): void => {}
  const sleeps: number[] = []
  const sleep = (ms: number) => {
    sleeps.push(ms)
    return new Promise<void>((resolve) => {
      wake = resolve
    })
  }
  const guard = await ClusterGuard.acquire({ ...aging(objects).given, sleep })
  guard.follow('1\n')
  guard.follow('1\n2\n')
  expect([sleeps, mirror()]).toEqual([[3_000], undefined])
  wake()
  await vi.waitFor(() => expect(mirror()).toBe('1\n2\n'))
  expect(stored('configmaps')).toMatchObject({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'kcert-rotation', namespace: 'kube-system' },
  })
  await new Promise(setImmediate)
  guard.follow('1\n2\n3\n')
  expect(sleeps).toEqual([3_000, 3_000])
  const released = guard.release()
  wake()
  await released
  expect(mirror()).toBe('1\n2\n3\n')
})

test('at release, writes a line that could not be mirrored earlier', async () => {
  const { objects, mirror } = memory()
  const { create } = objects
  let refuses = 0
  const guard = await ClusterGuard.acquire(aging(objects).given)
  objects.create = (target, object) => {
    if (refuses++ === 0) throw new KcertError('KCERT_UNREACHABLE', 'connection refused')
    return create(target, object)
  }
  guard.follow('1\n')
  await guard.release()
  expect([refuses, mirror()]).toEqual([2, '1\n'])
})

test('releases the Lease although the mirror, or the Lease itself, cannot be written', async () => {
  const { objects, holder } = memory()
  const guard = await ClusterGuard.acquire(aging(objects).given)
  objects.create = async () => {
    throw new KcertError('KCERT_API_FORBIDDEN', 'no')
  }
  guard.follow('1\n')
  await guard.release()
  expect(holder()).toBe('')
  for (const method of ['get', 'replace'] as const) {
    const { objects: others } = memory()
    const another = await ClusterGuard.acquire(aging(others).given)
    others[method] = async () => {
      throw new KcertError('KCERT_UNREACHABLE', 'connection refused')
    }
    await another.release()
  }
})

test('at release, does not change a Lease without a holder', async () => {
  const { objects, put, lease } = memory()
  const guard = await ClusterGuard.acquire(aging(objects).given)
  const { spec: _, ...bare } = lease()
  const kept = put('leases', bare)
  await guard.release()
  expect(lease()).toBe(kept)
})

test('mirrors at most the last 900,000 characters, starting at the beginning of a line', async () => {
  const { objects, mirror } = memory()
  const line = `${'x'.repeat(99_999)}\n`
  for (const [lines, kept] of [
    [9, 9],
    [10, 8],
  ] as const) {
    const guard = await ClusterGuard.acquire(aging(objects).given)
    guard.follow(line.repeat(lines))
    await guard.release()
    expect(mirror()).toBe(line.repeat(kept))
  }
})

test('reads the mirror only when its first line is the first line of a journal', async () => {
  const { objects, put } = memory()
  const guard = await ClusterGuard.acquire(aging(objects).given)
  expect(await guard.read()).toBeUndefined()
  const first = journalLine({ kind: 'phase', phase: 12, event: 'started' }, now.getTime(), undefined)
  const second = journalLine({ kind: 'phase', phase: 12, event: 'started' }, now.getTime(), first)
  for (const [text, isRead] of [
    [`${first}\n${second}\n`, true],
    [`${second}\n${first}\n`, false],
    [`${second}\n`, false],
    ['', false],
  ] as const) {
    put('configmaps', { data: { 'journal.jsonl': text } })
    expect(await guard.read()).toBe(isRead ? text : undefined)
  }
  put('configmaps', {})
  expect(await guard.read()).toBeUndefined()
})

test('does not read the mirror of a finished rotation when the operator names another journal', async () => {
  const { objects, put } = memory()
  const first = journalLine({ kind: 'phase', phase: 12, event: 'started' }, now.getTime(), undefined)
  const last = journalLine({ kind: 'phase', phase: 12, event: 'completed' }, now.getTime(), first)
  const [open, finished] = [`${first}\n`, `${first}\n${last}\n`]
  put('configmaps', { data: { 'journal.jsonl': open } })
  expect(await mirroredJournal(objects, true)).toBe(open)
  put('configmaps', { data: { 'journal.jsonl': finished } })
  expect(await mirroredJournal(objects)).toBe(finished)
  expect(await mirroredJournal(objects, true)).toBeUndefined()
  const guard = await ClusterGuard.acquire(aging(objects).given)
  expect(await guard.read()).toBe(finished)
  const named = await ClusterGuard.acquire({ ...aging(objects).given, isNamed: true })
  expect(await named.read()).toBeUndefined()
})

/** Options with a clock that advances only during a sleep or on command. No sleep lasts 5 minutes or more. */
function aging(objects: ObjectsApi, meanwhile: () => void = () => {}) {
  let time = now.getTime()
  let slept = 0
  let drawn = 0
  const pass = (ms: number): void => {
    time += ms
  }
  const sleep = async (ms: number): Promise<void> => {
    pass(ms)
    slept += ms
    if (slept > 300_000) throw new Error('waits for ever')
    meanwhile()
  }
  const random = (count: number): Uint8Array =>
    Uint8Array.from({ length: count }, (_, at) => (at === count - 1 ? ++drawn : 0))
  const given = { objects, clock: () => new Date(time), random, journalPath: '/a/kcert.jsonl', sleep }
  return { given, pass, slept: () => slept }
}

/** One Lease and one ConfigMap, with increasing resource versions. */
function memory() {
  const objects = new Map<string, ApiObject>()
  let [version, reads] = [0, 0]
  const put = (resource: string, object: ApiObject): ApiObject => {
    const kept = { ...object, metadata: { ...metadataOf(object), resourceVersion: String(++version) } }
    objects.set(resource, kept)
    return kept
  }
  const checked = ({
    resource,
    name,
    namespace,
  }: {
    resource: string
    name?: string
    namespace?: string
  }): string => {
    expect([name, namespace]).toEqual(['kcert-rotation', 'kube-system'])
    return resource
  }
  const api = {
    get: async (target) => {
      reads++
      return objects.get(checked(target))
    },
    create: async (target, object) => {
      const resource = checked({ ...target, name: String(metadataOf(object).name) })
      if (objects.has(resource)) throw new KcertError('KCERT_API_CONFLICT', 'already exists')
      return put(resource, object)
    },
    replace: async (target, object) => {
      const is = metadataOf(objects.get(checked(target))!).resourceVersion
      if (metadataOf(object).resourceVersion !== is) throw new KcertError('KCERT_API_CONFLICT', 'changed')
      return put(target.resource, object)
    },
  } as Pick<ObjectsApi, 'get' | 'create' | 'replace'> as ObjectsApi
  const lease = () => objects.get('leases') as ApiObject & { spec: { holderIdentity: string } }
  return {
    objects: api,
    put,
    lease,
    reads: () => reads,
    stored: (resource: string) => objects.get(resource),
    forget: (resource: string) => objects.delete(resource),
    holder: () => lease().spec.holderIdentity,
    renewBySomebody: (holderIdentity: string) =>
      put('leases', { ...lease(), spec: { ...lease().spec, holderIdentity } }),
    mirror: () => (objects.get('configmaps')?.data as Record<string, string> | undefined)?.['journal.jsonl'],
  }
}
