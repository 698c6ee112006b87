import { hash } from 'node:crypto'
import { readKubeconfig } from '../../src/kubeconfig/kubeconfig.ts'
import { readKubeconfigDocument } from '../../src/kubeconfig/kubeconfig-document.ts'
import type { KubeconfigAnswer } from '../peers/client-go.ts'
import type { KubeconfigCase } from './kubeconfig-cases.ts'

/** Returns kcert's answer in the form of client-go's. The files in these kubeconfigs do not exist. */
export async function askKcert(content: Uint8Array): Promise<KubeconfigAnswer> {
  const { documents, defects } = await readKubeconfigDocument(content)
  const [root] = documents
  if (defects.length > 0) return 'refused'
  if (root === undefined) return { current: '', clusters: [], users: [], contexts: [] }
  const config = readKubeconfig(root)
  if (config.defects.some(({ isFatal }) => isFatal)) return 'refused'
  const data = (bytes: Uint8Array | undefined): string => (bytes ? Buffer.from(bytes).toString('base64') : '')
  const isFaulty = (part: string, name: string): boolean =>
    config.defects.some(({ field }) => field === `${part}[${name}]` || field.startsWith(`${part}[${name}].`))
  const isUsable = (cluster: string, user: string): boolean => {
    const its = config.clusters.find(({ name }) => name === cluster)
    const who = config.users.find(({ name }) => name === user)
    const files = [
      its?.certificateAuthority?.file,
      who?.clientCertificate?.file,
      who?.credentials.some(({ kind }) => kind === 'tokenFile'),
    ]
    return (
      its !== undefined && !isFaulty('clusters', cluster) && !isFaulty('users', user) && !files.some(Boolean)
    )
  }
  return {
    current: config.currentContext ?? '',
    clusters: sorted(
      config.clusters.map(({ name, server, tlsServerName, skipsTlsVerify, certificateAuthority: ca }) => [
        name,
        server ?? '',
        tlsServerName ?? '',
        skipsTlsVerify,
        data(ca?.data),
        ca?.file ?? '',
      ]),
    ),
    users: sorted(
      config.users.map(({ name, clientCertificate, credentials }) => [
        name,
        data(clientCertificate?.data),
        clientCertificate?.file ?? '',
        [
          ...(['exec', 'auth-provider', 'token', 'basic'] as const)
            .filter((kind) => credentials.some((one) => one.kind === kind))
            .map((kind) => (kind === 'auth-provider' ? 'provider' : kind)),
        ].join(' '),
      ]),
    ),
    contexts: sorted(
      config.contexts.map(({ name, cluster, user }) => [name, cluster, user, isUsable(cluster, user)]),
    ),
  }
}

function sorted<Row extends readonly [name: string, ...unknown[]]>(rows: readonly Row[]): Row[] {
  return rows.toSorted(([a], [b]) => (a < b ? -1 : 1))
}

/** Returns an answer in the form of the record: "refused", or a digest of the values that must be equal. */
export function recordOf({ asksForUsability }: KubeconfigCase, answer: KubeconfigAnswer): string {
  if (answer === 'refused') return answer
  const { current, clusters, users, contexts } = answer
  const agreed = {
    current,
    // If data is given, the file is ignored and kcert does not keep it.
    clusters: clusters.map(([name, server, serverName, insecure, data, file]) => [
      ...[name, server, serverName, insecure, data, data === '' ? file : ''],
    ]),
    users: users.map(([name, data, file, uses]) => [name, data, data === '' ? file : '', uses]),
    contexts: contexts.map(([name, cluster, user, isUsable]) => [
      ...[name, cluster, user, asksForUsability === true && isUsable],
    ]),
  }
  return hash('sha256', JSON.stringify(agreed)).slice(0, 8)
}
