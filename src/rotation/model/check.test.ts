import { beforeEach, expect, test, vi } from 'vitest'
import type { Action, Step } from '../action.ts'
import type { Board, Cell } from './board.ts'
import { type BrokenEdge, checkPlan, refusalOf } from './check.ts'

// The order of a check, on a world whose actions the tests define. test/rotation/model.test.ts tests the real actions.

interface FakeWorld {
  readonly board: Board
  readonly rolled: ReadonlySet<string>
  readonly oldAlone: Cell
  readonly unread: Map<Cell, { sinceMs: number }>
  clockMs: number
}

const state = vi.hoisted(() => ({
  worlds: [] as unknown[],
  done: [] as string[],
  passed: [] as number[],
  prepare: (_: unknown): void => {},
}))

vi.mock('./world.ts', async () => {
  const { Board } = await import('./board.ts')
  return {
    World: class {
      readonly board = new Board(new Map(), 0)
      readonly rolled: ReadonlySet<string>
      readonly oldAlone = this.board.cell({ label: 'the old CA alone', presentsIn: [], verifiesIn: [] }, [1])
      readonly unread = new Map()
      clockMs = 0
      constructor(_picture: unknown, _target: unknown, rolled: ReadonlySet<string>) {
        this.rolled = rolled
        state.worlds.push(this)
        state.prepare(this)
      }
    },
  }
})
vi.mock('./effects.ts', () => ({
  perform: (world: FakeWorld, action: { path?: string; effect?: (world: FakeWorld) => void }) => {
    state.done.push(String(action.path))
    action.effect?.(world)
  },
}))
vi.mock('./passing.ts', () => ({ pass: (_: unknown, ms: number) => state.passed.push(ms) }))

beforeEach(() => {
  Object.assign(state, { worlds: [], done: [], passed: [], prepare: () => {} })
})

const write = (path: string, effect?: (world: FakeWorld) => void, phase = 5): Action =>
  ({ kind: 'write-file', phase, node: 'cp1', path, content: { kind: 'nothing' }, effect }) as never
const side = (...lanes: readonly (readonly Action[])[]): Step => ({
  kind: 'together',
  atOnce: 2,
  lanes: lanes.map((steps, index) => ({ name: `w${index + 1}`, steps })),
})
const check = (...steps: readonly Step[]) => checkPlan({} as never, {} as never, steps)
const cell = ({ board }: FakeWorld, values: readonly number[]): Cell =>
  board.cell({ label: 'one', presentsIn: [], verifiesIn: [] }, values)
const broken = {
  kind: 'server',
  credentialHolder: 'a',
  trustHolder: 'b',
  shows: undefined,
  trusts: [],
  refusing: ['go'],
} as const

test.each([
  ['write-file', true],
  ['patch-object', true],
  ['restart', true],
  ['rollout', true],
  ['wait', false],
  ['probe', false],
  ['confirm', false],
])('a plan with a step %s, alone or in a lane, is checked: %s', (kind, isChecked) => {
  const probe = { kind: 'probe', phase: 5, subject: { kind: 'logs', node: 'w1' } } as never
  const step = {
    kind,
    phase: 5,
    until: { kind: 'volumes' },
    object: {},
    change: {},
    subject: {},
    content: {},
  } as never
  for (const plan of [[step], [probe, step], [side([probe], [probe, step])]]) {
    state.worlds = []
    check(...plan)
    expect(state.worlds).toHaveLength(isChecked ? 1 : 0)
  }
})

test('distinguishes pods by the workloads that are rolled out or waited for', () => {
  const roll = (workload: string): Action => ({ kind: 'rollout', phase: 5, workload }) as never
  const wait = (until: object): Action => ({ kind: 'wait', phase: 5, until }) as never
  check(
    write('a'),
    roll('A'),
    wait({ kind: 'pods-started', workload: 'B' }),
    wait({ kind: 'volumes' }),
    wait({ kind: 'pods-converged', workload: undefined }),
    side([roll('C')], [wait({ kind: 'pods-started', workload: 'D' })]),
  )
  expect([...(state.worlds[0] as FakeWorld).rolled]).toEqual(['A', 'B', 'C', 'D'])
})

