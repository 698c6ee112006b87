import * as v from 'valibot'

// The JSON contract of `kcert bootstrap check` and `kcert bootstrap kubeconfig`.

const stepSchema = v.object({
  number: v.pipe(v.number(), v.description('of the fifteen steps of TLS bootstrap; several can be of one')),
  id: v.string(),
  outcome: v.pipe(
    v.picklist(['done', 'stopped', 'unknown', 'later']),
    v.description('unknown: it cannot be seen from the cluster; later: a step before it is not done'),
  ),
  detail: v.string(),
  next: v.optional(v.string()),
})

export const bootstrapProgressSchema = v.object({
  apiVersion: v.literal('kcert/v1'),
  kind: v.literal('BootstrapProgress'),
  generatedAt: v.pipe(v.string(), v.isoTimestamp()),
  node: v.string(),
  verdict: v.pipe(
    v.picklist(['arrived', 'stopped']),
    v.description('arrived: the node is registered and its kubelet is alive'),
  ),
  stoppedAt: v.optional(v.string()),
  steps: v.array(stepSchema),
})

export const bootstrapKubeconfigSchema = v.object({
  apiVersion: v.literal('kcert/v1'),
  kind: v.literal('BootstrapKubeconfig'),
  outcome: v.picklist(['written', 'would-write']),
  file: v.string(),
  server: v.string(),
  tokenId: v.string(),
  authorities: v.array(v.object({ subject: v.string(), pin: v.string() })),
  proof: v.pipe(v.array(v.string()), v.description('why cluster-info is believed')),
})

export type BootstrapStep = v.InferOutput<typeof stepSchema>
export type BootstrapProgress = v.InferOutput<typeof bootstrapProgressSchema>
export type BootstrapKubeconfig = v.InferOutput<typeof bootstrapKubeconfigSchema>
