import { commandLine } from '../../errors/command-line.ts'
import type { Found } from '../found.ts'
import {
  clientCaFile,
  componentOf,
  forecastCommand,
  inspectCommand,
  isAt,
  kubeconfigOf,
  kubeletEvidence,
  nodeFolders,
  probeCommand,
  serverName,
  verifyCommand,
} from '../place.ts'
import { type CauseRow, check, type Rule } from '../rule.ts'
import { alertWords } from './alert-words.ts'

// "remote error": what the other side said as a TLS alert before it hung up. It says little, and only its own log says more.

/** In the log of a server it is the client that complains, and what it complains of is the server's certificate. */
const isServerLog = ({ side }: Found): boolean => side === 'server'

/** Of a client of etcd the certificate lies on the control planes; of others in a kubeconfig. */
const isOfEtcd = isAt('etcd')
const etcdClient = '/etc/kubernetes/pki/apiserver-etcd-client.crt'

const clientOfOtherCa: CauseRow = {
  id: 'client-of-another-ca',
  detail:
    'the client certificate is of a CA that the server does not take: another cluster, the CA before a rotation, the cluster CA shown to etcd',
  checks: (found) => [
    check(probeCommand(found), 'CLIENT_REFUSED, with the CAs that the server asks for'),
    isOfEtcd(found)
      ? check(
          commandLine`kcert verify ${etcdClient} --roots ${clientCaFile(found)} --purpose client`,
          'NOT TRUSTED: the API server shows a certificate that its etcd does not take',
        )
      : check(
          commandLine`kcert verify ${kubeconfigOf(found)}`,
          'NOT TRUSTED by the CA in the same kubeconfig',
        ),
  ],
}

const clientEnded: CauseRow = {
  id: 'client-certificate-ended',
  detail: 'the client certificate has ended',
  checks: (found) => [
    check(
      commandLine`kcert inspect ${isOfEtcd(found) ? etcdClient : kubeconfigOf(found)}`,
      'a client certificate that is expired',
    ),
    check(
      commandLine`kcert inspect ${nodeFolders} --only expired`,
      'on the node of the client: what has ended',
    ),
  ],
}

const clientWrongUsage: CauseRow = {
  id: 'client-usage-wrong',
  detail:
    'the client certificate is for servers only: clientAuth is not among its extended key usages. Servers in Go of today name an unknown CA and an ended certificate as such, so that with them this is what is left',
  checks: () => [
    check('kcert verify CLIENT.crt --roots CA.crt --purpose client', 'NOT TRUSTED because of its usages'),
  ],
}

const noneShown: CauseRow = {
  id: 'no-client-certificate',
  detail:
    'the server insists on a client certificate, and the client showed none: not configured, or it has none of the CAs that were asked for',
  checks: (found) => [
    check(probeCommand(found), '"asked for", with the CAs that the server names'),
    isOfEtcd(found)
      ? check(
          commandLine`kcert inspect ${etcdClient}`,
          'what the API server has to show (--etcd-certfile), and etcdctl (--cert, --key)',
        )
      : check(
          commandLine`kcert inspect ${kubeconfigOf(found)}`,
          'no client certificate for the user of the context',
        ),
  ],
}

const clientOfServerLog: readonly CauseRow[] = [
  {
    id: 'client-does-not-trust-us',
    detail:
      'the client trusts another CA than the one that signed the certificate of this server: it holds the CA of before a rotation, or none',
    checks: (found) => [
      check('kcert probe --all', 'NOT_TRUSTED: then it is the server; all ok: then it is that client'),
      isOfEtcd(found)
        ? check(
            'kcert inspect /etc/kubernetes/pki -o tree',
            'on each control plane: server or peer not below etcd/ca.crt, or another etcd/ca.crt than on the others',
          )
        : check('kcert rotate-ca verify', 'pods and kubeconfigs that still hold an old CA'),
      ...(found.endpoints.length > 0
        ? [check(verifyCommand(found), 'whether the CA of its clients leads there')]
        : []),
    ],
  },
  {
    id: 'our-certificate-ended',
    detail: 'the certificate of this server has ended, or lacks the name that the client uses',
    checks: () => [
      check('kcert probe --all', 'CERT_EXPIRED or NAME_NOT_COVERED'),
      check(
        commandLine`kcert inspect ${nodeFolders} --only problem`,
        'on the node of this server: what is wrong there',
      ),
    ],
  },
  {
    id: 'health-check-or-scanner',
    detail:
      'a health check, a scanner or a browser that does not know the CA: one address, again and again, and nothing else fails',
    checks: () => [check('kcert probe --api-servers', 'all ok: then nothing of the cluster is wrong')],
  },
]

const ofServerLog = (id: string, words: readonly string[]): Rule => ({
  id,
  words,
  holds: isServerLog,
  means: 'in the log of a server: a client hung up because it does not take the certificate of this server',
  causes: clientOfServerLog,
})

const badCertificate = alertWords('bad certificate', 'bad certificate')
const unknownCa = alertWords('unknown certificate authority', 'unknown ca')
const unknownCertificate = alertWords('unknown certificate', 'certificate unknown')
const expired = alertWords('expired certificate', 'certificate expired')