test.each([
  [12, []],
  [11, [1]],
  // A recovery is not a phase of the table.
  [0, [1]],
])('ignores clients that trust only the old CA from phase 12 on: phase %i', (phase, values) => {
  const observed: (readonly number[])[] = []
  check(write('a', ({ oldAlone }) => observed.push(oldAlone.values), phase))
  expect(observed).toEqual([values])
})

test('returns the first connection that breaks, with the action that breaks it', () => {
  state.prepare = (world) => {
    const one = vi.spyOn((world as FakeWorld).board, 'takeBroken')
    one.mockReturnValueOnce(undefined).mockReturnValueOnce(broken)
  }
  expect(check(write('/a'), write('/b', undefined, 9), write('/c'))).toEqual({
    ...broken,
    phase: 9,
    after: 'remove cp1:/b',
  })
  expect(state.done).toEqual(['/a', '/b'])
})

test('runs a plan that breaks nothing to its end', () => {
  expect(check(write('/a'), side([write('/b')], [write('/c')]), write('/d'))).toBeUndefined()
  expect(state.done).toEqual(['/a', '/b', '/c', '/d'])
})

test('a connection that breaks in a lane stops this lane and later lanes', () => {
  state.prepare = (world) => {
    vi.spyOn((world as FakeWorld).board, 'takeBroken').mockReturnValueOnce(broken)
  }
  expect(check(side([write('/a'), write('/b')], [write('/c')]))).toMatchObject({
    after: 'remove cp1:/a',
  })
  expect(state.done).toEqual(['/a'])
})

test('starts each lane from the initial state, combines all states of the lanes, and keeps their final states', () => {
  let [one, other, third] = [] as unknown as [Cell, Cell, Cell]
  const observed: (readonly number[])[][] = []
  state.prepare = (world) => {
    one = cell(world as FakeWorld, [1])
    other = cell(world as FakeWorld, [5])
    third = cell(world as FakeWorld, [7])
    vi.spyOn((world as FakeWorld).board, 'takeBroken').mockImplementation(() => {
      observed.push([one.values, other.values, third.values])
      return undefined
    })
  }
  check(
    side(
      [write('/a', ({ board }) => board.set(one, [1, 2])), write('/b', ({ board }) => board.set(one, [2]))],
      [
        write('/c', ({ board }) => {
          board.set(one, [3])
          board.set(other, [6])
        }),
      ],
    ),
  )
  expect(observed).toEqual([
    [[1, 2], [5], [7]],
    [[2], [5], [7]],
    [[3], [6], [7]],
    // In parallel.
    [[1, 2, 3], [5, 6], [7]],
  ])
  expect([one.values, other.values, third.values]).toEqual([[2, 3], [6], [7]])
})

test('does not check a value while resetting it after a lane', () => {
  let one = undefined as unknown as Cell
  const watched: boolean[] = []
  state.prepare = (world) => {
    const { board } = world as FakeWorld
    one = cell(world as FakeWorld, [1])
    const set = board.set.bind(board)
    vi.spyOn(board, 'set').mockImplementation((...given) => {
      watched.push((board as unknown as { isWatching: boolean }).isWatching)
      set(...given)
    })
    board.watch()
  }
  check(side([write('/a', ({ board }) => board.set(one, [2]))], [write('/b')]))
  // The action, the reset, the parallel state and the final state.
  expect(watched).toEqual([true, false, true, true])
})

test.each([
  [2, 'w1, w2 in parallel'],
  [3, 'w1, w2, w3 in parallel'],
  [4, 'w1, w2, w3 and 1 more in parallel'],
  [6, 'w1, w2, w3 and 3 more in parallel'],
])('names three of %i lanes that break a connection together', (count, after) => {
  state.prepare = (world) => {
    const one = vi.spyOn((world as FakeWorld).board, 'takeBroken')
    for (let index = 0; index < count; index++) one.mockReturnValueOnce(undefined)
    one.mockReturnValueOnce(broken)
  }
  const lanes = Array.from({ length: count }, () => [write('/a', undefined, 9)])
  expect(check(side(...lanes))).toEqual({ ...broken, phase: 9, after })
})

