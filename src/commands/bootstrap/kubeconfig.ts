import { discoverAt, discoverBy } from '../../app/bootstrap/kubeconfig.ts'
import { readTokenFile } from '../../app/token/input.ts'
import { caFacts } from '../../bootstrap/cluster-info-report.ts'
import { parsePin, pinOf } from '../../bootstrap/pin.ts'
import type { BootstrapKubeconfig as Report } from '../../bootstrap/progress-report.ts'
import { formatToken } from '../../bootstrap/token.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { readCertificateFiles } from '../../cli/certificate-files.ts'
import { connectionOptions } from '../../cli/cluster.ts'
import { checkFiles, flagFiles } from '../../cli/command-files.ts'
import { wouldBePrinted } from '../../cli/exposed-key.ts'
import * as Flag from '../../cli/flags.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { kubeconfigDocument } from '../../kubeconfig/format.ts'
import { renderBootstrapKubeconfig } from '../../output/bootstrap.ts'
import { renderYaml } from '../../output/yaml.ts'
import { writeKeyFile } from '../../system/output-file.ts'
import { writeCertificates } from '../../x509/certificate.ts'

export default class BootstrapKubeconfig extends KcertCommand {
  static override summary = "Create the kubeconfig for a kubelet's TLS bootstrap."

  static override description =
    `Server and CAs come from the cluster-info ConfigMap. kcert uses it only if it is signed with the token. With --pin or --ca it must also
contain that CA. With a kubeconfig, cluster-info is read over its connection. On a new node without a kubeconfig, use --server with --pin
or --ca: cluster-info is then read without credentials, as kubeadm join does.

The file contains the token, has mode 0600, and serves as the kubelet's --bootstrap-kubeconfig (kubeadm:
/etc/kubernetes/bootstrap-kubelet.conf). It works until the token expires.`

  static override exitCodes = KcertCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'the kubeconfig was written',
    usage: 'wrong usage, a malformed token or hash, an unreadable file, or no kubeconfig',
    no: 'cluster-info does not exist, or could not be verified',
    unreachable: 'the API server could not be reached, or the file could not be written',
    refused: 'the file already exists',
  })

  static override examples = KcertCommand.examplesOf({
    'Create it with your kubeconfig':
      'kcert bootstrap kubeconfig --token-file token --out bootstrap-kubelet.conf',
    'Create it on the new node, with a token and a discovery token CA cert hash':
      'kcert bootstrap kubeconfig --server api.example.com:6443 --pin sha256:… --token-file token --out /etc/kubernetes/bootstrap-kubelet.conf',
    'Create a token, and pass it on without a file':
      'kcert token create -o token | kcert bootstrap kubeconfig --token-file - --ca ca.crt --out bootstrap-kubelet.conf',
  })

  static override flags = {
    'token-file': Flag.value('FILE', 'file with the token; "-" for standard input', { required: true }),
    out: Flag.value('FILE', 'file to write the kubeconfig to', { required: true }),
    pin: Flag.repeated(
      'PIN',
      'discovery token CA cert hash that a CA of cluster-info must have: sha256:…; may be repeated',
    ),
    ca: Flag.value('FILE', 'file with CA certificates, one of which must be in cluster-info'),
    server: Flag.value('HOST:PORT', 'API server to read cluster-info from, without a kubeconfig', {
      exclusive: [...Flag.otherClusterFlags, 'user'],
    }),
    force: Flag.boolean('overwrite an existing file'),
    'dry-run': Flag.boolean('verify everything, and write nothing'),
    ...Flag.clusterFlagsBesideServer,
    output: Flag.reportFormat(),
  }

  protected override async perform() {
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
      throw new KcertError('KCERT_USAGE', '--server requires --pin or --ca', {
        why: 'any server with a leaked token could sign cluster-info',
        next: '--ca ca.crt',
      })
    const token = await readTokenFile(flags['token-file'], context)
    const settings = { token, pins }
    const found =
      server === undefined
        ? await this.onCluster({ ...flags, server: undefined }, (cluster) => discoverBy(cluster, settings))
        : await discoverAt(server, settings, connectionOptions(context, flags))
    const { cas } = found.info
    const document = kubeconfigDocument(
      {
        name: 'kubernetes',
        server: found.server,
        certificateAuthority: writeCertificates(cas),
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
      cas: cas.map(caFacts).map(({ subject, pin }) => ({ subject, pin })),
      verification: found.proof,
    }
    return this.show(flags.output, report, renderBootstrapKubeconfig)
  }
}
