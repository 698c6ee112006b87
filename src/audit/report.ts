import * as v from 'valibot'
import { described, header, optionalText, text, texts, time } from '../x509/json-fields.ts'

// The JSON contract of `kcert audit`. docs/schemas/AuditReport.json and AuditPolicyCheck.json are generated from it.

const credentialSchema = v.object({
  id: text(
    'credential ID, as in audit events: "X509SHA256=" and the fingerprint of a certificate, or "JTI=" and the ID of a token. A legacy token has none: it is "SECRET=" and the namespace and name of its Secret, or "LEGACY=" and its service account. With --live: "HANDSHAKE=", the address of a client, and why its handshake failed',
  ),
  kind: v.picklist(['certificate', 'token', 'legacy-token', 'handshake', 'other']),
  status: v.optional(
    described(
      v.picklist(['old', 'current', 'unknown']),
      'old: signed by a CA of --ca or a key of --sa-key; unknown: it may be old; absent if neither flag asks about this kind',
    ),
  ),
  why: optionalText('why the status is unknown'),
  users: texts,
  sourceIPs: described(texts, 'addresses of the connections'),
  forwardedFor: v.optional(described(texts, 'X-Forwarded-For, which the client can choose')),
  userAgents: described(texts, 'which the client chooses'),
  pods: v.optional(described(texts, 'NAMESPACE/NAME of the pods that the token was created for')),
  nodes: v.optional(texts),
  isCut: v.optional(described(v.literal(true), 'there are more users, addresses, user agents or pods')),
  firstUsed: time,
  lastUsed: described(time, 'when the API server received the last request'),
  requests: described(
    v.number(),
    'requests that ended; one that still runs, such as a watch, is not counted',
  ),
  isStale: v.optional(
    described(
      v.literal(true),
      'the token is older than its pod should use it: the client does not reload it',
    ),
  ),
  issued: v.optional(described(time, 'when a TokenRequest in the logs created the token')),
  known: v.optional(
    v.object({
      subject: v.string(),
      issuer: v.optional(v.string()),
      keyId: optionalText('`kid`: the ID of the service account key that signed the token'),
      notAfter: v.optional(time),
      places: described(texts, 'where kcert found the credential; at most 8'),
    }),
  ),
})

export const auditReportSchema = v.object({
  ...header('AuditReport'),
  generatedAt: time,
  since: v.optional(described(time, 'earlier requests are not counted')),
  conclusion: v.optional(
    described(
      v.picklist(['used', 'not-used', 'unknown']),
      'with --ca or --sa-key. not-used: from --since, or from the first event, to the last event. unknown: no credential in the report is old, but some are unknown, or the logs do not answer the question (incomplete)',
    ),
  ),
  credentials: described(
    v.array(credentialSchema),
    'with --ca or --sa-key the old and the unknown ones, with --all every one; the last used ones first',
  ),
  incomplete: described(texts, 'why the logs do not show every use'),
  notes: texts,
  withoutCredentialId: described(
    v.array(v.object({ username: v.string(), requests: v.number() })),
    'requests of authenticated users without a credential ID',
  ),
  logs: v.array(v.object({ source: v.string(), events: v.number() })),
  summary: v.object({
    events: described(v.number(), 'several for one request'),
    firstEvent: v.optional(time),
    lastEvent: v.optional(time),
    credentials: described(v.number(), 'used since --since, listed or not'),
    old: v.number(),
    current: v.number(),
    unknown: v.number(),
  }),
})

export const auditPolicyCheckSchema = v.object({
  ...header('AuditPolicyCheck'),
  source: v.string(),
  isSufficient: described(v.boolean(), 'kcert audit sees every use of every credential'),
  findings: v.array(
    v.object({
      rule: v.optional(described(v.number(), 'from 1; absent for requests that no rule matches')),
      hides: described(
        v.picklist(['uses', 'issued-tokens', 'issued-certificates']),
        'uses: who uses a credential; issued-tokens: which tokens are new; issued-certificates: the subjects of issued certificates, which --known can replace',
      ),
      detail: v.string(),
      fix: v.string(),
    }),
  ),
})

export type AuditReport = v.InferOutput<typeof auditReportSchema>
export type AuditCredential = AuditReport['credentials'][number]
export type AuditPolicyCheck = v.InferOutput<typeof auditPolicyCheckSchema>
export type AuditPolicyFinding = AuditPolicyCheck['findings'][number]
