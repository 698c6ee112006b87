import { expect, test } from 'vitest'
import { carryOutRecovery, planRecovery } from '../../src/rotation-io/recovering.ts'
import { readCertificates } from '../../src/x509/certificate.ts'
import { controlPlaneTree, workerTree } from '../pki/kubeadm-tree.ts'
import { digest, MemoryNode, now } from './memory-node.ts'
import { sitesOf } from './memory-site.ts'

// Two nodes whose CAs expired years ago, without running processes. kcert uses only their files, not the API server.

const madeAt = new Date('2016-11-01T00:00:00Z')
let drawn = 0
const random = (count: number): Uint8Array => Buffer.alloc(count, ++drawn)
const ca = '/etc/kubernetes/pki/ca.crt'

async function cluster() {
  const nodes = new Map([
    ['cp1', new MemoryNode('cp1', controlPlaneTree({ madeAt }))],
    ['w1', new MemoryNode('w1', workerTree({ madeAt, nodeName: 'w1' }))],
  ])
  return { nodes, site: await sitesOf(nodes) }
}

test('writes the planned files with copies, restarts kubelets, and finds nothing to do in the next run', async () => {
  const { nodes, site } = await cluster()
  const plan = await planRecovery(site(), random)
  expect(plan.files.length).toBeGreaterThan(15)
  expect(plan.restarts).toEqual(['cp1', 'w1'])
  const said: string[] = []
  const before = new Map(nodes.get('cp1')!.files)
  await carryOutRecovery(site(), plan, random, (what) => said.push(what))
  expect(said.join('\n')).toContain(`wrote cp1:${ca} (CN=kubernetes until 2036-11-`)
  expect(said.join('\n')).not.toContain('PRIVATE')
  expect([...nodes.values()].map(({ restarted }) => restarted)).toEqual([
    ['kubelet.service'],
    ['kubelet.service'],
  ])
  const { files } = nodes.get('cp1')!
  const renewed = readCertificates(files.get(ca)!.content)
  expect(renewed.map(({ notAfterMs }) => notAfterMs > now.getTime())).toEqual([true])
  expect(files.get(ca)!.mode).toBe(before.get(ca)!.mode)
  const copy = `/var/lib/kcert/copies/by-digest/${digest(before.get(ca)!.content)}`
  expect(files.get(copy)?.content).toEqual(before.get(ca)!.content)
  expect(nodes.get('w1')!.files.get(ca)!.content.equals(files.get(ca)!.content)).toBe(true)
  expect(await planRecovery(site(), random)).toMatchObject({ files: [], renewed: [], keyless: [] })
})

test('has one CA everywhere after an interruption and a second run', async () => {
  const { nodes, site } = await cluster()
  const first = await planRecovery(site(), random)
  nodes.get('cp1')!.writesLeft = 20
  await expect(carryOutRecovery(site(), first, random, () => {})).rejects.toThrow('cut off')
  nodes.get('cp1')!.writesLeft = Number.POSITIVE_INFINITY
  const second = await planRecovery(site(), random)
  expect(second.files.length).toBeLessThan(first.files.length)
  await carryOutRecovery(site(), second, random, () => {})
  const cas = [...nodes.values()].map(
    ({ files }) => readCertificates(files.get(ca)!.content)[0]!.fingerprintSha256,
  )
  expect(new Set(cas).size).toBe(1)
  // The first run stopped before any restart. The second one still restarts the nodes, although their files are valid.
  expect(second.restarts).toEqual(['cp1', 'w1'])
  expect((await planRecovery(site(), random)).files).toEqual([])
})
