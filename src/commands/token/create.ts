import * as Flags from '@oclif/core/flags'
import { createToken } from '../../app/token/create.ts'
import { readTokenFile } from '../../app/token/input.ts'
import { newToken } from '../../bootstrap/token.ts'
import { checkGroups, kubeadmJoiners, tokenUsages } from '../../bootstrap/token-secret.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { checkFiles } from '../../cli/command-files.ts'
import * as Flag from '../../cli/flags.ts'
import { parseDuration } from '../../cli/instant.ts'
import { stdoutView } from '../../cli/view.ts'
import { renderCreation } from '../../output/tokens.ts'

export default class TokenCreate extends KcertCommand {
  static override summary = 'Create a bootstrap token and print the kubeadm join command for it.'

  static override description =
    `The command has the server and the hash of every CA in cluster-info. It is printed on standard output and is a SECRET: anyone with the
token can request a certificate for any node. With --out it is written to a file with mode 0600 instead, and nothing secret is printed.
No other kcert command prints a token.

The flags have kubeadm's names, and the join command is the default output. To check whether a node can join with the token, including
RBAC bindings and the signature of cluster-info, run kcert token check.`

  static override exitCodes = KcertCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'the token was created',
    usage: 'wrong usage, a malformed token or group, or no kubeconfig',
    no: 'a token with this ID exists, or cluster-info cannot be used',
    unreachable: 'the API server could not be reached, or the file could not be written',
    refused: 'the file of --out already exists',
  })

  static override examples = KcertCommand.examplesOf({
    'Join a node with a token that is valid for two hours, without leaving it in a shell history':
      'kcert token create --ttl 2h --print-join-command | ssh root@node-7 sh',
    'Write the join command to a file': 'kcert token create --description "rack 12" --out join-rack-12',
    'Create a token for a kubelet that bootstraps without kubeadm':
      'kcert token create -o token --out token && kcert bootstrap kubeconfig --token-file token --out bootstrap-kubelet.conf',
    'Preview the token, and whether you may create it': 'kcert token create --dry-run',
  })

  static override dryRunBy = 'server' as const

  static override flags = {
    ttl: Flag.value('DURATION', 'validity of the token, such as 2h or 7d; 0 to never expire', {
      default: '24h',
    }),
    usages: Flags.option({
      description:
        'signing: sign cluster-info; authentication: authenticate to the API server (default both)',
      options: tokenUsages,
      multiple: true,
      multipleNonGreedy: true,
      delimiter: ',',
    })(),
    groups: Flag.repeated(
      'GROUP',
      `group that the token authenticates as; may be repeated (default ${kubeadmJoiners})`,
      { aliases: ['group'], delimiter: ',' },
    ),
    description: Flag.value('TEXT', 'description of the token, shown by kcert token list'),
    'print-join-command': Flag.boolean('print the kubeadm join command (the default; as in kubeadm)', {
      exclusive: ['output'],
    }),
    'token-file': Flag.value(
      'FILE',
      'use the token in this file instead of a new one; "-" for standard input',
    ),
    out: Flag.value('FILE', 'file to write the secret to, instead of standard output'),
    force: Flag.boolean('overwrite an existing file'),
    'dry-run': Flag.boolean('check with the API server whether it would accept the token; create nothing'),
    ...Flag.clusterFlags,
    output: Flag.format(
      ['join', 'token', 'json', 'yaml'],
      'join: the kubeadm join command; token: only the token; json, yaml: everything',
    ),
  }

  protected override async perform() {
    const { flags } = await this.parse(TokenCreate)
    const { context } = this
    const { output, out, force, description } = flags
    checkFiles({
      inputs: [{ by: '--token-file', path: flags['token-file'] }],
      outputs: [{ by: '--out', path: out, holds: 'key' }],
      replace: force,
    })
    const usages = tokenUsages.filter((usage) => (flags.usages ?? tokenUsages).includes(usage))
    const groups = checkGroups(flags.groups, usages)
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
    if (output === 'json' || output === 'yaml') return this.show(output, report, () => '')
    const secret = output === 'token' ? report.token : report.joinCommand
    this.note(report.notices)
    if (secret === undefined) return this.answer(renderCreation(report, view))
    this.notice(renderCreation(report, view))
    return this.answer(`${secret}\n`)
  }
}
