import { canonicalIp } from '../../src/csr/approval/addresses.ts'
import type {
  AccessQuestion,
  ApprovalFacts,
  ClusterAddresses,
  NodeFacts,
  ServedCertificate,
} from '../../src/csr/approval/facts.ts'

export interface FakeCluster {
  /** "user subresource" */
  readonly allowed?: readonly string[]
  readonly nodes?: readonly NodeFacts[]
  readonly served?: Readonly<Record<string, ServedCertificate>>
  readonly addresses?: ClusterAddresses
  readonly failing?: Partial<Record<keyof ApprovalFacts, string>>
}

export interface FakeFacts extends ApprovalFacts {
  readonly questions: AccessQuestion[]
  readonly lookups: (keyof ApprovalFacts)[]
}

/** Returns facts from memory. approval-facts.md is its contract. */
export function fakeFacts(cluster: FakeCluster): FakeFacts {
  const { allowed, nodes, served, addresses, failing = {} } = cluster
  const questions: AccessQuestion[] = []
  const lookups: (keyof ApprovalFacts)[] = []
  const lookup = (what: keyof ApprovalFacts): void => {
    lookups.push(what)
    if (failing[what] !== undefined) throw new Error(failing[what])
  }
  return {
    questions,
    lookups,
    async isAllowed(question) {
      questions.push(question)
      lookup('isAllowed')
      return allowed?.includes(`${question.user} ${question.resource.subresource}`)
    },
    async findNode(name) {
      lookup('findNode')
      return nodes && (nodes.find((node) => node.name === name) ?? 'absent')
    },
    async findNodesAt(address) {
      lookup('findNodesAt')
      const spelled = spelling(address)
      return nodes
        ?.filter((node) => node.addresses.some((one) => spelling(one.address) === spelled))
        .map((node) => node.name)
    },
    async readServedCertificate(node) {
      lookup('readServedCertificate')
      return served && (served[node.name] ?? 'none')
    },
    async readClusterAddresses() {
      lookup('readClusterAddresses')
      return addresses
    },
  }
}

function spelling(address: string): string {
  return canonicalIp(address) ?? address.toLowerCase()
}
