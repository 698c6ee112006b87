import { isAbsolute, join } from 'node:path'
import { readClientPair } from '../../app/kubeconfig/client-pair.ts'
import {
  editFile,
  exitOfContexts,
  meantEntry,
  readKubeconfigFile,
  verifyContexts,
} from '../../app/kubeconfig/kubeconfig-file.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { checkStandardInput, flagFiles } from '../../cli/command-files.ts'
import { booleanFlag, clusterFlags, operand, reportFormatFlag, valueFlag } from '../../cli/flags.ts'
import type { ExitCode } from '../../errors/codes.ts'
import { exitCodes } from '../../errors/codes.ts'
import { renderEdit } from '../../output/kubeconfig.ts'
import { writeCertificates } from '../../x509/certificate.ts'
import { writePrivateKey } from '../../x509/new-key.ts'

export default class KubeconfigSetClient extends KcertCommand {
  static override summary =
    'Put a client certificate and key into a kubeconfig, and leave everything else in it as it is.'

  static override description =
    `Two fields of the user change: client-certificate-data and client-key-data (with --by-path the paths); comments, order and every other
octet stay. The certificate is held against the key and its time first. The file is replaced atomically, keeps its mode and owner,
and what it was is kept beside it as FILE.TIME.bak.

--verify then asks the API server of every context whom it takes the user for.`

  static override exitCodes = {
    [exitCodes.done]: 'it holds the pair; with --verify, the contexts of the user work',
    [exitCodes.usage]: 'wrong usage, or a file that cannot be read or is no kubeconfig',
    [exitCodes.no]: 'certificate and key are no pair, it has ended, or with --verify a context does not work',
    [exitCodes.unreachable]: 'the file could not be written, or with --verify a server could not be reached',
    [exitCodes.refused]: 'the file is written in a way that cannot be edited in place, or changed meanwhile',
  }

  static override examples = KcertCommand.examplesOf({
    'A renewed pair, and does it work?':
      'kcert kubeconfig set-client ~/.kube/config --cert ann.crt --key ann.key --verify',
    'What would change': 'kcert kubeconfig set-client admin.conf --cert a.crt --key a.key --dry-run',
    'As kubelets have it: the file that is renewed in place':
      'kcert kubeconfig set-client /etc/kubernetes/kubelet.conf --cert /var/lib/kubelet/pki/kubelet-client-current.pem --key /var/lib/kubelet/pki/kubelet-client-current.pem --by-path',
  })

  static override args = { file: operand('the kubeconfig') }

  static override flags = {
    cert: valueFlag('FILE', 'the client certificate, with what its signer sent along', { required: true }),
    key: valueFlag('FILE', 'its private key', { required: true }),
    'password-file': valueFlag('FILE', 'file whose first line opens --key'),
    user: valueFlag('NAME', "which user; if not said: that of the file's current-context, or the only one"),
    'by-path': booleanFlag('name the files instead of taking their content in'),
    'dry-run': booleanFlag('show the change and write nothing'),
    verify: booleanFlag('ask the API server of every context whether it works now'),
    'request-timeout': clusterFlags['request-timeout'],
    output: reportFormatFlag(),
  }

  protected override async perform(): Promise<ExitCode> {
    const { args, flags } = await this.parse(KubeconfigSetClient)
    const { context } = this
    const inputs = flagFiles(flags, 'cert', 'key', 'password-file')
    checkStandardInput(inputs)
    const source = await readKubeconfigFile(args.file, context)
    const name = meantEntry(source, 'user', flags.user)
    const { chain, key, notices } = await readClientPair(
      { certificate: flags.cert, key: flags.key, passwordFile: flags['password-file'] },
      context,
    )
    const absolute = (path: string) => (isAbsolute(path) ? path : join(context.workingFolder, path))
    const material = flags['by-path']
      ? { clientCertificate: { file: absolute(flags.cert) }, clientKey: { file: absolute(flags.key) } }
      : {
          clientCertificate: { data: Buffer.from(writeCertificates(chain)) },
          clientKey: { data: Buffer.from(writePrivateKey(key.keyObject, 'kubernetes')) },
        }
    const changes = { users: [{ name, ...material }] }
    const edit = await editFile(source, changes, { dryRun: flags['dry-run'], context })
    const contexts = await verifyContexts(args.file, flags, context)
    const others = source.kubeconfig.users.find((user) => user.name === name)?.credentials ?? []
    const all = [
      ...notices,
      ...others.map(({ kind }) => `user ${JSON.stringify(name)} has a credential beside it: ${kind}`),
    ]
    const report = { ...edit, ...(contexts && { contexts }), notices: all }
    await this.show(flags.output, report, renderEdit, all)
    return exitOfContexts(contexts, ({ user }) => user === name)
  }
}
