import * as v from 'valibot'
import * as json from '../x509/json-fields.ts'

// The JSON contract of `kcert inspect`. docs/schemas/InspectionReport.json is generated from these schemas. The program imports
// only their types, so valibot costs nothing at start.

const hex = v.pipe(v.string(), v.regex(/^[0-9a-f]*$/))

const place = {
  source: json.text(
    'the file, "-" for standard input, HOST:PORT, or, with --cluster, an object: "secret shop/web-tls"',
  ),
  entry: json.text(
    'position in the source: "certificate 2", "user admin: client-certificate-data", "data[tls.crt] #1"; empty if there is nothing else in the source',
  ),
}

const publicKeySchema = v.object({
  algorithm: json.text('RSA, ECDSA, Ed25519, ML-DSA-65, or an OID'),
  bits: v.optional(v.number()),
  curve: v.optional(v.string()),
  sha256: json.described(
    hex,
    'SHA-256 of the SubjectPublicKeyInfo; with the prefix "sha256:" it is kubeadm\'s discovery token CA cert hash',
  ),
})

export const severities = ['info', 'warning', 'critical'] as const
export const statuses = ['ok', 'warning', 'critical', 'expired', 'not-yet-valid'] as const

export const certificateReportSchema = v.object({
  ...place,
  role: json.optionalText(
    'the name in kubeadm\'s certificate table, or a name for the position: "cluster CA", "client of user x"',
  ),
  ...json.certificateFields,
  secondsLeft: json.described(v.number(), 'until notAfter; negative once expired'),
  percentLeft: json.described(v.number(), 'share of the lifetime that is left, 0 to 100'),
  isCa: v.boolean(),
  pathLength: v.optional(v.number()),
  publicKey: publicKeySchema,
  signatureAlgorithm: v.string(),
  subjectAltNames: json.altNamesSchema,
  keyUsage: json.texts,
  extendedKeyUsage: json.texts,
  subjectKeyId: v.optional(hex),
  authorityKeyId: v.optional(hex),
  nameConstraints: v.optional(v.object({ permitted: json.altNamesSchema, excluded: json.altNamesSchema })),
  crlDistributionPoints: v.optional(json.texts),
  authorityInfoAccess: v.optional(v.object({ ocsp: json.texts, caIssuers: json.texts })),
  certificatePolicies: json.optionalField(json.texts, 'object identifiers'),
  unknownCriticalExtensions: json.optionalField(
    json.texts,
    'object identifiers of critical extensions that Go does not support: it rejects a chain with one',
  ),
  fingerprintSha256: hex,
  caPin: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^sha256:[0-9a-f]{64}$/),
      v.description('of a CA: for kubeadm join --discovery-token-ca-cert-hash'),
    ),
  ),
  issuerFound: v.optional(v.object({ ...place, fingerprintSha256: hex })),
  issuerNotSearched: json.onlyTrue(
    'the issuer was not searched: thousands of certificates have no issuer in the inputs',
  ),
  issuerUnchecked: json.onlyTrue(
    'the issuer may be in the inputs: the OpenSSL of this Node.js does not support the algorithm (ML-DSA)',
  ),
  key: v.optional(v.object({ ...place, matches: v.boolean() })),
  kubeletRotation: v.optional(v.object({ earliest: json.time, latest: json.time })),
  renewalName: json.optionalText(
    'the NAME that `kcert renew` takes, for a certificate in a folder of kubeadm or the kubelet',
  ),
  isReplaced: json.optionalField(
    v.boolean(),
    'true for a dated kubelet file that a newer file replaced. It is unused, and in the summary only the count certificates includes it',
  ),
  status: v.picklist(statuses),
})

export const requestReportSchema = v.object({
  ...place,
  subject: json.nameSchema,
  publicKey: publicKeySchema,
  signatureAlgorithm: v.string(),
  signatureValid: json.described(
    v.boolean(),
    'the key in the request signed it, with an algorithm that Go supports in requests or with ML-DSA',
  ),
  signatureUnchecked: json.onlyTrue(
    'the signature may be valid: the OpenSSL of this Node.js does not support the algorithm (ML-DSA)',
  ),
  subjectAltNames: json.altNamesSchema,
  keyUsage: json.texts,
  extendedKeyUsage: json.texts,
  signerName: v.optional(v.string()),
  usages: v.optional(json.texts),
  username: v.optional(v.string()),
  condition: v.optional(v.string()),
})

