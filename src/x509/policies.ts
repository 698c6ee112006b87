import type { Certificate } from './certificate.ts'
import type { PolicyMapping } from './extensions.ts'

// Certificate policies: RFC 5280 section 6.1 with the policy graph of RFC 9618, which stays small where the old tree grew without
// bound. Every policy is acceptable at the start. A chain fails only if a certificate in it requires an explicit policy (RFC 5280
// section 4.2.1.11) and no policy is valid from the root down.

const anyPolicy = '2.5.29.32.0'

interface Node {
  readonly validPolicy: string
  expectedPolicies: readonly string[]
  readonly parents: Set<Node>
  readonly children: Set<Node>
}

/** One level of the graph: its nodes by policy. */
type Level = Map<string, Node>

class PolicyGraph {
  private leaves: Level = new Map([[anyPolicy, newNode(anyPolicy, [])]])
  private readonly levels = [this.leaves]

  /** Section 6.1.3 (d) of RFC 9618, for one certificate. */
  grow(policies: readonly string[], mayUseAnyPolicy: boolean): void {
    const above = this.leaves
    const level: Level = new Map()
    this.levels.push(level)
    this.leaves = level
    const expecting = byExpectedPolicy(above)
    const parentWithAny = above.get(anyPolicy)
    for (const policy of policies) {
      if (policy === anyPolicy) continue
      const parents = expecting.get(policy) ?? (parentWithAny && [parentWithAny])
      if (parents !== undefined) level.set(policy, newNode(policy, parents))
    }
    if (policies.includes(anyPolicy) && mayUseAnyPolicy) {
      for (const [policy, parents] of expecting)
        if (!level.has(policy)) level.set(policy, newNode(policy, parents))
    }
    this.prune()
  }

  /** Section 6.1.4 (b). Returns false when a mapping contains anyPolicy, which makes the chain invalid. */
  map(mappings: readonly PolicyMapping[], isAllowed: boolean): boolean {
    if (isAllowed && mappings.some((one) => Object.values(one).includes(anyPolicy))) return false
    if (!isAllowed) for (const { issuerDomainPolicy } of mappings) this.removeLeaf(issuerDomainPolicy)
    this.prune()
    for (const [policy, mapped] of isAllowed ? Map.groupBy(mappings, (one) => one.issuerDomainPolicy) : [])
      this.expect(
        policy,
        mapped.map((one) => one.subjectDomainPolicy),
      )
    return true
  }

  private expect(policy: string, expected: readonly string[]): void {
    const leaf = this.leaves.get(policy)
    const any = this.leaves.get(anyPolicy)
    if (leaf !== undefined) leaf.expectedPolicies = expected
    else if (any !== undefined) {
      const node = newNode(policy, [any])
      node.expectedPolicies = expected
      this.leaves.set(policy, node)
    }
  }

  /** True when some policy is valid for the whole chain: section 6.1.5 (g). */
  get holdsPolicy(): boolean {
    if (this.leaves.has(anyPolicy)) return true
    return this.levels.some((level) =>
      level.values().some(({ validPolicy, parents }) => {
        if (validPolicy === anyPolicy || parents.size !== 1) return false
        return parents.values().every((parent) => parent.validPolicy === anyPolicy)
      }),
    )
  }

  private removeLeaf(policy: string): void {
    const leaf = this.leaves.get(policy)
    if (leaf === undefined) return
    for (const parent of leaf.parents) parent.children.delete(leaf)
    this.leaves.delete(policy)
  }

  /** Removes nodes that lead to no leaf, from the level above the leaves upwards. The root stays. */
  private prune(): void {
    for (const level of this.levels.slice(1, -1).toReversed()) {
      for (const node of level.values()) {
        if (node.children.size > 0) continue
        for (const parent of node.parents) parent.children.delete(node)
        level.delete(node.validPolicy)
      }
    }
  }
}

function newNode(validPolicy: string, parents: readonly Node[]): Node {
  const node: Node = {
    validPolicy,
    expectedPolicies: [validPolicy],
    parents: new Set(parents),
    children: new Set(),
  }
  for (const parent of parents) parent.children.add(node)
  return node
}

function byExpectedPolicy(level: Level): Map<string, Node[]> {
  const expecting = new Map<string, Node[]>()
  for (const node of level.values()) {
    for (const policy of node.expectedPolicies) {
      const nodes = expecting.get(policy)
      if (nodes === undefined) expecting.set(policy, [node])
      else nodes.push(node)
    }
  }
  return expecting
}

/** True when the policies of a chain (leaf first, root last) allow it: RFC 5280 section 6.1 with every policy acceptable. */
export function policiesAllow(chain: readonly Certificate[]): boolean {
  const [leaf, issuer] = chain
  if (leaf === undefined || issuer === undefined) return true
  const below = chain.length - 1
  let graph: PolicyGraph | undefined = new PolicyGraph()
  // The number of certificates that may follow before it applies. One more than the remaining certificates means never.
  let explicitPolicy = below + 1
  let policyMapping = below + 1
  let inhibitAnyPolicy = below + 1

  for (const [i, { decoded, isSelfIssued }] of chain.slice(0, -1).toReversed().entries()) {
    const isLeaf = i === below - 1
    const { policies, policyMappings } = decoded
    if (policies.length === 0) graph = undefined
    if (explicitPolicy === 0 && graph === undefined) return false
    graph?.grow(policies, inhibitAnyPolicy > 0 || (!isLeaf && isSelfIssued))
    if (isLeaf) break
    if (policyMappings.length > 0 && graph?.map(policyMappings, policyMapping > 0) === false) return false
    if (!isSelfIssued) {
      explicitPolicy = Math.max(0, explicitPolicy - 1)
      policyMapping = Math.max(0, policyMapping - 1)
      inhibitAnyPolicy = Math.max(0, inhibitAnyPolicy - 1)
    }
    explicitPolicy = lowered(explicitPolicy, decoded.requireExplicitPolicy)
    policyMapping = lowered(policyMapping, decoded.inhibitPolicyMapping)
    inhibitAnyPolicy = lowered(inhibitAnyPolicy, decoded.inhibitAnyPolicy)
  }

  const isDemanded = explicitPolicy <= 1 || leaf.decoded.requireExplicitPolicy === 0
  return !isDemanded || graph?.holdsPolicy === true
}

function lowered(count: number, to: number | undefined): number {
  return to !== undefined && to >= 0 && to < count ? to : count
}
