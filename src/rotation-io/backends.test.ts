import { expect, test } from 'vitest'
import type { ObjectsApi } from '../cluster/objects.ts'
import { backends } from './backends.ts'

const time = '2026-01-02T03:04:05Z'

const pod = (name: string, status: string | undefined, more: object = {}) => ({
  metadata: { namespace: 'shop', name, ...more },
  spec: { nodeName: 'w1' },
  status: { conditions: status === undefined ? [] : [{ type: 'Ready', status, lastTransitionTime: time }] },
})

const slice = (service: string | undefined, ...targets: readonly object[]) => ({
  metadata: {
    namespace: 'shop',
    name: `${service}-x`,
    ...(service && { labels: { 'kubernetes.io/service-name': service } }),
  },
  endpoints: targets.map((targetRef) => ({ targetRef })),
})

test('returns pods that Services select, with the time since they are Ready or not Ready', async () => {
  const target = (name: string) => ({ kind: 'Pod', namespace: 'shop', name })
  const listed: Readonly<Record<string, readonly object[]>> = {
    pods: [
      pod('ready', 'True'),
      pod('not', 'False'),
      pod('silent', undefined),
      pod('ends', 'False', { deletionTimestamp: time }),
      pod('alone', 'True'),
    ],
    endpointslices: [
      slice('web', target('ready'), target('not'), target('ends'), { kind: 'Node', name: 'alone' }),
      slice('other', target('ready'), target('silent')),
      slice(undefined, target('alone')),
    ],
  }
  const objects = {
    async *list({ resource }) {
      yield* listed[resource] ?? []
    },
  } as Pick<ObjectsApi, 'list'> as ObjectsApi
  const changedAtMs = Date.parse(time)
  expect(await backends({ objects })).toEqual([
    { pod: 'shop/ready', node: 'w1', isReady: true, changedAtMs, services: ['shop/web', 'shop/other'] },
    { pod: 'shop/not', node: 'w1', isReady: false, changedAtMs, services: ['shop/web'] },
    {
      pod: 'shop/silent',
      node: 'w1',
      isReady: false,
      changedAtMs: Number.POSITIVE_INFINITY,
      services: ['shop/other'],
    },
  ])
})
