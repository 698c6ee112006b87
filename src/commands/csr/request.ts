import { requestCertificate } from '../../app/csr/request.ts'
import { requestFlags } from '../../app/csr/request-flags.ts'
import { checkTogether, saysWhat, settingsOf } from '../../app/csr/request-settings.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { checkFiles } from '../../cli/command-files.ts'
import {
  booleanFlag,
  clusterExits,
  clusterFlagsBesideUser,
  reportFormatFlag,
  valueFlag,
} from '../../cli/flags.ts'
import { parseDuration } from '../../cli/instant.ts'
import { whileStoppable } from '../../cli/interruption.ts'
import { tellLine } from '../../cli/tell-line.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { renderFetched } from '../../output/csr-fetch.ts'

const { cn, org, ou, dns, ip, email, uri, cfssl, user, service, key, signer, usage, name } = requestFlags

export default class CsrRequest extends KcertCommand {
  static override summary =
    'Get a certificate from a cluster in one go: key, request, approval, certificate, kubeconfig.'

  static override description =
    `Makes a private key, a request and its object, waits until it is approved and signed, holds the certificate against key and
request, and writes it, with a kubeconfig where one is wished for. What it does is told on standard error.

Each step is on the disk or on the cluster before the next is begun: after Ctrl-C, a crash, or the end of --wait, the same command
goes on where it was. It takes the key and the request that are there, and the object for that key. When all is there it does nothing.
--force begins anew, with a new key. Where there is one already, key and request wait beside it as FILE.new until the certificate is
issued; then both are replaced as one, so that a server which reads them never finds half of a pair. Stopped, the same command goes on.`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'the certificate is there',
    [exitCodes.usage]: 'wrong usage, a file that cannot be read, or no kubeconfig',
    [exitCodes.no]: 'it would be refused, was denied or has failed, or its name is taken',
    [exitCodes.unreachable]: 'the time to wait is over, or the API server could not be reached: run it again',
    [exitCodes.refused]: 'a file is there already, and is for something else',
  }

  static override examples = KcertCommand.examplesOf({
    'A user of the cluster, with a kubeconfig':
      'kcert csr request --user ann --org dev --key-out ann-key.pem --out ann.crt --kubeconfig-out ann.conf',
    'A server in the cluster, by a signer of your own':
      'kcert csr request --service my-svc.my-namespace --signer example.com/serving --key-out server-key.pem --out server.crt --wait 1h',
    'For eight hours, with the key that is there':
      'kcert csr request --user ann --key ann-key.pem --expiration-seconds 28800 --name ann-today --out ann-today.crt',
    "The certificate by which a node is a client, by the bootstrap token's kubeconfig":
      'kcert csr request --kubelet-client node-1 --kubeconfig bootstrap.conf --key-out kubelet.key --out kubelet.crt --kubeconfig-out kubelet.conf',
  })

  static override flags = {
    user,
    'kubelet-client': requestFlags['kubelet-client'],
    'kubelet-serving': requestFlags['kubelet-serving'],
    service,
    cn,
    org,
    ou,
    dns,
    ip,
    email,
    uri,
    cfssl,
    key,
    'key-out': valueFlag('FILE', 'the private key: made here, or of an earlier run of this command'),
    'key-type': requestFlags['key-type'],
    'key-format': requestFlags['key-format'],
    'password-file': valueFlag('FILE', 'file whose first line opens --key'),
    'request-out': valueFlag(
      'FILE',
      'the request; if not said: beside the certificate, with .csr at its end',
    ),
    out: valueFlag('FILE', 'where the certificate goes', { required: true }),
    'kubeconfig-out': valueFlag(
      'FILE',
      'a kubeconfig for the current cluster, with certificate and key in it',
    ),
    'key-by-path': booleanFlag('leave the key in its file, and name that in the kubeconfig', {
      dependsOn: ['kubeconfig-out'],
    }),
    namespace: valueFlag('NAME', 'namespace of the context in the kubeconfig', { char: 'n' }),
    wait: valueFlag('DURATION', 'wait so long until it is approved and signed, such as 30s or 20m', {
      default: '15m',
    }),
    force: booleanFlag('begin anew, with a new key, and replace files that are there'),
    signer,
    usage,
    'expiration-seconds': requestFlags['expiration-seconds'],
    name,
    'cluster-domain': requestFlags['cluster-domain'],
    ...clusterFlagsBesideUser,
    output: reportFormatFlag(),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags } = await this.parse(CsrRequest)
    checkTogether(flags)
    const { key: ownKey, 'key-out': keyOut, out, output } = flags
    if (!saysWhat(flags))
      throw new KcertError('KCERT_USAGE', 'it is not said what to ask for', {
        why: 'a request has a subject or names',
        next: 'for another kind of certificate see kcert csr request --help; for a user: kcert csr request --user NAME --key-out FILE --out FILE',
      })
    const keyFile = ownKey ?? keyOut
    if (keyFile === undefined || keyFile === '-' || out === '-')
      throw new KcertError('KCERT_USAGE', 'it is not said in which files key and certificate lie', {
        why: 'they are how the command goes on after it was stopped',
        next: '--key-out FILE --out FILE',
      })
    const requestFile = flags['request-out'] ?? besideCertificate(out)
    checkFiles({
      inputs: [
        // It is read where an earlier run made it.
        { by: ownKey === undefined ? '--key-out' : '--key', path: keyFile },
        { by: '--password-file', path: flags['password-file'] },
      ],
      outputs: [
        { by: '--out', path: out, holds: 'public' },
        { by: '--request-out', path: requestFile, holds: 'public' },
        { by: '--kubeconfig-out', path: flags['kubeconfig-out'], holds: 'key' },
      ],
      // What an earlier run has left is gone on with.
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
    const goesOn = () => 'nothing is lost, and the same command goes on from here'
    const report = await whileStoppable(goesOn, context.stderr, () =>
      this.onCluster({ ...flags, user: undefined }, (cluster) =>
        requestCertificate({
          cluster,
          context,
          settings,
          tell: (text) => tellLine(context.stderr, text),
        }),
      ),
    )
    await this.show(output, report, renderFetched, report.notices)
    return exitCodes.done
  }
}

/** ann.crt → ann.csr */
function besideCertificate(out: string): string {
  return `${out.replace(/\.(?:crt|cer|cert|pem)$/i, '')}.csr`
}
