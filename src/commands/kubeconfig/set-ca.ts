import { isAbsolute, join } from 'node:path'
import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { noticesOfBundle } from '../../ca/notices.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { readBundle } from '../../cli/ca-bundle.ts'
import { clusterFlags } from '../../cli/cluster-flags.ts'
import { checkStandardInput } from '../../cli/command-files.ts'
import { renderReport, reportFormatFlag } from '../../cli/report-format.ts'
import { stdoutView } from '../../cli/view.ts'
import type { ExitCode } from '../../errors/codes.ts'
import { exitCodes } from '../../errors/codes.ts'
import { commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { writePem } from '../../x509/pem.ts'

export default class KubeconfigSetCa extends KcertCommand {
  static override summary = 'Put CAs into a kubeconfig, and leave everything else in it as it is.'

  static override description =
    `One field changes: certificate-authority-data of the cluster (with --by-path certificate-authority), and the other of the two goes away.
Comments, order and every other octet stay. The files make one bundle, each CA once, the expired left out. The file is replaced
atomically, keeps its mode and owner, and what it was is kept beside it as FILE.TIME.bak.

--verify then asks the API server of every context whom it takes the user for.`

  static override exitCodes = {
    [exitCodes.done]: 'it holds these CAs; with --verify, the contexts of the cluster work',
    [exitCodes.usage]: 'wrong usage, or a file that cannot be read or is no kubeconfig',
    [exitCodes.no]: 'a certificate is no CA, or with --verify a context of the cluster does not work',
    [exitCodes.unreachable]: 'the file could not be written, or with --verify a server could not be reached',
    [exitCodes.refused]: 'the file is written in a way that cannot be edited in place, or changed meanwhile',
  }

  static override examples = [
    {
      description: 'The old CA and the new one, for the time of a rotation',
      command: '<%= config.bin %> kubeconfig set-ca ~/.kube/config --ca ca-new.crt --ca ca-old.crt',
    },
    {
      description: 'What would change',
      command: '<%= config.bin %> kubeconfig set-ca /etc/kubernetes/kubelet.conf --ca ca.crt --dry-run',
    },
    {
      description: 'One of several clusters; and does it work?',
      command: '<%= config.bin %> kubeconfig set-ca ~/.kube/config --cluster staging --ca ca.crt --verify',
    },
    {
      description: 'The name of the file, not its content',
      command:
        '<%= config.bin %> kubeconfig set-ca bootstrap-kubelet.conf --ca /etc/kubernetes/pki/ca.crt --by-path',
    },
  ]

  static override args = {
    file: Args.string({ description: 'the kubeconfig', required: true, ignoreStdin: true }),
  }

  static override flags = {
    ca: Flags.string({
      description: 'CA certificates in PEM or DER, one or many; may be repeated',
      helpValue: 'FILE',
      multiple: true,
      multipleNonGreedy: true,
      required: true,
    }),
    cluster: Flags.string({
      description: "which cluster; if not said: that of the file's current-context, or the only one",
      helpValue: 'NAME',
      exclusive: ['all-clusters'],
    }),
    'all-clusters': Flags.boolean({ description: 'every cluster of the file' }),
    'by-path': Flags.boolean({ description: 'name the file of --ca instead of taking its content in' }),
    'dry-run': Flags.boolean({ description: 'show the change and write nothing' }),
    verify: Flags.boolean({ description: 'ask the API server of every context whether it works now' }),
    'request-timeout': clusterFlags['request-timeout'],
    output: reportFormatFlag(),
  }

  protected override async perform(): Promise<ExitCode> {
    const { args, flags } = await this.parse(KubeconfigSetCa)
    const { context } = this
    checkStandardInput(flags.ca.map((path) => ({ by: '--ca', path })))
    const isByPath = flags['by-path']
    if (isByPath && (flags.ca.length > 1 || flags.ca[0] === '-')) throw severalPaths(flags.ca)
    const [editing, { renderEdit }, { renderNotices }] = await Promise.all([
      import('../../cli/kubeconfig-file.ts'),
      import('../../output/kubeconfig.ts'),
      import('../../output/ca.ts'),
    ])
    const source = await editing.readKubeconfigFile(args.file, context)
    const made = await readBundle(flags.ca, context)
    const pem = made.members.map(({ certificate }) => writePem('CERTIFICATE', certificate.der)).join('')
    const path = flags.ca[0]!
    const certificateAuthority = isByPath
      ? { file: isAbsolute(path) ? path : join(context.workingFolder, path) }
      : { data: Buffer.from(pem) }
    const names = flags['all-clusters']
      ? source.kubeconfig.clusters.map(({ name }) => name)
      : [editing.meantEntry(source, 'cluster', flags.cluster)]
    const changes = { clusters: names.map((name) => ({ name, certificateAuthority })) }
    const edit = await editing.editFile(source, changes, { dryRun: flags['dry-run'], context })
    const contexts = await editing.verifyContexts(args.file, flags, context)
    const report = { ...edit, ...(contexts && { contexts }), notices: noticesOfBundle(made) }
    if (flags.output === 'text') this.notice(renderNotices(report.notices))
    const view = await stdoutView(context)
    await this.answer(renderReport(flags.output, report, () => renderEdit(report, view)))
    return editing.exitOfContexts(contexts, ({ cluster }) => names.includes(cluster))
  }
}

function severalPaths(files: readonly string[]): KcertError {
  return new KcertError('KCERT_USAGE', 'a kubeconfig names one CA file', {
    next: commandLine`write them into one file, and name that with --ca: kcert ca bundle ${files} --out ca.crt`,
  })
}
