import { commandLine } from '../../errors/command-line.ts'
import { inspectCommand, kubeconfigOf, probeCommand, serverName, verifyCommand } from '../place.ts'
import { type CauseRow, check, type Rule } from '../rule.ts'

// A chain that is complete and in its time, and is refused all the same: for what its certificates say or how they are signed.

const seeChain: CauseRow['checks'] = (found) => [
  check(verifyCommand(found), 'the certificate at fault, in the words of Go and of OpenSSL'),
]

export const signatureRules: readonly Rule[] = [
  {
    id: 'usage-wrong',
    words: [
      'certificate specifies an incompatible key usage',
      'unsuitable certificate purpose',
      'unsupported certificate purpose',
      'INVALID_PURPOSE',
      'invalid peer certificate: InvalidPurpose',
      'candidate chains with incompatible key usage',
    ],
    means:
      'the certificate is not for this use: a server showed one for clients, or a client one for servers',
    causes: [
      {
        id: 'made-for-the-other-side',
        detail:
          'its extended key usages lack serverAuth (for a server) or clientAuth (for a client); etcd members need both',
        checks: (found) => [
          check(inspectCommand(found), 'ROLE_USAGE_WRONG, or its extended key usages'),
          check(
            'kcert verify CLIENT.crt --roots CA.crt --purpose client',
            'for a client certificate: NOT TRUSTED because of its usages',
          ),
        ],
      },
      {
        id: 'ca-restricts-usages',
        detail: 'a CA between root and leaf is restricted to other usages',
        checks: seeChain,
      },
    ],
  },
  {
    id: 'signature-wrong',
    words: [
      'x509: ECDSA verification failure',
      'x509: Ed25519 verification failure',
      'crypto/rsa: verification error',
      'certificate signature failure',
      'CERT_SIGNATURE_FAILURE',
      'invalid peer certificate: BadSignature',
      'SEC_ERROR_BAD_SIGNATURE',
      'signature check failed',
      'issuer name does not match subject from issuing certificate',
      'subject issuer mismatch',
    ],
    means: 'a certificate was held against a CA that did not sign it: another key, or another name',
    causes: [
      {
        id: 'same-name-other-key',
        detail:
          'the CA was made anew under its old name ("kubernetes"), and certificates or trust of both are mixed',
        checks: (found) => [
          check('kcert inspect /etc/kubernetes/pki -o tree', 'leaves that do not hang below ca.crt'),
          ...seeChain(found),
        ],
      },
    ],
  },
  {
    id: 'signature-weak',
    words: [
      'insecure algorithm',
      'ca md too weak',
      'CA_MD_TOO_WEAK',
      'ee key too small',
      'EE_KEY_TOO_SMALL',
      'SHA1-RSA',
      'keys are insecure',
      'ERR_CERT_WEAK_SIGNATURE_ALGORITHM',
      'ERR_CERT_WEAK_KEY',
      'SEC_ERROR_CERT_SIGNATURE_ALGORITHM_DISABLED',
      'certificate key too weak',
      'signature digest algorithm too weak',
      'Algorithm constraints check failed',
    ],
    means: 'a certificate is signed with SHA-1 or MD5, or its key is too small for the program of today',
    causes: [
      {
        id: 'made-long-ago',
        detail:
          'it was made long ago, or with old settings: it must be issued again, with SHA-256 and RSA 2048 or ECDSA P-256',
        checks: (found) => [
          check(inspectCommand(found), 'SIGNATURE_WEAK or KEY_WEAK'),
          check('kcert inspect --cluster --only problem', 'where else in the cluster'),
        ],
      },
    ],
  },
  {
    id: 'issuer-not-a-ca',
    words: [
      'certificate is not authorized to sign other certificates',
      'parent certificate cannot sign this kind of certificate',
      'invalid CA certificate',
      'INVALID_CA',
      'too many intermediates for path length constraint',
      'path length constraint exceeded',
      'PATH_LENGTH_EXCEEDED',
      'unhandled critical extension',
      'is not authorized to sign for this name',
      'permitted subtree violation',
      'excluded subtree violation',
      'issuer has name constraints but leaf',
      'signing certificate is not a CA',
    ],
    means: (found) =>
      `in the chain of ${serverName(found)} a certificate may not do what it does: it is no CA, or a CA that is restricted (path length, names, critical extensions)`,
    causes: [
      {
        id: 'chain-not-allowed',
        detail: 'a certificate was signed with another leaf, or below a CA that does not allow it',
        checks: seeChain,
      },
      {
        id: 'wrong-file-as-ca',
        detail: 'a leaf was given where a CA belongs',
        checks: (found) => [
          check(
            commandLine`kcert inspect ${kubeconfigOf(found)}`,
            'a certificate of the cluster that is no CA',
          ),
        ],
      },
    ],
  },
  {
    id: 'ca-as-server-certificate',
    words: ['CaUsedAsEndEntity', 'SEC_ERROR_CA_CERT_USED_AS_END_ENTITY'],
    means: (found) =>
      `the certificate that ${serverName(found)} shows as its own is a CA; rustls and Firefox refuse that, Go and OpenSSL do not`,
    causes: [
      {
        id: 'ca-serves-itself',
        detail:
          'it was made by openssl req -x509, which makes a CA unless told otherwise; a leaf below that CA is needed, or -addext basicConstraints=CA:FALSE',
        checks: (found) => [check(inspectCommand(found), 'a server certificate that is a CA')],
      },
    ],
  },
  {
    id: 'revoked',
    words: [
      'certificate revoked',
      'certificate has been revoked',
      'tls: revoked certificate',
      'received fatal alert: certificate revoked',
      'CERT_REVOKED',
      'SEC_ERROR_REVOKED_CERTIFICATE',
      'invalid peer certificate: Revoked',
    ],
    means: 'the CA has called a certificate back, and this program looks',
    causes: [
      {
        id: 'called-back',
        detail:
          'the certificate stands in a list (CRL) or an answer (OCSP) of its CA: it must be issued anew. Components of Kubernetes never look, and go on to accept it',
        checks: (found) => [check(inspectCommand(found), 'the serial number and issuer to ask about')],
      },
    ],
  },
  {
    id: 'revocation-unknown',
    words: [
      'unable to get certificate CRL',
      'CRL has expired',
      'CRL is expired',
      'CRL is not yet valid',
      'No OCSP response received',
      'OCSP response has expired',
      'failed to get OCSP response',
      'ocsp: error from server',
      'ocsp: error from server: unauthorized',
      'CRYPT_E_NO_REVOCATION_CHECK',
      'CRYPT_E_REVOCATION_OFFLINE',
      'The revocation function was unable to check revocation',
      'RevocationStatusUnknown',
      'unknown revocation status',
      'UnknownRevocationStatus',
    ],
    means: 'a program wants to know whether a certificate was called back (CRL, OCSP), and did not find out',
    causes: [
      {
        id: 'list-missing-or-old',
        detail:
          'the list of the CA is missing, old or out of reach. CAs of Kubernetes have none and its components never look: that program asks for it by itself (openssl -crl_check, ssl_crl of nginx, Windows, curl --cert-status)',
        checks: (found) => [
          check(verifyCommand(found), 'TRUSTED: then nothing else is wrong with the certificate'),
        ],
      },
    ],
  },
  {
    id: 'not-signed-by-ca-file',
    words: ['not signed by CA certificate'],
    means: 'kubeadm found a certificate on disk that the CA beside it did not sign',
    causes: [
      {
        id: 'leaves-of-another-ca',
        detail:
          'ca.crt was replaced, or restored from another cluster, and the certificates below it were not made anew',
        checks: () => [
          check('kcert inspect /etc/kubernetes -o tree', 'leaves that do not hang below ca.crt'),
          check('kcert renew', 'on the control plane: what would be issued anew; --all does it'),
        ],
      },
    ],
  },
  {
    id: 'strict-rules',
    words: [
      'Missing Authority Key Identifier',
      'Missing Subject Key Identifier',
      'CA cert does not include key usage extension',
      'Basic Constraints of CA cert not marked critical',
      'UnsupportedCertVersion',
    ],
    means:
      'Python 3.13 and newer, OpenSSL with -x509_strict, and rustls ask for extensions (or X.509 version 3) that Go and other programs do without, and a certificate lacks them',
    causes: [
      {
        id: 'made-without-extensions',
        detail:
          'the CA or the leaf was made by openssl or a script without key identifiers, key usage or critical basic constraints; Kubernetes accepts it, and such clients do not',
        checks: seeChain,
      },
    ],
  },
  {
    id: 'refused-by-platform',
    words: ['ERR_CERT_VALIDITY_TOO_LONG', 'certificate is not standards compliant'],
    means:
      'macOS and Chrome ask more of the certificate of a server than Kubernetes does: few days (macOS: 825 at most), alternative names, serverAuth',
    causes: [
      {
        id: 'valid-for-too-long',
        detail: 'a certificate of several years, as scripts make them (kubeadm: certificateValidityPeriod)',
        checks: (found) => [check(inspectCommand(found), 'its times, names and usages')],
      },
    ],
  },
  {
    id: 'serial-reused',
    words: ['SEC_ERROR_REUSED_ISSUER_AND_SERIAL'],
    means: 'Firefox has seen another certificate with the same issuer and serial number, and refuses both',
    causes: [
      {
        id: 'ca-without-ledger',
        detail:
          'a script gives every certificate the same serial number (openssl x509 -set_serial 01), or a CA was made anew under its old name and counts from the beginning',
        checks: (found) => [check(inspectCommand(found), 'issuer and serial number of what is served')],
      },
    ],
  },
  {
    id: 'no-valid-chains',
    isGeneric: true,
    words: ['x509: no valid chains built'],
    means: 'every chain that leads to a trusted root breaks a rule',
    causes: [
      {
        id: 'chain-not-allowed',
        detail: 'usages or policies of a CA do not allow it',
        checks: (found) => [...seeChain(found), check(probeCommand(found), 'whether others are concerned')],
      },
    ],
  },
]
