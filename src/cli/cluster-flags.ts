import * as Flags from '@oclif/core/flags'
import { exitCodes } from '../errors/codes.ts'

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

/** The exit code of every command that talks to a cluster, for its help. */
export const clusterExits = {
  [exitCodes.notPermitted]: 'the API server refuses your credentials (401) or the request (403)',
}

export interface ClusterFlags {
  readonly kubeconfig?: string | undefined
  readonly context?: string | undefined
  readonly 'request-timeout': string
}
