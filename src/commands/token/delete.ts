import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { deleteTokens, expiredTokens } from '../../app/token/delete.ts'
import { tokenIdOf } from '../../app/token/input.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { clusterExits, clusterFlags } from '../../cli/cluster-flags.ts'
import { tellChanges, whileStoppable } from '../../cli/interruption.ts'
import { reportFormatFlag } from '../../cli/report-format.ts'
import { withCluster } from '../../cli/with-cluster.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { renderDeletion } from '../../output/tokens.ts'

export default class TokenDelete extends KcertCommand {
  static override summary = 'Delete bootstrap tokens: nobody joins by them any more.'

  static override description =
    `Nodes that have joined keep their certificates; requests that wait can still be approved. An API server that took a token just now goes
on taking it for ten seconds. A token is deleted only as it was seen: one that was made anew under its id meanwhile is left alone.`

  static override exitCodes = {
    [exitCodes.done]: 'they are deleted',
    [exitCodes.usage]: 'wrong usage, or no kubeconfig',
    [exitCodes.no]: 'one was not found or has changed',
    [exitCodes.unreachable]: 'the API server could not be reached',
    ...clusterExits,
  }

  static override examples = KcertCommand.examplesOf({
    One: '<%= config.bin %> token delete abcdef',
    Several: '<%= config.bin %> token delete abcdef 07401b',
    'What has expired, where no cleaner runs': '<%= config.bin %> token delete --expired --dry-run',
  })

  static override args = {
    id: Args.string({
      description: 'the id of a token: its first six characters',
      multiple: true,
      ignoreStdin: true,
    }),
  }

  static override flags = {
    expired: Flags.boolean({ description: 'all that have expired' }),
    'dry-run': Flags.boolean({ description: 'show what would be deleted' }),
    ...clusterFlags,
    output: reportFormatFlag(),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags, operands } = await this.parse(TokenDelete)
    const named = [...new Set(operands.map(tokenIdOf))]
    if (named.length === 0 && !flags.expired)
      throw new KcertError('KCERT_USAGE', 'no token is named', {
        next: 'name one of the list: kcert token list; kcert token delete ID',
      })
    const { context } = this
    const report = await whileStoppable(tellChanges, context.stderr, () =>
      withCluster(context, flags, async (cluster) => {
        const expired = flags.expired ? await expiredTokens(cluster, context.clock) : []
        return deleteTokens(cluster, [...new Set([...named, ...expired])], flags['dry-run'])
      }),
    )
    await this.show(flags.output, report, renderDeletion)
    const isDone = report.tokens.every(({ outcome }) => outcome === 'deleted' || outcome === 'would-delete')
    return isDone ? exitCodes.done : exitCodes.no
  }
}