test('runs lanes at the same time: the clock shows the end of the slowest lane', () => {
  let [touched, untouched] = [] as unknown as [Cell, Cell]
  const began: number[] = []
  const lasting = (ms: number) => (world: FakeWorld) => {
    began.push(world.clockMs)
    world.clockMs += ms
    world.board.set(touched, [ms])
  }
  state.prepare = (given) => {
    const world = given as FakeWorld
    touched = cell(world, [1])
    untouched = cell(world, [1])
    world.clockMs = 100
    world.unread.set(touched, { sinceMs: 1 })
    world.unread.set(untouched, { sinceMs: 1 })
  }
  check(side([write('/a', lasting(5_000))], [write('/b', lasting(3_000))]))
  const { clockMs, unread } = state.worlds[0] as FakeWorld
  expect([began, clockMs]).toEqual([[100, 100], 5_100])
  expect([...unread.values()]).toEqual([{ sinceMs: 5_100 }, { sinceMs: 1 }])
  // By then, a file that was written long enough ago has been read.
  expect(state.passed).toEqual([0])
})

const edge: BrokenEdge = { ...broken, phase: 9, after: 'write cp1:/a' }
const ca = { subject: 'CN=kubernetes', issuer: 'CN=root', digest: '0123456789abcdef' } as never

test.each([
  [{ refusing: ['go'] }, ' (as Go builds paths)'],
  [{ refusing: ['openssl'] }, ' (as OpenSSL builds paths)'],
  [{ refusing: ['go', 'openssl'] }, ''],
] as const)('a refusal names the side that rejects: %j', (more, pathBuilder) => {
  expect(refusalOf({ ...edge, ...more }).what).toBe(
    `the plan of phase 9 breaks a connection: b would refuse a${pathBuilder}`,
  )
})

test('a refusal contains the presented certificate and the trusted CAs, where they are known', () => {
  expect(refusalOf(edge).why).toBe(
    'after "write cp1:/a" the certificate would be signed by an unknown CA, and the trusted CAs might be none; ' +
      'nothing was changed; all clients must trust both CAs first (to accept the risk: --waive)',
  )
  expect(refusalOf({ ...edge, shows: ca, trusts: [ca, ca] }).why).toBe(
    'after "write cp1:/a" the certificate would be signed by CN=root, and the trusted CAs might be only ' +
      'CN=kubernetes (0123456789ab), CN=kubernetes (0123456789ab); ' +
      'nothing was changed; all clients must trust both CAs first (to accept the risk: --waive)',
  )
})

test.each<[BrokenEdge['kind'], string, string]>([
  ['client', 'API servers must trust both CAs first', 'kcert rotate-ca --phase 5'],
  ['kubelet-client', 'kubelets and cluster-info must have both CAs first', 'kcert rotate-ca --phase 5'],
  [
    'kubelet-serving',
    'API servers must have read --kubelet-certificate-authority first',
    'kcert rotate-ca --phase 5',
  ],
  [
    'front-proxy',
    'webhooks and aggregated API servers must have read both front-proxy CAs first, in phases 5 and 9',
    'kcert rotate-ca --phase 5',
  ],
  [
    'handler',
    'its owner must reissue the certificate, or its caBundle must have both CAs',
    'kcert rotate-ca --phase 9',
  ],
  [
    'user',
    'kubelets, controller-managers and schedulers must trust both CAs first',
    'kcert rotate-ca --through 6',
  ],
])('a refusal names what must come before a connection of kind %s', (kind, why, next) => {
  const refusal = refusalOf({ ...edge, kind })
  expect(refusal.why.endsWith(`; nothing was changed; ${why}`)).toBe(true)
  expect(refusal.next).toBe(next)
})

test('a refusal while the old CA is dropped asks for certificates of the new CA', () => {
  const { why, next } = refusalOf({ ...edge, kind: 'client', phase: 12 })
  expect(why).toMatch(/every certificate must be issued by the new CA before the old CA is dropped$/)
  expect(next).toBe('kcert rotate-ca --phase 11')
  expect(refusalOf({ ...edge, phase: 12, flaw: 'two certificates' }).next).toBe('kcert rotate-ca plan')
})

test('a refusal of a plan that stops a signer names the signer', () => {
  expect(refusalOf({ ...edge, flaw: 'two certificates' })).toEqual({
    what: 'the plan of phase 9 would stop a: two certificates',
    why:
      'after "write cp1:/a" no certificate request would be signed; nothing was changed; ' +
      'check the signing files of the controller-managers',
    next: 'kcert rotate-ca plan',
  })
})
