import { commandLine, fixed } from '../../errors/command-line.ts'
import type { Found } from '../found.ts'
import {
  componentOf,
  etcdEvidence,
  forecastCommand,
  hostOf,
  inspectCommand,
  isAt,
  kubeconfigOf,
  kubeletEvidence,
  serverName,
} from '../place.ts'
import { type CauseRow, check, type Rule } from '../rule.ts'

// A certificate that is not for the name or address that the client used.

function nameOf(found: Found): string | undefined {
  const [endpoint] = found.endpoints
  return found.wantedName ?? (endpoint === undefined ? undefined : hostOf(endpoint))
}

/** "10.0.0.5", or "the name that was used". */
function asked(found: Found): string {
  return nameOf(found) ?? 'the name that was used'
}

function probeByName(found: Found): string {
  const name = nameOf(found)
  if (componentOf(found) === 'in-cluster') return 'kcert probe --webhooks'
  if (found.endpoints.length === 0 || name === undefined) return 'kcert probe --api-servers'
  return commandLine`kcert probe ${found.endpoints[0]!} --name ${name}`
}

/** Returns the command that makes a request with this name where clients look for it. */
function requestFor(name: string): string {
  const flag = /^\d+(?:\.\d+){3}$|:/.test(name) ? '--ip' : '--dns'
  return commandLine`kcert csr create --cn ${name} ${fixed(flag)} ${name} --key-out server-key.pem --out server.csr`
}

const isKubernetesName = (name: string): boolean => /^kubernetes(?:\.default(?:\.svc.*)?)?$/.test(name)

const fallbackName = /ingress\.local$|\.traefik\.default$|^invalid2?\.invalid$/i
const ownName = /^(?:localhost|127\.0\.0\.1|::1|0:0:0:0:0:0:0:1|localhost\.localdomain)$/i

/** What speaks for a certificate that a server made or fell back to because it was given none for this name. */
function defaultEvidence({ certificateNames }: Found): string | undefined {
  const fallback = certificateNames.find((name) => fallbackName.test(name))
  if (fallback !== undefined)
    return `the certificate is for ${fallback}, which is a default that a server falls back to`
  return certificateNames.length > 0 && certificateNames.every((name) => ownName.test(name))
    ? `the certificate is for ${certificateNames.join(', ')} alone, as servers make for themselves at their start`
    : undefined
}

const defaultCertificate: CauseRow = {
  id: 'default-certificate',
  holds: (found) => defaultEvidence(found) !== undefined && !isAt('etcd')(found),
  evidence: defaultEvidence,
  detail:
    'the server has no certificate for this name, and shows one of its own: an ingress controller without the Secret, a Service or port that leads to another server than is meant, kube-controller-manager and kube-scheduler without --tls-cert-file, a webhook whose Secret is not mounted',
  checks: (found) => [
    check(inspectCommand(found), 'the names, and a subject and an issuer that are no CA of yours'),
    check('kcert inspect --cluster --only problem', 'Secrets that have no certificate for the name'),
  ],
}

const otherServer: CauseRow = {
  id: 'another-server',
  detail:
    'somebody else answers there: a load balancer, an ingress default, an address that was given to another machine',
  checks: (found) => [check(inspectCommand(found), 'a subject and an issuer that you do not expect')],
}

const nameMissing: CauseRow = {
  id: 'name-not-in-certificate',
  holds: isAt('api-server', 'other', 'unknown'),
  evidence: ({ certificateNames }) =>
    certificateNames.some(isKubernetesName)
      ? "it is an API server's certificate: it has the names of the service kubernetes"
      : undefined,
  detail: (found) =>
    `${asked(found)} was not among the names when the certificate was made: a load balancer, a DNS name or an address that came later (kubeadm: certSANs of the API server)`,
  checks: (found) => [
    check(probeByName(found), `NAME_NOT_COVERED, with the names that the certificate has`),
    check(
      'kcert inspect /etc/kubernetes/pki/apiserver.crt',
      `on a control plane: names without ${asked(found)}; add it to certSANs in kubeadm-config, move the pair away, then kubeadm init phase certs apiserver`,
    ),
  ],
}

const wrongName: CauseRow = {
  id: 'connected-by-another-name',
  holds: (found) =>
    (found.certificateNames.length > 0 || found.endpoints.length > 0) &&
    isAt('api-server', 'other', 'unknown')(found),
  detail: ({ certificateNames }) =>
    certificateNames.length > 0
      ? `the client may use a name that the certificate has: ${certificateNames.slice(0, 6).join(', ')}${certificateNames.length > 6 ? ' …' : ''} (server or tls-server-name in the kubeconfig)`
      : 'the client may use a name that the certificate has (server or tls-server-name in the kubeconfig)',
  checks: (found) => {
    const [endpoint] = found.endpoints
    const better = found.certificateNames.find((name) => !name.startsWith('*'))
    return endpoint === undefined || better === undefined
      ? [check(commandLine`kcert inspect ${kubeconfigOf(found)}`, 'which server the kubeconfig names')]
      : [
          check(
            commandLine`kcert verify ${endpoint} --roots ${kubeconfigOf(found)} --name ${better}`,
            'TRUSTED by that name',
          ),
        ]
  },
}

const kubeletName: CauseRow = {
  id: 'kubelet-without-this-name',
  holds: isAt('kubelet'),
  evidence: kubeletEvidence,
  detail:
    'a kubelet that signs its own serving certificate puts its host name in and no address; with serverTLSBootstrap it has the addresses of its Node, as they were when it asked',
  checks: (found) => [
    check(
      found.endpoints.length === 0 ? 'kcert probe --nodes' : inspectCommand(found),
      "what it is valid for; a subject that is neither CN=system:node:NODE nor CN=NODE@1700000000: then it is not the kubelet's",
    ),
    check(forecastCommand(found), 'whether serverTLSBootstrap is on, and what it waits for'),
  ],
}

