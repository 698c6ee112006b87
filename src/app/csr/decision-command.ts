import { type FlagsOf, KcertCommand } from '../../cli/base-command.ts'
import { withCluster } from '../../cli/cluster.ts'
import * as Flag from '../../cli/flags.ts'
import { tellChanges, whileStoppable } from '../../cli/interruption.ts'
import { stderrView } from '../../cli/view.ts'
import type { DecisionReport } from '../../csr/approval/decision-report.ts'
import type { Act } from '../../csr/approval/evaluation.ts'
import type { ExitCode } from '../../errors/codes.ts'
import { renderActs, renderDecisions, renderProposal } from '../../output/approval.ts'
import { renderYamlDocuments } from '../../output/yaml.ts'
import { approvalFactsOf } from './approval-facts.ts'
import { checkSettings, decideRequests } from './approve.ts'
import { namesAmong } from './request-names.ts'

const participle = { approve: 'Approved', deny: 'Denied' } as const
const thirdPerson = { approve: 'approves', deny: 'denies' } as const
const policies = {
  approve: 'a file (docs/policy.md), builtin, kubelet-client or kubelet-serving',
  deny: 'a file (docs/policy.md); builtin denies nothing',
} as const

/** The flags of `kcert csr approve` and `kcert csr deny`. */
export function decisionFlags(act: Act) {
  return {
    file: Flag.repeated(
      'FILE',
      `manifest of the requests to ${act}, which must be byte-identical on the cluster; "-" for standard input`,
      { char: 'f' },
    ),
    selector: Flag.value('LABELS', 'pending requests with these labels, as in kubectl', {
      char: 'l',
    }),
    signer: Flag.value('NAME', 'pending requests for this signer'),
    policy: Flag.value(
      'FILE|builtin',
      `${act} what this policy ${thirdPerson[act]} and skip the rest: ${policies[act]}. Without names, -f, -l or --signer, for all pending requests`,
    ),
    reason: Flag.value(
      'REASON',
      `reason of the condition, in CamelCase, such as Ticket4711 (default ${participle[act]}ByOperator, with --policy ${participle[act]}ByPolicy)`,
    ),
    message: Flag.value(
      'TEXT',
      'message of the condition (default the kcert command and, with --policy, the rule)',
    ),
    'dry-run': Flag.boolean(
      'print every decision without changing anything; with -o yaml, the objects that would be sent',
    ),
    yes: Flag.boolean('do not ask for confirmation; required for a selection without a terminal', {
      char: 'y',
    }),
    concurrency: Flag.number('N', 'how many requests to process at once', {
      default: 16,
      min: 1,
      max: 256,
    }),
    output: Flag.reportFormat(),
  }
}

type DecisionFlags = FlagsOf<ReturnType<typeof decisionFlags>> &
  Flag.ClusterFlags & { readonly force?: boolean }

/** The common part of `kcert csr approve` and `kcert csr deny`: everything but their texts. */
export abstract class DecisionCommand extends KcertCommand {
  protected async decide(act: Act, names: readonly string[], flags: DecisionFlags): Promise<ExitCode> {
    const { context } = this
    const settings = {
      ...flags,
      names: namesAmong(names),
      dryRun: flags['dry-run'],
      force: flags.force ?? false,
    }
    checkSettings(act, settings)
    const { report, exit, wasProposed, wouldSend } = await whileStoppable(tellChanges, context.stderr, () =>
      withCluster(context, flags, (cluster) =>
        decideRequests(act, settings, {
          api: cluster.requests,
          facts: approvalFactsOf(cluster, context.clock),
          context,
          propose: async (plan: DecisionReport) => renderProposal(plan, await stderrView(context)),
        }),
      ),
    )
    if (settings.dryRun && flags.output === 'yaml') await this.answer(renderYamlDocuments(wouldSend))
    else await this.show(flags.output, report, wasProposed ? renderActs : renderDecisions)
    return exit
  }
}
