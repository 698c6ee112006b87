import * as v from 'valibot'
import * as json from '../x509/json-fields.ts'
import { problemCodes } from './problems.ts'
import { endpointKinds } from './target.ts'

// The JSON contract of `kcert probe`. docs/schemas/ProbeReport.json is generated from these schemas. The program imports only
// their types, so valibot costs nothing at start.

const hex = v.pipe(v.string(), v.regex(/^[0-9a-f]*$/))
const milliseconds = json.described(v.number(), 'milliseconds, with one decimal')

const servedCertificateSchema = v.object({
  ...json.certificateFields,
  isCa: v.boolean(),
  dnsNames: json.texts,
  ipAddresses: json.texts,
  fingerprintSha256: hex,
})

const verdictSchema = v.object({
  by: json.text(
    'name of the CAs: "cluster CA", "--kubelet-certificate-authority", "etcd CA", "caBundle", "--ca"',
  ),
  source: json.text('file or object with the CAs'),
  trusted: json.optionalField(v.boolean(), 'absent if the CAs could not be read'),
  code: json.optionalText('why it is not trusted: docs/refusals.md'),
  reason: v.optional(v.string()),
  goError: json.optionalText('error message of components in Go'),
})

const clientSchema = v.object({
  source: json.optionalText(
    'file or kubeconfig user of the client certificate; absent if none was presented',
  ),
  subject: v.optional(v.string()),
  verdict: json.described(
    v.picklist(['accepted', 'refused', 'ignored', 'connected', 'not-requested', 'not-tested', 'unknown']),
    'ignored: the server treated the client as anonymous; connected: the TLS connection continued, and the HTTP response does not show the user',
  ),
  detail: v.optional(v.string()),
  user: json.optionalText('user that the server reports for an accepted client'),
})

const givenSchema = v.object({
  source: json.text('"cp1:/etc/kubernetes/pki/apiserver.crt" or "csr/csr-7x2lq"'),
  state: json.described(
    v.picklist(['served', 'renewed-not-served', 'other', 'unknown']),
    'renewed-not-served: newer than the served certificate; other: another certificate, and not newer',
  ),
  notBefore: v.optional(json.time),
  notAfter: v.optional(json.time),
  fingerprintSha256: v.optional(hex),
  fault: v.optional(v.string()),
})

const problemSchema = v.object({
  code: v.picklist(Object.keys(problemCodes) as (keyof typeof problemCodes)[]),
  message: v.string(),
  next: v.string(),
})

const endpointSchema = v.object({
  name: v.string(),
  kind: v.picklist(endpointKinds),
  host: v.string(),
  port: v.number(),
  from: json.optionalText('node that kcert connected from; absent: this machine'),
  at: json.time,
  status: json.described(
    v.picklist(['ok', 'failed', 'unreachable']),
    'failed: it has problems; unreachable: it did not respond',
  ),
  connectMs: v.optional(milliseconds),
  handshakeMs: v.optional(milliseconds),
  version: v.optional(v.picklist(['TLSv1.2', 'TLSv1.3'])),
  cipher: json.optionalText("IANA's name"),
  chain: json.described(v.array(servedCertificateSchema), 'certificates as sent, leaf first'),
  names: json.described(
    json.objects({ name: v.string(), matches: v.boolean() }),
    'names that clients use, and whether the leaf is valid for them',
  ),
  isVerified: json.described(
    v.boolean(),
    'false if no component verifies this server; then failures in `verdicts` and `names` are not problems',
  ),
  verdicts: v.array(verdictSchema),
  clientCas: json.optionalField(
    json.texts,
    'subjects of the CAs whose client certificates the server accepts; absent: it requests none',
  ),
  client: v.optional(clientSchema),
  issued: json.optionalField(givenSchema, 'certificate that was issued to this server last'),
  notes: json.texts,
  problems: v.array(problemSchema),
})

export const probeReportSchema = v.object({
  ...json.header('ProbeReport'),
  generatedAt: json.time,
  endpoints: v.array(endpointSchema),
  notes: json.described(json.texts, 'what could not be determined, and what was left out'),
  summary: v.object({
    endpoints: v.number(),
    ok: v.number(),
    failed: v.number(),
    unreachable: v.number(),
    nextExpiry: v.optional(json.time),
  }),
})

export type ProbeReport = v.InferOutput<typeof probeReportSchema>
export type EndpointReport = v.InferOutput<typeof endpointSchema>
export type ServedCertificate = v.InferOutput<typeof servedCertificateSchema>
export type AnchorVerdict = v.InferOutput<typeof verdictSchema>
export type ClientVerdict = v.InferOutput<typeof clientSchema>
export type GivenReport = v.InferOutput<typeof givenSchema>
export type ProbeProblem = v.InferOutput<typeof problemSchema>
