import type { Advice } from '../errors/kcert-error.ts'
import type { Problem, Severity } from './report.ts'

/**
 * Every problem that `kcert inspect` can find: the usual severity, from which a check may deviate, and the text for
 * docs/problems.md, which is generated from this table. The codes are a contract.
 */
export const problemCodes = {
  // time
  CERT_EXPIRED: 'critical: The certificate has expired (notAfter), so it is rejected.',
  CERT_NOT_YET_VALID:
    'critical: The certificate is not valid yet (notBefore): it was issued for later, or a clock is wrong.',
  CERT_EXPIRING: 'warning: Less time is left than the warning threshold.',
  CERT_EXPIRING_VERY_SOON: 'critical: Less time is left than the critical threshold.',
  CERT_OUTLIVES_ISSUER:
    'warning: The certificate is valid for longer than the CA that signed it, and is rejected once the CA expires.',
  ISSUER_EXPIRED:
    'critical: The certificate itself is valid, but the CA that signed it has expired, so it is rejected.',
  BUNDLE_MEMBER_EXPIRED:
    'info: A CA bundle contains an expired CA beside valid ones. It is a warning if it signed certificates in the inputs.',

  // keys, certificates and CAs that belong together
  KEY_MISMATCH: 'critical: The private key does not match the certificate, or sa.pub does not match sa.key.',
  CA_NOT_IN_BUNDLE:
    'critical: The bundle with which the certificate is verified does not contain the CA that signed it.',
  KUBECONFIG_CA_NOT_OF_SERVER:
    'critical: The CA in a kubeconfig did not sign the certificate that its API server serves.',
  KUBECONFIG_CA_NOT_OF_CLIENT: 'warning: The CA in a kubeconfig did not sign its client certificate.',
  BUNDLE_MEMBER_DUPLICATE: 'info: A bundle contains the same certificate more than once.',
  CA_FILE_NOT_SINGLE:
    "warning: kubeadm's ca.crt contains more than one certificate. kube-controller-manager cannot sign with such a file and does not start.",

  // certificate content
  KEY_WEAK: 'warning: The public key is too small, or Kubernetes does not support its type.',
  SIGNATURE_WEAK:
    'warning: The certificate is signed with SHA-1 or MD5, which every Kubernetes component rejects.',
  SIGNATURE_UNSUPPORTED:
    'warning: The certificate or request is signed with ML-DSA. Kubernetes components before 1.38 reject it.',
  KEY_USAGE_UNFIT:
    'info: The certificate has an ML-DSA key and a key usage that RFC 9881 forbids, such as keyEncipherment.',
  CRITICAL_EXTENSION_UNKNOWN:
    'critical: The certificate has a critical extension that Go does not support, so a chain with it is rejected.',
  SAN_MISSING:
    'warning: A serving certificate has no SANs (subject alternative names). Clients ignore the common name.',
  ROLE_USAGE_WRONG: 'critical: The key usages of the certificate do not allow its role.',
  ROLE_SUBJECT_WRONG:
    'warning: The subject is not the one that kubeadm gives this file, so its permissions are missing.',
  USER_UID_INVALID:
    'critical: The subject of a client certificate has two Kubernetes user UIDs or an empty one. API servers since 1.33 reject it (401).',
  SYSTEM_MASTERS:
    'warning: The certificate is in the group system:masters: all permissions, which RBAC cannot revoke, until it expires. It is info where kubeadm creates it.',

  // files
  KEY_READABLE_BY_OTHERS:
    'warning: Users other than the owner can read a file with a private key or a token. It is info if only the group can.',
  KUBELET_CURRENT_DANGLES: "critical: The kubelet's -current.pem is a dangling link.",
  KUBELET_CURRENT_NOT_A_LINK:
    "critical: The kubelet's -current.pem is a regular file, so the kubelet does not start. It is a warning in a copy.",
  KUBEADM_FILE_MISSING:
    'warning: A file of a kubeadm or kubelet folder is missing. It is critical if a component does not start without it.',
  PEM_BLOCK_BAD:
    'warning: A PEM block is damaged, or Kubernetes ignores it. The other blocks of the file were read.',
  NOT_PLAIN_PEM:
    'warning: Kubernetes reads only plain PEM there. This is DER, PKCS#7, base64, UTF-16, an encrypted key or empty, or it has a byte order mark. It is critical in a file of kubeadm or the kubelet and in a kubeconfig.',
  CERT_UNREADABLE: 'critical: A certificate is malformed. The message has the field and its offset.',
  REQUEST_UNREADABLE: 'warning: A certificate request is malformed.',
  REQUEST_SIGNATURE_WRONG:
    'warning: A certificate request is not signed by the key in it. The API server rejects such a request.',
  KEY_UNREADABLE: 'warning: A private or public key is malformed or has an unknown type.',
  KEYSTORE_LOCKED:
    'warning: The given password, or no password, does not open a PKCS#12 keystore. It is info in a Secret, where the program that uses it has the password.',
  KEY_LOCKED: 'warning: The given password does not decrypt a private key.',
  DOCUMENT_MALFORMED: 'warning: A YAML or JSON document cannot be read.',
  FIELD_MALFORMED: 'warning: A field of a Kubernetes object has a wrong value.',
  APISERVICE_INSECURE:
    'warning: An APIService sets insecureSkipTLSVerify: the API server does not verify the aggregated API server.',
  SOURCE_UNREADABLE: 'warning: A target, or a file of a kubeadm or kubelet folder, could not be read.',
  NOTHING_FOUND: 'warning: A target contains no certificate, request, key or kubeconfig.',

  // kubeconfigs
  KUBECONFIG_INSECURE:
    'warning: A kubeconfig sets insecure-skip-tls-verify: any server at that address gets the credentials.',
  KUBECONFIG_FIELD_MALFORMED:
    'critical: client-go rejects a field of a kubeconfig. It is a warning if client-go accepts the file.',
  KUBECONFIG_FILE_UNREADABLE:
    'critical: A kubeconfig refers to a file that cannot be read. It is info in a copy, which need not have the files of its node.',
  KUBECONFIG_NAME_DANGLES:
    'info: A context refers to a cluster or a user that does not exist, or current-context to a context that does not exist.',

  // kcert
  KCERT_DEFECT: 'critical: This is a bug in kcert. Please report it.',
} as const satisfies Readonly<Record<string, `${Severity}: ${string}`>>

export type ProblemCode = keyof typeof problemCodes

export interface Place {
  readonly source: string
  readonly entry: string
}

/** Returns a problem at a place, with the usual severity unless another is given. */
export function problemAt(
  { source, entry }: Place,
  code: ProblemCode,
  said: Advice & { readonly message: string; readonly severity?: Severity | undefined },
): Problem {
  const { message, fix, next = '', severity = usualSeverity(code) } = said
  return { source, entry, code, severity, message, ...(fix !== undefined && { fix }), next }
}

function usualSeverity(code: ProblemCode): Severity {
  const row = problemCodes[code]
  return row.startsWith('critical') ? 'critical' : row.startsWith('warning') ? 'warning' : 'info'
}

// Names in Kubernetes have at most 253 characters. A longer one would only fill the screen.
const longestName = 300

/** Returns a name from the input, cut if it is longer than any name in Kubernetes. */
export function nameText(name: string): string {
  if (name === '') return '""'
  return name.length <= longestName ? name : `${name.slice(0, longestName)}…`
}