const serviceName: CauseRow = {
  id: 'service-without-this-name',
  holds: isAt('in-cluster'),
  evidence: ({ webhook }) => (webhook === undefined ? undefined : `the webhook "${webhook}" is called`),
  detail: 'API servers call a Service as NAME.NAMESPACE.svc, and the certificate of its pods lacks that name',
  checks: (found) => {
    const service = /^([a-z0-9-]+)\.([a-z0-9-]+)\.svc/.exec(nameOf(found) ?? '')
    return [
      check('kcert probe --webhooks', 'NAME_NOT_COVERED for this one'),
      ...(service === null
        ? []
        : [
            check(
              commandLine`kcert csr create --service ${service[1]}.${service[2]} --key-out server-key.pem --out server.csr`,
              'a request with every name that this Service has',
            ),
          ]),
    ]
  },
}

const etcdName: CauseRow = {
  id: 'etcd-without-this-name',
  holds: isAt('etcd'),
  evidence: etcdEvidence,
  detail: (found) =>
    `${asked(found)} is not in etcd's certificate: it was copied from another control plane, or made before the node got this address (each has its own names in etcd/server.crt and etcd/peer.crt)`,
  checks: () => [
    check(
      'kcert inspect /etc/kubernetes/pki/etcd -o wide',
      'on that control plane: the names of server.crt and peer.crt; move the pair away, then kubeadm init phase certs etcd-server and etcd-peer',
    ),
  ],
}

const outsideName: CauseRow = {
  id: 'server-outside-without-this-name',
  holds: isAt('outside', 'mesh'),
  detail: (found) =>
    `${serverName(found)} is none of the cluster's, and has no certificate for ${asked(found)}: a redirect to another host whose name is checked against the first (charts), a proxy on the way out, a wrong name in the URL, no SNI`,
  checks: (found) => [check(inspectCommand(found), 'who answers there, and by which names')],
}

const causes: readonly CauseRow[] = [
  defaultCertificate,
  kubeletName,
  serviceName,
  etcdName,
  outsideName,
  nameMissing,
  wrongName,
  { ...otherServer, holds: (found) => !isAt('outside')(found) },
]

export const nameRules: readonly Rule[] = [
  {
    id: 'certificate-of-another-node',
    words: [
      'is invalid: x509: certificate is valid for',
      'failed to write or validate certificate',
      'does not match any of DNSNames',
    ],
    means: (found) =>
      `a control plane has a certificate that is not for it${found.wantedName === undefined ? '' : `: ${found.wantedName} is not among its names`}`,
    causes: [
      {
        id: 'copied-from-another-node',
        detail:
          '/etc/kubernetes/pki was copied whole: only ca, etcd/ca, front-proxy-ca and sa may be; every control plane makes the others for its own names. Or a member of etcd comes from an address that is not in its certificate (NAT between the control planes, another network card)',
        checks: () => [
          check(
            'kcert inspect /etc/kubernetes/pki -o wide',
            'on that control plane: the names of apiserver.crt, etcd/server.crt and etcd/peer.crt; those of another node: move them away, and run the command again',
          ),
        ],
      },
    ],
  },
  {
    id: 'no-address-in-certificate',
    words: [
      "because it doesn't contain any IP SANs",
      'No subject alternative names matching IP address',
      'no alternative certificate subject name matches target ipv4 address',
      'no alternative certificate subject name matches target ipv6 address',
      'IP address mismatch, certificate is not valid for',
    ],
    means: (found) =>
      `the client connected to the address ${asked(found)}, and the certificate has no such IP address among its names; DNS names do not count for an address`,
    causes,
  },
  {
    id: 'legacy-common-name',
    words: [
      'certificate relies on legacy Common Name field, use SANs instead',
      'certificate relies on legacy Common Name field',
      'no appropriate subjectAltName fields were found',
      'No subject alternative names present',
    ],
    means: (found) =>
      `the certificate of ${serverName(found)} has its name in the common name alone, which no client of today looks at`,
    causes: [
      {
        id: 'made-without-alternative-names',
        detail: 'it was made without subject alternative names, mostly by openssl req without -addext',
        checks: (found) => [
          check(inspectCommand(found), 'SAN_MISSING'),
          check(requestFor(nameOf(found) ?? 'NAME'), 'a request that has the name where clients look'),
        ],
      },
      otherServer,
    ],
  },
  {
    id: 'name-mismatch',
    words: [
      'certificate is valid for',
      'certificate is not valid for any names',
      'ERR_TLS_CERT_ALTNAME_INVALID',
      "does not match certificate's altnames",
      'hostname mismatch',
      'no alternative certificate subject name matches',
      'No subject alternative DNS name matching',
      'No name matching',
      'ERR_CERT_COMMON_NAME_INVALID',
      'SSL_ERROR_BAD_CERT_DOMAIN',
      'invalid peer certificate: NotValidForName',
      "doesn't match either of",
      "doesn't match requested host name",
      'does not match target host name',
      'certificate not valid for name',
      'RemoteCertificateNameMismatch',
      'SSLPeerUnverifiedException',
      'no certificate subject alternative name matches',
      'certificate name does not match input',
      'CertNotValidForName',
      'SEC_E_WRONG_PRINCIPAL',
      'The target principal name is incorrect',
      'certificate is NOT trusted. The name in the certificate does not match',
    ],
    means: (found) =>
      `the certificate of ${serverName(found)} is not for ${asked(found)}${found.certificateNames.length > 0 ? `, but for ${found.certificateNames.slice(0, 10).join(', ')}${found.certificateNames.length > 10 ? ' …' : ''}` : ''}`,
    causes,
  },
]