export const keyReportSchema = v.object({
  ...place,
  role: v.optional(v.string()),
  kind: v.picklist(['private', 'public']),
  format: json.text('PKCS#1, SEC1, PKCS#8, encrypted PKCS#8, SubjectPublicKeyInfo'),
  publicKey: v.optional(publicKeySchema),
  keyId: json.optionalText(
    'of an RSA or ECDSA key: its ID as a service account key, `kid` in tokens and in /openid/v1/jwks',
  ),
  encrypted: v.boolean(),
  matches: json.objects(place),
})

export const tokenReportSchema = v.object({
  ...place,
  keyId: json.optionalText('`kid`: the ID of the service account key that signed it'),
  issuer: v.string(),
  subject: json.text('system:serviceaccount:NAMESPACE:NAME'),
  audiences: v.array(v.string()),
  credentialId: json.optionalText(
    'as in audit events: "JTI=" and the ID of the token. A legacy token has none',
  ),
  boundTo: json.optionalText('the object without which it is invalid: "pod web-0"'),
  expirationTimestamp: json.optionalField(json.time, 'absent: it never expires'),
  isExpired: v.boolean(),
})

const kubeconfigReportSchema = v.object({
  ...place,
  currentContext: v.optional(v.string()),
  clusters: json.objects({
    name: v.string(),
    server: json.optionalText('without user name and password'),
    tlsServerName: v.optional(v.string()),
    insecureSkipTlsVerify: v.boolean(),
  }),
  users: json.objects({
    name: v.string(),
    credentials: json.described(
      json.texts,
      'the kinds: client certificate, token, tokenFile, exec, auth-provider, basic',
    ),
  }),
  contexts: json.objects({
    name: v.string(),
    cluster: v.string(),
    user: v.string(),
    namespace: v.optional(v.string()),
    isCurrent: json.described(
      v.boolean(),
      'with several files in $KUBECONFIG the first current-context is used, as in kubectl',
    ),
  }),
})

const withoutCertificateSchema = v.object({ ...place, reason: v.string() })

const missingSchema = v.object({ source: v.string(), role: v.string() })

export const problemSchema = v.object({
  ...place,
  code: v.string(),
  severity: v.picklist(severities),
  message: v.string(),
  fix: json.optionalText('what to do, where it takes more than a command'),
  next: json.text('one command, ready to paste; empty where there is none'),
})

export const summarySchema = v.object({
  sources: v.number(),
  certificates: v.number(),
  requests: v.number(),
  keys: v.number(),
  tokens: json.described(v.number(), 'service account tokens'),
  ok: v.number(),
  warning: v.number(),
  critical: v.number(),
  expired: v.number(),
  notYetValid: v.number(),
  problems: v.object(v.entriesFromList(severities, v.number())),
  nextExpiry: v.optional(json.time),
})

export const inspectionReportSchema = v.object({
  ...json.header('InspectionReport'),
  generatedAt: json.time,
  at: json.described(json.time, 'the time at which validity was evaluated'),
  selection: json.optionalField(
    v.object({ only: json.texts, certificates: v.number() }),
    'the values of --only, and the number of certificates before the selection',
  ),
  certificates: v.array(certificateReportSchema),
  requests: v.array(requestReportSchema),
  keys: v.array(keyReportSchema),
  tokens: json.described(
    v.array(tokenReportSchema),
    'service account tokens: their claims, which anyone can write, without the tokens',
  ),
  kubeconfigs: v.array(kubeconfigReportSchema),
  withoutCertificate: v.array(withoutCertificateSchema),
  missing: v.array(missingSchema),
  problems: v.array(problemSchema),
  summary: summarySchema,
})

export type Severity = (typeof severities)[number]
export type CertificateStatus = (typeof statuses)[number]
export type NameReport = v.InferOutput<typeof json.nameSchema>
export type CertificateReport = v.InferOutput<typeof certificateReportSchema>
export type RequestReport = v.InferOutput<typeof requestReportSchema>
export type KeyReport = v.InferOutput<typeof keyReportSchema>
export type TokenReport = v.InferOutput<typeof tokenReportSchema>
export type KubeconfigReport = v.InferOutput<typeof kubeconfigReportSchema>
export type Problem = v.InferOutput<typeof problemSchema>
export type InspectionReport = v.InferOutput<typeof inspectionReportSchema>
