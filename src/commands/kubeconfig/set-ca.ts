import { isAbsolute, join } from 'node:path'
import { readBundle } from '../../app/ca/bundle.ts'
import {
  editFile,
  editFlags,
  exitOfContexts,
  readKubeconfigFile,
  storesPaths,
  targetEntry,
  verifyContexts,
} from '../../app/kubeconfig/kubeconfig-file.ts'
import { noticesOfBundle } from '../../ca/notices.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { checkStandardInput } from '../../cli/command-files.ts'
import * as Flag from '../../cli/flags.ts'
import { commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { renderEdit } from '../../output/kubeconfig.ts'
import { writeCertificates } from '../../x509/certificate.ts'

export default class KubeconfigSetCa extends KcertCommand {
  static override summary = 'Set the CAs of a cluster in a kubeconfig, and change nothing else.'

  static override description =
    `Sets certificate-authority-data of the cluster (with --no-embed-certs: certificate-authority) and removes the other field. Comments,
order and all other bytes stay the same. If you give several files, each CA is written once, and expired CAs are left out. The
kubeconfig is replaced atomically and keeps its mode and owner. The previous content is saved as FILE.TIME.bak.

--verify then connects to the API server of every context and shows how it identifies the user.`

  static override exitCodes = KcertCommand.exitsOf({
    done: 'the kubeconfig has these CAs; with --verify, the contexts of the cluster work',
    usage: 'wrong usage, or a file cannot be read or is not a kubeconfig',
    no: 'a certificate is not a CA, or with --verify a context of the cluster does not work',
    unreachable: 'the file cannot be written, or with --verify a server could not be reached',
    refused: 'the YAML cannot be edited in place, or the file changed meanwhile',
  })

  static override examples = KcertCommand.examplesOf({
    'Trust the old and the new CA during a rotation':
      'kcert kubeconfig set-ca ~/.kube/config --certificate-authority ca-new.crt --certificate-authority ca-old.crt',
    'Show what would change':
      'kcert kubeconfig set-ca /etc/kubernetes/kubelet.conf --certificate-authority ca.crt --dry-run',
    'Change one of several clusters, and check that it works':
      'kcert kubeconfig set-ca ~/.kube/config --cluster staging --certificate-authority ca.crt --verify',
    'Reference the CA file by path instead of embedding it':
      'kcert kubeconfig set-ca bootstrap-kubelet.conf --certificate-authority /etc/kubernetes/pki/ca.crt --no-embed-certs',
  })

  static override args = { file: Flag.operand('the kubeconfig') }

  static override flags = {
    'certificate-authority': Flag.repeated('FILE', 'CA certificates in PEM or DER (also --ca)', {
      required: true,
      aliases: ['ca'],
    }),
    cluster: Flag.value(
      'NAME',
      "cluster to change (default that of the file's current-context, or the only one)",
      { exclusive: ['all-clusters'] },
    ),
    'all-clusters': Flag.boolean('change every cluster of the file'),
    ...editFlags,
  }

  protected override async perform() {
    const { args, flags } = await this.parse(KubeconfigSetCa)
    const { context } = this
    const files = flags['certificate-authority']
    checkStandardInput(files.map((path) => ({ by: '--certificate-authority', path })))
    const isByPath = storesPaths(flags)
    if (isByPath && (files.length > 1 || files[0] === '-'))
      throw new KcertError('KCERT_USAGE', '--no-embed-certs takes one file', {
        why: 'certificate-authority is the path of one file; combine them first',
        next: commandLine`kcert ca bundle ${files} --out ca.crt`,
      })
    const source = await readKubeconfigFile(args.file, context)
    const made = await readBundle(files, context)
    const pem = writeCertificates(made.members.map(({ certificate }) => certificate))
    const [path = ''] = files
    const certificateAuthority = isByPath
      ? { file: isAbsolute(path) ? path : join(context.workingFolder, path) }
      : { data: Buffer.from(pem) }
    const names = flags['all-clusters']
      ? source.kubeconfig.clusters.map(({ name }) => name)
      : [targetEntry(source, 'cluster', flags.cluster)]
    const changes = { clusters: names.map((name) => ({ name, certificateAuthority })) }
    const edit = await editFile(source, changes, { dryRun: flags['dry-run'], context })
    const contexts = await verifyContexts(args.file, flags, context)
    const report = { ...edit, ...(contexts && { contexts }), notices: noticesOfBundle(made) }
    await this.show(flags.output, report, renderEdit, { notices: report.notices })
    return exitOfContexts(contexts, ({ cluster }) => names.includes(cluster))
  }
}
