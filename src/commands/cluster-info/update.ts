import { readBundle } from '../../app/ca/bundle.ts'
import { updateClusterInfo } from '../../app/cluster-info/update.ts'
import { noticesOfBundle } from '../../ca/notices.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { checkFiles, checkStandardInput } from '../../cli/command-files.ts'
import {
  booleanFlag,
  clusterExits,
  clusterFlags,
  repeatedFlag,
  reportFormatFlag,
  valueFlag,
} from '../../cli/flags.ts'
import { parseDuration } from '../../cli/instant.ts'
import { tellChanges, whileStoppable } from '../../cli/interruption.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { renderUpdate } from '../../output/cluster-info.ts'
import { fileStamp } from '../../system/output-file.ts'

export default class ClusterInfoUpdate extends KcertCommand {
  static override summary =
    'Put CAs into cluster-info, so that newcomers trust them, and see that it is signed.'

  static override description =
    `certificate-authority-data is the only field that changes: comments, order and all other fields of the kubeconfig stay. The files make
one bundle, each CA once, in their order; the expired are left out. What an API server serves now must be trusted by it, or
nothing is written: in a rotation that is the old CA and the new one, and either pin lets a node join then.

The signatures are of the exact text, so they are written together with it, as kube-controller-manager would compute them; then the
command waits until each stands. It is written under the version that was read: where somebody else changes the text meanwhile,
nothing is. The object as it was goes into a file first, for kubectl apply.`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'it holds these CAs, and every signature stands',
    [exitCodes.usage]: 'wrong usage, a file that cannot be read, or no kubeconfig',
    [exitCodes.no]:
      'a certificate is no CA, somebody else changed it, the answer was no, or the API server does not allow it',
    [exitCodes.unreachable]: 'the API server could not be reached, or a signature is missing after --wait',
    [exitCodes.refused]:
      'what an API server serves would not be trusted, --yes is missing without a terminal, or the backup is there already',
  }

  static override examples = KcertCommand.examplesOf({
    'What would change': 'kcert cluster-info update --ca ca-old.crt --ca ca-new.crt --dry-run',
    'The old CA and the new one, for the time of a rotation':
      'kcert cluster-info update --ca ca-new.crt --ca ca-old.crt --yes',
    'The new one alone, when nothing is served by the old one any more':
      'kcert cluster-info update --ca /etc/kubernetes/pki/ca.crt',
  })

  static override flags = {
    ca: repeatedFlag('FILE', 'CA certificates in PEM or DER, one or many; may be repeated', {
      required: true,
    }),
    'dry-run': booleanFlag('show the change and write nothing'),
    yes: booleanFlag('do not ask; without a terminal it is refused otherwise', { char: 'y' }),
    force: booleanFlag('write it although what is served now would not be trusted'),
    backup: valueFlag(
      'FILE',
      'where the object as it was goes; if not said: cluster-info.TIME.yaml here; "none" for nowhere',
    ),
    wait: valueFlag('DURATION', 'wait so long until every signature stands', { default: '1m' }),
    timeout: valueFlag('DURATION', 'wait so long for the server to show its certificate', { default: '5s' }),
    ...clusterFlags,
    output: reportFormatFlag(),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags } = await this.parse(ClusterInfoUpdate)
    const { context } = this
    const fallback = `cluster-info.${fileStamp(context.clock())}.yaml`
    const backup = flags.backup === 'none' ? undefined : (flags.backup ?? fallback)
    const inputs = flags.ca.map((path) => ({ by: '--ca', path }))
    checkStandardInput(inputs)
    const outputs = flags['dry-run'] ? [] : [{ by: '--backup', path: backup, holds: 'key' as const }]
    checkFiles({ inputs, outputs, replace: false })
    const waitMs = parseDuration(flags.wait, '--wait')
    const timeoutMs = parseDuration(flags.timeout, '--timeout')
    const made = await readBundle(flags.ca, context)
    const settings = {
      authorities: made.members.map(({ certificate }) => certificate),
      dryRun: flags['dry-run'],
      yes: flags.yes,
      force: flags.force,
      backup,
      waitMs,
      timeoutMs,
    }
    const { report, exit } = await whileStoppable(tellChanges, context.stderr, () =>
      this.onCluster(flags, (cluster) => updateClusterInfo(cluster, settings, context)),
    )
    const notices = [...noticesOfBundle(made), ...report.notices]
    const whole = { ...report, notices }
    await this.show(flags.output, whole, renderUpdate, notices)
    return exit
  }
}
