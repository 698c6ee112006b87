import { isAbsolute, join } from 'node:path'
import { keyOfUser, readClientPair } from '../../app/kubeconfig/client-pair.ts'
import {
  editFile,
  editFlags,
  exitOfContexts,
  readKubeconfigFile,
  storesPaths,
  targetEntry,
  verifyContexts,
} from '../../app/kubeconfig/kubeconfig-file.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { checkStandardInput, flagFiles } from '../../cli/command-files.ts'
import * as Flag from '../../cli/flags.ts'
import { readKeyFile } from '../../cli/key-file.ts'
import { renderEdit } from '../../output/kubeconfig.ts'
import { writeCertificates } from '../../x509/certificate.ts'
import { writePrivateKey } from '../../x509/new-key.ts'

export default class KubeconfigSetClient extends KcertCommand {
  static override summary = "Set a user's client certificate and key in a kubeconfig, and nothing else."

  static override description =
    `Sets client-certificate-data and client-key-data of the user (with --no-embed-certs: client-certificate and client-key). Comments,
order and all other bytes stay the same. The kubeconfig is replaced atomically and keeps its mode and owner. The previous content
is saved as FILE.TIME.bak.

Without --client-key, the user keeps its key, for example after kcert csr create --kubeadm. In both cases kcert first checks that
certificate and key match, and that the certificate has not expired.

--verify then connects to the API server of every context and shows how it identifies the user.`

  static override exitCodes = KcertCommand.exitsOf({
    done: 'the kubeconfig has this certificate and its key; with --verify, the contexts of the user work',
    usage: 'wrong usage, or a file cannot be read or is not a kubeconfig',
    no: 'the key does not match, the certificate has expired, or with --verify a context does not work',
    unreachable: 'the file cannot be written, or with --verify a server could not be reached',
    refused: 'the YAML cannot be edited in place, or the file changed meanwhile',
  })

  static override examples = KcertCommand.examplesOf({
    'Set a renewed certificate and key, and check that they work':
      'kcert kubeconfig set-client ~/.kube/config --client-certificate ann.crt --client-key ann.key --verify',
    'Set a certificate for the key that the kubeconfig already has':
      'kcert kubeconfig set-client admin.conf --client-certificate admin.crt',
    'Show what would change':
      'kcert kubeconfig set-client admin.conf --client-certificate admin.crt --dry-run',
    'Reference by path the file that a kubelet renews in place':
      'kcert kubeconfig set-client /etc/kubernetes/kubelet.conf --client-certificate /var/lib/kubelet/pki/kubelet-client-current.pem --client-key /var/lib/kubelet/pki/kubelet-client-current.pem --no-embed-certs',
  })

  static override args = { file: Flag.operand('the kubeconfig') }

  static override flags = {
    'client-certificate': Flag.value('FILE', 'client certificate, with its intermediates (also --cert)', {
      required: true,
      aliases: ['cert'],
    }),
    'client-key': Flag.value(
      'FILE',
      'private key of the certificate (also --key; default: the key that the user has)',
      { aliases: ['key'] },
    ),
    'password-file': Flag.value('FILE', 'file with the password of the key on its first line'),
    user: Flag.value('NAME', "user to change (default that of the file's current-context, or the only one)"),
    ...editFlags,
  }

  protected override async perform() {
    const { args, flags } = await this.parse(KubeconfigSetClient)
    const { context } = this
    const inputs = flagFiles(flags, 'client-certificate', 'client-key', 'password-file')
    checkStandardInput(inputs)
    const source = await readKubeconfigFile(args.file, context)
    const name = targetEntry(source, 'user', flags.user)
    const { 'client-certificate': certificate, 'password-file': passwordFile } = flags
    // If the key file is the kubeconfig itself, its embedded key is used.
    const keyFile = flags['client-key'] === args.file ? undefined : flags['client-key']
    const readKey = () =>
      keyFile === undefined
        ? keyOfUser(source, name, passwordFile, context)
        : readKeyFile(keyFile, passwordFile, context)
    const { chain, key, notices } = await readClientPair(certificate, readKey, context)
    const absolute = (path: string) => (isAbsolute(path) ? path : join(context.workingFolder, path))
    const isByPath = storesPaths(flags)
    // The key of an existing user is kept, but clients cannot decrypt an encrypted one.
    const isKept = keyFile === undefined && passwordFile === undefined
    const newKey =
      isByPath && keyFile !== undefined
        ? { file: absolute(keyFile) }
        : { data: Buffer.from(writePrivateKey(key.keyObject, 'kubernetes')) }
    const user = {
      name,
      clientCertificate: isByPath
        ? { file: absolute(certificate) }
        : { data: Buffer.from(writeCertificates(chain)) },
      ...(!isKept && { clientKey: newKey }),
    }
    const changes = { users: [user] }
    const edit = await editFile(source, changes, { dryRun: flags['dry-run'], context })
    const contexts = await verifyContexts(args.file, flags, context)
    const others = source.kubeconfig.users.find((user) => user.name === name)?.credentials ?? []
    const all = [
      ...notices,
      ...others.map(({ kind }) => `user ${JSON.stringify(name)} also has another credential: ${kind}`),
    ]
    const report = { ...edit, ...(contexts && { contexts }), notices: all }
    await this.show(flags.output, report, renderEdit, { notices: all })
    return exitOfContexts(contexts, ({ user }) => user === name)
  }
}
