import type { Problem, Severity } from './report.ts'

/**
 * Every problem that `kcert inspect` can find: the usual severity (where a case is better or worse, the check that finds it says
 * so), and one sentence for docs/problems.md, which is generated from this table. The codes are a contract.
 */
export const problemCodes = {
  // time
  CERT_EXPIRED: 'critical: The certificate is past its notAfter: whoever checks it refuses it.',
  CERT_NOT_YET_VALID:
    'critical: The certificate is before its notBefore: it was made for later, or a clock is wrong.',
  CERT_EXPIRING: 'warning: Less time is left than the warning threshold.',
  CERT_EXPIRING_VERY_SOON: 'critical: Less time is left than the critical threshold.',
  CERT_OUTLIVES_ISSUER:
    'warning: The certificate is valid for longer than the CA that signed it, and will be refused when the CA expires.',
  ISSUER_EXPIRED:
    'critical: The certificate itself is valid, but the CA that signed it has expired, so it is refused.',
  BUNDLE_MEMBER_EXPIRED:
    'info: A bundle of CAs holds an expired one beside valid ones; a warning when certificates among the inputs still hang on it.',

  // what belongs together
  KEY_MISMATCH:
    'critical: The private key that belongs to the certificate is that of another, or sa.pub is not of sa.key.',
  CA_NOT_IN_BUNDLE:
    'critical: A certificate is signed by none of the CAs in the bundle that is there to check it.',
  KUBECONFIG_CA_NOT_OF_SERVER:
    'critical: The CA in a kubeconfig did not sign the certificate that its API server serves.',
  KUBECONFIG_CA_NOT_OF_CLIENT:
    'warning: The CA in a kubeconfig did not sign the client certificate beside it.',
  BUNDLE_MEMBER_DUPLICATE: 'info: A bundle holds the same certificate more than once.',
  CA_FILE_NOT_SINGLE:
    "warning: kubeadm's ca.crt holds more than one certificate; kube-controller-manager cannot sign with such a file and does not start.",

  // what is in it
  KEY_WEAK: 'warning: The public key is too small or of a kind that Kubernetes does not take.',
  SIGNATURE_WEAK:
    'warning: The certificate is signed with SHA-1 or MD5, which every Kubernetes component refuses.',
  SIGNATURE_UNSUPPORTED:
    'warning: The certificate or request is signed with ML-DSA, which Kubernetes knows since 1.38: components before it refuse it.',
  KEY_USAGE_UNFIT:
    'info: The key usage of a certificate with an ML-DSA key has what RFC 9881 forbids, such as keyEncipherment.',
  CRITICAL_EXTENSION_UNKNOWN:
    'critical: The certificate has a critical extension that Go does not know: a chain with it is refused.',
  SAN_MISSING:
    'warning: A serving certificate without subject alternative names: clients do not look at the common name.',
  ROLE_USAGE_WRONG: 'critical: The usages of the certificate do not allow what its place needs.',
  ROLE_SUBJECT_WRONG:
    'warning: The subject is not the one that this place has in kubeadm, so the rights that go with it are missing.',
  USER_UID_INVALID:
    'critical: The subject of a client certificate has two Kubernetes user UIDs, or an empty one: API servers since 1.33 answer 401.',
  SYSTEM_MASTERS:
    'warning: The certificate is a member of system:masters: all rights, past RBAC, until it expires; information where kubeadm puts it.',

  // files
  KEY_READABLE_BY_OTHERS:
    'warning: Others than the owner may read a file with a private key or a token; information when only its group may.',
  KUBELET_CURRENT_DANGLES: "critical: The kubelet's -current.pem leads to a file that is not there.",
  KUBELET_CURRENT_NOT_A_LINK:
    "critical: The kubelet's -current.pem is a regular file, with which the kubelet does not start; a warning in a copy.",
  KUBEADM_FILE_MISSING:
    'warning: A file that belongs to the recognised kubeadm or kubelet folder is not there; critical where a component does not start without it.',
  PEM_BLOCK_BAD:
    'warning: A PEM block is damaged or is passed over by Kubernetes; the other blocks of the text were read.',
  NOT_PLAIN_PEM:
    'warning: Kubernetes reads PEM there, and this is none for it (DER, PKCS#7, a byte order mark, UTF-16, base64 alone, an encrypted key, nothing at all); critical in a file of kubeadm or the kubelet and in a kubeconfig.',
  CERT_UNREADABLE: 'critical: A certificate is malformed; the message has the field and its offset.',
  REQUEST_UNREADABLE: 'warning: A certificate request is malformed.',
  REQUEST_SIGNATURE_WRONG:
    'warning: A certificate request is not signed by the key in it; the API server refuses such a request.',
  KEY_UNREADABLE: 'warning: A private or public key is malformed or of an unknown kind.',
  KEYSTORE_LOCKED:
    'warning: A PKCS#12 keystore does not open with the password given, or without one; information in a Secret, where its program has the password.',
  KEY_LOCKED: 'warning: An encrypted private key does not open with the password that was given.',
  DOCUMENT_MALFORMED: 'warning: A YAML or JSON document cannot be read.',
  FIELD_MALFORMED: 'warning: A field of a Kubernetes object holds something else than it should.',
  APISERVICE_INSECURE:
    'warning: An APIService sets insecureSkipTLSVerify: the API server does not verify the aggregated API server.',
  SOURCE_UNREADABLE: 'warning: A file that was named, or that belongs to the folder, could not be read.',
  NOTHING_FOUND: 'warning: A file that was named holds no certificate, request, key or kubeconfig.',

  // kubeconfigs
  KUBECONFIG_INSECURE:
    'warning: A kubeconfig says insecure-skip-tls-verify: whoever answers gets the credentials.',
  KUBECONFIG_FIELD_MALFORMED:
    'critical: A field of a kubeconfig is not what client-go takes; a warning where it takes the file all the same.',
  KUBECONFIG_FILE_UNREADABLE:
    'critical: A kubeconfig refers to a file that cannot be read; information in a copy, where files of its own node are not expected.',
  KUBECONFIG_NAME_DANGLES:
    'info: A context names a cluster or a user that is not in the file, or current-context names no context of it.',

  // kcert itself
  KCERT_DEFECT: 'critical: kcert failed on this input for a reason of its own; please report it.',
} as const satisfies Readonly<Record<string, `${Severity}: ${string}`>>

export type ProblemCode = keyof typeof problemCodes

export interface Place {
  readonly source: string
  readonly entry: string
}

/** Returns a problem at a place, in the usual severity unless another is given. */
export function problemAt(
  { source, entry }: Place,
  code: ProblemCode,
  said: { readonly message: string; readonly next: string; readonly severity?: Severity | undefined },
): Problem {
  const { message, next, severity = usualSeverity(code) } = said
  return { source, entry, code, severity, message, next }
}

function usualSeverity(code: ProblemCode): Severity {
  const row = problemCodes[code]
  return row.startsWith('critical') ? 'critical' : row.startsWith('warning') ? 'warning' : 'info'
}

// Kubernetes' names have 253 characters at most; a longer one is somebody's attempt to fill a screen.
const longestName = 300

/** Returns a name that others wrote, cut where it is longer than any honest one. */
export function nameText(name: string): string {
  if (name === '') return '""'
  return name.length <= longestName ? name : `${name.slice(0, longestName)}…`
}
