import { delimiter, join } from 'node:path'
import type { Cluster, ConnectionOptions } from '../cluster/cluster.ts'
import { given } from '../errors/given.ts'
import type { Context } from './context.ts'
import type { ClusterFlags } from './flags.ts'
import { parseDuration } from './instant.ts'
import { tellLine } from './tell-line.ts'

/**
 * Returns the cluster that the flags and the environment select, by kubectl's precedence: --kubeconfig, the files in
 * $KUBECONFIG merged, ~/.kube/config, the service account of the pod. The caller closes it. Nothing is sent to the server yet.
 * Throws KCERT_USAGE, KCERT_KUBECONFIG_UNUSABLE, KCERT_FILE_NOT_FOUND or KCERT_FILE_UNREADABLE.
 */
export async function openClusterOf(
  context: Context,
  flags: ClusterFlags,
  limits: Pick<ConnectionOptions, 'mostPageBytes'> = {},
): Promise<Cluster> {
  const options = connectionOptions(context, flags)
  const { openCluster, openContext } = await import('../cluster/cluster.ts')
  if (flags.chosen !== undefined) {
    const { selected, ...own } = flags.chosen
    return openContext(selected, { ...options, ...own })
  }
  return openCluster({
    ...kubeconfigsOf(context, flags.kubeconfig),
    ...given({ context: flags.context, cluster: flags.cluster, user: flags.user }),
    overrides: {
      server: flags.server,
      certificateAuthority: flags['certificate-authority'],
      skipsTlsVerify: flags['insecure-skip-tls-verify'],
      token: flags.token,
      as: flags.as,
      asGroups: flags['as-group'],
    },
    ...options,
    ...limits,
  })
}

/**
 * Returns the result of `act` on the cluster that the flags select, then closes its connections. Throws as `openClusterOf` does.
 */
export async function withCluster<Result>(
  context: Context,
  flags: ClusterFlags,
  act: (cluster: Cluster) => Promise<Result>,
): Promise<Result> {
  const cluster = await openClusterOf(context, flags)
  try {
    return await act(cluster)
  } finally {
    cluster.close()
  }
}

/** Returns the connection options for any cluster. Throws KCERT_USAGE. */
export function connectionOptions(
  context: Context,
  flags: Pick<ClusterFlags, 'request-timeout'>,
): ConnectionOptions {
  const requestTimeoutMs = timeoutOf(flags['request-timeout'])
  const { clock, random, env } = context
  const surroundings = {
    env,
    // Only plugins need it, and it is expensive to determine.
    get stdinIsTerminal() {
      return context.stdinIsTerminal
    },
  }
  return { requestTimeoutMs, surroundings, clock, random, warn: (text) => warnOnce(text, context) }
}

/** Returns the selected kubeconfigs, found as kubectl finds them. */
export function kubeconfigsOf({ env, home }: Context, named: string | undefined) {
  if (named !== undefined) return { files: [named], filesMustExist: true }
  const listed = (env.KUBECONFIG ?? '').split(delimiter).filter((file) => file !== '')
  const files = listed.length > 0 ? listed : home ? [join(home, '.kube', 'config')] : []
  return { files, filesMustExist: false }
}

const warned = new Set<string>()

/** Warns once, even if a command opens its cluster repeatedly. */
function warnOnce(text: string, { stderr }: Pick<Context, 'stderr'>): void {
  if (warned.has(text)) return
  warned.add(text)
  tellLine(stderr, `warning: ${text}`)
}

/** As in kubectl: 0 means no timeout, and a number without a unit is seconds. */
function timeoutOf(text: string): number {
  if (/^0+(?:\.0+)?[a-z]*$/.test(text)) return 0
  return parseDuration(/^\d+$/.test(text) ? `${text}s` : text, '--request-timeout')
}
