import {
  caPemOf,
  certificateObjects,
  connectionNotices,
  fetchReport,
  fitCertificate,
  settledRequest,
} from '../../app/csr/fetch.ts'
import { fetchMany } from '../../app/csr/fetch-many.ts'
import { kubeconfigOf, writeIssued } from '../../app/csr/issued-files.ts'
import { namesOf } from '../../app/csr/request-names.ts'
import { type FlagsOf, KcertCommand } from '../../cli/base-command.ts'
import { type CommandFiles, checkFiles, flagFiles } from '../../cli/command-files.ts'
import { printedOnlyByName, wouldBePrinted } from '../../cli/exposed-key.ts'
import * as Flag from '../../cli/flags.ts'
import { readInput } from '../../cli/input.ts'
import { parseDuration } from '../../cli/instant.ts'
import { tellChanges, whileStoppable } from '../../cli/interruption.ts'
import { readKeyFile } from '../../cli/key-file.ts'
import { parseObjectName } from '../../csr/certificate-objects.ts'
import type { ExitCode } from '../../errors/codes.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { renderFetched } from '../../output/csr-fetch.ts'
import { renderFetchedMany } from '../../output/csr-fetch-many.ts'
import { renderYamlDocuments } from '../../output/yaml.ts'
import { readCertificates, writeCertificates } from '../../x509/certificate.ts'

export default class CsrFetch extends KcertCommand {
  static override summary = 'Fetch issued certificates into files, a kubeconfig, a Secret or a ConfigMap.'

  static override description =
    `Before kcert writes anything, it compares the certificate with the request (key, subject, SANs), with --key and with --ca. It never accepts
a certificate for another key. It accepts another subject or other SANs only with --accept-names.

Without --out, kcert prints the certificate. No output contains the private key, except the Secret of -o manifest --secret. That one
goes to a file of mode 0600 (--out), or to standard output with --print-key.

With --out-dir, kcert fetches many certificates into DIR/NAME.crt: the named ones, or all of a signer or with a label. It skips files that
are up to date, so you can run the command again. If you name a request that is not issued, the exit code is 3. If a selection contains
one, kcert shows it, and that is not an error.

kube-controller-manager deletes an object an hour after it was issued. Fetch the certificate before that.`

