import { commandLine } from '../../errors/command-line.ts'
import { componentOf, inspectCommand, isAt, nodeFolders, probeCommand, serverName } from '../place.ts'
import { type CauseRow, check, type Rule } from '../rule.ts'

// No certificate was looked at: nobody answered, or something answered that is no TLS, or not the same TLS.

const apiServerDown: CauseRow = {
  id: 'stopped-by-its-certificates',
  holds: (found) => isAt('api-server', 'etcd')(found) || componentOf(found) === 'unknown',
  detail:
    'a control plane whose certificates have ended: etcd and the API server refuse each other, the API server ends and is started again and again',
  checks: () => [
    check('kcert renew', 'on the control plane, needs no API server: what has ended; --all renews it'),
    check(
      commandLine`kcert inspect ${nodeFolders} --only expired`,
      'on the control plane: which certificates',
    ),
  ],
}

const kubeletDown: CauseRow = {
  id: 'kubelet-does-not-run',
  holds: ({ endpoints }) => endpoints.some((one) => /:(?:10248|10250)$/.test(one)),
  evidence: ({ endpoints }) =>
    `${endpoints.find((one) => /:(?:10248|10250)$/.test(one))} is a port of a kubelet`,
  detail:
    'the kubelet does not run, or starts again and again: no configuration yet, swap or cgroups; or a client certificate that has ended',
  checks: () => [
    check(
      'kcert kubelet doctor',
      'on that node: in order: then it is no matter of certificates, and journalctl -u kubelet says what is',
    ),
  ],
}

