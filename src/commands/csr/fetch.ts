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
import {
  booleanFlag,
  clusterExits,
  clusterFlagsBesideUser,
  formatFlag,
  operands,
  valueFlag,
} from '../../cli/flags.ts'
import { readInput } from '../../cli/input.ts'
import { parseDuration } from '../../cli/instant.ts'
import { tellChanges, whileStoppable } from '../../cli/interruption.ts'
import { readKeyFile } from '../../cli/key-file.ts'
import { placeOf } from '../../csr/certificate-objects.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { renderFetched } from '../../output/csr-fetch.ts'
import { renderFetchedMany } from '../../output/csr-fetch-many.ts'
import { renderYaml } from '../../output/yaml.ts'
import { readCertificates, writeCertificates } from '../../x509/certificate.ts'

export default class CsrFetch extends KcertCommand {
  static override summary =
    'Fetch issued certificates: one, with a kubeconfig, a Secret or a ConfigMap of it, or many into a folder.'

  static override description =
    `Before anything is written the certificate is held against the request (key, subject, names), against --key where it is given,
and against --ca. A certificate for another key is never taken; one with another subject or other names with --accept-names.

Without --out the certificate is printed. The private key is in no output, with one exception that is asked for by name: with
-o manifest and --secret the document holds it, so it goes to a file of mode 0600 (--out), or to standard output with --print-key.

With --out-dir, many are fetched in one pass: those that are named, or all of a signer or with a label; each into FOLDER/NAME.crt.
A file that holds just this already is left alone, so that it can be run again. What is named and not issued is a no (3); what a
selection holds and is not issued is shown, and no failure.

kube-controller-manager removes an object an hour after it was issued: fetch it before.`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'the certificates are there, and what they should be',
    [exitCodes.usage]: 'wrong usage, a file that cannot be read, or no kubeconfig',
    [exitCodes.no]: 'it is not issued, was denied or has failed, or is not what it should be',
    [exitCodes.unreachable]:
      'the time to wait is over, the API server could not be reached, or a file could not be written',
    [exitCodes.refused]: 'a file is there already, or a private key would be printed',
  }

  static override examples = KcertCommand.examplesOf({
    'A certificate, held against its key':
      'kcert csr fetch my-svc.my-namespace --key server-key.pem --out server.crt',
    'Wait for it, and make a kubeconfig with the key in it':
      'kcert csr fetch ann --wait 20m --key ann-key.pem --out ann.crt --kubeconfig-out ann.conf',
    'A TLS Secret for pods, and the CA for their clients':
      'kcert csr fetch my-svc.my-namespace --key server-key.pem --ca ca.pem --secret server.my-namespace --configmap example-serving-ca.my-namespace -o manifest --print-key | kubectl apply -f -',
    'What is in it': 'kcert csr fetch ann | kcert inspect -',
    'All certificates of a signer, each into a file of its own':
      'kcert csr fetch --signer example.com/serving --ca ca.pem --out-dir certs',
  })

  static override args = { name: operands('name of the object; csr/NAME as well; with --out-dir many') }

  static override flags = {
    key: valueFlag('FILE', 'the private key that it should be for'),
    'password-file': valueFlag('FILE', 'file whose first line opens --key'),
    ca: valueFlag('FILE', 'the CA that should have signed it'),
    'accept-names': booleanFlag('take it with another subject or other names than were asked for'),
    wait: valueFlag('DURATION', 'wait so long until it is issued, such as 30s or 20m'),
    out: valueFlag('FILE', 'where the certificate goes, or with -o manifest the objects; "-" prints it'),
    force: booleanFlag('replace files that are there'),
    'out-dir': valueFlag(
      'FOLDER',
      'folder for the certificates, NAME.crt each; it is made where it is not there',
      { helpGroup: 'MANY' },
    ),
    signer: valueFlag('NAME', 'all of this signer', { helpGroup: 'MANY' }),
    selector: valueFlag('LABELS', 'all with these labels, as kubectl takes them', {
      char: 'l',
      helpGroup: 'MANY',
    }),
    'kubeconfig-out': valueFlag('FILE', 'a kubeconfig for the current cluster, with the key of --key in it', {
      helpGroup: 'KUBECONFIG',
      dependsOn: ['key'],
    }),
    'key-by-path': booleanFlag('leave the key in its file, and name that in the kubeconfig', {
      helpGroup: 'KUBECONFIG',
      dependsOn: ['kubeconfig-out'],
    }),
    user: valueFlag('NAME', 'name of the user in the kubeconfig; if not said: the common name', {
      helpGroup: 'KUBECONFIG',
    }),
    namespace: valueFlag('NAME', 'namespace of the context in the kubeconfig', {
      char: 'n',
      helpGroup: 'KUBECONFIG',
    }),
    secret: valueFlag(
      'NAME[.NAMESPACE]',
      'with -o manifest: a Secret of type kubernetes.io/tls with certificate and key',
      { helpGroup: 'MANIFEST' },
    ),
    configmap: valueFlag(
      'NAME[.NAMESPACE]',
      'with -o manifest: a ConfigMap with the CA as ca.crt, of --ca or, where it signed, of the kubeconfig',
      { helpGroup: 'MANIFEST' },
    ),
    'print-key': booleanFlag('print a Secret, which holds the private key, to standard output', {
      helpGroup: 'MANIFEST',
    }),
    ...clusterFlagsBesideUser,
    output: formatFlag(
      ['text', 'json', 'yaml', 'manifest'],
      'how to show what was done; manifest: the objects of --secret and --configmap',
    ),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags, operands } = await this.parse(CsrFetch)
    const { signer, selector } = flags
    const isSelection = signer !== undefined || selector !== undefined
    const names = isSelection && operands.length === 0 ? [] : namesOf(operands, 'csr fetch NAME')
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
      secret: flags.secret === undefined ? undefined : placeOf(flags.secret, '--secret'),
      configMap: flags.configmap === undefined ? undefined : placeOf(flags.configmap, '--configmap'),
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
          ? certificateObjects(objects, fetched, key, () =>
              caPemOf(fetched, ca?.certificates, () => cluster.connection()),
            )
              .map(renderYaml)
              .join('---\n')
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
        await this.answer(isFile ? '' : (manifest ?? ''))
        return exitCodes.done
      }
      const report = fetchReport(
        fetched,
        { ...(isFile ? { certificate: out } : {}), ...(kubeconfig === undefined ? {} : { kubeconfig }) },
        notices,
      )
      await this.show(output, report, (_, view) => (isFile ? renderFetched(report, view) : pem), notices)
      return exitCodes.done
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
    await this.show(output, report, renderFetchedMany)
    return exit
  }
}

