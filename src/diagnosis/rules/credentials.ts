import type { Found } from '../found.ts'
import { certificateFileOf, forecastCommand, kubeconfigOf, nodeFolders } from '../place.ts'
import { type CauseRow, check, type Rule } from '../rule.ts'

// The API server was reached and trusted, and does not know who asks.

const clientEnded: CauseRow = {
  id: 'client-certificate-ended',
  detail:
    'the client certificate in the kubeconfig has ended; the API server says nothing but Unauthorized then',
  checks: (found) => [
    check(`kcert inspect ${kubeconfigOf(found)}`, 'CERT_EXPIRED for the client of a user'),
    check('kcert renew', 'on a control plane: admin.conf and the others that are due'),
  ],
}

const clientOfOtherCa: CauseRow = {
  id: 'client-of-another-ca',
  detail: 'the client certificate is of another cluster, or of the CA before a rotation that has dropped it',
  checks: (found) => [
    check(`kcert verify ${kubeconfigOf(found)}`, 'NOT TRUSTED by the CA in the same kubeconfig'),
    check('kcert probe --api-servers', 'CLIENT_REFUSED, with the CAs that API servers ask for'),
  ],
}

const tokenEnded: CauseRow = {
  id: 'token-ended',
  detail:
    'a token has ended or is of another cluster: of a service account (an hour, unless asked otherwise), of an identity provider, of kubeadm join (24 h)',
  checks: (found) => [
    check(
      `kcert inspect ${kubeconfigOf(found)}`,
      'a user with a token, an exec plugin or nothing, and no client certificate',
    ),
    check('kcert token list', 'for kubeadm join: a bootstrap token that has ended'),
  ],
}

const kubeletEnded: CauseRow = {
  id: 'kubelet-client-ended',
  evidence: ({ node, files }) =>
    node !== undefined || files.some((path) => path.includes('kubelet'))
      ? 'a kubelet or its Node is named'
      : undefined,
  detail:
    "a kubelet's client certificate has ended, or was signed by a CA that was dropped; its node is NotReady",
  checks: (found) => [
    check(
      'kcert kubelet doctor',
      'on that node: what is wrong with its certificates; --fix mends what lies there',
    ),
    check(forecastCommand(found), 'from elsewhere: when it should have been renewed'),
  ],
}

const serverSide: CauseRow = {
  id: 'api-server-knows-another-ca',
  detail:
    'the API server was started with another client CA or other service account keys (--client-ca-file, --service-account-key-file)',
  checks: () => [
    check(
      `kcert inspect ${nodeFolders} -o tree`,
      'on a control plane: client certificates that hang below another CA than ca.crt',
    ),
  ],
}

