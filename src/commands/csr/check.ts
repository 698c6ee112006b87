import { checkInput, neither } from '../../app/csr/check.ts'
import { readSigningRequest } from '../../app/csr/request-input.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import {
  booleanFlag,
  type ClusterFlags,
  clusterExits,
  clusterFlagsBesideCluster,
  numberFlag,
  operand,
  repeatedFlag,
  reportFormatFlag,
  valueFlag,
} from '../../cli/flags.ts'
import { readText, readTrustedText } from '../../cli/input.ts'
import { type ApprovalFacts, noFacts } from '../../csr/approval/facts.ts'
import { factsOfNodes, readNodes } from '../../csr/approval/node-list.ts'
import type { Policy } from '../../csr/approval/policy.ts'
import { builtinPolicies, readPolicies } from '../../csr/approval/policy-file.ts'
import { checkRequest } from '../../csr/check.ts'
import type { CheckReport } from '../../csr/check-report.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { renderCheck } from '../../output/csr-check.ts'

export default class CsrCheck extends KcertCommand {
  static override summary =
    'Say whether a request will be accepted, approved and signed, before it is sent or approved.'

  static override description =
    `Reads a file and asks no cluster, or, where there is no such file, an object of the cluster by its name, and then finds out what an
approver must know there: RBAC, Nodes, what kubelets serve. Three parties are asked apart, rule by rule, and for each rule that is broken it says what to change:

  admission  will the API server accept the object?
  approval   should an approver approve it? An approver has two duties: to see that the requester holds the key and is who it
             says (identity), and that it is entitled to what it asks for (entitlement)
  signing    will the signer sign it, or put the condition Failed on it?

The decision is approve, deny or ignore (leave alone: no policy for this signer, or not enough is known). While it is not
known who asks, approve means that nothing in the request speaks against it; once it is (spec.username, or --requester), only
what is wholly known to be right is approved, exactly as a policy would. --nodes lets a kubelet's names be held against its Node.`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'no rule is broken (and, when it is known who asks, it should be approved)',
    [exitCodes.usage]: 'wrong usage, or a file that cannot be read',
    [exitCodes.no]: 'a rule is broken, or it should not be approved',
    [exitCodes.refused]: 'other users can change the policy file',
  }

  static override examples = KcertCommand.examplesOf({
    'A request for a user, before it is sent':
      'kcert csr check ann.csr --signer kubernetes.io/kube-apiserver-client --usage "client auth"',
    'A manifest': 'kcert csr check csr.yaml',
    "A kubelet's request that waits on the cluster, held against the Nodes":
      'kubectl get nodes -o json > nodes.json; kubectl get csr csr-7x2lq -o yaml | kcert csr check - --nodes nodes.json',
    'What waits on the cluster, with all that can be found out there': 'kcert csr check csr-7x2lq',
    'What a policy of your own would do':
      'kcert csr check csr.yaml --policy policy.yaml --requester system:serviceaccount:shop:web',
    'The rules that are broken, for a script':
      "kcert csr check csr.yaml -o json | jq -r '.rules[] | select(.ok | not) | .id'",
  })

  static override args = {
    request: operand(
      'request in PEM or DER, or a CertificateSigningRequest in YAML or JSON; "-" for standard input; or the name of an object on the cluster',
    ),
  }

  static override flags = {
    signer: valueFlag('NAME', 'spec.signerName'),
    usage: repeatedFlag('USAGE', 'one of spec.usages, such as "client auth"; with commas for several'),
    'expiration-seconds': numberFlag('SECONDS', 'spec.expirationSeconds'),
    requester: valueFlag('USER', 'spec.username: who asks'),
    'requester-group': repeatedFlag('GROUP', 'one of spec.groups; with commas for several'),
    name: valueFlag('NAME', 'which object, where the file holds several'),
    policy: valueFlag('FILE', 'approve by this policy (docs/policy.md) instead of the built-in ones'),
    nodes: valueFlag('FILE', 'all Nodes, as kubectl get nodes -o json writes them'),
    cluster: booleanFlag('the operand is the name of an object, also where a file is called so', {
      helpGroup: 'CLUSTER',
    }),
    ...clusterFlagsBesideCluster,
    output: reportFormatFlag(),
  }

  protected override async perform(): Promise<ExitCode> {
    const { args, flags } = await this.parse(CsrCheck)
    const source = args.request
    if ([source, flags.policy, flags.nodes].filter((file) => file === '-').length > 1)
      throw new KcertError('KCERT_USAGE', 'only one file can be standard input', {
        next: 'name a file for the others',
      })
    const policies =
      flags.policy === undefined
        ? builtinPolicies
        : await readPolicies(
            await readTrustedText('approval policy', flags.policy, this.context),
            flags.policy,
          )
    const facts =
      flags.nodes === undefined
        ? undefined
        : factsOfNodes(await readNodes(await readText(flags.nodes, this.context), flags.nodes))

    const input = await checkInput(source, flags.cluster, this.context)
    const report =
      'bytes' in input
        ? await checkRequest(await readSigningRequest(input.bytes, source, flags), {
            source,
            policies,
            facts: facts ?? noFacts,
          })
        : await this.checkOnCluster(input, { policies, facts }, { ...flags, cluster: flags['cluster-name'] })
    await this.show(flags.output, report, renderCheck)
    const isFine =
      report.rules.every(({ ok }) => ok) && (!report.isSubmitted || report.decision === 'approve')
    return isFine ? exitCodes.done : exitCodes.no
  }

  private async checkOnCluster(
    { name, noFile }: { readonly name: string; readonly noFile: KcertError | undefined },
    { policies, facts }: { readonly policies: readonly Policy[]; readonly facts: ApprovalFacts | undefined },
    flags: ClusterFlags,
  ): Promise<CheckReport> {
    const { clock } = this.context
    const { checkOnCluster } = await import('../../app/csr/check-on-cluster.ts')
    try {
      return await this.onCluster(flags, (cluster) =>
        checkOnCluster(cluster, name, { policies, facts, clock }),
      )
    } catch (error) {
      if (noFile === undefined || !(error instanceof KcertError)) throw error
      throw neither(noFile, error)
    }
  }
}
