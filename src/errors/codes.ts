/** Exit codes: the same for every command, so that a runbook can branch on them. */
export const exitCodes = {
  done: 0,
  defect: 1,
  usage: 2,
  no: 3,
  unreachable: 4,
  refused: 5,
  notPermitted: 6,
} as const

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

const worstFirst: readonly ExitCode[] = [
  exitCodes.defect,
  exitCodes.unreachable,
  exitCodes.notPermitted,
  exitCodes.refused,
  exitCodes.no,
  exitCodes.usage,
]

/**
 * Returns the exit code of a run with several outcomes: the reason for an incomplete answer takes precedence over the answer
 * "no".
 */
export function worstExit(codes: readonly ExitCode[]): ExitCode {
  return worstFirst.find((code) => codes.includes(code)) ?? exitCodes.done
}

/** Every kcert error code: its exit code, and one sentence for docs/errors.md. */
const table = {
  // kcert itself
  KCERT_DEFECT: 'defect: A bug in kcert; please report it.',
  KCERT_NODE_TOO_OLD: 'usage: The installed Node.js is too old for kcert.',
  KCERT_USAGE: 'usage: A flag or argument is unknown, missing or malformed.',

  // files
  KCERT_FILE_NOT_FOUND: 'usage: A given file or folder does not exist.',
  KCERT_FILE_UNREADABLE: 'usage: A file exists but cannot be read by this user.',
  KCERT_FILE_TOO_LARGE: 'usage: A file is larger than kcert reads.',
  KCERT_FILE_NOT_WRITTEN: 'unreachable: A file could not be written; the old content is unchanged.',
  KCERT_FILE_UNTRUSTED:
    'refused: Other users can change a file that decides what kcert runs, approves or signs, or a folder above it.',
  KCERT_FILE_EXISTS: 'refused: A file already exists and would be overwritten.',

  // X.509
  KCERT_X509_MALFORMED: 'no: Bytes that should be a certificate, request or key are not well formed.',
  KCERT_KEY_ENCRYPTED: 'usage: A private key or keystore is encrypted and no password was given.',
  KCERT_KEY_UNSUPPORTED: 'no: A key is of a type that kcert cannot use.',
  KCERT_PASSWORD_WRONG: 'no: The password does not open the key or keystore.',

  // requests
  KCERT_MANIFEST_MALFORMED:
    'usage: A file that should contain Kubernetes objects is not YAML or JSON, or contains none of the required kind.',
  KCERT_CSR_SIGNER_REFUSED:
    'no: The API server or the signer would reject the CertificateSigningRequest object.',
  KCERT_CSR_NOT_ISSUED:
    'no: A CertificateSigningRequest has no certificate: it is pending, denied or failed.',
  KCERT_CSR_WAIT_OVER: 'unreachable: A CertificateSigningRequest had no certificate before the timeout.',
  KCERT_CERTIFICATE_UNFIT: 'no: An issued certificate does not match the expected key, names or CA.',
  KCERT_POLICY_INVALID: 'usage: An approval policy or audit policy has an unknown field or an invalid value.',
  KCERT_CFSSL_INVALID:
    "usage: A file is not cfssl's JSON, or requests something that kcert does not support.",
  KCERT_KEY_EXPOSED: 'refused: A private key would be printed without a flag that requests it.',

  // the local CA
  KCERT_REQUEST_REFUSED:
    'no: kube-controller-manager would not sign the request, or the signature of the request is invalid.',
  KCERT_CA_UNFIT:
    'no: A certificate and key cannot act as the CA: not a CA certificate, expired, or not a pair.',
  KCERT_PROFILE_INVALID:
    'usage: A signing profile is missing or malformed, or requests something that kcert does not issue.',
  KCERT_ISSUANCE_LOG_DAMAGED:
    'refused: The issuance log has a line that cannot be read, so a serial number could be issued twice.',
  KCERT_LOCKED: 'unreachable: Another kcert process is using the same files and did not finish in time.',

  // bootstrap
  KCERT_TOKEN_MALFORMED: 'usage: A value is not a bootstrap token.',
  KCERT_CLUSTER_INFO_UNSIGNED:
    'unreachable: cluster-info was changed, but not signed for every token before the timeout.',
  KCERT_CLUSTER_INFO_UNPROVEN:
    'no: cluster-info could not be verified: the token or the discovery token CA cert hash does not match.',
  KCERT_TRUST_LOST: 'refused: A change would remove the trust in a certificate that a server presents now.',
  KCERT_UNCONFIRMED: 'refused: A change needs confirmation: there is no terminal, and --yes was not given.',

  // network
  KCERT_UNREACHABLE: 'unreachable: A server could not be reached, or did not answer in time.',

  // API server
  KCERT_KUBECONFIG_UNUSABLE: 'usage: A kubeconfig or context does not lead to a usable cluster and user.',
  KCERT_KUBECONFIG_REFUSED:
    'refused: A kubeconfig in an object of a management cluster names a program or a file of this machine.',
  KCERT_API_UNTRUSTED: "no: The API server's certificate is not trusted by the CA in the kubeconfig.",
  KCERT_API_CERT_EXPIRED:
    "no: The API server's certificate, or the CA certificate that verifies it, has expired.",
  KCERT_API_UNAUTHORIZED:
    'notPermitted: The API server cannot authenticate you (401): the credential is missing, expired, revoked or issued by another CA.',
  KCERT_API_FORBIDDEN:
    'notPermitted: The API server authenticated you and does not authorize the request (403).',
  KCERT_API_CLIENT_EXPIRED:
    'notPermitted: The API server refuses the client certificate of the kubeconfig (401): it has expired.',
  KCERT_API_NOT_FOUND: 'no: The API server has no such object.',
  KCERT_API_CONFLICT:
    'no: Another client changed the object in the meantime, or an object of that name already exists.',
  KCERT_API_INVALID: 'no: The API server rejects an object as invalid.',

  // in-place edits
  KCERT_EDIT_REFUSED: 'refused: The file cannot be edited without changing more than the requested fields.',

  // nodes
  KCERT_NODE_UNREACHABLE: 'unreachable: A node could not be reached, or did not answer in time.',
  KCERT_NODE_UNTRUSTED: "refused: A node's SSH host key is unknown or has changed, so nothing is sent to it.",
  KCERT_NODE_NAME_REFUSED:
    'refused: The name or address of a node is neither a host name nor an IP address, so kcert uses it in no command.',
  KCERT_NODE_REFUSED: 'no: A node refuses the login, sudo, or a file to this user.',
  KCERT_NODE_UNFIT: 'no: A node has no POSIX shell, or lacks a tool that kcert uses there.',
  KCERT_NODE_FILE_CHANGED:
    'refused: A file on a node has changed since the plan was created, so it is not replaced.',
  KCERT_NODE_FILE_NOT_WRITTEN:
    'unreachable: A file on a node could not be written; the old content is unchanged.',
  KCERT_BACKUP_DAMAGED:
    'refused: The index of the backups on a node cannot be read, so kcert cannot identify the original files.',
  KCERT_NODE_COMMAND_FAILED: 'unreachable: A command on a node failed.',

  // stored certificates
  KCERT_PAIR_UNFIT: 'no: A file does not contain a certificate and its private key, or they do not match.',
  KCERT_PAIR_STORE:
    "refused: A regular file is in the place of the symbolic link in a kubelet's certificate folder, so nothing is replaced.",
  KCERT_TEMPLATE_INVALID: 'usage: A CertificateTemplate has an unknown field or an invalid value.',
  KCERT_HOOK_FAILED: 'no: A command or signal after a renewal failed; the new certificate is installed.',

  // renewal of leaves
  KCERT_RENEWAL_REFUSED:
    'refused: Certificates are not renewed: their CA has expired, or there is no terminal to confirm on and --yes was not given.',

  // kubelet diagnosis
  KCERT_DOCTOR_UNCONFIRMED:
    'refused: Repairing the files of a node needs confirmation: there is no terminal, and --yes was not given.',

  // rotation
  KCERT_ROTATION_REFUSED:
    'refused: The current state of the cluster does not allow this phase of the rotation.',
  KCERT_INVENTORY_INVALID: 'usage: kcert.yaml has an unknown field or an invalid value.',
  KCERT_ROTATION_CHECK_FAILED:
    'no: The completion check of a phase did not pass in time; the message names what is missing.',
  KCERT_ROTATION_DRIFT: 'refused: A file or object has changed since the plan was created.',
  KCERT_ROTATION_UNCONFIRMED:
    'refused: A phase that changes the cluster needs confirmation: there is no terminal, and --yes was not given.',
  KCERT_ROTATION_HOOK: 'no: A hook command of the inventory failed, so the rotation stopped.',
  KCERT_ROTATION_INTERRUPTED:
    'no: The operator stopped the rotation between two actions; completed actions stay, and the same command continues.',
  KCERT_JOURNAL_DAMAGED:
    'refused: The journal of the rotation has a line that is malformed or inconsistent with the line before.',
} as const satisfies Readonly<Record<string, `${keyof typeof exitCodes}: ${string}`>>

export type ErrorCode = keyof typeof table

interface ErrorEntry {
  readonly exit: ExitCode
  readonly summary: string
}

/** The parsed table of errors. docs/errors.md is generated from it. */
export const errorCodes = Object.fromEntries(
  Object.entries(table).map(([code, row]) => [code, entryOf(row)]),
) as Readonly<Record<ErrorCode, ErrorEntry>>

function entryOf(row: string): ErrorEntry {
  const [, exit = exitCodes.defect] =
    Object.entries(exitCodes).find(([name]) => row.startsWith(`${name}: `)) ?? []
  return { exit, summary: row.slice(row.indexOf(': ') + 2) }
}

/** Returns the exit code of an error in a report. */
export function exitCodeOf(code: string): ExitCode {
  return isErrorCode(code) ? errorCodes[code].exit : exitCodes.defect
}

function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(errorCodes, code)
}