export const handshakeRules: readonly Rule[] = [
  {
    id: 'etcd-deadline',
    words: ['context deadline exceeded', 'latest balancer error'],
    holds: isAt('etcd'),
    isGeneric: true,
    means:
      'a client of etcd tried until its time was over. It says no more than that also where a certificate was refused, on either side',
    causes: [
      {
        id: 'refused-and-tried-again',
        detail:
          'etcd or its client does not take the certificate of the other: it has ended, is of another etcd CA, or lacks the address; the log of etcd says which ("rejected connection")',
        checks: (found) => [
          check(probeCommand(found), 'CERT_EXPIRED, NOT_TRUSTED, NAME_NOT_COVERED or CLIENT_REFUSED'),
          check('kcert renew', 'on the control plane, needs no API server: what has ended'),
        ],
      },
      {
        id: 'etcd-down-or-slow',
        detail: 'etcd does not run, has no quorum, or its disk is slow; it is no matter of certificates',
        checks: (found) => [check(probeCommand(found), 'UNREACHABLE, or ok: then look at its log')],
      },
    ],
  },
  {
    id: 'connection-refused',
    words: [
      'connection refused',
      'was refused - did you specify the right host or port',
      'ECONNREFUSED',
      'target machine actively refused it',
    ],
    isGeneric: true,
    means: (found) => `nothing listens at ${serverName(found)}: no certificate was looked at`,
    causes: [
      kubeletDown,
      apiServerDown,
      {
        id: 'not-there',
        detail: 'the process is down for another reason, or the address is wrong',
        checks: (found) => [check(probeCommand(found), 'UNREACHABLE here too: then it is not the client')],
      },
    ],
  },
  {
    id: 'not-reached',
    words: [
      'i/o timeout',
      'context deadline exceeded',
      'no route to host',
      'the connected party did not properly respond',
      'network is unreachable',
      'connection timed out',
      'no such host',
      'Could not resolve host',
      'Name or service not known',
      'ETIMEDOUT',
      'EHOSTUNREACH',
      'ENOTFOUND',
    ],
    isGeneric: true,
    means: (found) => `${serverName(found)} was not reached: no certificate was looked at`,
    causes: [
      {
        id: 'network-or-name',
        detail:
          'a firewall, a route, a name that does not resolve, a network policy, or a load balancer without a healthy server; it is no matter of certificates',
        checks: (found) => [
          check(
            probeCommand(found),
            'UNREACHABLE from here too, or an answer: then it is the way from there',
          ),
        ],
      },
      apiServerDown,
    ],
  },
  {
    id: 'cut-short',
    words: [
      'connection reset by peer',
      'ECONNRESET',
      'forcibly closed by the remote host',
      'ERR_CONNECTION_RESET',
      'SSL_ERROR_SYSCALL',
      'EOF occurred in violation of protocol',
      'unexpected eof while reading',
      'unexpected EOF',
      ': EOF',
      ':"EOF"',
      'TLS handshake error from',
      'Remote host terminated the handshake',
      'socket disconnected before secure TLS connection was established',
    ],
    isGeneric: true,
    means: (found) =>
      found.side === 'server'
        ? 'in the log of a server: somebody opened a connection and closed it before the handshake was over'
        : `${serverName(found)} closed the connection before the handshake was over, and said nothing`,
    causes: [
      {
        id: 'health-check',
        holds: ({ side }) => side === 'server',
        detail:
          'a load balancer or a scanner that only looks whether the port is open: one address, again and again, and nothing else fails',
        checks: () => [check('kcert probe --all', 'all ok: then nothing of the cluster is wrong')],
      },
      {
        id: 'proxy-without-server',
        holds: ({ side }) => side !== 'server',
        detail:
          'a load balancer or proxy in between has no healthy server behind it, or the process there ends as soon as it is asked',
        checks: (found) => [
          check(probeCommand(found), 'UNREACHABLE through it, and ok at the address of the server itself'),
        ],
      },
      { ...apiServerDown, holds: (found) => found.side !== 'server' && isAt('api-server', 'unknown')(found) },
    ],
  },
  {
    id: 'webhook-not-answered',
    words: ['failed calling webhook', 'failed to call webhook', 'conversion webhook for'],
    isGeneric: true,
    means: ({ webhook }) =>
      `API servers call the webhook${webhook === undefined ? '' : ` "${webhook}"`}, and it gave no answer that counts`,
    causes: [
      {
        id: 'webhook-not-served',
        detail:
          'its Service or pods are not there or not ready, a network policy or firewall keeps control planes from them (its port, not 443, must be open towards the pods), or what it was installed by is gone and the webhook was left',
        checks: () => [
          check(
            'kcert probe --webhooks',
            'UNREACHABLE for this one; with -i kcert.yaml it dials from a control plane',
          ),
        ],
      },
    ],
  },
  {
    id: 'aggregated-api-unavailable',
    words: [
      'the server is currently unable to handle the request',
      'Metrics API not available',
      'FailedDiscoveryCheck',
      'failing or missing response from',
      'loading OpenAPI spec for',
      'no metrics to serve',
    ],
    isGeneric: true,
    means:
      'an aggregated API (kubectl top: metrics.k8s.io) is registered, and API servers get no answer of it',
    causes: [
      {
        id: 'its-server-or-its-certificate',
        detail:
          'its pods do not run, cannot be reached, or serve a certificate that the caBundle of the APIService does not lead to; metrics-server is ready only once kubelets let it in by a certificate that it trusts (its own log says)',
        checks: () => [
          check('kcert probe --nodes', 'for metrics-server: what kubelets serve'),
          check('kcert probe --webhooks', 'NOT_TRUSTED or UNREACHABLE for the Service of the API'),
          check('kcert inspect --cluster --only problem', 'a caBundle that is empty, expired or wrong'),
        ],
      },
    ],
  },
  {
    id: 'handshake-timeout',
    words: ['TLS handshake timeout', 'net/http: TLS handshake timeout', 'handshake timed out'],
    means: (found) => `${serverName(found)} took the connection and did not answer the handshake in time`,
    causes: [
      {
        id: 'overloaded-or-cut-off',
        detail:
          'it is overloaded, or something between drops large packets (MTU) or speaks no TLS; it is no matter of certificates',
        checks: (found) => [
          check(`${probeCommand(found)} --timeout 30s`, 'how long a handshake takes from here'),
        ],
      },
    ],
  },
  {
    id: 'no-tls-there',
    words: [
      'first record does not look like a TLS handshake',
      'server gave HTTP response to HTTPS client',
      'client sent an HTTP request to an HTTPS server',
      'wrong version number',
      'ERR_SSL_WRONG_VERSION_NUMBER',
      'SSL_ERROR_RX_RECORD_TOO_LONG',
      'packet length too long',
      'Unrecognized SSL message, plaintext connection',
      'oversized record received with length',
      'Unsupported or unrecognized SSL message',
      'The plain HTTP request was sent to HTTPS port',
      'OPENSSL_internal:WRONG_VERSION_NUMBER',
      'ERR_SSL_PROTOCOL_ERROR',
      'malformed HTTP response "\\x15\\x03',
      'An unexpected TLS packet was received',
      'upstream sent no valid HTTP/1.0 header',
      'received corrupt message of type InvalidContentType',
    ],
    means: (found) => `one side spoke TLS and the other did not (${serverName(found)})`,
    causes: [
      {
        id: 'http-instead-of-https',
        detail:
          'http and https, or two ports, are mixed up: a URL, a probe of the kubelet, a proxy that is reached by https and speaks http (HTTPS_PROXY=https://…)',
        checks: (found) => [
          check(inspectCommand(found), 'NO_CERTIFICATE, or that what answers does not speak TLS'),
        ],
      },
    ],
  },
  {
    id: 'nothing-in-common',
    words: [
      'tls: handshake failure',
      'sslv3 alert handshake failure',
      'tlsv1 alert handshake failure',
      'ssl/tls alert handshake failure',
      'fatal alert: handshake failure',
      'tls: protocol version not supported',
      'tlsv1 alert protocol version',
      'ssl/tls alert protocol version',
      'fatal alert: protocol version',
      'tls: insufficient security level',
      'alert insufficient security',
      'No appropriate protocol',
      'unsafe legacy renegotiation disabled',
      'dh key too small',
      'peer is incompatible:',
      'unsupported application protocols',
      'unsupported protocol',
      'no cipher suite supported by both client and server',
      'client offered only unsupported versions',
      'server selected unsupported protocol version',
      'no common algorithm',
      'no shared cipher',
      'ERR_SSL_VERSION_OR_CIPHER_MISMATCH',
      "peer doesn't support any of the certificate's signature algorithms",
      'tls: no application protocol',
    ],
    means: (found) =>
      `client and ${serverName(found)} have no version of TLS, no cipher or no kind of key in common; with TLS 1.2 also: a client certificate is missing`,
    causes: [
      {
        id: 'versions-or-ciphers',
        detail:
          'one of them is old, or was restricted (--tls-min-version, --tls-cipher-suites; a key of RSA with ciphers for ECDSA alone)',
        checks: (found) => [
          check(`${probeCommand(found)} --tls 1.2`, 'whether TLS 1.2 goes'),
          check(`${probeCommand(found)} --tls 1.3`, 'whether TLS 1.3 goes'),
        ],
      },
      {
        id: 'no-client-certificate',
        detail:
          'with TLS 1.2 a Go server says handshake failure also when it insists on a client certificate and gets none',
        checks: (found) => [check(probeCommand(found), '"asked for", and the CAs that it takes')],
      },
    ],
  },
]
