import { expect, test, vi } from 'vitest'
import { manualRotation } from '../rotation/phase-table.ts'
import { SiteExecutor } from './executor.ts'

// Each action reaches the part that executes it, and the parts share the same objects.

const { made, did, fake } = vi.hoisted(() => {
  const made = new Map<string, { self: object; given: readonly unknown[] }>()
  const did: unknown[][] = []
  const fake = (name: string, ...methods: readonly string[]) => {
    class Fake {
      constructor(...given: readonly unknown[]) {
        made.set(name, { self: this, given })
        for (const method of methods) {
          Object.assign(this, {
            [method]: (...asked: readonly unknown[]) => {
              did.push([name, method, ...asked])
              return Promise.resolve(`${name} ${method}`)
            },
          })
        }
      }
    }
    return { [name]: Fake }
  }
  return { made, did, fake }
})

vi.mock('../site/control-planes.ts', () => fake('ControlPlanes', 'node'))
vi.mock('./copies.ts', () => fake('Copies'))
vi.mock('./rotation-cas.ts', () => fake('RotationCas'))
vi.mock('./rotation-keys.ts', () => fake('RotationKeys'))
vi.mock('./own-identity.ts', () => fake('OwnIdentity'))
vi.mock('./kubelet-requests.ts', () => fake('KubeletRequests'))
vi.mock('./file-writing.ts', () => fake('FileWriting', 'write'))
vi.mock('./object-patching.ts', () => fake('ObjectPatching', 'patch'))
vi.mock('./restarting.ts', () => fake('Restarting', 'restart', 'wrote'))
vi.mock('./rolling.ts', () => fake('Rolling', 'roll'))
vi.mock('./probing.ts', () => fake('Probing', 'probe'))

test('passes each action to its part; the parts share one site, one set of CAs and one set of copies', async () => {
  const site = { objects: {}, clock: () => new Date(5_000) }
  const [random, given, unreadLogs] = [() => new Uint8Array(), {}, {}]
  const executor = new SiteExecutor({ site, random, given, unreadLogs } as never)
  const part = (name: string) => made.get(name)!.self
  const [planes, copies, cas] = [part('ControlPlanes'), part('Copies'), part('RotationCas')]
  const identity = part('OwnIdentity')
  const givenTo = (name: string) => made.get(name)!.given
  expect(givenTo('ControlPlanes')).toEqual([site])
  expect(givenTo('RotationKeys')).toEqual([planes])
  expect(givenTo('RotationCas')).toEqual([site, planes, random, given, manualRotation])
  const keys = part('RotationKeys')
  const parts = {
    site,
    planes,
    copies,
    cas,
    keys,
    table: manualRotation,
    identity,
    requests: part('KubeletRequests'),
  }
  for (const name of ['FileWriting', 'ObjectPatching', 'Probing'])
    expect(givenTo(name), name).toEqual([parts])
  expect(givenTo('Restarting')).toEqual([site, planes, unreadLogs])
  const [nodeNamed, nowMs] = [givenTo('Copies')[0], givenTo('Rolling')[1]] as [
    (name: string) => unknown,
    () => number,
  ]
  expect([await nodeNamed('cp1'), nowMs()]).toEqual(['ControlPlanes node', 5_000])
  const action = { node: 'w1' } as never
  expect(await executor.write(action)).toBeUndefined()
  const answers = [
    executor.patch(action),
    executor.restart(action),
    executor.roll(action),
    executor.probe(action),
  ]
  expect(await Promise.all(answers)).toEqual([
    'ObjectPatching patch',
    'Restarting restart',
    'Rolling roll',
    'Probing probe',
  ])
  expect(did).toEqual([
    ['ControlPlanes', 'node', 'cp1'],
    ['FileWriting', 'write', action],
    // The restarts that follow take files written on a node into account.
    ['Restarting', 'wrote', 'w1'],
    ['ObjectPatching', 'patch', action],
    ['Restarting', 'restart', action],
    ['Rolling', 'roll', action],
    ['Probing', 'probe', action],
  ])
})
