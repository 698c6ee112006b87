import { shellWord } from '../../errors/shell-word.ts'
import type { Found } from '../found.ts'
import { componentOf, forecastCommand, hostOf, inspectCommand, serverName } from '../place.ts'
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
  return `kcert probe ${shellWord(found.endpoints[0]!)} --name ${shellWord(name)}`
}

const isKubernetesName = (name: string): boolean => /^kubernetes(?:\.default(?:\.svc.*)?)?$/.test(name)

const otherServer: CauseRow = {
  id: 'another-server',
  evidence: ({ certificateNames }) =>
    certificateNames.some((name) => /ingress.local$|^localhost$|^invalid2?\.invalid$/i.test(name))
      ? `the certificate is for ${certificateNames[0]}, which is a default that a server falls back to`
      : undefined,
  detail:
    'somebody else answers there: a load balancer, an ingress default, an address that was given to another machine',
  checks: (found) => [check(inspectCommand(found), 'a subject and an issuer that you do not expect')],
}

const nameMissing: CauseRow = {
  id: 'name-not-in-certificate',
  holds: (found) => componentOf(found) !== 'in-cluster' && componentOf(found) !== 'kubelet',
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
  holds: ({ certificateNames, endpoints }) => certificateNames.length > 0 || endpoints.length > 0,
  detail: ({ certificateNames }) =>
    certificateNames.length > 0
      ? `the client may use a name that the certificate has: ${certificateNames.slice(0, 6).join(', ')}${certificateNames.length > 6 ? ' …' : ''} (server or tls-server-name in the kubeconfig)`
      : 'the client may use a name that the certificate has (server or tls-server-name in the kubeconfig)',
  checks: (found) => {
    const [endpoint] = found.endpoints
    const better = found.certificateNames.find((name) => !name.startsWith('*'))
    return endpoint === undefined || better === undefined
      ? [check('kcert inspect ~/.kube/config', 'which server the kubeconfig names')]
      : [
          check(
            `kcert verify ${shellWord(endpoint)} --roots ~/.kube/config --name ${shellWord(better)}`,
            'TRUSTED by that name',
          ),
        ]
  },
}

const kubeletName: CauseRow = {
  id: 'kubelet-without-this-name',
  holds: (found) => componentOf(found) === 'kubelet',
  evidence: ({ endpoints }) => `${endpoints[0]} is the port of a kubelet`,
  detail:
    'a kubelet that signs its own serving certificate puts its host name in and no address; with serverTLSBootstrap it has the addresses of its Node, as they were when it asked',
  checks: (found) => [
    check('kcert probe --nodes', 'NAME_NOT_COVERED, and what it is valid for'),
    check(forecastCommand(found), 'whether serverTLSBootstrap is on, and what it waits for'),
  ],
}

const serviceName: CauseRow = {
  id: 'service-without-this-name',
  holds: (found) => componentOf(found) === 'in-cluster',
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
              `kcert csr create --service ${service[1]}.${service[2]} --key-out server-key.pem --out server.csr`,
              'a request with every name that this Service has',
            ),
          ]),
    ]
  },
}

const causes: readonly CauseRow[] = [kubeletName, serviceName, nameMissing, wrongName, otherServer]

export const nameRules: readonly Rule[] = [
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
          check(
            `kcert csr create --cn ${shellWord(nameOf(found) ?? 'NAME')} --dns ${shellWord(nameOf(found) ?? 'NAME')} --key-out server-key.pem --out server.csr`,
            'a request that has the name where clients look',
          ),
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
    ],
    means: (found) =>
      `the certificate of ${serverName(found)} is not for ${asked(found)}${found.certificateNames.length > 0 ? `, but for ${found.certificateNames.slice(0, 10).join(', ')}${found.certificateNames.length > 10 ? ' …' : ''}` : ''}`,
    causes,
  },
]
