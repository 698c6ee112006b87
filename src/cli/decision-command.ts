import type { DecisionReport } from '../csr/approval/decision-report.ts'
import type { Act } from '../csr/approval/judging.ts'
import type { ExitCode } from '../errors/codes.ts'
import { KcertCommand } from './base-command.ts'
import type { ClusterFlags } from './cluster-flags.ts'
import type { DecisionWish } from './decision-flags.ts'
import { tellChanges, whileStoppable } from './interruption.ts'
import { type ReportFormat, renderReport } from './report-format.ts'
import { namesAmong } from './request-names.ts'
import { stderrView, stdoutView } from './view.ts'

interface Flags extends ClusterFlags, Omit<DecisionWish, 'names' | 'dryRun' | 'force'> {
  readonly 'dry-run': boolean
  readonly force?: boolean
  readonly output: ReportFormat
}

/** What `kcert csr approve` and `kcert csr deny` share: all but their words. */
export abstract class DecisionCommand extends KcertCommand {
  protected async decide(act: Act, names: readonly string[], flags: Flags): Promise<ExitCode> {
    const [
      { checkWish, decideRequests },
      { approvalFactsOf },
      { openClusterOf },
      { renderDecisions, renderProposal },
    ] = await Promise.all([
      import('./decide-requests.ts'),
      import('./approval-facts.ts'),
      import('./cluster.ts'),
      import('../output/approval.ts'),
    ])
    const { context } = this
    const wish = {
      ...flags,
      names: namesAmong(names, `csr ${act} NAME`),
      dryRun: flags['dry-run'],
      force: flags.force ?? false,
    }
    checkWish(act, wish)
    const cluster = await openClusterOf(context, flags)
    try {
      const { report, exit } = await whileStoppable(tellChanges, context.stderr, () =>
        decideRequests(act, wish, {
          api: cluster.requests,
          facts: approvalFactsOf(cluster, context.clock),
          context,
          propose: async (plan: DecisionReport) => renderProposal(plan, await stderrView(context)),
        }),
      )
      const view = await stdoutView(context)
      await this.answer(renderReport(flags.output, report, () => renderDecisions(report, view)))
      return exit
    } finally {
      cluster.close()
    }
  }
}
