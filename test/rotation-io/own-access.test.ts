import { expect, test } from 'vitest'
import { resources } from '../../src/cluster/kinds.ts'
import type { ObjectsApi } from '../../src/cluster/objects.ts'
import { KcertError } from '../../src/errors/kcert-error.ts'
import { withOwnAccess } from '../../src/rotation-io/own-access.ts'
import {
  certificatePem,
  controlPlaneTree,
  keyPem,
  type NodeTree,
  testCa,
  testKey,
} from '../pki/kubeadm-tree.ts'
import { MemoryNode, now } from './memory-node.ts'
import { sitesOf } from './memory-site.ts'

const pki = '/etc/kubernetes/pki'
const tree: NodeTree = controlPlaneTree({ madeAt: now, nodeName: 'cp1' })

/** Returns a control plane of which kcert has the keys of both CAs. */
function rotating(): MemoryNode {
  const node = new MemoryNode('cp1', tree)
  const argv = ['kube-apiserver', `--client-ca-file=${pki}/ca.crt`]
  node.processes = [{ program: 'kube-apiserver', argv }] as unknown as MemoryNode['processes']
  const { key, certificate } = testCa('kubernetes-ca-2', testKey('new CA'), now)
  node.files.set(`${pki}/kcert/new/ca.key`, { content: Buffer.from(keyPem(key)), mode: 0o600 })
  node.files.set(`${pki}/kcert/new/ca.crt`, {
    content: Buffer.from(certificatePem(certificate)),
    mode: 0o644,
  })
  for (const file of ['ca.key', 'ca.crt'])
    node.files.set(`${pki}/kcert/old/${file}`, node.files.get(`${pki}/${file}`)!)
  return node
}

/** Returns access with a kubeconfig that every API server refuses, the servers that kcert asks itself, and what was attempted. */
async function refusedAccess(node: MemoryNode, code: 'KCERT_API_UNTRUSTED' | 'KCERT_API_FORBIDDEN') {
  const attempts: string[] = []
  const told: string[] = []
  let at = now.getTime()
  const refuse = (what: string): never => {
    attempts.push(what)
    throw new KcertError(code, 'refused')
  }
  const site = (await sitesOf(new Map([['cp1', node]])))()
  const objects = {
    get: async () => refuse('get'),
    // biome-ignore lint/correctness/useYield: it only fails
    async *list() {
      refuse('list')
    },
  } as unknown as ObjectsApi
  const dial = (name: string): never => {
    attempts.push(`own at ${name}`)
    throw new Error('nobody answers')
  }
  const access = withOwnAccess(
    { ...site, objects, dial, clock: () => new Date(at) },
    (length) => Buffer.alloc(length, 1),
    (note) => told.push(note),
  )
  const get = async () => {
    at += 11_000
    attempts.length = 0
    const error = await access.objects
      .get({ ...resources.leases, name: 'kcert-rotation' })
      .catch((caught: KcertError) => caught.code)
    return { error, attempts: [...attempts] }
  }
  return { get, told }
}

test('a refused kubeconfig is not used again, not even to list the nodes', async () => {
  const { get, told } = await refusedAccess(rotating(), 'KCERT_API_UNTRUSTED')
  expect(await get()).toEqual({ error: 'KCERT_UNREACHABLE', attempts: ['get', 'list', 'own at cp1'] })
  expect(await get()).toEqual({ error: 'KCERT_UNREACHABLE', attempts: ['own at cp1'] })
  expect(await get()).toEqual({ error: 'KCERT_UNREACHABLE', attempts: ['own at cp1'] })
  expect(told).toEqual([expect.stringMatching(/^your kubeconfig no longer works with the API servers, /)])
})

test('without the keys of both CAs, and for another error, the kubeconfig stays', async () => {
  const without = await refusedAccess(new MemoryNode('cp1', tree), 'KCERT_API_UNTRUSTED')
  expect((await without.get()).error).toBe('KCERT_API_UNTRUSTED')
  expect((await without.get()).attempts).toEqual(['get', 'list'])
  const forbidden = await refusedAccess(rotating(), 'KCERT_API_FORBIDDEN')
  expect(await forbidden.get()).toEqual({ error: 'KCERT_API_FORBIDDEN', attempts: ['get'] })
  expect([...without.told, ...forbidden.told]).toEqual([])
})
