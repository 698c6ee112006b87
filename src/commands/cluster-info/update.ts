import { readBundle } from '../../app/ca/bundle.ts'
import { updateClusterInfo } from '../../app/cluster-info/update.ts'
import { noticesOfBundle } from '../../ca/notices.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { checkFiles, checkStandardInput } from '../../cli/command-files.ts'
import * as Flag from '../../cli/flags.ts'
import { parseDuration } from '../../cli/instant.ts'
import { tellChanges, whileStoppable } from '../../cli/interruption.ts'
import { renderUpdate } from '../../output/cluster-info.ts'
import { fileStamp } from '../../system/output-file.ts'

export default class ClusterInfoUpdate extends KcertCommand {
  static override summary = 'Replace the CAs in cluster-info and update its signatures.'

  static override description =
    `Changes certificate-authority-data only. Comments, order and all other fields of the kubeconfig in cluster-info stay. The certificates of
all files become one bundle, in the given order. Duplicates and expired CAs are dropped. The bundle must verify the certificates that the
API servers serve now, or nothing is written. During a CA rotation, give the old and the new CA: nodes can then join with the hash of either.

A signature covers the exact text. kcert therefore computes the signatures as kube-controller-manager does, writes text and signatures
together, and waits until every signature is valid. If cluster-info changed since it was read, nothing is written. The old object is first
saved to a file. To restore it, use kubectl replace -f.`

  static override exitCodes = KcertCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'cluster-info has these CAs, and every signature is valid',
    usage: 'wrong usage, an unreadable file, or no kubeconfig',
    no: 'a certificate is not a CA, cluster-info changed meanwhile, you declined, or the API server denied it',
    unreachable: 'the API server could not be reached, or a signature is missing after --wait',
    refused:
      "an API server's certificate would not be trusted, there is no terminal to confirm on, or the backup already exists",
  })

  static override examples = KcertCommand.examplesOf({
    'Preview a change': 'kcert cluster-info update --ca ca-old.crt --ca ca-new.crt --dry-run',
    'Trust the old and the new CA during a rotation':
      'kcert cluster-info update --ca ca-new.crt --ca ca-old.crt --yes',
    'Trust only the new CA, when no server uses the old one':
      'kcert cluster-info update --ca /etc/kubernetes/pki/ca.crt',
  })

  static override flags = {
    ca: Flag.repeated('FILE', 'file with CA certificates in PEM or DER; may be repeated', {
      required: true,
    }),
    'dry-run': Flag.boolean('show the change and write nothing'),
    yes: Flag.boolean('do not ask for confirmation; required without a terminal', { char: 'y' }),
    force: Flag.boolean("write it even if an API server's certificate would not be trusted"),
    backup: Flag.value(
      'FILE',
      'file for the old object (default cluster-info.TIME.yaml in the current folder); "none" for no backup',
    ),
    wait: Flag.value('DURATION', 'time limit for all signatures to become valid', { default: '1m' }),
    timeout: Flag.value('DURATION', 'time limit for the TLS handshake with one server', { default: '5s' }),
    ...Flag.clusterFlags,
    output: Flag.reportFormat(),
  }

  protected override async perform() {
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
      cas: made.members.map(({ certificate }) => certificate),
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
    return this.show(flags.output, whole, renderUpdate, { notices, exit })
  }
}
