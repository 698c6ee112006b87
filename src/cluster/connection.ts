import { commandLine } from '../errors/command-line.ts'
import { filledText } from '../errors/is-object.ts'
import { decodeBase64 } from '../kubeconfig/base64.ts'
import { namedFile, type SelectedContext, unusable } from './kubeconfig-files.ts'

/** How clients reach and verify the API server, for another user's kubeconfig. It contains nothing about the current user. */
export interface Connection {
  /** The cluster's name in the kubeconfig. */
  readonly clusterName: string
  readonly server: string
  /** PEM; undefined where the system's CAs are used. */
  readonly certificateAuthority: Uint8Array | undefined
  readonly tlsServerName: string | undefined
  readonly skipsTlsVerify: boolean
  readonly proxyUrl: string | undefined
}

/** Returns the connection of a context's cluster. Throws KCERT_KUBECONFIG_UNUSABLE when its CA cannot be read. */
export function connectionOf(selected: SelectedContext): Connection {
  const { cluster, clusterName } = selected
  return {
    clusterName,
    server: String(cluster.server),
    certificateAuthority: caOf(selected),
    tlsServerName: filledText(cluster['tls-server-name']),
    skipsTlsVerify: cluster['insecure-skip-tls-verify'] === true,
    proxyUrl: filledText(cluster['proxy-url']),
  }
}

/** Inline data takes precedence over a file, as in client-go. */
function caOf({ cluster, contextName, files, source }: SelectedContext): Uint8Array | undefined {
  const data = filledText(cluster['certificate-authority-data'])
  if (data !== undefined) {
    const decoded = decodeBase64(data)
    if ('bytes' in decoded) return decoded.bytes
    throw unusable(`the CA of context ${JSON.stringify(contextName)} in ${source} cannot be read`, {
      why: decoded.reason,
      next: commandLine`kcert inspect ${files}`,
    })
  }
  const file = filledText(cluster['certificate-authority'])
  return file === undefined ? undefined : namedFile(file, 'certificate-authority')
}