export const alertRules: readonly Rule[] = [
  ofServerLog('client-refuses-server', [...badCertificate, ...unknownCa, ...unknownCertificate, ...expired]),
  {
    id: 'alert-bad-certificate',
    words: [
      ...badCertificate,
      'ERR_BAD_SSL_CLIENT_AUTH_CERT',
      'SSL_ERROR_BAD_CERT_ALERT',
      'The SSL certificate error',
    ],
    means: (found) =>
      `${serverName(found)} refuses the client certificate that it was shown; why stands in its log alone`,
    causes: [clientOfOtherCa, clientEnded, clientWrongUsage, noneShown],
  },
  {
    id: 'alert-certificate-required',
    words: [
      ...alertWords('certificate required', 'certificate required'),
      "tls: client didn't provide a certificate",
      'peer did not return a certificate',
      'SSL_ERROR_RX_CERTIFICATE_REQUIRED_ALERT',
      'No required SSL certificate was sent',
    ],
    means: (found) =>
      found.side === 'server'
        ? 'a client showed no certificate to a server that insists on one'
        : `${serverName(found)} insists on a client certificate, and was shown none`,
    causes: [noneShown],
  },
  {
    id: 'alert-unknown-authority',
    words: unknownCa,
    means: (found) => `${serverName(found)} does not know the CA of the client certificate that it was shown`,
    causes: [clientOfOtherCa],
  },
  {
    id: 'alert-unknown-certificate',
    words: unknownCertificate,
    means: 'the other side refuses the certificate that it was shown, for a reason that it does not say',
    causes: [clientOfOtherCa, clientEnded, clientWrongUsage],
  },
  {
    id: 'alert-expired-certificate',
    words: expired,
    means: (found) => `${serverName(found)} refuses the client certificate because it has ended`,
    causes: [
      clientEnded,
      {
        id: 'clock-of-server',
        detail: 'the clock of the server is ahead of time',
        checks: (found) => [check('date -u', `on ${serverName(found)}: another time than the true one`)],
      },
    ],
  },
  {
    id: 'alert-internal-error',
    words: [
      ...alertWords('internal error', 'internal error'),
      'no serving certificate available for the kubelet',
    ],
    means: (found) =>
      componentOf(found) === 'kubelet'
        ? `the kubelet${found.endpoints[0] === undefined ? '' : ` at ${found.endpoints[0]}`} has no serving certificate: it asked for one, and nobody has approved`
        : componentOf(found) === 'unknown'
          ? `${serverName(found)} has no certificate to show: for a kubelet that is one that was never approved`
          : `${serverName(found)} has no certificate to show, or failed to choose one`,
    causes: [
      {
        id: 'kubelet-serving-unapproved',
        holds: isAt('kubelet', 'unknown'),
        evidence: kubeletEvidence,
        detail:
          'with serverTLSBootstrap a kubelet asks for its serving certificate and Kubernetes approves none of those: logs, exec, port-forward and metrics fail until somebody does',
        checks: (found) => [
          check(
            'kcert csr list --pending --signer kubernetes.io/kubelet-serving',
            `a request${found.node === undefined ? '' : ` of system:node:${found.node}`} that waits`,
          ),
          check(
            'kcert csr approve --policy kubelet-serving --dry-run',
            'which of them are right; without --dry-run they are approved',
          ),
        ],
      },
      {
        id: 'kubelet-serving-refused',
        holds: isAt('kubelet', 'unknown'),
        detail:
          'the request was denied, has failed, or was removed before anybody looked (a day after it was made), and the kubelet asks again later',
        checks: (found) => [
          check('kcert csr list --denied --failed', 'a request of this node'),
          check(forecastCommand(found), 'no serving certificate, and since when'),
        ],
      },
      {
        id: 'kubelet-store-broken',
        holds: isAt('kubelet', 'unknown'),
        detail:
          'what lies in /var/lib/kubelet/pki cannot be used: a link that leads nowhere, a key of another certificate',
        checks: () => [check('kcert kubelet doctor', 'on that node: what is wrong, and --fix mends it')],
      },
      {
        id: 'other-server',
        holds: (found) => !isAt('kubelet')(found),
        detail:
          'a server that chooses its certificate by name or reads it at each handshake has none: a load balancer, an ingress or a service mesh in front of it, a webhook or aggregated API whose Secret is empty or not mounted yet',
        checks: (found) => [
          check(inspectCommand(found), 'no certificate at all, or a handshake that is broken off'),
          ...(isAt('in-cluster')(found)
            ? [check('kcert inspect --cluster --only problem', 'the Secret that it should have')]
            : []),
        ],
      },
    ],
  },
  {
    id: 'alert-unsupported-certificate',
    words: alertWords('unsupported certificate', 'unsupported certificate'),
    means: 'the other side cannot use the certificate that it was shown: its kind of key, or its usages',
    causes: [clientWrongUsage],
  },
  {
    id: 'alert-unrecognized-name',
    words: [
      ...alertWords('unrecognized name', 'unrecognized name'),
      'received fatal alert: UnrecognisedName',
      'acme/autocert: missing server name',
      'acme/autocert: host',
    ],
    means: (found) => `${serverName(found)} has no certificate for the name that the client asked for (SNI)`,
    causes: [
      {
        id: 'no-certificate-for-name',
        detail:
          'the server chooses its certificate by name, and has none for this one; or it has none at all yet',
        checks: (found) => [
          check(inspectCommand(found), 'which certificate it shows when asked by this name'),
        ],
      },
    ],
  },
]
