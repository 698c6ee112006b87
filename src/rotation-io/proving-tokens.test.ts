import { describe, expect, test } from 'vitest'
import { serviceAccountKeys } from '../../test/fixtures/service-account-keys.ts'
import type { ApiObject } from '../cluster/malformed.ts'
import { provingTokens, watchTokenUse } from './proving-tokens.ts'

// Each proof with answers of API servers and nodes, also with those that no API server sends.

const [rsa, ecdsa] = serviceAccountKeys
const clock = () => new Date('2026-11-26T06:00:00Z')

interface Answers {
  readonly token?: unknown
  readonly reviews?: Readonly<Record<string, unknown>>
  readonly secret?: ApiObject | undefined
  /** The Secret of an earlier run. */
  readonly left?: ApiObject
  readonly cannotDelete?: boolean
  readonly lines?: string
  readonly status?: number
}

function partsOf({ token, reviews = {}, secret, left, cannotDelete, lines = '', status = 0 }: Answers) {
  const created: { resource: string; object: ApiObject }[] = []
  const deleted: unknown[] = []
  const site = {
    clock,
    apiServerOn: async (node: string) => ({
      create: async ({ resource }: { resource: string }, object: ApiObject) => {
        created.push({ resource, object })
        return resource === 'serviceaccounts' ? { status: token } : { status: reviews[node] }
      },
    }),
    objects: {
      create: async ({ resource }: { resource: string }, object: ApiObject) => {
        created.push({ resource, object })
        return object
      },
      get: async () => (created.length === 0 ? left : secret),
      delete: async (resource: unknown, preconditions?: unknown) => {
        if (cannotDelete) throw new Error('403')
        deleted.push(preconditions ?? resource)
      },
    },
    node: (name: string) => ({
      name,
      processes: async () => [],
      run: async () => ({ status, stdout: Buffer.from(lines), stderr: 'no access' }),
    }),
  }
  const planes = { everyApiServer: async () => [{ node: 'cp1' }, { node: 'cp2' }] }
  return { parts: { site, planes } as never, created, deleted }
}

const issued = { kind: 'issued-token', at: 'cp1/kube-apiserver', keyId: rsa.keyId } as const
const accepted = { cp1: { authenticated: true }, cp2: { authenticated: true } }

describe('a new token', () => {
  test('of the key, which every API server accepts', async () => {
    const { parts, created } = partsOf({ token: { token: rsa.boundToken }, reviews: accepted })
    expect(await provingTokens(issued, parts)).toEqual({ ok: true, detail: 'accepted by API servers: 2' })
    expect(created.map(({ resource }) => resource)).toEqual([
      'serviceaccounts',
      'tokenreviews',
      'tokenreviews',
    ])
  })

  test.each([
    ['of another key', { token: { token: ecdsa.boundToken }, reviews: accepted }, ecdsa.keyId],
    ['that is missing', { token: {}, reviews: accepted }, 'unknown'],
    ['that is no token', { token: { token: 'x' }, reviews: accepted }, 'unknown'],
    ['in an answer without status', { reviews: accepted }, 'unknown'],
    ['in an answer of another type', { token: ['x'], reviews: accepted }, 'unknown'],
  ])('%s proves nothing', async (_what, answers, its) => {
    const answer = await provingTokens(issued, partsOf(answers).parts)
    expect(answer).toEqual({ ok: false, detail: `cp1/kube-apiserver issues tokens of key ${its}` })
  })

  test.each([
    ['rejects', { authenticated: false }],
    ['says nothing about', {}],
    ['answers with text about', { authenticated: 'true' }],
    ['sends no status for', undefined],
  ])('that one API server %s proves nothing', async (_what, review) => {
    const { parts } = partsOf({ token: { token: rsa.boundToken }, reviews: { ...accepted, cp2: review } })
    expect(await provingTokens(issued, parts)).toEqual({
      ok: false,
      detail: 'cp2/kube-apiserver rejects a token that cp1/kube-apiserver issued',
    })
  })
})

