import type { Place } from '../../inspection/problems.ts'
import type { InspectionReport, KubeconfigReport } from '../../inspection/report.ts'
import type { Column } from '../table.ts'

/** A context with its server, or a cluster without a context. */
export interface ContextRow extends Place {
  readonly context: string
  readonly isCurrent: boolean
  readonly cluster: string
  readonly server: string
  readonly user: string
  readonly namespace: string
}

/** Returns each context of each kubeconfig with its server, and then each cluster that no context names. */
export function contextRows({ kubeconfigs }: InspectionReport): ContextRow[] {
  // With several files in $KUBECONFIG, the context and its cluster may be in different files.
  const servers = new Map<string, string>()
  for (const { clusters } of kubeconfigs)
    for (const { name, server = '' } of clusters) if (!servers.has(name)) servers.set(name, server)
  const wanted = new Set(kubeconfigs.flatMap(wantedElsewhere))
  return kubeconfigs.flatMap((one) => rowsOf(one, servers, wanted))
}

/** Returns the clusters that the contexts of a file name but the file does not contain. */
function wantedElsewhere({ clusters, contexts }: KubeconfigReport): string[] {
  const own = new Set(clusters.map(({ name }) => name))
  return contexts.map(({ cluster }) => cluster).filter((cluster) => !own.has(cluster))
}

function rowsOf(
  { source, entry, clusters, contexts }: KubeconfigReport,
  others: ReadonlyMap<string, string>,
  wanted: ReadonlySet<string>,
): ContextRow[] {
  const own = new Map(clusters.map(({ name, server = '' }) => [name, server]))
  const named = new Set(contexts.map(({ cluster }) => cluster))
  return [
    ...contexts.map(({ name, cluster, user, namespace = '', isCurrent }) => ({
      ...{ source, entry, context: name, isCurrent, cluster, user, namespace },
      server: own.get(cluster) ?? others.get(cluster) ?? '',
    })),
    ...clusters
      .filter(({ name }) => !named.has(name) && !wanted.has(name))
      .map(({ name, server = '' }) => ({
        ...{ source, entry, context: '(none)', isCurrent: false, cluster: name, server },
        ...{ user: '', namespace: '' },
      })),
  ]
}

/** Returns the columns of the table of contexts without the path. */
export function contextColumns(): Column<ContextRow>[] {
  return [
    { title: 'CONTEXT', cell: ({ context }) => context },
    { title: 'CURRENT', cell: ({ isCurrent }) => (isCurrent ? 'yes' : '') },
    { title: 'SERVER', cell: ({ server }) => server },
    { title: 'CLUSTER', cell: ({ cluster }) => cluster },
    { title: 'USER', cell: ({ user }) => user },
  ]
}
