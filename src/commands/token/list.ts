import { tokensOf } from '../../app/bootstrap/objects.ts'
import { forbiddenTokens } from '../../app/token/delete.ts'
import { type TokenList as Report, tokenReport } from '../../bootstrap/token-report.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import * as Flag from '../../cli/flags.ts'
import { renderTokenList } from '../../output/tokens.ts'
import { rfc3339 } from '../../pki/rfc3339.ts'

export default class TokenList extends KcertCommand {
  static override summary = 'List the bootstrap tokens of a cluster, with expiry, usages and problems.'

  static override description =
    "A token has a public part, the ID, and a secret part. This command prints IDs only. A new token's secret is printed once, by kcert token create."

  static override exitCodes = KcertCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'the list was printed, even if it is empty',
    usage: 'wrong usage, or no kubeconfig',
    no: "the API server's certificate is not trusted",
  })

  static override examples = KcertCommand.examplesOf({
    'List all tokens': 'kcert token list',
    'List tokens that never expire, for a script':
      "kcert token list -o json | jq -r '.tokens[] | select(.expiration | not) | .id'",
    'Delete all tokens that are not valid':
      'kcert token list -o json | jq -r \'.tokens[] | select(.state != "valid") | .id\' | xargs -r kcert token delete',
  })

  static override flags = {
    ...Flag.clusterFlags,
    ...Flag.listFlags(['name'], 'name: only the IDs'),
  }

  protected override async perform() {
    const { flags } = await this.parse(TokenList)
    const { context } = this
    const now = context.clock()
    const tokens = await this.onCluster(flags, (cluster) => tokensOf(cluster, now))
    if (tokens === undefined) throw forbiddenTokens()
    const report: Report = {
      apiVersion: 'kcert/v1',
      kind: 'TokenList',
      generatedAt: rfc3339(now),
      tokens: tokens.all.map(({ facts }) => tokenReport(facts)),
    }
    return this.show(flags.output, report, renderTokenList, {
      namesOf: ({ tokens }) => tokens.map(({ id }) => id),
    })
  }
}
