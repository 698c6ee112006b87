import * as v from 'valibot'
import { isHost } from '../pki/node-address.ts'
import { imageReference } from './image-reference.ts'
import { phaseTable } from './phase-table.ts'
import { described } from './schema-parts.ts'
import { caNames } from './target.ts'

// The schema of kcert.yaml, which operators complete. docs/schemas/Inventory.json is generated from it. inventory.ts loads it
// only when there is a file to read.

const text = v.pipe(v.string(), v.nonEmpty('is empty'))
const path = v.pipe(text, v.regex(/^\//, 'is not an absolute path'))
const argv = v.pipe(v.array(text), v.minLength(1, 'is empty'))
const host = v.pipe(text, v.check(isHost, 'is not a host name (RFC 1123) or an IP address'))
const seconds = v.pipe(v.number(), v.minValue(0, 'is negative'))

const optional = <Schema extends v.GenericSchema>(schema: Schema, what: string) =>
  v.exactOptional(described(schema, what))

const become = optional(
  v.literal('sudo'),
  'become root with `sudo -n`, if the login is not root; sudo must not ask for a password',
)

export const localAccessSchema = v.strictObject({ by: v.literal('local'), become })

export const sshAccessSchema = v.strictObject({
  by: v.literal('ssh'),
  host: described(text, 'a name, an address, or a Host in ssh_config'),
  user: optional(text, 'login user (default from ssh_config)'),
  port: optional(v.pipe(v.number(), v.integer('is not a port')), 'port (default from ssh_config)'),
  identityFile: optional(text, 'private key file (default the agent and ssh_config)'),
  configFile: optional(text, 'ssh_config to use instead of ~/.ssh/config'),
  become,
})

export const commandAccessSchema = v.strictObject({
  by: v.literal('command'),
  argv: described(argv, 'command that runs its arguments on the node, for example [docker, exec, -i, cp1]'),
  become,
})

export const jobsAccessSchema = v.strictObject({
  by: v.literal('jobs'),
  image: described(
    v.pipe(v.string(), v.regex(imageReference, 'is not an image reference')),
    'image of the Jobs, with sleep and chroot, for example that of kcert; with a digest, so that its registry cannot replace it',
  ),
})

export const accessSchema = described(
  v.variant('by', [localAccessSchema, sshAccessSchema, commandAccessSchema, jobsAccessSchema]),
  'how to reach the node',
)

const perComponent = <Schema extends v.GenericSchema>(schema: Schema) =>
  v.strictObject({
    'kube-apiserver': v.exactOptional(schema),
    'kube-controller-manager': v.exactOptional(schema),
    'kube-scheduler': v.exactOptional(schema),
    'cloud-controller-manager': v.exactOptional(schema),
    'kube-proxy': v.exactOptional(schema),
    kubelet: v.exactOptional(schema),
    etcd: v.exactOptional(schema),
  })

export const nodeSchema = v.strictObject({
  name: described(host, 'name of the Node object'),
  role: v.picklist(['control-plane', 'worker']),
  addresses: described(v.array(host), 'addresses of the Node object; kcert connects to the first'),
  layout: described(
    v.picklist(['kubeadm', 'plain']),
    'kubeadm: static pods; plain: systemd units or other processes',
  ),
  access: v.exactOptional(accessSchema),
  units: optional(perComponent(text), 'names of systemd units that differ from the component name'),
  restart: optional(
    perComponent(argv),
    'command to run on the node to restart a component, instead of systemctl restart',
  ),
})

const { role: _, ...machine } = nodeSchema.entries

export const etcdMachineSchema = v.strictObject({
  ...machine,
  name: described(host, 'name of the machine; no Node object has it'),
  addresses: described(v.array(host), 'addresses of the machine; kcert connects to the first'),
})

export const kubeconfigSchema = described(
  v.union([
    v.strictObject({ node: text, path }),
    v.strictObject({
      name: described(text, 'owner or purpose'),
      file: optional(
        text,
        'a copy of it on this machine; kcert does not change it, and phase 7 asks whether its owner has a new one',
      ),
    }),
  ]),
  'a kubeconfig that kcert does not find by itself, on a node or elsewhere',
)

export const hookSchema = v.strictObject({
  name: optional(text, 'name shown while the hook runs'),
  when: described(
    v.picklist(['before-node', 'after-node', 'before-phase', 'after-phase', 'upload-jwks']),
    'upload-jwks: in kcert rotate-sa-key, to upload /openid/v1/jwks to where other programs read it; with both keys in phase 3, without the old key in phase 7',
  ),
  phases: optional(
    v.array(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(phaseTable.length))),
    'phases to run in (default every phase)',
  ),
  nodes: optional(v.array(text), 'nodes to run for (default every node)'),
  argv: described(
    argv,
    'command to run on this machine, with KCERT_PHASE, KCERT_NODE and KCERT_WHEN in its environment; a nonzero exit status stops the rotation',
  ),
  timeoutSeconds: optional(seconds, 'timeout in seconds (default 60)'),
})

const workloadSelector = v.strictObject({
  kind: optional(v.picklist(['Deployment', 'DaemonSet', 'StatefulSet']), 'kind (default any)'),
  namespace: optional(text, 'namespace (default all)'),
  name: optional(text, 'name (default any)'),
  labels: optional(v.record(v.string(), v.string()), 'labels; the workload must have all of them'),
})

export const workloadsSchema = v.strictObject({
  exclude: optional(v.array(workloadSelector), 'workloads that kcert never restarts; their owners do'),
  reloadingCa: optional(
    v.array(workloadSelector),
    'workloads whose clients read ca.crt again (client-go 0.36 and later) and need no restart',
  ),
  maxUnavailable: optional(
    v.pipe(v.number(), v.integer(), v.minValue(1)),
    'how many workloads restart at the same time (default 4)',
  ),
  paceSeconds: optional(seconds, 'pause after each workload in seconds (default 0)'),
})

export const inventorySchema = v.strictObject({
  apiVersion: v.literal('kcert/v1'),
  kind: v.literal('Inventory'),
  cas: optional(
    v.pipe(v.array(v.picklist(caNames)), v.minLength(1, 'is empty')),
    'CAs to rotate (default both)',
  ),
  access: v.exactOptional(
    described(
      accessSchema,
      'access for nodes without their own, including nodes that join later; {node} and {address} are filled in',
    ),
  ),
  nodes: v.pipe(v.array(nodeSchema), v.minLength(1, 'is empty')),
  etcd: optional(
    v.pipe(v.array(etcdMachineSchema), v.minLength(1, 'is empty')),
    'machines with a member of external etcd and without a Node object; only kcert rotate-ca --ca etcd and kcert probe --etcd use them',
  ),
  kubeconfigs: optional(
    v.array(kubeconfigSchema),
    'kubeconfigs in addition to those that kcert finds on the nodes',
  ),
  hooks: optional(v.array(hookSchema), 'your commands to run before and after nodes and phases'),
  workloads: optional(workloadsSchema, 'how to restart pods'),
})

export type Inventory = v.InferOutput<typeof inventorySchema>
