import * as Flags from '@oclif/core/flags'

/** What every command that talks to a cluster takes, as kubectl calls it. */
export const clusterFlags = {
  kubeconfig: Flags.string({
    description: 'kubeconfig; if not said: $KUBECONFIG, ~/.kube/config, or the service account of the pod',
    helpValue: 'FILE',
    helpGroup: 'CLUSTER',
  }),
  context: Flags.string({
    description: "context of the kubeconfig; if not said: the kubeconfig's current-context",
    helpValue: 'NAME',
    helpGroup: 'CLUSTER',
  }),
  'request-timeout': Flags.string({
    description: 'give up on one request after this long, such as 5s or 1m; 0 for never',
    helpValue: 'DURATION',
    default: '30s',
    helpGroup: 'CLUSTER',
  }),
}

export interface ClusterFlags {
  readonly kubeconfig?: string | undefined
  readonly context?: string | undefined
  readonly 'request-timeout': string
}
