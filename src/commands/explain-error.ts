import { readErrorText } from '../app/explain-error/error-text.ts'
import { KcertCommand } from '../cli/base-command.ts'
import * as Flag from '../cli/flags.ts'
import { explainError } from '../diagnosis/explain.ts'
import { exitCodes } from '../errors/codes.ts'
import { renderErrorExplanation } from '../output/error-explanation.ts'

export default class ExplainError extends KcertCommand {
  static override summary = 'Explain a TLS error: likely causes, and the commands that tell them apart.'

  static override description =
    `Reads the text of an error or a log, pasted or piped, and nothing else: no cluster and no other file. kcert knows the messages of Go, Kubernetes, OpenSSL, curl, Node, Python, Java, .NET, rustls, nginx and browsers about:

  trust         signed by unknown authority, unable to get local issuer certificate, self-signed certificate, PKIX path building failed
  time          expired or not yet valid
  names         valid for X, not Y; no IP SANs; legacy Common Name
  alerts        remote error: tls: bad certificate, certificate required, unknown certificate authority, internal error
  credentials   Unauthorized, system:anonymous, forbidden users, tokens, credential plugins, missing or incomplete kubeconfigs
  files         files that are not PEM, bundles instead of one certificate, malformed certificates, keystores, certificate and key that do not match
  nodes         expired kubelet certificates, kubeadm join, cluster-info, discovery token CA cert hashes, CSRs that are rejected or not issued
  revocation    CRLs and OCSP, which programs other than Kubernetes check
  handshakes    plain HTTP on a TLS port, no common version, connection closed, refused or timed out

The order of the causes depends on the server in the message: an API server, a kubelet, etcd, a webhook, a service mesh, or a server outside of the cluster. A cause with evidence in the text comes first, and the evidence is shown. The commands contain the servers, names, times and files of the text. The output repeats nothing else of the text: no token, key or password.`

  static override exitCodes = KcertCommand.exitsOf({
    done: 'at least one error is explained',
    usage: 'wrong usage, no text, or a file that cannot be read',
    no: 'kcert knows no message in the text; it shows whether the text is about certificates, TLS or identity, and how to continue',
  })

  static override examples = KcertCommand.examplesOf({
    'Paste the error, then press Ctrl-D': 'kcert explain-error -',
    'Explain what a command prints': 'kubectl get nodes 2>&1 | kcert explain-error -',
    'Explain the log of this node': 'journalctl -u kubelet --since -1h | <%= config.bin %> explain-error -',
    'Explain an argument': 'kcert explain-error "remote error: tls: internal error"',
    'Print only the commands': `kcert explain-error error.txt -o json | jq -r '.errors[].causes[].checks[].command'`,
  })

  static override args = {
    text: Flag.operands('the text, a file with the text, or "-" for standard input (default standard input)'),
  }

  static override flags = { output: Flag.reportFormat() }

  protected override async perform() {
    const { flags, operands } = await this.parse(ExplainError)
    const { text, source } = await readErrorText(operands, this.context, (line) => this.notice(line))
    const explanation = explainError(text, source)
    await this.show(flags.output, explanation, renderErrorExplanation)
    return explanation.errors.length > 0 ? exitCodes.done : exitCodes.no
  }
}
