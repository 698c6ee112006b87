import * as Flags from '@oclif/core/flags'
import { type TokenList as Report, tokenReport } from '../../bootstrap/token-report.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { clusterExits, clusterFlags } from '../../cli/cluster-flags.ts'
import { renderReport } from '../../cli/report-format.ts'
import { stdoutView } from '../../cli/view.ts'
import { withCluster } from '../../cli/with-cluster.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { rfc3339 } from '../../pki/rfc3339.ts'

export default class TokenList extends KcertCommand {
  static override summary = 'List the bootstrap tokens of a cluster: until when, for what, and what is wrong.'

  static override description =
    'A token has a public half, its id, and a secret half, which is not shown here nor by any command but kcert token create.'

  static override exitCodes = {
    [exitCodes.done]: 'the list is printed, also when it is empty',
    [exitCodes.usage]: 'wrong usage, or no kubeconfig',
    [exitCodes.no]: "the API server's certificate is not trusted",
    [exitCodes.unreachable]: 'the API server could not be reached',
    ...clusterExits,
  }

  static override examples = [
    { description: 'All tokens', command: '<%= config.bin %> token list' },
    {
      description: 'Those that never expire, for a script',
      command: "<%= config.bin %> token list -o json | jq -r '.tokens[] | select(.expiration | not) | .id'",
    },
    {
      description: 'Delete what is of no use',
      command:
        '<%= config.bin %> token list -o json | jq -r \'.tokens[] | select(.state != "valid") | .id\' | xargs -r <%= config.bin %> token delete',
    },
  ]

  static override flags = {
    ...clusterFlags,
    output: Flags.option({
      char: 'o',
      options: ['text', 'json', 'yaml', 'name'] as const,
      default: 'text' as const,
    })({ description: 'how to show them; name: the ids alone' }),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags } = await this.parse(TokenList)
    const { context } = this
    const [{ tokensOf }, { forbiddenTokens }, { renderTokenList }] = await Promise.all([
      import('../../cli/bootstrap-objects.ts'),
      import('../../cli/delete-tokens.ts'),
      import('../../output/tokens.ts'),
    ])
    const now = context.clock()
    const tokens = await withCluster(context, flags, (cluster) => tokensOf(cluster, now))
    if (tokens === undefined) throw forbiddenTokens()
    const report: Report = {
      apiVersion: 'kcert/v1',
      kind: 'TokenList',
      generatedAt: rfc3339(now),
      tokens: tokens.all.map(({ facts }) => tokenReport(facts)),
    }
    if (flags.output === 'name') {
      const { printable } = await import('../../output/terminal.ts')
      await this.answer(report.tokens.map(({ id }) => `${printable(id)}\n`).join(''))
      return exitCodes.done
    }
    const view = await stdoutView(context)
    await this.answer(renderReport(flags.output, report, () => renderTokenList(report, view)))
    return exitCodes.done
  }
}
