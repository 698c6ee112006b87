import * as v from 'valibot'
import * as json from '../x509/json-fields.ts'

// The JSON contract of `kcert bootstrap check` and `kcert bootstrap kubeconfig`.

const stepSchema = v.object({
  number: json.described(
    v.number(),
    'number of the step of TLS bootstrap, 1 to 15; a step can have several entries',
  ),
  id: v.string(),
  outcome: json.described(
    v.picklist(['done', 'stopped', 'unknown', 'waiting']),
    'unknown: not visible in the cluster; waiting: an earlier step is not complete',
  ),
  detail: v.string(),
  next: v.optional(v.string()),
})

export const bootstrapProgressSchema = v.object({
  ...json.header('BootstrapProgress'),
  generatedAt: v.pipe(v.string(), v.isoTimestamp()),
  node: v.string(),
  verdict: json.described(
    v.picklist(['joined', 'stopped']),
    'joined: the node is registered and its kubelet reports',
  ),
  ready: json.optionalField(v.boolean(), 'whether the Node is Ready; absent where that is unknown'),
  stoppedAt: v.optional(v.string()),
  steps: v.array(stepSchema),
})

export const bootstrapKubeconfigSchema = v.object({
  ...json.header('BootstrapKubeconfig'),
  outcome: v.picklist(['written', 'would-write']),
  file: v.string(),
  server: v.string(),
  tokenId: v.string(),
  cas: json.objects({ subject: v.string(), pin: v.string() }),
  verification: json.described(json.texts, 'how cluster-info was verified'),
})

export type BootstrapStep = v.InferOutput<typeof stepSchema>
export type BootstrapProgress = v.InferOutput<typeof bootstrapProgressSchema>
export type BootstrapKubeconfig = v.InferOutput<typeof bootstrapKubeconfigSchema>
