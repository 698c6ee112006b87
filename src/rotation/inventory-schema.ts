import * as v from 'valibot'
import { isHost } from '../pki/node-address.ts'
import { phaseTable } from './phase-table.ts'
import { described } from './schema-parts.ts'
import { caNames } from './target.ts'

// kcert.yaml, as operators complete it. docs/schemas/Inventory.json is generated from this; inventory.ts loads it when there is
// a file to read.

const text = v.pipe(v.string(), v.nonEmpty('is empty'))
const path = v.pipe(text, v.regex(/^\//, 'is no absolute path'))
const argv = v.pipe(v.array(text), v.minLength(1, 'is empty'))
const host = v.pipe(text, v.check(isHost, 'is neither a host name (RFC 1123) nor an IP address'))
const seconds = v.pipe(v.number(), v.minValue(0, 'is negative'))

const optional = <Schema extends v.GenericSchema>(schema: Schema, what: string) =>
  v.exactOptional(described(schema, what))

const become = optional(
  v.literal('sudo'),
  'root by `sudo -n`, for those who log in as somebody else; it never asks for a password',
)

export const localAccessSchema = v.strictObject({ by: v.literal('local'), become })

export const sshAccessSchema = v.strictObject({
  by: v.literal('ssh'),
  host: described(text, 'a name, an address, or a Host of ssh_config'),
  user: optional(text, 'who logs in; otherwise as ssh_config says'),
  port: optional(v.pipe(v.number(), v.integer('is no port')), 'otherwise as ssh_config says'),
  identityFile: optional(text, 'a private key; otherwise the agent and ssh_config'),
  configFile: optional(text, 'instead of ~/.ssh/config'),
  become,
})

export const commandAccessSchema = v.strictObject({
  by: v.literal('command'),
  argv: described(argv, 'runs on the node what follows it, such as [docker, exec, -i, cp1]'),
  become,
})

export const accessSchema = described(
  v.variant('by', [localAccessSchema, sshAccessSchema, commandAccessSchema]),
  'how the node is reached',
)

const perComponent = <Schema extends v.GenericSchema>(schema: Schema) =>
  v.strictObject({
    'kube-apiserver': v.exactOptional(schema),
    'kube-controller-manager': v.exactOptional(schema),
    'kube-scheduler': v.exactOptional(schema),
    'cloud-controller-manager': v.exactOptional(schema),
    'kube-proxy': v.exactOptional(schema),
    kubelet: v.exactOptional(schema),
  })

export const nodeSchema = v.strictObject({
  name: described(host, 'of the Node object'),
  role: v.picklist(['control-plane', 'worker']),
  addresses: described(v.array(host), 'of the Node object; kcert dials the first'),
  layout: described(
    v.picklist(['kubeadm', 'plain']),
    'kubeadm: static pods; plain: systemd units or other processes',
  ),
  access: v.exactOptional(accessSchema),
  units: optional(perComponent(text), 'names of systemd units that are not called as their component'),
  restart: optional(
    perComponent(argv),
    'run on the node to restart a component, where systemctl restart is not the way',
  ),
})

export const kubeconfigSchema = described(
  v.union([
    v.strictObject({ node: text, path }),
    v.strictObject({
      name: described(text, 'whose it is, or what it is for'),
      file: optional(
        text,
        'a copy of it on this machine: kcert leaves it alone, and phase 7 asks whether its owner has a new one',
      ),
    }),
  ]),
  'one that kcert does not find by itself: on a node, or somewhere else in the world',
)

export const hookSchema = v.strictObject({
  name: optional(text, 'shown while it runs'),
  when: v.picklist(['before-node', 'after-node', 'before-phase', 'after-phase']),
  phases: optional(
    v.array(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(phaseTable.length))),
    'otherwise in every phase',
  ),
  nodes: optional(v.array(text), 'otherwise for every node'),
  argv: described(
    argv,
    'run on this machine, with KCERT_PHASE, KCERT_NODE and KCERT_WHEN in its environment; a status other than 0 stops the run',
  ),
  timeoutSeconds: optional(seconds, 'otherwise 60'),
})

const workloadSelector = v.strictObject({
  kind: optional(v.picklist(['Deployment', 'DaemonSet', 'StatefulSet']), 'otherwise of any kind'),
  namespace: optional(text, 'otherwise in every namespace'),
  name: optional(text, 'otherwise of any name'),
  labels: optional(v.record(v.string(), v.string()), 'all of which the workload carries'),
})

export const workloadsSchema = v.strictObject({
  exclude: optional(v.array(workloadSelector), 'never rolled by kcert; their owners roll them'),
  rereadingCa: optional(
    v.array(workloadSelector),
    'clients known to read ca.crt again (client-go 1.36 and later): they need no restart',
  ),
  atOnce: optional(
    v.pipe(v.number(), v.integer(), v.minValue(1)),
    'how many workloads roll at the same time; otherwise 4',
  ),
  paceSeconds: optional(seconds, 'pause after each workload; otherwise none'),
})

export const inventorySchema = v.strictObject({
  apiVersion: v.literal('kcert/v1'),
  kind: v.literal('Inventory'),
  cas: optional(
    v.pipe(v.array(v.picklist(caNames)), v.minLength(1, 'is empty')),
    'which CAs are rotated; otherwise both',
  ),
  access: v.exactOptional(
    described(
      accessSchema,
      'for nodes without one of their own, those too that are born later; {node} and {address} are filled in',
    ),
  ),
  nodes: v.pipe(v.array(nodeSchema), v.minLength(1, 'is empty')),
  kubeconfigs: optional(v.array(kubeconfigSchema), 'beside those that kcert finds on the nodes'),
  hooks: optional(v.array(hookSchema), 'commands of yours before and after nodes and phases'),
  workloads: optional(workloadsSchema, 'how pods are restarted'),
})

export type Inventory = v.InferOutput<typeof inventorySchema>
