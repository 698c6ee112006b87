import type { Found } from './report.ts'
import type { Check } from './rule.ts'
import { checksOf } from './table.ts'

const ourSubject =
  /x509|\bTLS\b|\bSSL\b|certificat|\bcerts?\b|handshake|\bPEM\b|\bCSRs?\b|\bCAs?\b|kubeconfig|credential|authenti|unauthorized|\btokens?\b|private key|auth plugin|keystore|truststore/i

/** True when a text speaks of certificates, TLS or identity at all. */
export function isAboutCertificates(text: string): boolean {
  return ourSubject.test(text)
}

/** Returns what to do about a text that is about something else. */
export function otherSubject(): Check[] {
  return [
    { command: 'kcert probe --all', shows: 'all ok: then certificates are not behind it either' },
    {
      command: 'kcert explain-error --help',
      shows:
        'what kcert knows. What was pasted may be the end of a longer story: paste the log from its beginning, or that of the other side (journalctl -u kubelet, kubectl logs -n kube-system, kubectl describe)',
    },
  ]
}

const forUnknownErrors = `
{probe} # what is served, by whom it is trusted, and whom it lets in
if endpoint: {inspect} # the chain that the server sends, with every problem of it
kcert inspect /etc/kubernetes /var/lib/kubelet/pki # on a node: everything there that has expired or does not fit
kcert explain-error --help # what kcert knows; the log of the other side often says more than the side that was refused: journalctl -u kubelet, kubectl logs -n kube-system
`

/** Returns what to do about an error that no rule knows: look at what is served, at what lies there, and ask for better words. */
export function unknownError(found: Found): Check[] {
  return checksOf(forUnknownErrors.trim().split('\n'), found)
}
