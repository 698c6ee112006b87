import { deleteTokens, expiredTokens } from '../../app/token/delete.ts'
import { tokenIdOf } from '../../app/token/input.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import * as Flag from '../../cli/flags.ts'
import { tellChanges, whileStoppable } from '../../cli/interruption.ts'
import { exitCodes } from '../../errors/codes.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { renderDeletion } from '../../output/tokens.ts'

export default class TokenDelete extends KcertCommand {
  static override summary = 'Delete bootstrap tokens, so that no node can join with them.'

  static override description =
    `Nodes that have joined keep their certificates. Pending requests can still be approved. An API server may accept a deleted token for ten
more seconds. A token that changes while this command runs is skipped.`

  static override exitCodes = KcertCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'the tokens were deleted',
    usage: 'wrong usage, or no kubeconfig',
    no: 'a token was not found or has changed',
  })

  static override examples = KcertCommand.examplesOf({
    'Delete one token': 'kcert token delete abcdef',
    'Delete two tokens': 'kcert token delete abcdef 07401b',
    'Preview the deletion of all expired tokens': 'kcert token delete --expired --dry-run',
  })

  static override args = { id: Flag.operands('token ID: the first six characters of the token') }

  static override flags = {
    expired: Flag.boolean('delete all expired tokens'),
    'dry-run': Flag.boolean('show what would be deleted'),
    ...Flag.clusterFlags,
    output: Flag.reportFormat(),
  }

  protected override async perform() {
    const { flags, operands } = await this.parse(TokenDelete)
    const named = [...new Set(operands.map(tokenIdOf))]
    if (named.length === 0 && !flags.expired)
      throw new KcertError('KCERT_USAGE', 'no token ID given', {
        why: 'give the IDs of tokens, or --expired',
        next: 'kcert token list',
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
