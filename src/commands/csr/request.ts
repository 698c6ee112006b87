import { plannedRequest, requestCertificate } from '../../app/csr/request.ts'
import {
  keyFormatFlag,
  keyTypeFlag,
  presetFlags,
  requestFlags,
  subjectFlags,
} from '../../app/csr/request-flags.ts'
import { checkTogether, hasSubject, settingsOf } from '../../app/csr/request-settings.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { checkFiles } from '../../cli/command-files.ts'
import * as Flag from '../../cli/flags.ts'
import { parseDuration } from '../../cli/instant.ts'
import { whileStoppable } from '../../cli/interruption.ts'
import { tellLine } from '../../cli/tell-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { renderFetched } from '../../output/csr-fetch.ts'
import { renderJson } from '../../output/json.ts'
import { renderYaml } from '../../output/yaml.ts'

const { cfssl, key, signer, usage, name } = requestFlags

export default class CsrRequest extends KcertCommand {
  static override summary = 'Create a key, submit a CSR, and fetch the issued certificate.'

  static override description =
    `Creates a key and a CSR, sends the CSR, waits until it is issued, compares the certificate with key and CSR, and writes it, optionally
with a kubeconfig. It reports progress on standard error.

Each step is on disk or on the cluster before the next one starts. After Ctrl-C, a crash, or the end of --wait, run the same command again:
it continues with the existing key, CSR and object. If everything exists already, it does nothing.

With --force, kcert starts again with a new key. If a key exists, the new key and CSR are kept as FILE.new until the certificate is
issued. Then kcert replaces key and certificate together, so a server never reads a pair that does not match.

With --dry-run, kcert writes nothing. If the key file does not exist yet, the printed CSR is signed with a temporary key.`

  static override exitCodes = KcertCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'the certificate is written',
    usage: 'wrong usage, a file that cannot be read, or no kubeconfig',
    no: 'the CSR would be refused, is denied or failed, or its name is taken',
    unreachable: '--wait timed out, or the API server could not be reached: run the command again',
    refused: 'a file exists already, with other content',
  })

  static override examples = KcertCommand.examplesOf({
    'Request a certificate for a user, and write a kubeconfig':
      'kcert csr request --user ann --org dev --key-out ann-key.pem --out ann.crt --kubeconfig-out ann.conf',
    'Request a certificate for a server in the cluster, from your own signer':
      'kcert csr request --service my-svc.my-namespace --signer example.com/serving --key-out server-key.pem --out server.crt --wait 1h',
    'Request a certificate that is valid for eight hours, with an existing key':
      'kcert csr request --user ann --key ann-key.pem --expiration-seconds 28800 --name ann-today --out ann-today.crt',
    'Print the object that would be sent':
      'kcert csr request --user ann --org dev --key-out ann-key.pem --out ann.crt --dry-run -o yaml',
    "Request a kubelet's client certificate, with the kubeconfig of a bootstrap token":
      'kcert csr request --kubelet-client node-1 --kubeconfig bootstrap.conf --key-out kubelet.key --out kubelet.crt --kubeconfig-out kubelet.conf',
  })

  static override dryRunBy = 'server' as const

  static override flags = {
    ...presetFlags,
    ...subjectFlags,
    cfssl,
    key,
    'key-out': Flag.value('FILE', 'file for the private key, created here or by an earlier run'),
    'key-type': keyTypeFlag(', or that of --cfssl'),
    'key-format': keyFormatFlag('--cfssl'),
    'password-file': Flag.value('FILE', 'file with the password of --key on its first line'),
    'request-out': Flag.value('FILE', 'file for the CSR (default name of --out with .csr)'),
    out: Flag.value('FILE', 'file for the certificate', { required: true }),
    'kubeconfig-out': Flag.value(
      'FILE',
      'file for a kubeconfig of the current cluster, with certificate and key',
    ),
    'key-by-path': Flag.boolean('refer to the key file in the kubeconfig instead of embedding the key', {
      dependsOn: ['kubeconfig-out'],
    }),
    namespace: Flag.value('NAME', 'namespace of the context in the kubeconfig', { char: 'n' }),
    wait: Flag.value('DURATION', 'wait up to this long until it is approved and signed, such as 30s or 20m', {
      default: '15m',
    }),
    'dry-run': Flag.boolean(
      'validate on the API server without creating or writing anything, and print the object that would be sent as YAML, or as JSON with -o json',
    ),
    force: Flag.boolean('start again with a new key, and overwrite existing files'),
    signer,
    usage,
    'expiration-seconds': requestFlags['expiration-seconds'],
    name,
    'cluster-domain': requestFlags['cluster-domain'],
    ...Flag.clusterFlagsBesideUser,
    output: Flag.reportFormat(),
  }

  protected override async perform() {
    const { flags } = await this.parse(CsrRequest)
    checkTogether(flags)
    const { key: ownKey, 'key-out': keyOut, out, output } = flags
    if (!hasSubject(flags))
      throw new KcertError('KCERT_USAGE', 'no subject or SAN given', {
        why: 'a CSR needs a subject or SANs',
        next: 'kcert csr request --help',
      })
    const keyFile = ownKey ?? keyOut
    if (keyFile === undefined || keyFile === '-' || out === '-') {
      const what = '--key-out FILE (or --key FILE) and --out FILE are required, and cannot be "-"'
      throw new KcertError('KCERT_USAGE', what, {
        why: 'the command continues from these files after an interruption',
        next: 'kcert csr request --help',
      })
    }
    const requestFile = flags['request-out'] ?? besideCertificate(out)
    checkFiles({
      inputs: [
        // It is read if an earlier run created it.
        { by: ownKey === undefined ? '--key-out' : '--key', path: keyFile },
        { by: '--password-file', path: flags['password-file'] },
      ],
      outputs: [
        { by: '--out', path: out, holds: 'public' },
        { by: '--request-out', path: requestFile, holds: 'public' },
        { by: '--kubeconfig-out', path: flags['kubeconfig-out'], holds: 'key' },
      ],
      // A run continues with the files of an earlier one.
      replace: true,
    })
    const { context } = this
    const settings = {
      spec: await settingsOf(flags, context),
      files: {
        key: keyFile,
        makesKey: ownKey === undefined,
        request: requestFile,
        certificate: out,
        kubeconfig: flags['kubeconfig-out'],
      },
      keyFormat: flags['key-format'],
      passwordFile: flags['password-file'],
      keyByPath: flags['key-by-path'],
      namespace: flags.namespace,
      waitMs: parseDuration(flags.wait, '--wait'),
      force: flags.force,
    }
    const onCluster = { ...flags, user: undefined }
    const work = { context, settings, tell: (text: string) => tellLine(context.stderr, text) }
    if (flags['dry-run']) {
      const object = await this.onCluster(onCluster, (cluster) => plannedRequest({ ...work, cluster }))
      return this.answer(output === 'json' ? renderJson(object) : renderYaml(object))
    }
    const goesOn = () => 'nothing is lost; run the same command to continue'
    const report = await whileStoppable(goesOn, context.stderr, () =>
      this.onCluster(onCluster, (cluster) => requestCertificate({ ...work, cluster })),
    )
    return this.show(output, report, renderFetched, { notices: report.notices })
  }
}

/** Returns the request's path next to the certificate: ann.crt → ann.csr. */
function besideCertificate(out: string): string {
  return `${out.replace(/\.(?:crt|cer|cert|pem)$/i, '')}.csr`
}
