import type { FlagsOf } from '../../cli/base-command.ts'
import * as Flag from '../../cli/flags.ts'

/** The objects of a management cluster that name other clusters. */
export const fleetSources = ['cluster-api', 'argocd', 'clusterprofile'] as const
export type FleetSource = (typeof fleetSources)[number]

export const fleetFormats = ['text', 'json', 'prometheus', 'html'] as const

export const fleetArgs = {
  kubeconfig: Flag.operands(
    'kubeconfig, folder of kubeconfigs, or glob pattern (default $KUBECONFIG or ~/.kube/config)',
  ),
}

/** The flags of every command of `kcert fleet`. */
export const fleetFlags = {
  output: Flag.format(
    fleetFormats,
    'output format; json: one line for each cluster, then a summary; prometheus: metrics with the labels cluster and cluster_source; html: one file without scripts or network access',
  ),
  'no-headers': Flag.noHeaders,
  contexts: Flag.repeated(
    'PATTERN',
    'only contexts, and clusters of --from, whose name matches; * and ? match any characters; may be repeated (default all)',
  ),
  deadline: Flag.value('DURATION', 'time limit for one cluster, with its credential program', {
    default: '30s',
  }),
  concurrency: Flag.number('NUMBER', 'number of clusters that are read at the same time', {
    min: 1,
    max: 256,
    default: 32,
  }),
  ...Flag.inGroup('MANAGEMENT CLUSTER', {
    from: Flag.repeated(
      'KIND',
      `also the clusters in these objects of the management cluster: ${fleetSources.join(', ')}; comma-separated`,
      { delimiter: ',' },
    ),
    namespace: Flag.value('NAMESPACE', 'with --from: only objects in this namespace (default all)', {
      char: 'n',
      dependsOn: ['from'],
    }),
    'clusterprofile-provider-file': Flag.value(
      'FILE',
      'JSON file with the credential program of each access provider of ClusterProfiles',
      { dependsOn: ['from'] },
    ),
  }),
  ...Flag.clusterFlags,
}

export type FleetFlags = FlagsOf<typeof fleetFlags> & Flag.ClusterFlags
