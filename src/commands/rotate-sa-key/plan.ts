import { rotationPlaceFlags } from '../../app/rotate-ca/flags.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import * as Flag from '../../cli/flags.ts'
import { exitCodes } from '../../errors/codes.ts'

const { journal: _, ...placeFlags } = rotationPlaceFlags

export default class RotateSaKeyPlan extends KcertCommand {
  static override summary = 'Plan a rotation of the service account key: keys, tokens and restarts.'

  static override description =
    `kcert reads the cluster and its nodes and writes nothing. kube-apiserver and kube-controller-manager read the service account key
only when they start. So a rotation restarts every API server three times: to verify tokens of both keys, to sign with the new key,
and to drop the old key.

The plan shows, by key ID (\`kid\`), the keys that each API server serves at /openid/v1/jwks, the keys in its files, and the tokens that
they signed: mounted into pods, in Secrets and ConfigMaps, and in kubeconfigs on nodes. Restarting a kubelet renews the tokens that it
mounted. No command renews the others: the plan lists each of them with its owner.

The plan names the other programs that may verify tokens, the restarts on each node, and the waiting time. It shows
what blocks a rotation, for example control planes with different keys, or an external signer. For the files that one phase changes,
line by line, run kcert rotate-sa-key --phase N --dry-run.

kcert reads only the claims of tokens. On a node, the signature of a token never leaves the node. The plan contains no token and no key.`

  static override exitCodes = KcertCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'nothing blocks the rotation',
    usage: 'wrong usage, or no inventory',
    no: 'something blocks the rotation; the plan says what to do',
    unreachable: 'the cluster did not answer',
    refused: 'other users can change the inventory',
  })

  static override examples = KcertCommand.examplesOf({
    'Plan a rotation': 'kcert rotate-sa-key plan',
    'List who must get a new token': `kcert rotate-sa-key plan -o json | jq -r '.tokens[] | [.location, .owner] | @tsv'`,
    'Plan a rotation after the key leaked': 'kcert rotate-sa-key plan --reason compromise',
  })

  static override flags = {
    ...placeFlags,
    reason: Flag.word(
      ['routine', 'compromise'],
      'compromise: drop the old key at once; every token that it signed becomes invalid',
      { default: 'routine' },
    ),
    output: Flag.reportFormat('output format'),
  }

  protected override async perform() {
    const { flags } = await this.parse(RotateSaKeyPlan)
    const { planServiceAccountKey } = await import('../../app/rotate-sa-key/plan.ts')
    const { renderServiceAccountKeyPlan } = await import('../../output/rotation/service-account-key.ts')
    const plan = await planServiceAccountKey(this.context, flags, flags.reason)
    await this.show(flags.output, plan, renderServiceAccountKeyPlan)
    return plan.blockers.length === 0 ? exitCodes.done : exitCodes.no
  }
}
