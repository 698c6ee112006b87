import { clusterInfoOf, clusterInfoPlace } from '../../app/bootstrap/objects.ts'
import { type CaPins, caFacts } from '../../bootstrap/cluster-info-report.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { readCertificateFiles } from '../../cli/certificate-files.ts'
import { checkStandardInput } from '../../cli/command-files.ts'
import * as Flag from '../../cli/flags.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { renderPins } from '../../output/cluster-info.ts'

export default class ClusterInfoPin extends KcertCommand {
  static override summary = 'Print the discovery token CA cert hash of each CA, for kubeadm join.'

  static override description =
    `The hash (public key pin) is the SHA-256 of the CA's public key (SubjectPublicKeyInfo), so it stays the same if the CA is renewed with
its key. kubeadm join continues if one CA of cluster-info has one of the given hashes. While the bundle contains the old CA and the new
one, either hash works. Without a FILE, kcert reads the CAs of cluster-info. With files, it contacts no cluster.`

  static override exitCodes = KcertCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'the hashes are printed',
    usage: 'wrong usage, a file that cannot be read, or no kubeconfig',
    no: 'a certificate is damaged, or cluster-info has no CA or cannot be read',
  })

  static override examples = KcertCommand.examplesOf({
    'Print the hashes of the CAs in cluster-info': 'kcert cluster-info pin',
    'Print the hash of a CA file, on a control-plane node':
      'kcert cluster-info pin /etc/kubernetes/pki/ca.crt',
    'Pass them to kubeadm join':
      'kubeadm join 192.0.2.1:6443 --token "$(cat token)" $(kcert cluster-info pin -o args)',
  })

  static override args = { file: Flag.operands('CA certificates in PEM or DER; "-" for standard input') }

  static override flags = {
    ...Flag.clusterFlags,
    ...Flag.listFlags(['pin', 'args'], 'pin: only the hashes; args: `kubeadm join` arguments'),
  }

  protected override async perform() {
    const { flags, operands } = await this.parse(ClusterInfoPin)
    checkStandardInput(operands.map((path) => ({ by: 'FILE', path })))
    const { source, certificates } =
      operands.length > 0
        ? { source: operands.join(', '), certificates: await readCertificateFiles(operands, this.context) }
        : await this.ofCluster(flags)
    const report: CaPins = {
      apiVersion: 'kcert/v1',
      kind: 'CaPins',
      source,
      cas: certificates.map(caFacts),
    }
    const pins = [...new Set(report.cas.map(({ pin }) => pin))]
    const { output } = flags
    if (output === 'pin') return this.answer(pins.map((pin) => `${pin}\n`).join(''))
    if (output === 'args')
      return this.answer(`${pins.map((pin) => `--discovery-token-ca-cert-hash ${pin}`).join(' ')}\n`)
    return this.show(output, report, renderPins)
  }

  private async ofCluster(flags: Flag.ClusterFlags) {
    const { info } = await this.onCluster(flags, clusterInfoOf)
    if (info.cas.length > 0) return { source: clusterInfoPlace, certificates: info.cas }
    const [fault] = info.faults
    throw new KcertError('KCERT_X509_MALFORMED', `${clusterInfoPlace} contains no CA`, {
      ...(fault === undefined ? {} : { why: fault.detail, next: fault.next }),
    })
  }
}
