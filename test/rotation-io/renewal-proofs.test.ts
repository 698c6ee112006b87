import { expect, test } from 'vitest'
import { proveLeaves } from '../../src/renewal-io/renewal-proofs.ts'
import { surveySite } from '../../src/renewal-io/renewing.ts'
import { controlPlaneTree } from '../pki/kubeadm-tree.ts'
import { MemoryNode } from './memory-node.ts'
import { sitesOf } from './memory-site.ts'

test('reports a certificate as not in use when its server does not run', async () => {
  const node = new MemoryNode('cp1', controlPlaneTree({ madeAt: new Date('2026-11-01T00:00:00Z') }))
  node.processes = []
  const site = (await sitesOf(new Map([['cp1', node]])))()
  const survey = await surveySite(site, () => true)
  const proofs = await proveLeaves(site, survey, survey.leaves)
  const serving = proofs.filter(({ what }) => what === 'served')
  expect(serving.map(({ name, ok, detail }) => [name, ok, detail])).toEqual(
    expect.arrayContaining([
      ['apiserver', false, 'kube-apiserver does not run there'],
      ['etcd-server', false, 'etcd does not run there'],
      ['etcd-peer', false, 'etcd does not run there'],
    ]),
  )
  const accepted = proofs.filter(({ what }) => what === 'accepted')
  expect(accepted.map(({ name }) => name)).toContain('admin.conf')
  expect(proofs.some(({ ok }) => ok)).toBe(false)
  // No server can report a client certificate in its own file, so there is no proof for it.
  expect(proofs.some(({ name }) => name === 'apiserver-kubelet-client')).toBe(false)
})
