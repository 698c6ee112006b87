import { type FlagsOf, KcertCommand } from '../../cli/base-command.ts'
import { withCluster } from '../../cli/cluster.ts'
import {
  booleanFlag,
  type ClusterFlags,
  numberFlag,
  repeatedFlag,
  reportFormatFlag,
  valueFlag,
} from '../../cli/flags.ts'
import { tellChanges, whileStoppable } from '../../cli/interruption.ts'
import { stderrView } from '../../cli/view.ts'
import type { DecisionReport } from '../../csr/approval/decision-report.ts'
import type { Act } from '../../csr/approval/evaluation.ts'
import type { ExitCode } from '../../errors/codes.ts'
import { renderDecisions, renderProposal } from '../../output/approval.ts'
import { approvalFactsOf } from './approval-facts.ts'
import { checkSettings, decideRequests } from './approve.ts'
import { namesAmong } from './request-names.ts'

const verbs = { approve: 'approved', deny: 'denied' } as const

/** The flags of `kcert csr approve` and `kcert csr deny`. */
export function decisionFlags(act: Act) {
  return {
    file: repeatedFlag(
      'FILE',
      'manifests: their requests are found by name, and must be byte-identical; "-" for standard input',
      { char: 'f' },
    ),
    selector: valueFlag('LABELS', 'all that wait and have these labels, as kubectl takes them', {
      char: 'l',
    }),
    signer: valueFlag('NAME', 'all that wait for this signer'),
    policy: valueFlag(
      'FILE|builtin',
      `what this policy says is ${verbs[act]}, the rest left alone: a file (docs/policy.md), or built-in ones: "builtin" for all, kubelet-client, kubelet-serving. Alone it judges all that wait`,
    ),
    reason: valueFlag('WORD', 'of the condition: one word for programs, such as NodeOfBatch7'),
    message: valueFlag('TEXT', 'of the condition: for people'),
    'dry-run': booleanFlag('show every verdict, and write nothing'),
    yes: booleanFlag('do not ask', { char: 'y' }),
    concurrency: numberFlag('N', 'how many requests are worked on at once', {
      default: 16,
      min: 1,
      max: 256,
    }),
    output: reportFormatFlag(),
  }
}

type DecisionFlags = FlagsOf<ReturnType<typeof decisionFlags>> & ClusterFlags & { readonly force?: boolean }

/** What `kcert csr approve` and `kcert csr deny` share: all but their words. */
export abstract class DecisionCommand extends KcertCommand {
  protected async decide(act: Act, names: readonly string[], flags: DecisionFlags): Promise<ExitCode> {
    const { context } = this
    const settings = {
      ...flags,
      names: namesAmong(names, `csr ${act} NAME`),
      dryRun: flags['dry-run'],
      force: flags.force ?? false,
    }
    checkSettings(act, settings)
    const { report, exit } = await whileStoppable(tellChanges, context.stderr, () =>
      withCluster(context, flags, (cluster) =>
        decideRequests(act, settings, {
          api: cluster.requests,
          facts: approvalFactsOf(cluster, context.clock),
          context,
          propose: async (plan: DecisionReport) => renderProposal(plan, await stderrView(context)),
        }),
      ),
    )
    await this.show(flags.output, report, renderDecisions)
    return exit
  }
}