  static override exitCodes = KcertCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'the certificates are fetched and match their requests',
    usage: 'wrong usage, a file that cannot be read, or no kubeconfig',
    no: 'a certificate is not issued, its request was denied or failed, or it does not match its request',
    unreachable: '--wait timed out, the API server could not be reached, or a file could not be written',
    refused: 'a file exists already, or a private key would be printed',
  })

  static override examples = KcertCommand.examplesOf({
    'Fetch a certificate and compare it with its key':
      'kcert csr fetch my-svc.my-namespace --key server-key.pem --out server.crt',
    'Wait until it is issued, and write a kubeconfig with the key':
      'kcert csr fetch ann --wait 20m --key ann-key.pem --out ann.crt --kubeconfig-out ann.conf',
    'Create a TLS Secret for pods, and a ConfigMap with the CA for their clients':
      'kcert csr fetch my-svc.my-namespace --key server-key.pem --ca ca.pem --secret server.my-namespace --configmap example-serving-ca.my-namespace -o manifest --print-key | kubectl apply -f -',
    'Show the certificate': 'kcert csr fetch ann | kcert inspect -',
    'Fetch all certificates of a signer, one file each':
      'kcert csr fetch --signer example.com/serving --ca ca.pem --out-dir certs',
  })

  static override args = {
    name: Flag.operands('name of the object, as NAME or csr/NAME; several with --out-dir'),
  }

  static override flags = {
    key: Flag.value('FILE', 'private key that the certificate must match'),
    'password-file': Flag.value('FILE', 'file with the password of --key on its first line'),
    ca: Flag.value('FILE', 'CA certificate that must have signed it'),
    'accept-names': Flag.boolean('accept a subject or SANs that differ from the request'),
    wait: Flag.value(
      'DURATION',
      'wait up to this long until it is issued, such as 30s or 20m (default no wait)',
    ),
    out: Flag.value(
      'FILE',
      'file for the certificate or, with -o manifest, for the objects; "-" prints them (default "-")',
    ),
    force: Flag.boolean('overwrite existing files'),
    ...Flag.inGroup('MANY', {
      'out-dir': Flag.value(
        'DIR',
        'folder for the certificates, as NAME.crt; kcert creates it if it does not exist',
      ),
      signer: Flag.value('NAME', 'fetch all certificates of this signer'),
      selector: Flag.value('LABELS', 'fetch all with these labels, as in kubectl', { char: 'l' }),
    }),
    ...Flag.inGroup('KUBECONFIG', {
      'kubeconfig-out': Flag.value(
        'FILE',
        'file for a kubeconfig of the current cluster, with the certificate and the key of --key',
        { dependsOn: ['key'] },
      ),
      'key-by-path': Flag.boolean('refer to the key file in the kubeconfig instead of embedding the key', {
        dependsOn: ['kubeconfig-out'],
      }),
      user: Flag.value('NAME', 'name of the user in the kubeconfig (default the common name)'),
      namespace: Flag.value('NAME', 'namespace of the context in the kubeconfig', { char: 'n' }),
    }),
    ...Flag.inGroup('MANIFEST', {
      secret: Flag.value(
        'NAME[.NAMESPACE]',
        'with -o manifest: create a Secret of type kubernetes.io/tls with certificate and key',
      ),
      configmap: Flag.value(
        'NAME[.NAMESPACE]',
        'with -o manifest: create a ConfigMap with the CA certificate as ca.crt: that of --ca, or of the kubeconfig if that CA signed the certificate',
      ),
      'print-key': Flag.boolean(
        'allow printing the Secret, which contains the private key, to standard output',
      ),
    }),
    ...Flag.clusterFlagsBesideUser,
    output: Flag.format(
      ['text', 'json', 'yaml', 'manifest'],
      'output format; manifest: the objects of --secret and --configmap',
    ),
  }

  protected override async perform() {
    const { flags, operands } = await this.parse(CsrFetch)
    const { signer, selector } = flags
    const isSelection = signer !== undefined || selector !== undefined
    const names = isSelection && operands.length === 0 ? [] : namesOf(operands)
    if (isSelection || names.length > 1 || flags['out-dir'] !== undefined) {
      return this.fetchMany(names, flags)
    }
    const [name = ''] = names
    const { context } = this
    const { out, output } = flags
    const isFile = out !== undefined && out !== '-'
    checkTogether(flags, isFile)
    checkFiles(filesOf(flags, isFile))
    const waitMs = flags.wait === undefined ? undefined : parseDuration(flags.wait, '--wait')
    const key =
      flags.key === undefined ? undefined : await readKeyFile(flags.key, flags['password-file'], context)
    const ca =
      flags.ca === undefined
        ? undefined
        : { certificates: readCertificates(await readInput(flags.ca, context)), place: flags.ca }
    const objects = {
      secret: flags.secret === undefined ? undefined : parseObjectName(flags.secret, '--secret'),
      configMap: flags.configmap === undefined ? undefined : parseObjectName(flags.configmap, '--configmap'),
    }
    return this.onCluster({ ...flags, user: undefined }, async (cluster) => {
      const wait = waitMs === undefined ? undefined : { durationMs: waitMs }
      const object = await settledRequest(cluster.requests, name, wait)
      const fetched = fitCertificate(object, {
        key,
        ca,
        acceptsNames: flags['accept-names'],
        now: context.clock(),
      })
      const pem = writeCertificates(fetched.chain)
      const manifest =
        output === 'manifest'
          ? renderYamlDocuments(
              certificateObjects(objects, fetched, key, () =>
                caPemOf(fetched, ca?.certificates, () => cluster.connection()),
              ),
            )
          : undefined
      const notices: string[] = []
      const replace = flags.force
      if (isFile) {
        const isSecret = manifest !== undefined && objects.secret !== undefined
        writeIssued(out, manifest ?? pem, { replace, isSecret })
      }
      const kubeconfig = flags['kubeconfig-out']
      if (kubeconfig !== undefined && key !== undefined) {
        const connection = cluster.connection()
        notices.push(...connectionNotices(connection))
        const { 'key-by-path': keyByPath, user, namespace } = flags
        const text = kubeconfigOf(
          { connection, chain: fetched.chain, key, keyByPath, user, namespace },
          context,
        )
        writeIssued(kubeconfig, text, { replace, isSecret: true })
      }
      if (output === 'manifest') {
        this.note(notices)
        return this.answer(isFile ? '' : (manifest ?? ''))
      }
      const report = fetchReport(
        fetched,
        { ...(isFile ? { certificate: out } : {}), ...(kubeconfig === undefined ? {} : { kubeconfig }) },
        notices,
      )
      return this.show(output, report, (_, view) => (isFile ? renderFetched(report, view) : pem), { notices })
    })
  }

  private async fetchMany(names: readonly string[], flags: FetchFlags): Promise<ExitCode> {
    const { context } = this
    const { folder, output } = manyOf(flags)
    const { ca, signer, selector, force, 'accept-names': acceptsNames } = flags
    const settings = {
      ...{ names, signer, selector, folder, acceptsNames, replace: force },
      ca:
        ca === undefined
          ? undefined
          : { certificates: readCertificates(await readInput(ca, context)), place: ca },
    }
    const { report, exit } = await whileStoppable(tellChanges, context.stderr, () =>
      this.onCluster({ ...flags, user: undefined }, ({ requests }) => fetchMany(settings, requests, context)),
    )
    return this.show(output, report, renderFetchedMany, { exit })
  }
}

