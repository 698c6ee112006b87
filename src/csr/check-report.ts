import * as v from 'valibot'
import * as json from '../x509/json-fields.ts'

// The JSON contract of `kcert csr check`. docs/schemas/RequestCheck.json is generated from these schemas; the program itself
// imports only their types.

const questions = ['admission', 'approval', 'signing'] as const
const duties = ['identity', 'entitlement'] as const

/** The content of spec.request. */
export const requestSchema = v.object({
  subject: v.object({
    text: json.text('RFC 4514'),
    commonName: v.optional(v.string()),
    organization: json.texts,
  }),
  subjectAltNames: v.object({
    dns: json.texts,
    ip: json.texts,
    email: json.texts,
    uri: json.texts,
    other: json.texts,
  }),
  publicKey: json.publicKeyOf(json.hex),
  signatureAlgorithm: v.string(),
})

const specSchema = v.object({
  name: v.optional(v.string()),
  signerName: v.string(),
  usages: json.texts,
  expirationSeconds: v.optional(v.number()),
  username: json.optionalText('user who created the object; absent before it is submitted'),
  groups: json.texts,
})

const ruleSchema = v.object({
  id: v.string(),
  question: json.described(
    v.picklist(questions),
    'who applies the rule: the API server (admission), an approver (approval), the signer (signing)',
  ),
  duty: json.optionalField(v.picklist(duties), "the approver's duty that the rule checks"),
  ok: v.boolean(),
  detail: v.string(),
  fix: json.optionalText('what to change'),
  next: json.optionalText('a command, or the fix where there is none'),
})

const unknownFactSchema = v.object({
  id: v.string(),
  question: v.picklist(questions),
  duty: v.optional(v.picklist(duties)),
  detail: v.string(),
  fix: json.optionalText('how to find out'),
  next: json.text('a command, or the fix where there is none'),
})

export const checkReportSchema = v.object({
  ...json.header('RequestCheck'),
  source: json.text('the file, "-" for standard input'),
  spec: specSchema,
  request: json.optionalField(requestSchema, 'absent when the request cannot be read'),
  isSubmitted: json.described(
    v.boolean(),
    'true if the requester is known. The decision is then approve only if every rule was verified. If it is false, approve means no objections',
  ),
  decision: json.described(v.picklist(['approve', 'deny', 'ignore']), 'what an approver should do'),
  reason: v.string(),
  answers: v.object({
    admission: json.described(v.picklist(['accepted', 'refused']), 'by the API server'),
    signing: json.described(
      v.picklist(['signed', 'failed', 'retried', 'no-signer', 'other-signer']),
      'after the approval. failed: the object gets the condition Failed; retried: kube-controller-manager up to 1.37 cannot verify its signature, and tries again; no-signer: Kubernetes has no such signer; other-signer: a signer whose rules kcert does not know',
    ),
  }),
  duties: json.objects({
    name: v.picklist(duties),
    text: v.string(),
    outcome: v.picklist(['met', 'unmet', 'unknown']),
  }),
  rules: v.array(ruleSchema),
  unknownFacts: json.described(
    v.array(unknownFactSchema),
    'rules that need a fact that kcert could not look up; an approver must still verify it',
  ),
  advice: json.described(
    json.objects({ id: v.string(), detail: v.string(), fix: v.optional(v.string()), next: v.string() }),
    'notes that break no rule',
  ),
})

export type CheckReport = v.InferOutput<typeof checkReportSchema>
