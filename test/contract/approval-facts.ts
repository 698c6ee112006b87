import { beforeAll, describe, expect, test } from 'vitest'
import type { AccessQuestion, ApprovalFacts, NodeFacts } from '../../src/csr/approval/facts.ts'

/** A cluster for the suite, and the facts to look up in it. */
export interface FactsStage {
  readonly facts: ApprovalFacts
  /** A worker Node, and its facts. */
  readonly worker: NodeFacts
  readonly controlPlane: NodeFacts
  /** A user whose client certificate requests may be approved automatically (nodeclient). */
  readonly trustedUser: string
  readonly trustedGroups: readonly string[]
  /** Some of the addresses of the API servers. */
  readonly apiServers: readonly string[]
  readonly serviceCidrs: readonly string[]
  close(): Promise<void>
}

const question = (user: string, groups: readonly string[], subresource: string): AccessQuestion => ({
  user,
  groups,
  extra: {},
  resource: {
    group: 'certificates.k8s.io',
    version: '*',
    resource: 'certificatesigningrequests',
    subresource,
    verb: 'create',
  },
})

/** The contract in test/fakes/approval-facts.md: for the fake, for the adapter on the fake API server, and for a real cluster. */
export function approvalFactsContract(name: string, open: () => Promise<FactsStage>): void {
  describe(`approval facts: ${name}`, () => {
    let stage: FactsStage
    beforeAll(async () => {
      stage = await open()
      return () => stage.close()
    })

    test('evaluates RBAC for the requester and the requested permission', async () => {
      const { facts, trustedUser, trustedGroups } = stage
      expect(await facts.isAllowed(question(trustedUser, trustedGroups, 'nodeclient'))).toBe(true)
      expect(await facts.isAllowed(question(trustedUser, trustedGroups, 'something'))).toBe(false)
      expect(await facts.isAllowed(question('eve', ['system:authenticated'], 'nodeclient'))).toBe(false)
    })

    test('finds a Node by its name, with its addresses and its role', async () => {
      const { facts, worker, controlPlane } = stage
      expect(await facts.findNode(worker.name)).toEqual(worker)
      expect(await facts.findNode(controlPlane.name)).toEqual(controlPlane)
      expect(worker.isControlPlane).toBe(false)
      expect(controlPlane.isControlPlane).toBe(true)
    })

    test('returns absent for a name without a Node', async () => {
      expect(await stage.facts.findNode('no-such-node')).toBe('absent')
    })

    test('finds a Node by its address in any spelling', async () => {
      const { facts, worker } = stage
      for (const { address } of worker.addresses)
        expect(await facts.findNodesAt(address)).toEqual([worker.name])
      const ip = worker.addresses.find(({ type }) => type === 'InternalIP')!.address
      expect(await facts.findNodesAt(`::ffff:${ip}`)).toEqual([worker.name])
      const hostname = worker.addresses.find(({ type }) => type === 'Hostname')!.address
      expect(await facts.findNodesAt(hostname.toUpperCase())).toEqual([worker.name])
      expect(await facts.findNodesAt('192.0.2.254')).toEqual([])
    })

    test('reads the certificate that a kubelet serves, with the name of the node', async () => {
      const { facts, worker } = stage
      const node = await facts.findNode(worker.name)
      if (typeof node !== 'object') throw new Error(`no Node ${worker.name}`)
      const served = await facts.readServedCertificate(node)
      expect(served).toMatchObject({ isTrusted: true })
      if (typeof served === 'object')
        expect(served.certificate.subject.commonName).toBe(`system:node:${worker.name}`)
    })

    test('returns the addresses of API servers and Services', async () => {
      const addresses = await stage.facts.readClusterAddresses()
      expect(addresses?.serviceCidrs).toEqual(stage.serviceCidrs)
      expect(addresses?.apiServers).toEqual(expect.arrayContaining([...stage.apiServers]))
    })
  })
}
