import { discoverAt, discoverBy } from '../../app/bootstrap/kubeconfig.ts'
import { readTokenFile } from '../../app/token/input.ts'
import { authorityFacts } from '../../bootstrap/cluster-info-report.ts'
import { parsePin, pinOf } from '../../bootstrap/pin.ts'
import type { BootstrapKubeconfig as Report } from '../../bootstrap/progress-report.ts'
import { formatToken } from '../../bootstrap/token.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { readCertificateFiles } from '../../cli/certificate-files.ts'
import { connectionOptions } from '../../cli/cluster.ts'
import { checkFiles, flagFiles } from '../../cli/command-files.ts'
import { wouldBePrinted } from '../../cli/exposed-key.ts'
import {
  booleanFlag,
  clusterExits,
  clusterFlagsBesideServer,
  otherClusterFlags,
  repeatedFlag,
  reportFormatFlag,
  valueFlag,
} from '../../cli/flags.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { kubeconfigDocument } from '../../kubeconfig/format.ts'
import { renderBootstrapKubeconfig } from '../../output/bootstrap.ts'
import { renderYaml } from '../../output/yaml.ts'
import { writeKeyFile } from '../../system/output-file.ts'
import { writeCertificates } from '../../x509/certificate.ts'

export default class BootstrapKubeconfig extends KcertCommand {
  static override summary = 'Make the kubeconfig with which a kubelet asks for its first certificate.'

  static override description =
    `Server and CAs come from cluster-info, which is believed only when it is proven: signed by the token, and with a pin, or a CA of --ca, where
one is given. With a kubeconfig it is read over that; with --server it is read as kubeadm join does, without any credential, and a
pin or a CA must be given: on the new node itself, for one.

The file holds the token, has mode 0600, and is what the kubelet takes as --bootstrap-kubeconfig
(kubeadm: /etc/kubernetes/bootstrap-kubelet.conf). It is of use until the token ends.`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'the kubeconfig is written',
    [exitCodes.usage]: 'wrong usage, a malformed token or pin, a file that cannot be read, or no kubeconfig',
    [exitCodes.no]: 'cluster-info is not proven to be that of the cluster, or is not there',
    [exitCodes.unreachable]: 'the API server could not be reached, or the file could not be written',
    [exitCodes.refused]: 'the file is there already',
  }

  static override examples = KcertCommand.examplesOf({
    'Where the cluster can be reached':
      'kcert bootstrap kubeconfig --token-file token --out bootstrap-kubelet.conf',
    'On the new node, which knows nothing but a token and a pin':
      'kcert bootstrap kubeconfig --server api.example.com:6443 --pin sha256:… --token-file token --out /etc/kubernetes/bootstrap-kubelet.conf',
    'With the CA instead of its pin, and a token that lies in no file':
      'kcert token create -o token | kcert bootstrap kubeconfig --token-file - --ca ca.crt --out bootstrap-kubelet.conf',
  })

  static override flags = {
    'token-file': valueFlag('FILE', 'file with the token; "-" for standard input', { required: true }),
    out: valueFlag('FILE', 'where the kubeconfig goes', { required: true }),
    pin: repeatedFlag('PIN', 'discovery hash that a CA of cluster-info must have: sha256:…; may be repeated'),
    ca: valueFlag('FILE', 'CA certificates, one of which must be in cluster-info'),
    server: valueFlag('HOST:PORT', 'read cluster-info from here, without a kubeconfig', {
      exclusive: [...otherClusterFlags, 'user'],
    }),
    force: booleanFlag('replace the file when it is there'),
    'dry-run': booleanFlag('prove everything, and write nothing'),
    ...clusterFlagsBesideServer,
    output: reportFormatFlag(),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags } = await this.parse(BootstrapKubeconfig)
    const { context } = this
    const { out, ca, server, force } = flags
    if (out === '-') throw wouldBePrinted('a kubeconfig with a token', '--out FILE')
    checkFiles({
      inputs: flagFiles(flags, 'token-file', 'ca'),
      outputs: [{ by: '--out', path: out, holds: 'key' }],
      replace: force || flags['dry-run'],
    })
    const given = await readCertificateFiles(ca === undefined ? [] : [ca], context)
    const pins = [...(flags.pin ?? []).map(parsePin), ...given.map(pinOf)]
    if (server !== undefined && pins.length === 0)
      throw new KcertError('KCERT_USAGE', 'neither a pin nor a CA is given with --server', {
        why: 'whoever answers there could have signed with a token that somebody else has lost',
        next: '--ca FILE',
      })
    const token = await readTokenFile(flags['token-file'], context)
    const settings = { token, pins }
    const found =
      server === undefined
        ? await this.onCluster({ ...flags, server: undefined }, (cluster) => discoverBy(cluster, settings))
        : await discoverAt(server, settings, connectionOptions(context, flags))
    const { authorities } = found.info
    const document = kubeconfigDocument(
      {
        name: 'kubernetes',
        server: found.server,
        certificateAuthority: writeCertificates(authorities),
      },
      { name: 'tls-bootstrap-token-user', token: formatToken(token) },
    )
    if (!flags['dry-run']) writeKeyFile(out, renderYaml(document), { replace: force })
    const report: Report = {
      apiVersion: 'kcert/v1',
      kind: 'BootstrapKubeconfig',
      outcome: flags['dry-run'] ? 'would-write' : 'written',
      file: out,
      server: found.server,
      tokenId: token.id,
      authorities: authorities.map(authorityFacts).map(({ subject, pin }) => ({ subject, pin })),
      proof: found.proof,
    }
    await this.show(flags.output, report, renderBootstrapKubeconfig)
    return exitCodes.done
  }
}