type FetchFlags = FlagsOf<typeof CsrFetch.flags>

/** Flags that apply only to a single certificate. */
const ofOne = [
  'key',
  'password-file',
  'wait',
  'out',
  'kubeconfig-out',
  'key-by-path',
  'user',
  'namespace',
  'secret',
  'configmap',
  'print-key',
] as const

/** Returns where many certificates go, and the output format. Throws KCERT_USAGE for flags that apply only to one certificate. */
function manyOf(flags: FetchFlags) {
  const single = ofOne.find((flag) => flags[flag] !== undefined && flags[flag] !== false)
  const { 'out-dir': folder, output } = flags
  if (single !== undefined || output === 'manifest')
    throw new KcertError('KCERT_USAGE', `${single ? `--${single}` : '-o manifest'} is for one certificate`, {
      why: 'many certificates are fetched to one file each',
      next: 'kcert csr fetch --help',
    })
  if (folder) return { folder, output }
  throw new KcertError('KCERT_USAGE', 'many certificates need --out-dir FOLDER', {
    next: 'kcert csr fetch --help',
  })
}

// An existing file with the same content is unchanged, so the check for replacing other files happens at the write.
function filesOf(flags: FetchFlags, isFile: boolean): CommandFiles {
  const { out, secret } = flags
  return {
    inputs: flagFiles(flags, 'key', 'password-file', 'ca'),
    outputs: [
      { by: '--out', path: isFile ? out : undefined, holds: secret === undefined ? 'public' : 'key' },
      { by: '--kubeconfig-out', path: flags['kubeconfig-out'], holds: 'key' },
    ],
    replace: true,
  }
}

function checkTogether(flags: FetchFlags, isFile: boolean): void {
  const { output, secret, configmap, 'print-key': printsKey, 'kubeconfig-out': kubeconfig } = flags
  const isManifest = output === 'manifest'
  if (isManifest && secret === undefined && configmap === undefined) {
    const what = '-o manifest needs --secret NAME.NAMESPACE or --configmap NAME.NAMESPACE'
    throw new KcertError('KCERT_USAGE', what, {
      next: 'kcert csr fetch --help',
    })
  }
  if (!isManifest && (secret !== undefined || configmap !== undefined))
    throw new KcertError('KCERT_USAGE', '--secret and --configmap need -o manifest', {
      next: 'kcert csr fetch --help',
    })
  if (kubeconfig === '-') throw wouldBePrinted('a kubeconfig with a private key', '--kubeconfig-out FILE')
  if (isManifest && secret !== undefined && !isFile && !printsKey)
    throw printedOnlyByName(
      'a Secret contains the private key',
      'add --out FILE, or --print-key to print it into a pipe (… | kubectl apply -f -)',
    )
}
