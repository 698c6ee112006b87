import { readErrorText } from '../app/explain-error/error-text.ts'
import { KcertCommand } from '../cli/base-command.ts'
import { operands, reportFormatFlag } from '../cli/flags.ts'
import { explainError } from '../diagnosis/explain.ts'
import { type ExitCode, exitCodes } from '../errors/codes.ts'
import { renderErrorExplanation } from '../output/error-explanation.ts'

export default class ExplainError extends KcertCommand {
  static override summary =
    'Say what a TLS error means, and by which commands its likely causes are told apart.'

  static override description =
    `Takes the text of an error or a log, pasted or piped, with everything around it, and reads no cluster and no file but that one. Known
are the words of Go and Kubernetes, OpenSSL and curl, Node, Python, Java, .NET, rustls, nginx and browsers for:

  trust         signed by unknown authority, unable to get local issuer certificate, self-signed certificate, PKIX path building failed
  time          expired or not yet valid
  names         valid for X, not Y; no IP SANs; legacy Common Name
  alerts        remote error: tls: bad certificate, certificate required, unknown certificate authority, internal error
  credentials   Unauthorized, system:anonymous, forbidden users, tokens, credential plugins, kubeconfigs that are missing or incomplete
  files         no PEM, a bundle where one certificate belongs, malformed certificates, keystores, certificate and key that are no pair
  nodes         expired kubelet certificates, kubeadm join, cluster-info, pins, requests that are refused or not issued
  revocation    CRLs and OCSP, which programs beside Kubernetes ask for
  handshakes    no TLS there, no version in common, closed half way, connection refused, not reached

What was called decides which causes come first: an API server, a kubelet, etcd, a webhook, a service mesh, or a registry, repository or
identity provider outside of the cluster. Servers, names, times and files that stand in the text go into the commands. The likeliest cause comes first; a cause for which
something in the text speaks goes before the others, and what speaks for it is said. Of the text itself nothing is shown but the known
words and these facts: no token, key or password that was pasted along.`

  static override exitCodes = {
    [exitCodes.done]: 'at least one error is explained',
    [exitCodes.usage]: 'wrong usage, no text, or a file that cannot be read',
    [exitCodes.no]:
      'kcert knows none of the words; it says whether they speak of certificates, TLS or identity at all, and how to go on',
  }

  static override examples = KcertCommand.examplesOf({
    'Paste it, then Ctrl-D': 'kcert explain-error -',
    'What a command says': 'kubectl get nodes 2>&1 | kcert explain-error -',
    'A log of this node': 'journalctl -u kubelet --since -1h | <%= config.bin %> explain-error -',
    'As an argument': 'kcert explain-error "remote error: tls: internal error"',
    'The commands to go on with': `kcert explain-error error.txt -o json | jq -r '.errors[].causes[].checks[].command'`,
  })

  static override args = {
    text: operands(
      'the text, or a file with it; "-" for standard input, which is also read when nothing is named',
    ),
  }

  static override flags = { output: reportFormatFlag() }

  protected override async perform(): Promise<ExitCode> {
    const { flags, operands } = await this.parse(ExplainError)
    const { text, source } = await readErrorText(operands, this.context, (line) => this.notice(line))
    const explanation = explainError(text, source)
    await this.show(flags.output, explanation, renderErrorExplanation)
    return explanation.errors.length > 0 ? exitCodes.done : exitCodes.no
  }
}
