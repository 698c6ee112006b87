import { checkNamespace, enabledBy } from '../../app/controller/approved-by.ts'
import { checkController } from '../../app/controller/check.ts'
import { controllerFlags } from '../../app/controller/flags.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import * as Flag from '../../cli/flags.ts'
import { exitCodes } from '../../errors/codes.ts'
import { renderControllerCheck } from '../../output/controller-check.ts'

export default class ControllerCheck extends KcertCommand {
  static override summary = 'Check each permission that kcert controller needs, and list what is missing.'

  static override description =
    `With --approve, the permissions depend on the policy: to approve for each of its signers, and to read what its rules compare a CSR
with. With --watch, they only read. kcert checks each one with a SelfSubjectAccessReview, for the user that the flags below select. In a pod this is the service account. With your
own kubeconfig, name the service account with --as.

kcert controller manifest prints the objects that grant these permissions.`

  static override exitCodes = KcertCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'every permission is granted',
    usage: 'wrong usage, or a policy that cannot be read',
    no: 'a permission is missing',
    refused: 'other users can change the policy file',
  })

  static override examples = KcertCommand.examplesOf({
    'Check the service account of a controller that approves serving certificates of kubelets':
      'kcert controller check --approve kubelet-serving --as system:serviceaccount:kube-system:kcert-controller',
    'Check your own policy, in the pod': 'kcert controller check --approve /etc/kcert/policy.yaml',
    'List what is missing, for a script':
      "kcert controller check --approve builtin -o json | jq -r '.permissions[] | select(.allowed | not) | .resource'",
  })

  static override flags = {
    ...controllerFlags,
    ...Flag.clusterFlags,
    output: Flag.reportFormat(),
  }

  protected override async perform() {
    const { flags } = await this.parse(ControllerCheck)
    const { namespace } = flags
    checkNamespace(namespace)
    const enabled = await enabledBy(flags, this.context)
    const report = await this.onCluster(flags, (cluster) => checkController(cluster, enabled, namespace))
    const exit = report.missing === 0 ? exitCodes.done : exitCodes.no
    return this.show(flags.output, report, renderControllerCheck, { exit })
  }
}
