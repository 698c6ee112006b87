import { issue, type KeyPair, makeCa } from './certificates.ts'
import { until } from './command.ts'
import { onNode } from './node.ts'
import { enableUnit, writeAt } from './node-files.ts'
import { etcdUnit, etcdUnitWithFile } from './plain-units.ts'
import type { ClusterSpec, Machine } from './spec.ts'
import { paths } from './state.ts'

/** The CA of external etcd, the client certificate of API servers, and the endpoints. */
export interface ExternalEtcd {
  readonly ca: KeyPair
  readonly client: KeyPair
  readonly endpoints: readonly string[]
}

/** Paths on control planes. kubeadm copies the first three to each control plane that joins. */
export const externalEtcdFiles = {
  caFile: '/etc/kubernetes/pki/etcd/ca.crt',
  certFile: '/etc/kubernetes/pki/apiserver-etcd-client.crt',
  keyFile: '/etc/kubernetes/pki/apiserver-etcd-client.key',
} as const

/** kcert signs with it. kubeadm neither needs nor copies it. */
const caKeyFile = '/etc/kubernetes/pki/etcd/ca.key'

/**
 * Starts a member of etcd as a unit on each machine, with one certificate for clients and other members. The first one has its settings
 * in a configuration file, the others in flags. Waits until all are healthy.
 */
export async function startExternalEtcd(
  machines: readonly Machine[],
  { keys }: ClusterSpec,
): Promise<ExternalEtcd> {
  const ca = await makeCa('etcd-ca', keys)
  for (const machine of machines) {
    const { name, address } = machine
    const member = await issue(
      ca,
      {
        commonName: `etcd-${name}`,
        names: [`IP:${address}`, 'IP:127.0.0.1', `DNS:${name}`],
        usages: ['serverAuth', 'clientAuth'],
      },
      keys,
    )
    const folder = paths.node(name)
    writeAt(folder, 'etc/etcd/ssl/etcd-ca.pem', ca.certificate)
    writeAt(folder, 'etc/etcd/ssl/etcd.pem', member.certificate)
    writeAt(folder, 'etc/etcd/ssl/etcd-key.pem', member.key, 0o600)
    const { unit, configuration } = etcdUnitWithFile(machine, machines)
    const isFirst = machine === machines[0]
    if (isFirst) writeAt(folder, configuration.path.slice(1), configuration.text)
    writeAt(folder, 'etc/systemd/system/etcd.service', isFirst ? unit : etcdUnit(machine, machines))
    enableUnit(folder, 'etcd')
  }
  // All at once, because members wait for one another.
  await Promise.all(machines.map(({ name }) => onNode(name, ['systemctl', 'start', 'etcd'])))
  for (const { name } of machines) {
    await until(`etcd of ${name} is healthy`, 120_000, async () => {
      const answer = await onNode(name, ['curl', '-s', '-m', '3', 'http://127.0.0.1:2381/health'], {
        mayFail: true,
      })
      return answer.stdout.includes('"health":"true"')
    })
  }
  const client = await issue(ca, { commonName: 'kube-apiserver-etcd-client', usages: ['clientAuth'] }, keys)
  return { ca, client, endpoints: machines.map(({ address }) => `https://${address}:2379`) }
}

/** Writes the files of external etcd that `kubeadm init` needs on the first control plane, and the key of the CA. */
export function writeExternalEtcd(node: string, { ca, client }: ExternalEtcd): void {
  const folder = paths.node(node)
  const { caFile, certFile, keyFile } = externalEtcdFiles
  writeAt(folder, caFile, ca.certificate)
  writeAt(folder, caKeyFile, ca.key, 0o600)
  writeAt(folder, certFile, client.certificate)
  writeAt(folder, keyFile, client.key, 0o600)
}
