/** The address and trust settings of a cluster. */
export interface ClusterEntry {
  readonly name: string
  readonly server: string
  /** PEM; undefined if the system's CAs are used, or if it is added later. */
  readonly certificateAuthority?: Uint8Array | string | undefined
  readonly tlsServerName?: string | undefined
  readonly skipsTlsVerify?: boolean
  readonly proxyUrl?: string | undefined
}

/** A user with a client certificate or a bearer token. */
export type UserEntry = {
  readonly name: string
  readonly namespace?: string | undefined
} & (ClientCertificate | { readonly token: string })

interface ClientCertificate {
  /** PEM, or the path of a file, like the key; undefined if it is added later. */
  readonly certificate?: string | { readonly file: string }
  /** PEM, or an absolute path, because others are relative to the kubeconfig's folder. */
  readonly key: { readonly pem: string } | { readonly file: string }
}

/**
 * Returns a kubeconfig with one context, in kubeadm's order and with its names. It contains the key if given as PEM, and the
 * token.
 */
export function kubeconfigDocument(cluster: ClusterEntry, user: UserEntry): object {
  const context = `${user.name}@${cluster.name}`
  const { certificateAuthority: ca, tlsServerName, skipsTlsVerify = false, proxyUrl } = cluster
  return {
    apiVersion: 'v1',
    clusters: [
      {
        cluster: {
          // Clients reject a CA together with insecure-skip-tls-verify.
          ...(ca === undefined || skipsTlsVerify ? {} : { 'certificate-authority-data': base64(ca) }),
          ...(skipsTlsVerify ? { 'insecure-skip-tls-verify': true } : {}),
          ...(proxyUrl === undefined ? {} : { 'proxy-url': proxyUrl }),
          server: cluster.server,
          ...(tlsServerName === undefined ? {} : { 'tls-server-name': tlsServerName }),
        },
        name: cluster.name,
      },
    ],
    contexts: [
      {
        context: {
          cluster: cluster.name,
          ...(user.namespace === undefined ? {} : { namespace: user.namespace }),
          user: user.name,
        },
        name: context,
      },
    ],
    'current-context': context,
    kind: 'Config',
    users: [{ name: user.name, user: 'token' in user ? { token: user.token } : certificateFields(user) }],
  }
}

function certificateFields({ certificate, key }: ClientCertificate): object {
  return {
    ...(typeof certificate === 'string' && { 'client-certificate-data': base64(certificate) }),
    ...(typeof certificate === 'object' && { 'client-certificate': certificate.file }),
    ...('pem' in key ? { 'client-key-data': base64(key.pem) } : { 'client-key': key.file }),
  }
}

function base64(content: Uint8Array | string): string {
  return Buffer.from(typeof content === 'string' ? Buffer.from(content) : content).toString('base64')
}