type FetchFlags = FlagsOf<typeof CsrFetch.flags>

/** What is made of one certificate alone. */
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

/** Returns where many certificates go, and how that is shown. Throws KCERT_USAGE for what is of one alone. */
function manyOf(flags: FetchFlags) {
  const single = ofOne.find((flag) => flags[flag] !== undefined && flags[flag] !== false)
  const { 'out-dir': folder, output } = flags
  if (single !== undefined || output === 'manifest')
    throw new KcertError('KCERT_USAGE', `${single ? `--${single}` : '-o manifest'} is for one certificate`, {
      why: 'many are fetched, each into a file of its own',
      next: 'name one request, or leave it out: kcert csr fetch NAME… --out-dir FOLDER',
    })
  if (folder) return { folder, output }
  throw new KcertError('KCERT_USAGE', 'it is not said where many certificates go', {
    next: '--out-dir FOLDER',
  })
}

// A file that is there and holds just what is fetched is left alone, so whether another may be replaced is seen when it is written.
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
  if (isManifest && secret === undefined && configmap === undefined)
    throw new KcertError('KCERT_USAGE', 'it is not said which objects -o manifest is to make', {
      next: '--secret NAME.NAMESPACE',
    })
  if (!isManifest && (secret !== undefined || configmap !== undefined))
    throw new KcertError('KCERT_USAGE', `--secret and --configmap are made with -o manifest`, {
      next: 'add -o manifest',
    })
  if (kubeconfig === '-') throw wouldBePrinted('a kubeconfig with a private key', '--kubeconfig-out FILE')
  if (isManifest && secret !== undefined && !isFile && !printsKey)
    throw printedOnlyByName(
      'a Secret holds the private key',
      'add --print-key where a pipe takes it (… | kubectl apply -f -), or --out FILE',
    )
}