export const credentialRules: readonly Rule[] = [
  {
    id: 'front-proxy-not-allowed',
    words: ['is not in the allowed list'],
    means:
      'an aggregated API server got a request from somebody who is not the front proxy: the common name is not among --requestheader-allowed-names',
    causes: [
      {
        id: 'front-proxy-client-wrong',
        detail:
          'the certificate front-proxy-client has another common name, or a client certificate of the cluster was signed by the front-proxy CA',
        checks: () => [
          check('kcert inspect /etc/kubernetes/pki', 'ROLE_SUBJECT_WRONG for front-proxy-client'),
          check('kcert rotate-ca plan', 'what the cluster holds as request header CA and allowed names'),
        ],
      },
    ],
  },
  {
    id: 'token-refused',
    words: ['invalid bearer token'],
    means: 'in the log of an API server: somebody showed a token that does not count',
    causes: [
      tokenEnded,
      {
        id: 'service-account-keys-differ',
        detail:
          'a token of a service account that another key signed: sa.key was made anew, or control planes have different ones ("error in cryptographic primitive")',
        checks: () => [
          check(
            'kcert inspect /etc/kubernetes/pki',
            'on each control plane: KEY_MISMATCH for sa.key; with -o json another publicKey.sha256 of it than on the others',
          ),
        ],
      },
    ],
  },
  {
    id: 'kubelet-forbids',
    words: ['Forbidden (user=kube-apiserver-kubelet-client'],
    means:
      'the kubelet knows the client certificate of the API server, and its user has no rights there (403)',
    causes: [
      {
        id: 'kubelet-client-without-rights',
        detail:
          'apiserver-kubelet-client.crt was made by hand, without the group that has the rights, or the ClusterRoleBinding of its user or group is gone',
        checks: () => [
          check(
            'kcert inspect /etc/kubernetes/pki/apiserver-kubelet-client.crt',
            'on a control plane: ROLE_SUBJECT_WRONG, or its user and groups',
          ),
        ],
      },
    ],
  },
  {
    id: 'insecure-with-ca',
    words: ['specifying a root certificates file with the insecure flag is not allowed'],
    means: 'the cluster of a context has a CA and insecure-skip-tls-verify, and clients refuse both together',
    causes: [
      {
        id: 'both-are-set',
        detail: 'one of them was added by hand, or --insecure-skip-tls-verify was given beside a CA',
        checks: (found) => [check(`kcert inspect ${kubeconfigOf(found)}`, 'KUBECONFIG_INSECURE')],
      },
    ],
  },
  {
    id: 'unauthorized',
    words: [
      'You must be logged in to the server',
      '(Unauthorized)',
      'error: Unauthorized',
      'Error from server (Unauthorized)',
      '401 Unauthorized',
      '"reason":"Unauthorized"',
      ': Unauthorized',
      '="Unauthorized"',
      'the server has asked for the client to provide credentials',
    ],
    means: 'the API server was reached and trusted, and does not know who asks (HTTP status 401)',
    causes: [clientEnded, clientOfOtherCa, tokenEnded, kubeletEnded, serverSide],
  },
  {
    id: 'request-not-authenticated',
    isGeneric: true,
    words: ['Unable to authenticate the request'],
    means:
      'in the log of a server: somebody showed a credential that does not count; the text does not say why',
    causes: [clientEnded, clientOfOtherCa, tokenEnded, kubeletEnded, serverSide],
  },
  {
    id: 'anonymous',
    words: ['User "system:anonymous" cannot', 'User \\"system:anonymous\\" cannot', 'system:anonymous'],
    means: 'the API server took the request for one of nobody: no credential reached it (HTTP status 403)',
    causes: [
      {
        id: 'no-credential',
        detail:
          'the kubeconfig has no certificate or token for the user of its context, or a proxy in between has ended TLS and with it the client certificate',
        checks: (found) => [
          check(`kcert inspect ${kubeconfigOf(found)}`, 'no client certificate for the user of the context'),
          check(
            'kcert probe --api-servers',
            'whether API servers ask for a client certificate at this address',
          ),
        ],
      },
    ],
  },
  {
    id: 'key-mismatch',
    words: [
      'tls: private key does not match public key',
      'private key type does not match public key type',
      'key values mismatch',
      'ERR_OSSL_X509_KEY_VALUES_MISMATCH',
      'SSL_CTX_use_PrivateKey failed',
      'private key does not match certificate',
    ],
    means: 'a certificate and a private key were given as a pair, and are none',
    causes: [
      {
        id: 'one-file-of-two-replaced',
        detail:
          'one of the two files was replaced and the other was not: a renewal that was copied by half, kube-controller-manager with a new --cluster-signing-cert-file and the old key',
        checks: (found) => [
          check(
            `kcert inspect ${certificateFolder(found)}`,
            'KEY_MISMATCH, with the certificate and the key that it was held against',
          ),
          check('kcert kubelet doctor', "on a node: a kubelet's own pair that does not belong together"),
        ],
      },
    ],
  },
]

function certificateFolder(found: Found): string {
  const file = certificateFileOf(found)
  return file === undefined ? nodeFolders : file.replace(/\/[^/]*$/, '') || '/'
}
