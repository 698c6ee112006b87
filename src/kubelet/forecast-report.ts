import * as v from 'valibot'
import * as json from '../x509/json-fields.ts'

// The JSON contract of `kcert kubelet forecast`. docs/schemas/KubeletForecast.json is generated from it.

const certificateSchema = v.object({
  usage: v.picklist(['client', 'serving']),
  source: json.described(
    v.picklist(['file', 'request', 'handshake', 'metric']),
    "where it was observed: the kubelet's folder, an object of the cluster, its port, or its own metric, which has only the expiry",
  ),
  location: v.optional(v.string()),
  subject: json.optionalText('RFC 4514'),
  notBefore: v.optional(json.time),
  notAfter: json.time,
  isSelfSigned: json.described(v.boolean(), 'self-signed by the kubelet'),
  state: json.described(
    v.picklist(['not-due', 'due', 'overdue', 'expired', 'not-renewed']),
    'overdue: more than 90 % of the validity has passed',
  ),
  renewal: v.optional(
    v.object({
      earliest: json.described(json.time, '70 % of the validity'),
      latest: json.described(json.time, '90 % of the validity'),
      isEstimate: json.described(
        v.boolean(),
        'true when the issue time is calculated from --cluster-signing-duration',
      ),
    }),
  ),
})

export const forecastSchema = v.object({
  ...json.header('KubeletForecast'),
  generatedAt: json.time,
  nodes: json.objects({
    name: v.string(),
    rotateCertificates: v.optional(v.boolean()),
    serverTlsBootstrap: v.optional(v.boolean()),
    tlsCertFile: v.optional(v.string()),
    certificates: v.array(certificateSchema),
    pending: json.objects({
      name: v.string(),
      usage: v.picklist(['client', 'serving']),
      state: v.picklist(['pending', 'approved']),
      creationTimestamp: v.optional(json.time),
    }),
  }),
  controllerManagers: json.objects({
    node: v.optional(v.string()),
    location: v.string(),
    clusterSigningDuration: json.text('as Go prints it; 8760h0m0s unless set'),
  }),
  findings: json.objects({
    id: v.string(),
    node: v.optional(v.string()),
    isProblem: json.described(v.boolean(), 'false for information'),
    detail: v.string(),
    ...json.adviceEntries,
  }),
})

export type ForecastReport = v.InferOutput<typeof forecastSchema>
export type ForecastNode = ForecastReport['nodes'][number]
export type ForecastCertificate = ForecastNode['certificates'][number]
export type ForecastFinding = ForecastReport['findings'][number]
