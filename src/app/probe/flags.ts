import type { FlagsOf } from '../../cli/base-command.ts'
import { booleanFlag, type ClusterFlags, repeatedFlag, valueFlag, wordFlag } from '../../cli/flags.ts'

/** What kinds of servers can be asked for. */
export const probeSections = ['api-servers', 'nodes', 'etcd', 'webhooks'] as const
export type ProbeSection = (typeof probeSections)[number]

/** What `kcert probe` probes, and by what. */
export const probeFlags = {
  'api-servers': booleanFlag('every API server, and the one of the kubeconfig'),
  nodes: booleanFlag('the kubelet of every node'),
  etcd: booleanFlag("etcd's ports for clients and for its other members"),
  webhooks: booleanFlag('what API servers verify by a caBundle: webhooks, aggregated APIs, conversions'),
  all: booleanFlag('all of these; with -i also controller managers and schedulers', {
    exclusive: [...probeSections],
  }),
  inventory: valueFlag('FILE', 'how nodes are reached: connections begin there, and files are read there', {
    char: 'i',
  }),
  ca: valueFlag(
    'FILE',
    'hold chains against these CAs; if not said: the cluster CA, and none for HOST:PORT',
    { helpGroup: 'TRUST' },
  ),
  'kubelet-certificate-authority': valueFlag(
    'FILE',
    'by which API servers verify kubelets; if not said: as their flag says',
    { helpGroup: 'TRUST' },
  ),
  'etcd-ca': valueFlag(
    'FILE',
    "hold etcd's chains against these; if not said: as --etcd-cafile says, with -i",
    { helpGroup: 'TRUST' },
  ),
  name: repeatedFlag(
    'NAME',
    'a name that clients use for HOST:PORT, instead of HOST; the first goes into SNI',
    { helpGroup: 'TRUST' },
  ),
  'client-certificate': valueFlag('FILE', 'show this one to servers that ask for a client certificate', {
    helpGroup: 'CLIENT',
  }),
  'client-key': valueFlag('FILE', 'its private key, where it is not in the same file', {
    helpGroup: 'CLIENT',
    dependsOn: ['client-certificate'],
  }),
  'password-file': valueFlag('FILE', 'file whose first line opens an encrypted key', {
    helpGroup: 'CLIENT',
    dependsOn: ['client-certificate'],
  }),
  tls: wordFlag(['1.2', '1.3'], 'this version and no other'),
  timeout: valueFlag('DURATION', 'how long to wait for a server', { default: '5s' }),
}

export type ProbeFlags = FlagsOf<typeof probeFlags> & ClusterFlags
