import * as v from 'valibot'
import { described, header, optionalText, text, time } from '../x509/json-fields.ts'

// The JSON contract of `kcert kubelet forecast`. docs/schemas/KubeletForecast.json is generated from it.

const certificateSchema = v.object({
  usage: v.picklist(['client', 'serving']),
  source: described(
    v.picklist(['file', 'request', 'handshake', 'metric']),
    "where it was observed: the kubelet's folder, an object of the cluster, its port, or its own metric, which has only the expiry",
  ),
  location: v.optional(v.string()),
  subject: optionalText('RFC 4514'),
  notBefore: v.optional(time),
  notAfter: time,
  isSelfSigned: described(v.boolean(), 'self-signed by the kubelet'),
  state: described(
    v.picklist(['not-due', 'due', 'overdue', 'expired', 'not-renewed']),
    'overdue: more than 90 % of the validity has passed',
  ),
  renewal: v.optional(
    v.object({
      earliest: described(time, '70 % of the validity'),
      latest: described(time, '90 % of the validity'),
      isEstimate: described(
        v.boolean(),
        'true when the issue time is calculated from --cluster-signing-duration',
      ),
    }),
  ),
})

export const forecastSchema = v.object({
  ...header('KubeletForecast'),
  generatedAt: time,
  nodes: v.array(
    v.object({
      name: v.string(),
      rotateCertificates: v.optional(v.boolean()),
      serverTlsBootstrap: v.optional(v.boolean()),
      tlsCertFile: v.optional(v.string()),
      certificates: v.array(certificateSchema),
      pending: v.array(
        v.object({
          name: v.string(),
          usage: v.picklist(['client', 'serving']),
          state: v.picklist(['pending', 'approved']),
          creationTimestamp: v.optional(time),
        }),
      ),
    }),
  ),
  controllerManagers: v.array(
    v.object({
      node: v.optional(v.string()),
      location: v.string(),
      clusterSigningDuration: text('as Go prints it; 8760h0m0s unless set'),
    }),
  ),
  findings: v.array(
    v.object({
      id: v.string(),
      node: v.optional(v.string()),
      isProblem: described(v.boolean(), 'false for information'),
      detail: v.string(),
      fix: v.optional(v.string()),
      next: v.optional(v.string()),
    }),
  ),
})

export type ForecastReport = v.InferOutput<typeof forecastSchema>
export type ForecastNode = ForecastReport['nodes'][number]
export type ForecastCertificate = ForecastNode['certificates'][number]
export type ForecastFinding = ForecastReport['findings'][number]
