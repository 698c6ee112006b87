import * as Flags from '@oclif/core/flags'
import { createToken } from '../../app/token/create.ts'
import { readTokenFile } from '../../app/token/input.ts'
import { newToken } from '../../bootstrap/token.ts'
import { checkGroups, kubeadmJoiners, tokenUsages } from '../../bootstrap/token-secret.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { checkFiles } from '../../cli/command-files.ts'
import {
  booleanFlag,
  clusterExits,
  clusterFlags,
  formatFlag,
  repeatedFlag,
  valueFlag,
} from '../../cli/flags.ts'
import { parseDuration } from '../../cli/instant.ts'
import { stdoutView } from '../../cli/view.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { renderCreation } from '../../output/tokens.ts'

export default class TokenCreate extends KcertCommand {
  static override summary = 'Make a bootstrap token, and print the command that joins a node by it.'

  static override description =
    `The command names the server and every CA of cluster-info by its pin. It is the answer on standard output and a SECRET: whoever has the
token may ask for the certificate of any node. With --out it goes into a file of mode 0600 instead, and nothing secret is printed.
No other command of kcert shows a token.

Whether a newcomer gets in with it, bindings and signature included, says kcert token check.`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'the token is made',
    [exitCodes.usage]: 'wrong usage, a malformed token or group, or no kubeconfig',
    [exitCodes.no]: 'there is one of this id, or cluster-info is of no use',
    [exitCodes.unreachable]: 'the API server could not be reached, or the file could not be written',
    [exitCodes.refused]: 'the file of --out is there already',
  }

  static override examples = KcertCommand.examplesOf({
    'For the next two hours; the command goes to the node, and into no history':
      'kcert token create --ttl 2h | ssh root@node-7 sh',
    'Into a file': 'kcert token create --description "rack 12" --out join-rack-12',
    'The token alone, for a kubelet that bootstraps without kubeadm':
      'kcert token create -o token --out token && kcert bootstrap kubeconfig --token-file token --out bootstrap-kubelet.conf',
    'May I, and what would it be?': 'kcert token create --dry-run',
  })

  static override dryRunBy = 'server' as const

  static override flags = {
    ttl: valueFlag('DURATION', 'how long it is valid, as 2h or 7d; 0 for ever', { default: '24h' }),
    usages: Flags.option({
      description: 'signing: of cluster-info; authentication: of its bearer; if not said: both',
      options: tokenUsages,
      multiple: true,
      multipleNonGreedy: true,
      delimiter: ',',
    })(),
    group: repeatedFlag(
      'GROUP',
      `what its bearer is a member of; may be repeated. If not said: ${kubeadmJoiners}`,
    ),
    description: valueFlag('TEXT', 'for people, in kcert token list'),
    'token-file': valueFlag(
      'FILE',
      'take the token that is in this file instead of a new one; "-" for standard input',
    ),
    out: valueFlag('FILE', 'where the secret goes instead of standard output'),
    force: booleanFlag('replace the file when it is there'),
    'dry-run': booleanFlag('ask the API server whether it would make it, and make none'),
    ...clusterFlags,
    output: formatFlag(
      ['join', 'token', 'json', 'yaml'],
      'join: the command for the node; token: the token alone; json, yaml: all of it',
    ),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags } = await this.parse(TokenCreate)
    const { context } = this
    const { output, out, force, description } = flags
    checkFiles({
      inputs: [{ by: '--token-file', path: flags['token-file'] }],
      outputs: [{ by: '--out', path: out, holds: 'key' }],
      replace: force,
    })
    const usages = tokenUsages.filter((usage) => (flags.usages ?? tokenUsages).includes(usage))
    const groups = checkGroups(flags.group, usages)
    const ttlMs = /^0+[a-z]*$/.test(flags.ttl) ? undefined : parseDuration(flags.ttl, '--ttl')
    const given = flags['token-file']
    const token = given === undefined ? newToken(context.random) : await readTokenFile(given, context)
    const report = await this.onCluster(flags, (cluster) =>
      createToken(cluster, {
        token,
        usages,
        groups,
        ...(description === undefined ? {} : { description }),
        ...(ttlMs === undefined ? {} : { expiration: new Date(context.clock().getTime() + ttlMs) }),
        dryRun: flags['dry-run'],
        file: out,
        form: output === 'token' ? 'token' : 'join',
        replace: force,
      }),
    )
    const view = await stdoutView(context)
    if (output === 'json' || output === 'yaml') {
      await this.show(output, report, () => '')
      return exitCodes.done
    }
    const secret = output === 'token' ? report.token : report.joinCommand
    this.note(report.notices)
    if (secret === undefined) await this.answer(renderCreation(report, view))
    else {
      this.notice(renderCreation(report, view))
      await this.answer(`${secret}\n`)
    }
    return exitCodes.done
  }
}
