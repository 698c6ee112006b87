import * as v from 'valibot'
import { inventorySchema } from './inventory-schema.ts'

// The JSON contract of `kcert rotate-ca discover`; docs/schemas/Discovery.json is generated from it.

const text = v.string()

const proofSchema = v.object({
  reached: v.boolean(),
  isRoot: v.optional(v.boolean()),
  reads: v.optional(v.pipe(v.boolean(), v.description('the files of its kubelet could be read'))),
  writes: v.optional(
    v.pipe(
      v.boolean(),
      v.description('a file was written to each place that a rotation writes to, and removed'),
    ),
  ),
  freeBytes: v.optional(v.pipe(v.number(), v.description('where copies will lie'))),
  clockSkewMs: v.optional(v.number()),
  fault: v.optional(v.pipe(text, v.description('why not, in words'))),
})

const nodeSchema = v.object({
  name: text,
  role: v.picklist(['control-plane', 'worker']),
  addresses: v.array(text),
  layout: v.pipe(
    text,
    v.description('kubeadm or plain, unknown where the node was not reached; others are refused'),
  ),
  kubeletVersion: text,
  access: v.pipe(text, v.description('how it was tried, in words')),
  proof: proofSchema,
})

const componentSchema = v.object({
  id: v.pipe(text, v.description('NODE/COMPONENT')),
  runsAs: text,
  definition: text,
  flags: v.pipe(v.record(text, text), v.description('those that a rotation reads or changes')),
})

export const discoverySchema = v.object({
  apiVersion: v.literal('kcert/v1'),
  kind: v.literal('Discovery'),
  inventory: inventorySchema,
  nodes: v.array(nodeSchema),
  components: v.array(componentSchema),
  refusals: v.pipe(
    v.array(v.object({ what: text, why: text, next: text })),
    v.description('why this cluster is not rotated as it is; empty when nothing is in the way'),
  ),
  written: v.optional(v.pipe(text, v.description('the file that the inventory was written to'))),
})

export type Discovery = v.InferOutput<typeof discoverySchema>
export type DiscoveredNode = Discovery['nodes'][number]
export type NodeProof = DiscoveredNode['proof']
