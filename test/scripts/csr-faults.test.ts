import { expect, test } from 'vitest'
import { callFaults, limitFor } from '../fakes/api-server-faults.ts'
import { requestsKey } from './cluster-session.ts'
import { pause, RequestLife, user } from './request-life.ts'

// Every call of the requester's commands fails once in every way. Nothing is lost, and nothing is created twice.

const life = new RequestLife('csr-faults')

// Every call of the command meets every fault once: create, watch (and its list), and get after a create that was cut off.
test.each(callFaults.flatMap((kind) => ['create', 'list', 'watch'].map((verb) => [kind, verb] as const)))(
  'request survives %s at %s, or reports that it must run again, and the second run completes it with the same object',
  async (kind, verb) => {
    life.server.faults.add({ kind, verb, resource: requestsKey.resource, retryAfterSeconds: 0 })
    const args = life.request('--wait', '30s')
    const first = await life.runApproved(...args, ...limitFor(kind))
    if (first.exit !== 0) {
      expect([3, 4]).toContain(first.exit)
      life.server.faults.clear()
      expect(await life.runApproved(...args)).toMatchObject({ exit: 0 })
    }
    expect(life.server.all(requestsKey).filter(({ metadata }) => metadata.name === life.name)).toHaveLength(1)
    life.expectPair()
  },
  1_200_000,
)

test.each(callFaults)('fetch survives %s, or reports that it must run again', async (kind) => {
  life.makeRequest()
  await life.run('csr', 'submit', life.at('a.csr'), ...user)
  life.decide('Approved')
  life.server.faults.add({ kind, verb: 'get', resource: requestsKey.resource, retryAfterSeconds: 0 })
  const args = ['csr', 'fetch', life.name, '--key', life.at('key.pem'), '--out', life.at('a.crt')]
  while (life.stored?.status?.certificate === undefined) await pause()
  const first = await life.run(...args, ...limitFor(kind))
  if (first.exit !== 0) expect((await life.run(...args)).exit).toBe(0)
  life.expectPair()
})
