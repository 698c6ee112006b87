import type { FlagsOf } from '../../cli/base-command.ts'
import {
  allNodesFlag,
  booleanFlag,
  type ClusterFlags,
  inGroup,
  inventoryFlag,
  repeatedFlag,
  valueFlag,
  wordFlag,
} from '../../cli/flags.ts'

/** The kinds of servers that a flag selects. */
export const probeSections = ['api-servers', 'nodes', 'etcd', 'webhooks'] as const
export type ProbeSection = (typeof probeSections)[number]

/** The flags of `kcert probe`: servers, trust and client certificate. */
export const probeFlags = {
  'api-servers': booleanFlag('all API servers, and the server of the kubeconfig'),
  nodes: booleanFlag('the kubelets of all nodes'),
  etcd: booleanFlag('client and peer ports of etcd'),
  webhooks: booleanFlag('servers with a caBundle: webhooks, aggregated APIs, conversion webhooks'),
  all: booleanFlag('all of these; with -i, also controller managers and schedulers', {
    exclusive: [...probeSections],
  }),
  inventory: inventoryFlag('none: connect from this machine'),
  'all-nodes': allNodesFlag,
  ...inGroup('TRUST', {
    ca: valueFlag('FILE', 'CAs to verify chains with (default the cluster CA; for HOST:PORT none)'),
    'kubelet-certificate-authority': valueFlag(
      'FILE',
      "CAs with which API servers verify kubelets (default those of the API servers' flag)",
    ),
    'etcd-ca': valueFlag('FILE', 'CAs to verify etcd with (default with -i: those of --etcd-cafile)'),
    name: repeatedFlag(
      'NAME',
      'name that clients use for HOST:PORT, instead of HOST; the first one is sent as SNI',
    ),
  }),
  ...inGroup('CLIENT', {
    'client-certificate': valueFlag('FILE', 'client certificate to present to servers that request one'),
    'client-key': valueFlag('FILE', 'private key of --client-certificate (default in the same file)', {
      dependsOn: ['client-certificate'],
    }),
    'password-file': valueFlag('FILE', 'file with the password of the key on its first line', {
      dependsOn: ['client-certificate'],
    }),
  }),
  tls: wordFlag(['1.2', '1.3'], 'use only this TLS version'),
  timeout: valueFlag('DURATION', 'time limit for one server', { default: '5s' }),
}

export type ProbeFlags = FlagsOf<typeof probeFlags> & ClusterFlags
