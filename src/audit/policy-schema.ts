import * as v from 'valibot'

// An audit policy, with the rules of k8s.io/apiserver/pkg/apis/audit/validation.ValidatePolicy. Unlike the API server, kcert
// rejects unknown fields: a misspelled one widens its rule.

const texts = v.nullish(v.array(v.string()))
const stages = v.nullish(
  v.array(v.picklist(['RequestReceived', 'ResponseStarted', 'ResponseComplete', 'Panic'])),
)
const isMisplaced = (url: string): boolean =>
  url !== '*' && (!url.startsWith('/') || url.slice(0, -1).includes('*'))

const ruleSchema = v.strictObject({
  level: v.picklist(['None', 'Metadata', 'Request', 'RequestResponse']),
  users: texts,
  userGroups: texts,
  verbs: texts,
  namespaces: texts,
  resources: v.nullish(
    v.array(v.strictObject({ group: v.nullish(v.string()), resources: texts, resourceNames: texts })),
  ),
  nonResourceURLs: v.nullish(
    v.array(
      v.pipe(
        v.string(),
        v.check((url) => !isMisplaced(url), 'must begin with "/", and may have "*" only at its end'),
      ),
    ),
  ),
  omitStages: stages,
  omitManagedFields: v.nullish(v.boolean()),
})

export const auditPolicySchema = v.strictObject({
  apiVersion: v.literal('audit.k8s.io/v1'),
  kind: v.literal('Policy'),
  metadata: v.optional(v.unknown()),
  omitStages: stages,
  omitManagedFields: v.nullish(v.boolean()),
  rules: v.pipe(
    v.array(ruleSchema),
    v.minLength(1, 'is empty: the API server does not start'),
    v.maxLength(1000, 'has more than 1,000 rules'),
  ),
})

export type AuditPolicy = v.InferOutput<typeof auditPolicySchema>
export type AuditPolicyRule = AuditPolicy['rules'][number]
