import * as v from 'valibot'
import * as json from '../x509/json-fields.ts'

// The JSON contract of `kcert audit`. docs/schemas/AuditReport.json and AuditPolicyCheck.json are generated from it.

const credentialSchema = v.object({
  id: json.text(
    'credential ID, as in audit events: "X509SHA256=" and the fingerprint of a certificate, or "JTI=" and the ID of a token. A legacy token has none: it is "SECRET=" and the namespace and name of its Secret, or "LEGACY=" and its service account. With --live: "HANDSHAKE=", the address of a client, and why its handshake failed',
  ),
  kind: v.picklist(['certificate', 'token', 'legacy-token', 'handshake', 'other']),
  status: json.optionalField(
    v.picklist(['old', 'current', 'unknown']),
    'old: signed by a CA of --ca or a key of --sa-key; unknown: it may be old; absent if neither flag asks about this kind',
  ),
  why: json.optionalText('why the status is unknown'),
  users: json.texts,
  sourceIPs: json.described(json.texts, 'addresses of the connections'),
  forwardedFor: json.optionalField(json.texts, 'X-Forwarded-For, which the client can choose'),
  userAgents: json.described(json.texts, 'which the client chooses'),
  pods: json.optionalField(json.texts, 'NAMESPACE/NAME of the pods that the token was created for'),
  nodes: v.optional(json.texts),
  isCut: json.optionalField(v.literal(true), 'there are more users, addresses, user agents or pods'),
  firstUsed: json.time,
  lastUsed: json.described(json.time, 'when the API server received the last request'),
  requests: json.described(
    v.number(),
    'requests that ended; one that still runs, such as a watch, is not counted',
  ),
  isStale: json.optionalField(
    v.literal(true),
    'the token is older than its pod should use it: the client does not reload it',
  ),
  issued: json.optionalField(json.time, 'when a TokenRequest in the logs created the token'),
  known: v.optional(
    v.object({
      subject: v.string(),
      issuer: v.optional(v.string()),
      keyId: json.optionalText('`kid`: the ID of the service account key that signed the token'),
      notAfter: v.optional(json.time),
      places: json.described(json.texts, 'where kcert found the credential; at most 8'),
    }),
  ),
})

export const auditReportSchema = v.object({
  ...json.header('AuditReport'),
  generatedAt: json.time,
  since: json.optionalField(json.time, 'earlier requests are not counted'),
  conclusion: json.optionalField(
    v.picklist(['used', 'not-used', 'unknown']),
    'with --ca or --sa-key. not-used: from --since, or from the first event, to the last event. unknown: no credential in the report is old, but some are unknown, or the logs do not answer the question (incomplete)',
  ),
  credentials: json.described(
    v.array(credentialSchema),
    'with --ca or --sa-key the old and the unknown ones, with --all every one; the last used ones first',
  ),
  incomplete: json.described(json.texts, 'why the logs do not show every use'),
  notes: json.texts,
  withoutCredentialId: json.described(
    json.objects({ username: v.string(), requests: v.number() }),
    'requests of authenticated users without a credential ID',
  ),
  logs: json.objects({ source: v.string(), events: v.number() }),
  summary: v.object({
    events: json.described(v.number(), 'several for one request'),
    firstEvent: v.optional(json.time),
    lastEvent: v.optional(json.time),
    credentials: json.described(v.number(), 'used since --since, listed or not'),
    old: v.number(),
    current: v.number(),
    unknown: v.number(),
  }),
})

export const auditPolicyCheckSchema = v.object({
  ...json.header('AuditPolicyCheck'),
  source: v.string(),
  isSufficient: json.described(v.boolean(), 'kcert audit sees every use of every credential'),
  findings: json.objects({
    rule: json.optionalField(v.number(), 'from 1; absent for requests that no rule matches'),
    hides: json.described(
      v.picklist(['uses', 'issued-tokens', 'issued-certificates']),
      'uses: who uses a credential; issued-tokens: which tokens are new; issued-certificates: the subjects of issued certificates, which --known can replace',
    ),
    detail: v.string(),
    fix: v.string(),
  }),
})

export type AuditReport = v.InferOutput<typeof auditReportSchema>
export type AuditCredential = AuditReport['credentials'][number]
export type AuditPolicyCheck = v.InferOutput<typeof auditPolicyCheckSchema>
export type AuditPolicyFinding = AuditPolicyCheck['findings'][number]
