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

/** Returns the exit code of a run with several outcomes: what kept an answer from being whole comes before the answer "no". */
export function worstExit(codes: readonly ExitCode[]): ExitCode {
  return worstFirst.find((code) => codes.includes(code)) ?? exitCodes.done
}

/** Every error that kcert names: its exit code, and one sentence for docs/errors.md in the operator's words. */
const table = {
  // the program itself
  KCERT_DEFECT: 'defect: Something in kcert is wrong; the message says where to report it.',
  KCERT_NODE_TOO_OLD: 'usage: The Node that starts kcert is older than it needs.',
  KCERT_USAGE: 'usage: A flag or argument is unknown, missing or malformed.',

  // files
  KCERT_FILE_NOT_FOUND: 'usage: A file or folder that was named does not exist.',
  KCERT_FILE_UNREADABLE: 'usage: A file exists but cannot be read by this user.',
  KCERT_FILE_TOO_LARGE: 'usage: A file is larger than kcert reads.',
  KCERT_FILE_NOT_WRITTEN: 'unreachable: A file could not be written; the old content stands.',
  KCERT_FILE_UNTRUSTED:
    'refused: A file that decides what kcert runs, approves or signs, or a folder above it, can be changed by other users.',
  KCERT_FILE_EXISTS: 'refused: A file exists already and would be overwritten.',

  // X.509
  KCERT_X509_MALFORMED: 'no: Bytes that should be a certificate, request or key are not well formed.',
  KCERT_KEY_ENCRYPTED: 'usage: A private key or keystore is encrypted and no password was given.',
  KCERT_KEY_UNSUPPORTED: 'no: A key is of a type that kcert cannot use.',
  KCERT_PASSWORD_WRONG: 'no: The password does not open the key or keystore.',

  // requests
  KCERT_MANIFEST_MALFORMED:
    'usage: A file that should hold Kubernetes objects is not YAML or JSON, or holds none of the kind needed.',
  KCERT_CSR_SIGNER_REFUSED:
    'no: The API server or the signer would refuse the object that is to be made of a request.',
  KCERT_CSR_NOT_ISSUED:
    'no: A request of the cluster has no certificate: it waits, was denied, or has failed.',
  KCERT_CSR_WAIT_OVER:
    'unreachable: A request of the cluster had no certificate yet when the time to wait for it was over.',
  KCERT_CERTIFICATE_UNFIT:
    'no: An issued certificate is not for the key, the names or the CA that it should be for.',
  KCERT_POLICY_INVALID:
    'usage: An approval policy has a field that kcert does not know, or a value that cannot stand there.',
  KCERT_CFSSL_INVALID:
    "usage: A file that should be cfssl's JSON is not, or asks for something that kcert does not make.",
  KCERT_KEY_EXPOSED: 'refused: A private key would be printed where nobody asked for it by name.',

  // the local CA
  KCERT_REQUEST_REFUSED:
    'no: A request is not one that kube-controller-manager would sign, or its signature does not count.',
  KCERT_CA_UNFIT: 'no: A certificate and key cannot act as the CA: no CA, expired, or not a pair.',
  KCERT_PROFILE_INVALID:
    'usage: A signing profile is not there, is malformed, or asks for what kcert does not issue.',
  KCERT_LEDGER_DAMAGED:
    'refused: The ledger of issued serial numbers has a line that cannot be read, so one may be given twice.',
  KCERT_LOCKED: 'unreachable: Another kcert works on the same files and has not finished in time.',

  // bootstrap
  KCERT_TOKEN_MALFORMED: 'usage: A text that should be a bootstrap token is none.',
  KCERT_CLUSTER_INFO_UNSIGNED:
    'unreachable: cluster-info is changed, and in the time to wait it was not signed for every token.',
  KCERT_CLUSTER_INFO_UNPROVEN:
    'no: Nothing proves that cluster-info is of the cluster that is meant: the token or the pin does not fit.',
  KCERT_TRUST_LOST: 'refused: A change would take away the trust in a certificate that is served right now.',
  KCERT_UNCONFIRMED:
    'refused: Something would be changed, and nobody can be asked: there is no terminal, and --yes was not given.',

  // the network
  KCERT_UNREACHABLE: 'unreachable: A server could not be reached, or did not answer in time.',

  // the API server
  KCERT_KUBECONFIG_UNUSABLE:
    'usage: A kubeconfig, or the context asked for, says nothing with which a cluster can be reached.',
  KCERT_API_UNTRUSTED: "no: The API server's certificate is not trusted by the CA in the kubeconfig.",
  KCERT_API_CERT_EXPIRED:
    "no: The API server's certificate, or the CA certificate that it is verified by, has expired.",
  KCERT_API_UNAUTHORIZED:
    'notPermitted: The API server cannot authenticate you (401): the credential is missing, expired, revoked or of another CA.',
  KCERT_API_FORBIDDEN:
    'notPermitted: The API server authenticated you and does not authorize the request (403).',
  KCERT_API_CLIENT_EXPIRED:
    'notPermitted: The API server refuses the client certificate of the kubeconfig (401): it has expired.',
  KCERT_API_NOT_FOUND: 'no: The API server has no such object.',
  KCERT_API_CONFLICT:
    'no: An object was changed by somebody else meanwhile, or one of its name exists already.',
  KCERT_API_INVALID: 'no: The API server refuses an object for what stands in it.',

  // editing in place
  KCERT_EDIT_REFUSED:
    'refused: A file is written in a way that kcert cannot edit without touching more than it should.',

  // nodes
  KCERT_NODE_UNREACHABLE: 'unreachable: A node could not be reached, or did not answer in time.',
  KCERT_NODE_UNTRUSTED: "refused: A node's SSH host key is unknown or has changed, so nothing is sent to it.",
  KCERT_NODE_NAME_REFUSED:
    'refused: The name or address of a node is neither a host name nor an IP address, so it is put into no command.',
  KCERT_NODE_REFUSED: 'no: A node refuses the login, sudo, or a file to this user.',
  KCERT_NODE_UNFIT: 'no: A node has no POSIX shell, or lacks a tool that kcert uses there.',
  KCERT_NODE_FILE_CHANGED:
    'refused: A file on a node is not what it was when the change was planned, so it is not replaced.',
  KCERT_NODE_FILE_NOT_WRITTEN: 'unreachable: A file on a node could not be written; the old content stands.',
  KCERT_BACKUP_DAMAGED:
    'refused: The index of the copies on a node cannot be read, so nobody can tell what the files were.',
  KCERT_NODE_COMMAND_FAILED: 'unreachable: A command on a node ended with an error.',

  // certificates that are kept
  KCERT_PAIR_UNFIT:
    'no: A file that should hold a certificate and its private key does not, or they do not match.',
  KCERT_PAIR_STORE:
    "refused: A file stands where a kubelet's folder of certificates has a symbolic link, so none is replaced.",
  KCERT_TEMPLATE_INVALID:
    'usage: A file that says what certificate to keep has a field or a value that cannot stand there.',
  KCERT_HOOK_FAILED:
    'no: A command or signal after a renewal failed; the new certificate is in its place all the same.',

  // renewal of leaves
  KCERT_RENEWAL_REFUSED:
    'refused: Certificates are not renewed: their CA has expired, or nobody can be asked and --yes was not given.',

  // the kubelet's doctor
  KCERT_DOCTOR_UNCONFIRMED:
    'refused: Files of a node would be mended, and nobody can be asked: there is no terminal, and --yes was not given.',

  // the rotation
  KCERT_ROTATION_REFUSED:
    'refused: The cluster, or what stands in it now, does not allow this phase of the rotation.',
  KCERT_INVENTORY_INVALID:
    'usage: kcert.yaml has a field that kcert does not know, or a value that cannot stand there.',
  KCERT_ROTATION_GATE: 'no: What a phase waits for did not come to be in time; what is missing is named.',
  KCERT_ROTATION_DRIFT:
    'refused: A file or object is not what it was when the plan was made: somebody else changed it.',
  KCERT_ROTATION_UNCONFIRMED:
    'refused: A phase would change the cluster, and nobody can be asked: there is no terminal, and --yes was not given.',
  KCERT_ROTATION_HOOK: "no: A command of the inventory's hooks failed, so the rotation stopped there.",
  KCERT_ROTATION_INTERRUPTED:
    'no: The operator stopped the rotation between two acts; what was done stays, and the same command goes on.',
  KCERT_JOURNAL_DAMAGED:
    'refused: The journal of the rotation has a line that is malformed, or does not follow from the one before.',
} as const satisfies Readonly<Record<string, `${keyof typeof exitCodes}: ${string}`>>

export type ErrorCode = keyof typeof table

interface ErrorEntry {
  readonly exit: ExitCode
  readonly summary: string
}

/** The table of errors, read. docs/errors.md is generated from it. */
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
