import * as v from 'valibot'
import { described, header, hex, optionalText, text, texts } from '../x509/json-fields.ts'

// The JSON contract of `kcert csr check`. docs/schemas/RequestCheck.json is generated from these schemas; the program itself
// imports only their types.

const questions = ['admission', 'approval', 'signing'] as const
const duties = ['identity', 'entitlement'] as const

/** The content of spec.request. */
export const requestSchema = v.object({
  subject: v.object({
    text: text('RFC 4514'),
    commonName: v.optional(v.string()),
    organization: texts,
  }),
  subjectAltNames: v.object({ dns: texts, ip: texts, email: texts, uri: texts, other: texts }),
  publicKey: v.object({
    algorithm: v.string(),
    bits: v.optional(v.number()),
    curve: v.optional(v.string()),
    sha256: hex,
  }),
  signatureAlgorithm: v.string(),
})

const specSchema = v.object({
  name: v.optional(v.string()),
  signerName: v.string(),
  usages: texts,
  expirationSeconds: v.optional(v.number()),
  username: optionalText('user who created the object; absent before it is submitted'),
  groups: texts,
})

const ruleSchema = v.object({
  id: v.string(),
  question: described(
    v.picklist(questions),
    'who applies the rule: the API server (admission), an approver (approval), the signer (signing)',
  ),
  duty: v.optional(described(v.picklist(duties), "the approver's duty that the rule checks")),
  ok: v.boolean(),
  detail: v.string(),
  fix: optionalText('what to change'),
  next: optionalText('a command, or the fix where there is none'),
})

const unknownFactSchema = v.object({
  id: v.string(),
  question: v.picklist(questions),
  duty: v.optional(v.picklist(duties)),
  detail: v.string(),
  fix: optionalText('how to find out'),
  next: text('a command, or the fix where there is none'),
})

export const checkReportSchema = v.object({
  ...header('RequestCheck'),
  source: text('the file, "-" for standard input'),
  spec: specSchema,
  request: v.optional(described(requestSchema, 'absent when the request cannot be read')),
  isSubmitted: described(
    v.boolean(),
    'true if the requester is known. The decision is then approve only if every rule was verified. If it is false, approve means no objections',
  ),
  decision: described(v.picklist(['approve', 'deny', 'ignore']), 'what an approver should do'),
  reason: v.string(),
  answers: v.object({
    admission: described(v.picklist(['accepted', 'refused']), 'by the API server'),
    signing: described(
      v.picklist(['signed', 'failed', 'retried', 'no-signer', 'other-signer']),
      'after the approval. failed: the object gets the condition Failed; retried: kube-controller-manager up to 1.37 cannot verify its signature, and tries again; no-signer: Kubernetes has no such signer; other-signer: a signer whose rules kcert does not know',
    ),
  }),
  duties: v.array(
    v.object({
      name: v.picklist(duties),
      text: v.string(),
      outcome: v.picklist(['met', 'unmet', 'unknown']),
    }),
  ),
  rules: v.array(ruleSchema),
  unknownFacts: described(
    v.array(unknownFactSchema),
    'rules that need a fact that kcert could not look up; an approver must still verify it',
  ),
  advice: described(
    v.array(v.object({ id: v.string(), detail: v.string(), fix: v.optional(v.string()), next: v.string() })),
    'notes that break no rule',
  ),
})

export type CheckReport = v.InferOutput<typeof checkReportSchema>
