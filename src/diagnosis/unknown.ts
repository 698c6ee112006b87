import { commandLine } from '../errors/command-line.ts'
import type { Found } from './found.ts'
import { inspectCommand, nodeFolders, probeCommand } from './place.ts'
import { type Check, check } from './rule.ts'

const ourSubject =
  /x509|\bTLS\b|\bSSL\b|certificat|\bcerts?\b|handshake|\bPEM\b|\bCSRs?\b|\bCAs?\b|kubeconfig|credential|authenti|unauthorized|\btokens?\b|private key|auth plugin|keystore|truststore/i

/** True when a text speaks of certificates, TLS or identity at all. */
export function isAboutCertificates(text: string): boolean {
  return ourSubject.test(text)
}

/** Returns what to do about a text that is about something else. */
export function otherSubject(): Check[] {
  return [
    check('kcert probe --all', 'all ok: then certificates are not behind it either'),
    check(
      'kcert explain-error --help',
      'what kcert knows. What was pasted may be the end of a longer story: paste the log from its beginning, or that of the other side (journalctl -u kubelet, kubectl logs -n kube-system, kubectl describe)',
    ),
  ]
}

/** Returns what to do about an error that no rule knows: look at what is served, at what lies there, and ask for better words. */
export function unknownError(found: Found): Check[] {
  return [
    check(probeCommand(found), 'what is served, by whom it is trusted, and whom it lets in'),
    ...(found.endpoints.length > 0
      ? [check(inspectCommand(found), 'the chain that the server sends, with every problem of it')]
      : []),
    check(
      commandLine`kcert inspect ${nodeFolders}`,
      'on a node: everything there that has expired or does not fit',
    ),
    check(
      'kcert explain-error --help',
      'what kcert knows; the log of the other side often says more than the side that was refused: journalctl -u kubelet, kubectl logs -n kube-system',
    ),
  ]
}
