import type { Found } from './report.ts'
import { type Check, checksOf } from './table.ts'

const ourSubject =
  /x509|\bTLS\b|\bSSL\b|certificat|\bcerts?\b|handshake|\bPEM\b|\bCSRs?\b|\bCAs?\b|kubeconfig|credential|authenti|unauthorized|\btokens?\b|private key|auth plugin|keystore|truststore/i

/** True if a text is about certificates, TLS or identity. */
export function isAboutCertificates(text: string): boolean {
  return ourSubject.test(text)
}

/** Returns the advice for a text about another subject. */
export function otherSubject(): Check[] {
  return [
    { command: 'kcert probe --all', shows: 'if all are ok: certificates are not the cause' },
    {
      command: 'kcert explain-error --help',
      shows:
        'the messages that kcert knows. Paste more of the log, or the log of the other side (journalctl -u kubelet, kubectl logs -n kube-system, kubectl describe)',
    },
  ]
}

const forUnknownErrors = `
{probe} # the served certificate, its trust and client authentication
if endpoint: {inspect} # the chain that the server sends, with its problems
kcert inspect /etc/kubernetes /var/lib/kubelet/pki # on a node: what expired or does not match there
kcert explain-error --help # the messages that kcert knows; the log of the side that rejects often says more: journalctl -u kubelet, kubectl logs -n kube-system
`

/** Returns the checks for an error without a rule: the served certificate, the files of the node, and other logs. */
export function unknownError(found: Found): Check[] {
  return checksOf(forUnknownErrors.trim().split('\n'), found)
}
