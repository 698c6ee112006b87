import { deleteTokens, expiredTokens } from '../../app/token/delete.ts'
import { tokenIdOf } from '../../app/token/input.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { booleanFlag, clusterExits, clusterFlags, operands, reportFormatFlag } from '../../cli/flags.ts'
import { tellChanges, whileStoppable } from '../../cli/interruption.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { renderDeletion } from '../../output/tokens.ts'

export default class TokenDelete extends KcertCommand {
  static override summary = 'Delete bootstrap tokens: nobody joins by them any more.'

  static override description =
    `Nodes that have joined keep their certificates; requests that wait can still be approved. An API server that took a token just now goes
on taking it for ten seconds. A token is deleted only as it was seen: one that was made anew under its id meanwhile is left alone.`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'they are deleted',
    [exitCodes.usage]: 'wrong usage, or no kubeconfig',
    [exitCodes.no]: 'one was not found or has changed',
  }

  static override examples = KcertCommand.examplesOf({
    One: 'kcert token delete abcdef',
    Several: 'kcert token delete abcdef 07401b',
    'What has expired, where no cleaner runs': 'kcert token delete --expired --dry-run',
  })

  static override args = { id: operands('the id of a token: its first six characters') }

  static override flags = {
    expired: booleanFlag('all that have expired'),
    'dry-run': booleanFlag('show what would be deleted'),
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
      this.onCluster(flags, async (cluster) => {
        const expired = flags.expired ? await expiredTokens(cluster, context.clock) : []
        return deleteTokens(cluster, [...new Set([...named, ...expired])], flags['dry-run'])
      }),
    )
    await this.show(flags.output, report, renderDeletion)
    const isDone = report.tokens.every(({ outcome }) => outcome === 'deleted' || outcome === 'would-delete')
    return isDone ? exitCodes.done : exitCodes.no
  }
}
