import * as Args from '@oclif/core/args'
import { checkTokenOn } from '../../app/token/check.ts'
import { readTokenFile } from '../../app/token/input.ts'
import { isTokenId, parseToken } from '../../bootstrap/token.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { connectionOptions } from '../../cli/cluster.ts'
import { clusterExits, clusterFlags, reportFormatFlag, valueFlag } from '../../cli/flags.ts'
import { openPlace } from '../../cluster/cluster.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { renderTokenCheck } from '../../output/tokens.ts'

export default class TokenCheck extends KcertCommand {
  static override summary = 'Say whether a newcomer gets in with a token: validity, signature, rights.'

  static override description =
    `Looked at are its Secret as the API server judges it, its signature of cluster-info, whether the API server knows its bearer (it is asked,
once, by the token itself), and the rights that TLS bootstrap needs: to create a request, to have it approved, and as a node to
have renewals approved. What may not be looked at is unknown, and is no reason to fail.

A whole token, best with --token-file, is held against the cluster's, without being shown: was it mistyped, is it of another cluster?`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'nothing is wrong, as far as could be looked',
    [exitCodes.usage]: 'wrong usage, a malformed token, or no kubeconfig',
    [exitCodes.no]: 'something is wrong, or there is no such token',
  }

  static override examples = KcertCommand.examplesOf({
    'By its id': 'kcert token check abcdef',
    'The token that a node was given': 'ssh node-7 cat /root/token | kcert token check --token-file -',
    'What is missing, for a script':
      'kcert token check abcdef -o json | jq -r \'.checks[] | select(.outcome == "no") | .id\'',
  })

  static override args = {
    id: Args.string({ description: 'the id of a token: its first six characters', ignoreStdin: true }),
  }

  static override flags = {
    'token-file': valueFlag('FILE', 'file with the whole token; "-" for standard input'),
    ...clusterFlags,
    output: reportFormatFlag(),
  }

  protected override async perform(): Promise<ExitCode> {
    const { args, flags } = await this.parse(TokenCheck)
    const { context } = this
    const file = flags['token-file']
    const { id: named } = args
    if ((named === undefined) === (file === undefined))
      throw new KcertError(
        'KCERT_USAGE',
        'a token is named by its id or by --token-file, and by one of them',
        {
          next: 'kcert token check ID',
        },
      )
    const given =
      file !== undefined
        ? await readTokenFile(file, context)
        : named === undefined || isTokenId(named)
          ? undefined
          : parseToken(named)
    if (given !== undefined && file === undefined)
      this.notice('note: the command line is seen by every user of this machine: rather --token-file FILE\n')
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
    return report.verdict === 'no' ? exitCodes.no : exitCodes.done
  }
}
