import type { SelectedContext } from './kubeconfig-files.ts'

/** Flags that override parts of a kubeconfig's cluster and user, as in kubectl. */
export interface Overrides {
  /** URL of the API server. */
  readonly server?: string | undefined
  /** A file with CA certificates in PEM. */
  readonly certificateAuthority?: string | undefined
  readonly skipsTlsVerify?: boolean | undefined
  readonly token?: string | undefined
  /** User to impersonate. */
  readonly as?: string | undefined
  readonly asGroups?: readonly string[] | undefined
}

type Fields = SelectedContext['cluster']

/** Returns the context with the overrides applied. */
export function withOverrides(selected: SelectedContext, overrides: Overrides): SelectedContext {
  return {
    ...selected,
    cluster: clusterWith(selected.cluster, overrides),
    user: userWith(selected.user, overrides),
  }
}

// As in client-go (tools/clientcmd, getCluster): a server on the command line drops the TLS server name of the kubeconfig. A CA
// or skipsTlsVerify on the command line replaces both settings of the kubeconfig.
function clusterWith(cluster: Fields, { server, certificateAuthority, skipsTlsVerify }: Overrides): Fields {
  const verifies = certificateAuthority !== undefined || skipsTlsVerify === true
  return {
    ...cluster,
    ...(server !== undefined && { server, 'tls-server-name': undefined }),
    ...(verifies && {
      'certificate-authority': certificateAuthority,
      'certificate-authority-data': undefined,
      'insecure-skip-tls-verify': skipsTlsVerify === true,
    }),
  }
}

// kubectl presents the client certificate of the kubeconfig together with the token, and the API server then ignores the token.
// Here the token replaces all credentials of the user.
function userWith(user: Fields, { token, as, asGroups }: Overrides): Fields {
  const credentials: Readonly<Record<string, unknown>> = token === undefined ? user : { token }
  if (as === undefined) return credentials
  const { as: _, 'as-groups': __, 'as-uid': ___, 'as-user-extra': ____, ...own } = credentials
  return { ...own, as, ...(asGroups !== undefined && { 'as-groups': asGroups }) }
}
