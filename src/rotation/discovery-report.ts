import * as v from 'valibot'
import { inventorySchema } from './inventory-schema.ts'
import { described, objects, optionalField, text } from './schema-parts.ts'

// The JSON contract of `kcert rotate-ca discover`; docs/schemas/Discovery.json is generated from it.

const checkSchema = v.object({
  reachable: v.boolean(),
  isRoot: v.optional(v.boolean()),
  canRead: optionalField(v.boolean(), 'whether kcert could read the files of its kubelet'),
  canWrite: optionalField(
    v.boolean(),
    'whether kcert could write a file to each folder that a rotation changes; the file was removed',
  ),
  freeBytes: optionalField(v.number(), 'free space where copies of files will be stored'),
  clockSkewMs: v.optional(v.number()),
  error: optionalField(text, 'the reason, if reading or writing failed'),
})

const nodeSchema = v.object({
  name: text,
  role: described(
    v.picklist(['control-plane', 'worker', 'etcd']),
    'etcd: a machine of external etcd, which has no Node object',
  ),
  addresses: v.array(text),
  layout: described(
    text,
    'kubeadm or plain; unknown if the node was not reached; none for a host of etcd on which no etcd runs; kcert refuses all others',
  ),
  kubeletVersion: described(text, 'empty for a machine of external etcd'),
  access: described(text, 'how kcert tried to reach the node'),
  check: checkSchema,
})

const componentSchema = v.object({
  id: described(text, 'NODE/COMPONENT'),
  runsAs: text,
  definition: text,
  flags: described(v.record(text, text), 'flags that a rotation reads or changes'),
})

export const discoverySchema = v.object({
  apiVersion: v.literal('kcert/v1'),
  kind: v.literal('Discovery'),
  inventory: inventorySchema,
  nodes: v.array(nodeSchema),
  components: v.array(componentSchema),
  blockers: described(
    objects({ what: text, why: text, next: text }),
    'why kcert refuses to rotate this cluster; empty if nothing blocks the rotation',
  ),
  written: optionalField(text, 'file that the inventory was written to'),
})

export type Discovery = v.InferOutput<typeof discoverySchema>
export type DiscoveredNode = Discovery['nodes'][number]
export type NodeCheck = DiscoveredNode['check']
