import { commandLine } from '../../errors/command-line.ts'
import type { Found } from '../found.ts'
import {
  certificateFileOf,
  forecastCommand,
  inspectCommand,
  isAt,
  kubeconfigOf,
  nodeFolders,
  probeCommand,
  serverName,
  shellPath,
} from '../place.ts'
import { type CauseRow, check, type Rule } from '../rule.ts'
import { tokenEnded } from './tokens.ts'

// The API server was reached and trusted, and does not know who asks.

const clientEnded: CauseRow = {
  id: 'client-certificate-ended',
  detail:
    'the client certificate in the kubeconfig has ended; the API server says nothing but Unauthorized then',
  checks: (found) => [
    check(commandLine`kcert inspect ${kubeconfigOf(found)}`, 'CERT_EXPIRED for the client of a user'),
    check('kcert renew', 'on a control plane: admin.conf and the others that are due'),
  ],
}

const clientOfOtherCa: CauseRow = {
  id: 'client-of-another-ca',
  detail: 'the client certificate is of another cluster, or of the CA before a rotation that has dropped it',
  checks: (found) => [
    check(commandLine`kcert verify ${kubeconfigOf(found)}`, 'NOT TRUSTED by the CA in the same kubeconfig'),
    check('kcert probe --api-servers', 'CLIENT_REFUSED, with the CAs that API servers ask for'),
  ],
}

const kubeletEnded: CauseRow = {
  id: 'kubelet-client-ended',
  evidence: ({ node, files, by }) =>
    by === 'kubelet' || node !== undefined || files.some((path) => path.includes('kubelet'))
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
      commandLine`kcert inspect ${nodeFolders} -o tree`,
      'on a control plane: client certificates that hang below another CA than ca.crt',
    ),
  ],
}

const unauthorizedWords = [
  'You must be logged in to the server',
  '(Unauthorized)',
  'error: Unauthorized',
  'Error from server (Unauthorized)',
  '401 Unauthorized',
  '"reason":"Unauthorized"',
  ': Unauthorized',
  '="Unauthorized"',
  'the server has asked for the client to provide credentials',
]

const refusedElsewhere: Omit<Rule, 'words'> = {
  id: 'refused-elsewhere',
  means: (found) => `${serverName(found)} was reached by TLS, and does not know who asks (HTTP status 401)`,
  causes: [
    {
      id: 'password-or-token-there',
      detail:
        'it is no API server: a registry wants the password of an imagePullSecret, a repository, an identity provider or Argo CD its own login, istiod the token of the pod. No certificate of the cluster has a part in it',
      checks: (found) => [
        check(inspectCommand(found), 'TLS is in order there: then it is the password or token'),
      ],
    },
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
    id: 'kubelet-knows-nobody',
    words: [
      'unable to upgrade connection: Unauthorized',
      'Forbidden (user=system:anonymous',
      'the server has asked for the client to provide credentials ( pods/log',
      'You must be logged in to the server (the server has asked for the client to provide credentials ( pods/log',
    ],
    means:
      'a kubelet was reached through the API server, and does not know the client certificate that the API server showed it',
    causes: [
      {
        id: 'api-server-is-not-known',
        detail:
          'apiserver-kubelet-client.crt has ended, is of another CA than the clientCAFile of that kubelet, or the API server was started without --kubelet-client-certificate; your own kubeconfig has no part in it',
        checks: (found) => [
          check(
            'kcert inspect /etc/kubernetes/pki/apiserver-kubelet-client.crt',
            'on the control plane: a certificate that has ended',
          ),
          check(
            'kcert verify /etc/kubernetes/pki/apiserver-kubelet-client.crt --roots CA.crt --purpose client',
            "with the kubelet's clientCAFile (/etc/kubernetes/pki/ca.crt of its node) as CA.crt: NOT TRUSTED",
          ),
          check(
            found.endpoints.length === 0 ? 'kcert probe --nodes' : probeCommand(found),
            'CLIENT_REFUSED with -i kcert.yaml, which shows kubelets what API servers show',
          ),
        ],
      },
    ],
  },
  {
    id: 'kubelet-forbids',
    words: ['Forbidden (user=kube-apiserver-kubelet-client', 'request failed, status: "403 Forbidden"'],
    means: 'the kubelet knows who calls it, and that user has no rights there (403)',
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
      {
        id: 'caller-without-nodes-metrics',
        evidence: ({ node }) =>
          node === undefined ? undefined : `somebody who collects metrics called the kubelet of ${node}`,
        detail:
          'the ServiceAccount of metrics-server or Prometheus lacks nodes/metrics (ClusterRole system:metrics-server), or the kubelet does not ask the API server (authorization.mode: Webhook)',
        checks: (found) => [
          check(probeCommand(found), 'TLS is in order there: then it is RBAC and no certificate'),
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
        checks: (found) => [check(commandLine`kcert inspect ${kubeconfigOf(found)}`, 'KUBECONFIG_INSECURE')],
      },
    ],
  },
  { ...refusedElsewhere, words: unauthorizedWords, holds: isAt('outside', 'mesh') },
  { ...refusedElsewhere, isGeneric: true, words: ['code = Unauthenticated'] },
  {
    id: 'kubelet-refuses-caller',
    words: unauthorizedWords,
    holds: isAt('kubelet'),
    means: 'a kubelet does not know who calls it (HTTP status 401)',
    causes: [
      {
        id: 'kubelet-asks-nobody',
        detail:
          'metrics-server and Prometheus show a token of their ServiceAccount, and this kubelet does not have it checked (authentication.webhook.enabled), or it has ended; with a client certificate: it is not of the clientCAFile of that kubelet',
        checks: (found) => [
          check('kcert kubelet doctor', "on that node: what is wrong with the kubelet's own certificates"),
          check(probeCommand(found), 'the CAs that it asks client certificates of'),
        ],
      },
    ],
  },
  {
    id: 'unauthorized',
    words: unauthorizedWords,
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
    words: ['is forbidden: User "system:anonymous"', 'User "system:anonymous" cannot', 'system:anonymous'],
    means: 'the API server took the request for one of nobody: no credential reached it (HTTP status 403)',
    causes: [
      {
        id: 'no-credential',
        detail:
          'the kubeconfig has no certificate or token for the user of its context, or a proxy in between has ended TLS and with it the client certificate',
        checks: (found) => [
          check(
            commandLine`kcert inspect ${kubeconfigOf(found)}`,
            'no client certificate for the user of the context',
          ),
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
      'CSR not signed by referenced private key',
    ],
    means: 'a certificate and a private key were given as a pair, and are none',
    causes: [
      {
        id: 'one-file-of-two-replaced',
        detail:
          'one of the two files was replaced and the other was not: a renewal that was copied by half, kube-controller-manager with a new --cluster-signing-cert-file and the old key',
        checks: (found) => [
          check(
            commandLine`kcert inspect ${certificateFolder(found)}`,
            'KEY_MISMATCH, with the certificate and the key that it was held against',
          ),
          check('kcert kubelet doctor', "on a node: a kubelet's own pair that does not belong together"),
        ],
      },
    ],
  },
]

function certificateFolder(found: Found) {
  const file = certificateFileOf(found)
  return file === undefined ? nodeFolders : shellPath(file.replace(/\/[^/]*$/, '') || '/')
}
