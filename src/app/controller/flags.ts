import * as Flag from '../../cli/flags.ts'

/** The flags of every command of the controller. */
export const controllerFlags = {
  approve: Flag.value(
    'FILE|builtin',
    'approve what this policy approves: a file (docs/policy.md), builtin, kubelet-client or kubelet-serving',
  ),
  watch: Flag.boolean('export metrics about the certificates of the cluster'),
  'watch-secrets': Flag.boolean('also read the certificates in all Secrets', { dependsOn: ['watch'] }),
  namespace: Flag.value('NAMESPACE', 'namespace of the controller and of its Lease kcert-controller', {
    char: 'n',
    default: 'kube-system',
  }),
}
