import * as v from 'valibot'
import { inventorySchema } from './inventory-schema.ts'
import { described, maybe, text } from './schema-parts.ts'

// The JSON contract of `kcert rotate-ca discover`; docs/schemas/Discovery.json is generated from it.

const proofSchema = v.object({
  reached: v.boolean(),
  isRoot: v.optional(v.boolean()),
  reads: maybe(v.boolean(), 'the files of its kubelet could be read'),
  writes: maybe(v.boolean(), 'a file was written to each place that a rotation writes to, and removed'),
  freeBytes: maybe(v.number(), 'where copies will lie'),
  clockSkewMs: v.optional(v.number()),
  fault: maybe(text, 'why not, in words'),
})

const nodeSchema = v.object({
  name: text,
  role: v.picklist(['control-plane', 'worker']),
  addresses: v.array(text),
  layout: described(text, 'kubeadm or plain, unknown where the node was not reached; others are refused'),
  kubeletVersion: text,
  access: described(text, 'how it was tried, in words'),
  proof: proofSchema,
})

const componentSchema = v.object({
  id: described(text, 'NODE/COMPONENT'),
  runsAs: text,
  definition: text,
  flags: described(v.record(text, text), 'those that a rotation reads or changes'),
})

export const discoverySchema = v.object({
  apiVersion: v.literal('kcert/v1'),
  kind: v.literal('Discovery'),
  inventory: inventorySchema,
  nodes: v.array(nodeSchema),
  components: v.array(componentSchema),
  refusals: described(
    v.array(v.object({ what: text, why: text, next: text })),
    'why this cluster is not rotated as it is; empty when nothing is in the way',
  ),
  written: maybe(text, 'the file that the inventory was written to'),
})

export type Discovery = v.InferOutput<typeof discoverySchema>
export type DiscoveredNode = Discovery['nodes'][number]
export type NodeProof = DiscoveredNode['proof']
