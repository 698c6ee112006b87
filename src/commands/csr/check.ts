import { checkInput, operandNotFound } from '../../app/csr/check.ts'
import { policiesOf } from '../../app/csr/policies.ts'
import { readSigningRequest } from '../../app/csr/request-input.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import * as Flag from '../../cli/flags.ts'
import { readText } from '../../cli/input.ts'
import { type ApprovalFacts, noFacts } from '../../csr/approval/facts.ts'
import { factsOfNodes, readNodes } from '../../csr/approval/node-list.ts'
import type { Policy } from '../../csr/approval/policy.ts'
import { checkRequest } from '../../csr/check.ts'
import type { CheckReport } from '../../csr/check-report.ts'
import { exitCodes } from '../../errors/codes.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { renderCheck } from '../../output/csr-check.ts'

export default class CsrCheck extends KcertCommand {
  static override summary = 'Check whether a CSR will be accepted, approved and signed.'

  static override description =
    `Checks a file, without a cluster. If there is no such file, kcert checks the object of that name on the cluster. It then also reads
RBAC, Nodes, and the certificates that kubelets serve. kcert answers three questions, rule by rule. For each broken rule it says what to
change:

  admission  will the API server accept the object?
  approval   should an approver approve it? An approver has two duties. Identity: the requester holds the private key and is who the
             request says. Entitlement: the requester may have what the request asks for
  signing    will the signer sign it, or set the condition Failed?

The decision is approve, deny or ignore (no policy for this signer, or not enough is known). If the requester is unknown, approve
means that no rule is broken. With a requester (spec.username, or --requester), approve means that the policy would approve. With
--nodes, kcert compares a kubelet's names with its Node.`

  static override exitCodes = KcertCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'no rule is broken and, if the requester is known, the decision is approve',
    usage: 'wrong usage, or a file that cannot be read',
    no: 'a rule is broken, or the requester is known and the decision is not approve',
    refused: 'other users can change the policy file',
  })

  static override examples = KcertCommand.examplesOf({
    'Check a CSR for a user before you submit it':
      'kcert csr check ann.csr --signer kubernetes.io/kube-apiserver-client --usage "client auth"',
    'Check a manifest': 'kcert csr check csr.yaml',
    "Check a kubelet's pending request against the Nodes":
      'kubectl get nodes -o json > nodes.json; kubectl get csr csr-7x2lq -o yaml | kcert csr check - --nodes nodes.json',
    'Check a request on the cluster': 'kcert csr check csr-7x2lq',
    'Check what your own policy would decide':
      'kcert csr check csr.yaml --policy policy.yaml --requester system:serviceaccount:shop:web',
    'Print the broken rules, for a script':
      "kcert csr check csr.yaml -o json | jq -r '.rules[] | select(.ok | not) | .id'",
  })

  static override args = {
    request: Flag.operand(
      'CSR in PEM or DER, CertificateSigningRequest in YAML or JSON ("-" for standard input), or name of an object on the cluster',
    ),
  }

  static override flags = {
    signer: Flag.value('NAME', 'spec.signerName; required for PEM and DER'),
    usage: Flag.repeated('USAGE', 'spec.usages, such as "client auth"; separate several with commas'),
    'expiration-seconds': Flag.number('SECONDS', 'spec.expirationSeconds'),
    requester: Flag.value('USER', 'spec.username, the user who created the object'),
    'requester-group': Flag.repeated('GROUP', 'spec.groups; separate several with commas'),
    name: Flag.value('NAME', 'name of the object, if the file has several'),
    policy: Flag.value(
      'FILE|builtin',
      'policy to check against: a file (docs/policy.md), builtin, kubelet-client or kubelet-serving',
      { default: 'builtin' },
    ),
    nodes: Flag.value('FILE', 'all Nodes, as printed by kubectl get nodes -o json'),
    cluster: Flag.boolean('the argument is the name of an object, even if there is a file of that name', {
      helpGroup: 'CLUSTER',
    }),
    ...Flag.clusterFlagsBesideCluster,
    output: Flag.reportFormat(),
  }

  protected override async perform() {
    const { args, flags } = await this.parse(CsrCheck)
    const source = args.request
    if ([source, flags.policy, flags.nodes].filter((file) => file === '-').length > 1)
      throw new KcertError('KCERT_USAGE', 'only one file can be standard input (-)', {
        next: 'kcert csr check --help',
      })
    const policies = await policiesOf(flags.policy, this.context)
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
    flags: Flag.ClusterFlags,
  ): Promise<CheckReport> {
    const { clock } = this.context
    const { checkOnCluster } = await import('../../app/csr/check-on-cluster.ts')
    try {
      return await this.onCluster(flags, (cluster) =>
        checkOnCluster(cluster, name, { policies, facts, clock }),
      )
    } catch (error) {
      if (noFile === undefined || !(error instanceof KcertError)) throw error
      throw operandNotFound(noFile, error)
    }
  }
}
