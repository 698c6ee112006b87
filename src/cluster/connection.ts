import { readFileSync } from 'node:fs'
import { decodeBase64 } from '../kubeconfig/base64.ts'
import { type SelectedContext, unusable } from './kubeconfig-files.ts'

/** How the API server is reached and known, for a kubeconfig of somebody else: nothing of who asks is in it. */
export interface Connection {
  /** The cluster's name in the kubeconfig. */
  readonly clusterName: string
  readonly server: string
  /** PEM; undefined where the machine's own CAs are asked. */
  readonly certificateAuthority: Uint8Array | undefined
  readonly tlsServerName: string | undefined
  readonly skipsTlsVerify: boolean
  readonly proxyUrl: string | undefined
}

const serviceAccountCa = '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt'

/** Returns how the cluster of a context is reached. Throws KCERT_KUBECONFIG_UNUSABLE when its CA cannot be read. */
export function connectionOf(selected: SelectedContext | 'service-account', server: URL): Connection {
  if (selected === 'service-account') {
    return {
      clusterName: 'in-cluster',
      server: server.href.replace(/\/$/, ''),
      certificateAuthority: read(serviceAccountCa),
      tlsServerName: undefined,
      skipsTlsVerify: false,
      proxyUrl: undefined,
    }
  }
  const { cluster, clusterName } = selected
  return {
    clusterName,
    server: String(cluster.server),
    certificateAuthority: authorityOf(selected),
    tlsServerName: textOf(cluster['tls-server-name']),
    skipsTlsVerify: cluster['insecure-skip-tls-verify'] === true,
    proxyUrl: textOf(cluster['proxy-url']),
  }
}

/** Where both are given the data counts, as for client-go. */
function authorityOf({ cluster, contextName, source }: SelectedContext): Uint8Array | undefined {
  const data = textOf(cluster['certificate-authority-data'])
  if (data !== undefined) {
    const decoded = decodeBase64(data)
    if ('bytes' in decoded) return decoded.bytes
    throw unusable(`the CA of context ${JSON.stringify(contextName)} in ${source} cannot be read`, {
      why: decoded.reason,
      next: `kcert inspect ${source}`,
    })
  }
  const file = textOf(cluster['certificate-authority'])
  return file === undefined ? undefined : read(file)
}

function read(file: string): Uint8Array {
  try {
    return readFileSync(file)
  } catch (error) {
    throw unusable(`the CA file ${file} cannot be read`, {
      why: (error as Error).message,
      next: `ls -l ${file}`,
      cause: error,
    })
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
