import * as Args from '@oclif/core/args'
import { checkTokenOn } from '../../app/token/check.ts'
import { readTokenFile } from '../../app/token/input.ts'
import { isTokenId, parseToken } from '../../bootstrap/token.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { connectionOptions } from '../../cli/cluster.ts'
import * as Flag from '../../cli/flags.ts'
import { openPlace } from '../../cluster/cluster.ts'
import { exitCodes } from '../../errors/codes.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { renderTokenCheck } from '../../output/tokens.ts'

export default class TokenCheck extends KcertCommand {
  static override summary = 'Check whether a node can join with this token.'

  static override description =
    `Checks the token's Secret as the API server reads it, its signature of cluster-info, and whether the API server authenticates it (one
request with the token). It also checks the rights that TLS bootstrap needs: to create a request, to have it approved, and to have
renewals approved. What you have no permission to read is unknown, and does not fail the check.

A complete token, best given with --token-file, is compared with the token in the cluster and never printed. This finds a mistyped token
and a token of another cluster.`

  static override exitCodes = KcertCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'no check failed',
    usage: 'wrong usage, a malformed token, or no kubeconfig',
    no: 'a check failed, or there is no such token',
  })

  static override examples = KcertCommand.examplesOf({
    'Check a token by its ID': 'kcert token check abcdef',
    'Check the token that a node was given': 'ssh node-7 cat /root/token | kcert token check --token-file -',
    'List the failed checks, for a script':
      'kcert token check abcdef -o json | jq -r \'.checks[] | select(.outcome == "failed") | .id\'',
  })

  static override args = {
    id: Args.string({ description: 'token ID: the first six characters of the token', ignoreStdin: true }),
  }

  static override flags = {
    'token-file': Flag.value('FILE', 'file with the complete token; "-" for standard input'),
    ...Flag.clusterFlags,
    output: Flag.reportFormat(),
  }

  protected override async perform() {
    const { args, flags } = await this.parse(TokenCheck)
    const { context } = this
    const file = flags['token-file']
    const { id: named } = args
    if ((named === undefined) === (file === undefined)) {
      const what =
        named === undefined ? 'no token given' : 'a token ID and --token-file are mutually exclusive'
      throw new KcertError('KCERT_USAGE', what, {
        why: 'give the ID of one token, or a file with --token-file',
        next: 'kcert token list',
      })
    }
    const given =
      file !== undefined
        ? await readTokenFile(file, context)
        : named === undefined || isTokenId(named)
          ? undefined
          : parseToken(named)
    if (given !== undefined && file === undefined)
      this.notice('note: every user of this machine can read the command line: use --token-file instead\n')
    const id = given?.id ?? named ?? ''
    const report = await this.onCluster(flags, (cluster) =>
      checkTokenOn(
        cluster,
        { id, given },
        {
          clock: context.clock,
          openAs: ({ connection }, token) =>
            openPlace(connection(), token, connectionOptions(context, flags)),
        },
      ),
    )
    await this.show(flags.output, report, renderTokenCheck)
    return report.verdict === 'failed' ? exitCodes.no : exitCodes.done
  }
}
