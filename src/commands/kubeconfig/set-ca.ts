import { isAbsolute, join } from 'node:path'
import { readBundle } from '../../app/ca/bundle.ts'
import {
  editFile,
  exitOfContexts,
  meantEntry,
  readKubeconfigFile,
  verifyContexts,
} from '../../app/kubeconfig/kubeconfig-file.ts'
import { noticesOfBundle } from '../../ca/notices.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { checkStandardInput } from '../../cli/command-files.ts'
import {
  booleanFlag,
  clusterFlags,
  operand,
  repeatedFlag,
  reportFormatFlag,
  valueFlag,
} from '../../cli/flags.ts'
import type { ExitCode } from '../../errors/codes.ts'
import { exitCodes } from '../../errors/codes.ts'
import { commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { renderEdit } from '../../output/kubeconfig.ts'
import { writeCertificates } from '../../x509/certificate.ts'

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

  static override examples = KcertCommand.examplesOf({
    'The old CA and the new one, for the time of a rotation':
      'kcert kubeconfig set-ca ~/.kube/config --ca ca-new.crt --ca ca-old.crt',
    'What would change': 'kcert kubeconfig set-ca /etc/kubernetes/kubelet.conf --ca ca.crt --dry-run',
    'One of several clusters; and does it work?':
      'kcert kubeconfig set-ca ~/.kube/config --cluster staging --ca ca.crt --verify',
    'The name of the file, not its content':
      'kcert kubeconfig set-ca bootstrap-kubelet.conf --ca /etc/kubernetes/pki/ca.crt --by-path',
  })

  static override args = { file: operand('the kubeconfig') }

  static override flags = {
    ca: repeatedFlag('FILE', 'CA certificates in PEM or DER, one or many; may be repeated', {
      required: true,
    }),
    cluster: valueFlag(
      'NAME',
      "which cluster; if not said: that of the file's current-context, or the only one",
      { exclusive: ['all-clusters'] },
    ),
    'all-clusters': booleanFlag('every cluster of the file'),
    'by-path': booleanFlag('name the file of --ca instead of taking its content in'),
    'dry-run': booleanFlag('show the change and write nothing'),
    verify: booleanFlag('ask the API server of every context whether it works now'),
    'request-timeout': clusterFlags['request-timeout'],
    output: reportFormatFlag(),
  }

  protected override async perform(): Promise<ExitCode> {
    const { args, flags } = await this.parse(KubeconfigSetCa)
    const { context } = this
    checkStandardInput(flags.ca.map((path) => ({ by: '--ca', path })))
    const isByPath = flags['by-path']
    if (isByPath && (flags.ca.length > 1 || flags.ca[0] === '-')) throw severalPaths(flags.ca)
    const source = await readKubeconfigFile(args.file, context)
    const made = await readBundle(flags.ca, context)
    const pem = writeCertificates(made.members.map(({ certificate }) => certificate))
    const [path = ''] = flags.ca
    const certificateAuthority = isByPath
      ? { file: isAbsolute(path) ? path : join(context.workingFolder, path) }
      : { data: Buffer.from(pem) }
    const names = flags['all-clusters']
      ? source.kubeconfig.clusters.map(({ name }) => name)
      : [meantEntry(source, 'cluster', flags.cluster)]
    const changes = { clusters: names.map((name) => ({ name, certificateAuthority })) }
    const edit = await editFile(source, changes, { dryRun: flags['dry-run'], context })
    const contexts = await verifyContexts(args.file, flags, context)
    const report = { ...edit, ...(contexts && { contexts }), notices: noticesOfBundle(made) }
    await this.show(flags.output, report, renderEdit, report.notices)
    return exitOfContexts(contexts, ({ cluster }) => names.includes(cluster))
  }
}

function severalPaths(files: readonly string[]): KcertError {
  return new KcertError('KCERT_USAGE', 'a kubeconfig names one CA file', {
    next: commandLine`write them into one file, and name that with --ca: kcert ca bundle ${files} --out ca.crt`,
  })
}
