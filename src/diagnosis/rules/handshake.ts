import { componentOf, inspectCommand, nodeFolders, probeCommand, serverName } from '../place.ts'
import { type CauseRow, check, type Rule } from '../rule.ts'

// No certificate was looked at: nobody answered, or something answered that is no TLS, or not the same TLS.

const apiServerDown: CauseRow = {
  id: 'stopped-by-its-certificates',
  holds: (found) =>
    componentOf(found) !== 'in-cluster' &&
    (found.endpoints.length === 0 || found.endpoints.some((one) => /:(?:6443|443|2379)$/.test(one))),
  detail:
    'a control plane whose certificates have ended: etcd and the API server refuse each other, the API server ends and is started again and again',
  checks: () => [
    check('kcert renew', 'on the control plane, needs no API server: what has ended; --all renews it'),
    check(`kcert inspect ${nodeFolders} --only expired`, 'on the control plane: which certificates'),
  ],
}

export const handshakeRules: readonly Rule[] = [
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
      'server: EOF',
      '": EOF',
      ':"EOF"',
      'TLS handshake error from',
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
      { ...apiServerDown, holds: ({ side }) => side !== 'server' },
    ],
  },
  {
    id: 'aggregated-api-unavailable',
    words: [
      'the server is currently unable to handle the request',
      'Metrics API not available',
      'FailedDiscoveryCheck',
      'failing or missing response from',
    ],
    isGeneric: true,
    means:
      'an aggregated API (kubectl top: metrics.k8s.io) is registered, and API servers get no answer of it',
    causes: [
      {
        id: 'its-server-or-its-certificate',
        detail:
          'its pods do not run, cannot be reached, or serve a certificate that the caBundle of the APIService does not lead to',
        checks: () => [
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
      'fatal alert: handshake_failure',
      'tls: protocol version not supported',
      'tlsv1 alert protocol version',
      'ssl/tls alert protocol version',
      'fatal alert: protocol_version',
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