describe('the token of a new Secret', () => {
  const subject = { kind: 'token-secret', keyId: rsa.keyId } as const
  const withToken = (token: string) => ({ data: { token: Buffer.from(token).toString('base64') } })

  test.each([
    [rsa.legacyToken, true],
    [ecdsa.legacyToken, false],
    ['garbage', false],
  ])('is read, and the Secret deleted', async (token, ok) => {
    const { parts, created, deleted } = partsOf({ secret: withToken(token) })
    expect(await provingTokens(subject, parts)).toMatchObject({ ok })
    expect(created[0]?.object).toMatchObject({
      type: 'kubernetes.io/service-account-token',
      metadata: { annotations: { 'kubernetes.io/service-account.name': 'default' } },
    })
    expect(deleted).toEqual([expect.objectContaining({ resource: 'secrets', namespace: 'kube-system' })])
  })

  test('of a killed run is deleted before the next one is created', async () => {
    const annotations = { 'kubernetes.io/service-account.name': 'default' }
    const left = { type: 'kubernetes.io/service-account-token', metadata: { uid: 'u1', annotations } }
    const answers = { left, secret: withToken(rsa.legacyToken) }
    const { parts, created, deleted } = partsOf(answers)
    expect(await provingTokens(subject, parts)).toMatchObject({ ok: true })
    expect(deleted).toEqual([{ uid: 'u1' }, expect.objectContaining({ name: 'kcert-token' })])
    expect(created).toHaveLength(1)
    // Another program's Secret stays.
    const other = partsOf({ ...answers, left: { ...left, type: 'Opaque' } })
    expect(await provingTokens(subject, other.parts)).toMatchObject({
      ok: false,
      detail: expect.stringContaining('kcert did not create Secret kube-system/kcert-token'),
    })
    expect([other.created, other.deleted]).toEqual([[], []])
  })

  test('proves nothing while the Secret cannot be deleted', async () => {
    const { parts } = partsOf({ secret: withToken(rsa.legacyToken), cannotDelete: true })
    await expect(provingTokens(subject, parts)).rejects.toThrow('403')
  })

  test('that is never signed proves nothing, and the Secret is deleted', async () => {
    const { parts, deleted } = partsOf({ secret: {} })
    expect(await provingTokens(subject, parts, async () => {})).toMatchObject({ ok: false })
    expect(deleted).toHaveLength(1)
  })
})

describe('mounted tokens', () => {
  const subject = { kind: 'mounted-tokens', node: 'w1', lacks: rsa.keyId } as const
  const line = (token: string) => `m ${token.split('.').slice(0, 2).join('.')} /token\n`

  test.each([
    [line(ecdsa.boundToken), true],
    [line(ecdsa.boundToken) + line(rsa.boundToken), false],
    // Of a Secret in a projected volume: no kubelet renews it.
    [line(ecdsa.boundToken) + line(rsa.legacyToken), true],
    ['', true],
  ])('are compared by key ID', async (lines, ok) => {
    expect(await provingTokens(subject, partsOf({ lines }).parts)).toMatchObject({ ok })
  })

  test('that cannot be read prove nothing', async () => {
    await expect(provingTokens(subject, partsOf({ status: 3 }).parts)).rejects.toThrow('no access')
  })
})

describe('the counters', () => {
  const metrics = (stale: unknown, legacy: unknown, started: unknown = '1.7641e+09') =>
    `process_start_time_seconds ${started}\nserviceaccount_stale_tokens_total ${stale}\nserviceaccount_legacy_tokens_total ${legacy}\n`
  const watch = (...texts: string[]) => {
    const site = { apiServerOn: async () => ({ text: async () => texts.shift() ?? '' }) }
    return watchTokenUse(
      { kind: 'token-use', at: 'cp1/kube-apiserver', forMs: 20_000 },
      site as never,
      async () => {},
    )
  }

  test('do not change', async () => {
    expect(await watch(metrics(3, 1), metrics(3, 1))).toMatchObject({ ok: true })
  })

  test.each([
    ['of stale tokens increases', [metrics(3, 1), metrics(4, 1)]],
    ['of legacy tokens increases', [metrics(3, 1), metrics(3, 2)]],
    ['starts again, after a restart', [metrics(3, 1), metrics(0, 0)]],
    ['is 0 before and after a restart', [metrics(0, 0), metrics(0, 0, '1.7642e+09')]],
    ['is missing', ['serviceaccount_stale_tokens_total 0\n', 'serviceaccount_stale_tokens_total 0\n']],
    ['is no number', [metrics('NaN', 0), metrics('NaN', 0)]],
    ['is gone at the end', [metrics(0, 0), '']],
  ])('prove nothing if one %s', async (_what, texts) => {
    expect(await watch(...texts)).toMatchObject({ ok: false })
  })
})

test('no answer contains a token', async () => {
  const traces = [rsa.boundToken, rsa.legacyToken].flatMap((token) => token.match(/.{16}/g) ?? [])
  const answers = [
    await provingTokens(issued, partsOf({ token: { token: rsa.boundToken }, reviews: {} }).parts),
    await provingTokens(issued, partsOf({ token: { token: rsa.boundToken }, reviews: accepted }).parts),
  ]
  const text = JSON.stringify(answers)
  expect(traces.filter((trace) => text.includes(trace))).toEqual([])
})
