import type { GenericSchema } from 'valibot'
import { given } from '../../errors/given.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { readDocuments } from '../../kubeconfig/documents.ts'
import { plainValue } from '../../kubeconfig/node.ts'
import {
  type FieldPath,
  lineText,
  locationOf,
  schemaFault,
  type WrittenDocument,
} from '../../kubeconfig/schema-fault.ts'
import { cidrOf } from './addresses.ts'
import { kubeletClientPolicy } from './kubelet-client.ts'
import { kubeletServingPolicy } from './kubelet-serving.ts'
import type { Policy } from './policy.ts'
import type { PolicyDocument, RuleDocument } from './policy-schema.ts'
import { userRulePolicy } from './user-rule.ts'

/** The default policies: the two built-in ones, which rely only on the cluster. */
export const builtinPolicies: readonly Policy[] = [kubeletClientPolicy(), kubeletServingPolicy()]

/**
 * Returns the policies of a policy file. `source` is its name, for messages. Throws KCERT_POLICY_INVALID with the line, the
 * invalid value and the allowed values; nothing of an invalid file is used.
 */
export async function readPolicies(text: string, source: string): Promise<Policy[]> {
  const { documents, defects } = await readDocuments(text)
  const [defect] = defects
  if (defect !== undefined) throw invalid(`${source}${lineText(defect.line)}`, defect.reason)
  const [document, second] = documents
  if (document === undefined || second !== undefined)
    throw invalid(source, `it has ${documents.length} documents, and a policy file has one`)
  const policy = await checked({ document, text, source })
  checkNames(policy.rules, source)
  return policy.rules.map((rule) => policyOf(rule, policy.cluster))
}

async function checked(file: WrittenDocument): Promise<PolicyDocument> {
  const schemas = await import('./policy-schema.ts')
  // Not checked yet: it may also be a list or a scalar. An empty file yields null.
  const value = plainValue(file.document) as PolicyDocument
  // Each rule is checked with the one schema that it is meant for, because the errors of all four schemas at once are unreadable.
  for (const [index, rule] of (Array.isArray(value.rules) ? value.rules : []).entries()) {
    await check(file, schemaFor(rule, schemas, file, index), rule, ['rules', index])
  }
  if (value.cluster !== undefined) await check(file, schemas.clusterSchema, value.cluster, ['cluster'])
  await check(file, schemas.policySchema, value, [])
  return value
}

type Schemas = typeof import('./policy-schema.ts')

function schemaFor(
  rule: RuleDocument,
  schemas: Schemas,
  file: WrittenDocument,
  index: number,
): GenericSchema {
  // Not checked yet: a rule may also be null, a scalar or a list.
  const { builtin, decision }: { builtin?: unknown; decision?: unknown } = rule ?? {}
  if (builtin === 'kubelet-client') return schemas.kubeletClientSchema
  if (builtin === 'kubelet-serving') return schemas.kubeletServingSchema
  const place = locationOf(file, ['rules', index])
  if (builtin !== undefined)
    throw invalid(
      place,
      `unknown built-in policy ${JSON.stringify(builtin)}: use kubelet-client or kubelet-serving`,
    )
  if (decision === 'approve') return schemas.approveSchema
  if (decision === 'deny') return schemas.denySchema
  throw invalid(place, 'a rule needs "builtin", "decision: approve" or "decision: deny"')
}

async function check(
  file: WrittenDocument,
  schema: GenericSchema,
  value: unknown,
  at: FieldPath,
): Promise<void> {
  const fault = await schemaFault(file, schema, value, at)
  if (fault !== undefined) throw invalid(fault.place, fault.why)
}

function checkNames(rules: readonly RuleDocument[], source: string): void {
  const names = rules.map((rule) => rule.name ?? ('builtin' in rule ? rule.builtin : ''))
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined)
    throw invalid(
      source,
      `two rules have the name ${JSON.stringify(twice)}; names must be unique, because a decision names its rule`,
    )
}

function policyOf(rule: RuleDocument, cluster: PolicyDocument['cluster'] = {}): Policy {
  if ('decision' in rule) {
    const { ipAddresses, ...fields } = given(rule)
    return userRulePolicy(ipAddresses ? { ...fields, ipAddresses: ipAddresses.map(cidrOf) } : fields)
  }
  if (rule.builtin === 'kubelet-client') return kubeletClientPolicy(given(rule))
  return kubeletServingPolicy({
    ...given(rule),
    cidrs: (rule.cidrs ?? []).map(cidrOf),
    serviceCidrs: (cluster.serviceCidrs ?? []).map(cidrOf),
    ...given({ apiServers: cluster.apiServers, clusterDomain: cluster.domain?.replace(/^\./, '') }),
  })
}

function invalid(place: string, why: string): KcertError {
  return new KcertError('KCERT_POLICY_INVALID', place, {
    why,
    fix: 'see docs/policy.md for all fields, and docs/schemas/ApprovalPolicy.json for completion in an editor',
  })
}
