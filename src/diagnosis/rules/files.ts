import type { Found } from '../found.ts'
import { certificateFileOf, kubeconfigOf, nodeFolders } from '../place.ts'
import { check, type Rule } from '../rule.ts'

// Files that hold something else than the program that reads them wants.

function fileOf(found: Found): string {
  return found.files[0] === undefined
    ? nodeFolders
    : (certificateFileOf(found) ?? found.files.map(String)[0]!)
}

export const fileRules: readonly Rule[] = [
  {
    id: 'signing-file-not-single',
    words: ['expected 1 certificate, found', 'csr-controller::'],
    means:
      'kube-controller-manager signs with one certificate, and --cluster-signing-cert-file holds several: it does not start',
    causes: [
      {
        id: 'bundle-as-signing-file',
        detail:
          'a bundle of old and new CA was put where the signing certificate stands: during a rotation root-ca-file takes a bundle, the signing file never',
        checks: () => [
          check('kcert inspect /etc/kubernetes/pki/ca.crt', 'CA_FILE_NOT_SINGLE'),
          check('kcert rotate-ca status', 'in which phase the rotation stands, and what is open'),
        ],
      },
    ],
  },
  {
    id: 'not-pem',
    words: [
      'failed to find any PEM data in certificate input',
      'failed to find any PEM data in key input',
      'failed to find certificate PEM data in certificate input',
      'PEM block in certificate input after skipping PEM blocks',
      'in key input after skipping PEM blocks',
      'found a certificate rather than a key in the PEM for the private key',
      'data does not contain any valid RSA or ECDSA certificates',
      'data does not contain a valid RSA or ECDSA private key',
      'PEM routines:get_name:no start line',
      'no start line',
      'ERR_OSSL_PEM_NO_START_LINE',
      'unable to load certificates from PEM file',
      'unable to parse bytes as PEM block',
      'illegal base64 data at input byte',
      '[SSL] PEM lib',
    ],
    means: 'a file that should hold a certificate or key in PEM holds something else',
    causes: [
      {
        id: 'wrong-content',
        detail:
          'the file is empty, is DER or PKCS#12, has the key where the certificate should be, or is base64 twice over (a Secret whose data was encoded by hand)',
        checks: (found) => [
          check(
            `kcert inspect ${fileOf(found)}`,
            'what is in it: NOTHING_FOUND, NOT_PLAIN_PEM or PEM_BLOCK_BAD',
          ),
        ],
      },
      {
        id: 'key-encrypted',
        detail: 'the private key is encrypted; Kubernetes reads none that are',
        checks: (found) => [check(`kcert inspect ${fileOf(found)}`, 'an encrypted key')],
      },
    ],
  },
  {
    id: 'file-not-read',
    isGeneric: true,
    words: [
      'unable to read client-cert',
      'unable to read client-key',
      'unable to read certificate-authority',
      'unable to load root certificates',
      'error setting certificate verify locations',
      'error setting certificate file',
      'unable to set private key file',
      'could not load PEM client certificate',
      'Could not find a suitable TLS CA certificate bundle',
    ],
    means: (found) =>
      `${found.files[0] ?? 'a file of certificates or a key'} is not there, may not be read by this user, or holds something else`,
    causes: [
      {
        id: 'missing-or-closed',
        detail:
          'the path is wrong or relative to another folder, the file belongs to root, or it is a link that leads nowhere (kubelet-client-current.pem of a kubelet that never got a certificate)',
        checks: (found) => [
          check(`kcert inspect ${fileOf(found)}`, 'does not exist, permission denied, or what is in it'),
          check(`kcert inspect ${kubeconfigOf(found)}`, 'KUBECONFIG_FILE_UNREADABLE, with the path'),
        ],
      },
    ],
  },
  {
    id: 'malformed',
    words: [
      'x509: malformed',
      'x509: invalid',
      'x509: negative serial number',
      'x509: trailing data',
      'x509: unsupported elliptic curve',
      'x509: unsupported public key',
      'x509: failed to parse',
      'tls: failed to parse certificate',
      'tls: failed to parse private key',
      'asn1: structure error',
      'asn1: syntax error',
    ],
    means: 'a certificate or key is damaged, or is written in a way that Go does not read',
    causes: [
      {
        id: 'damaged-or-unusual',
        detail: 'it was cut off, changed by an editor, or made by a program that does not keep to DER',
        checks: (found) => [
          check(
            `kcert inspect ${fileOf(found)}`,
            'CERT_UNREADABLE with the field and its offset; the other certificates of the file are read',
          ),
        ],
      },
    ],
  },
]
