import type { FlagsOf } from '../../cli/base-command.ts'
import * as Flag from '../../cli/flags.ts'

/** The kinds of servers that a flag selects. */
export const probeSections = ['api-servers', 'nodes', 'etcd', 'webhooks'] as const
export type ProbeSection = (typeof probeSections)[number]

/** The flags of `kcert probe`: servers, trust and client certificate. */
export const probeFlags = {
  'api-servers': Flag.boolean('all API servers, and the server of the kubeconfig'),
  nodes: Flag.boolean('the kubelets of all nodes'),
  etcd: Flag.boolean('client and peer ports of etcd'),
  webhooks: Flag.boolean('servers with a caBundle: webhooks, aggregated APIs, conversion webhooks'),
  all: Flag.boolean('all of these; with -i, also controller managers and schedulers', {
    exclusive: [...probeSections],
  }),
  inventory: Flag.inventoryFlag('none: connect from this machine'),
  'all-nodes': Flag.allNodesFlag,
  ...Flag.inGroup('TRUST', {
    ca: Flag.value('FILE', 'CAs to verify chains with (default the cluster CA; for HOST:PORT none)'),
    'kubelet-certificate-authority': Flag.value(
      'FILE',
      "CAs with which API servers verify kubelets (default those of the API servers' flag)",
    ),
    'etcd-ca': Flag.value('FILE', 'CAs to verify etcd with (default with -i: those of --etcd-cafile)'),
    name: Flag.repeated(
      'NAME',
      'name that clients use for HOST:PORT, instead of HOST; the first one is sent as SNI',
    ),
  }),
  ...Flag.inGroup('CLIENT', {
    'client-certificate': Flag.value('FILE', 'client certificate to present to servers that request one'),
    'client-key': Flag.value('FILE', 'private key of --client-certificate (default in the same file)', {
      dependsOn: ['client-certificate'],
    }),
    'password-file': Flag.value('FILE', 'file with the password of the key on its first line', {
      dependsOn: ['client-certificate'],
    }),
  }),
  tls: Flag.word(['1.2', '1.3'], 'use only this TLS version'),
  timeout: Flag.value('DURATION', 'time limit for one server', { default: '5s' }),
}

export type ProbeFlags = FlagsOf<typeof probeFlags> & Flag.ClusterFlags
