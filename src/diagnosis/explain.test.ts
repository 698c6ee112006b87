import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { otherMessages, triedMessages } from '../../test/fixtures/error-messages.ts'
import { explainError } from './explain.ts'
import type { Found } from './report.ts'
import { rules } from './rules.ts'
import type { Rule } from './table.ts'
import { otherSubject, unknownError } from './unknown.ts'

const explain = (text: string) => explainError(text, 'argument')
const idsOf = (text: string): string[] => explain(text).errors.map(({ id }) => id)
const commandsOf = (text: string): string[] =>
  explain(text).errors.flatMap(({ causes }) =>
    causes.flatMap(({ checks }) => checks.map(({ command }) => command)),
  )

const server = 'https://192.0.2.10:6443/api?timeout=32s'
const handshakeLog = 'http: TLS handshake error from 192.0.2.77:41234: '

// In the original wording: Go's from its sources, the others from runs of curl, node, python3 and java, and from user reports.
const texts: readonly (readonly [text: string, id: string, cause: string])[] = [
  [
    'Unable to connect to the server: tls: failed to verify certificate: x509: certificate signed by unknown authority (possibly because of "crypto/rsa: verification error" while trying to verify candidate authority certificate "kubernetes")',
    'unknown-authority',
    'ca-of-another-cluster',
  ],
  [
    `Get "https://192.0.2.21:10250/containerLogs/default/web/app": x509: certificate signed by unknown authority`,
    'unknown-authority',
    'kubelet-serves-self-signed',
  ],
  [
    'Internal error occurred: failed calling webhook "check.example.com": failed to call webhook: Post "https://hook.shop.svc:443/validate?timeout=10s": tls: failed to verify certificate: x509: certificate signed by unknown authority',
    'unknown-authority',
    'ca-bundle-stale',
  ],
  [
    'connection error: desc = "transport: authentication handshake failed: tls: failed to verify certificate: x509: certificate signed by unknown authority", dial tcp 192.0.2.10:2379',
    'unknown-authority',
    'etcd-has-its-own-ca',
  ],
  [
    'E1121 10:00:00.1 1 authentication.go:75] "Unable to authenticate the request" err="[x509: certificate signed by unknown authority, verifying certificate SN=77, SKID=, AKID=01 failed: x509: certificate signed by unknown authority]"',
    'client-certificate-unknown-authority',
    'client-of-old-ca',
  ],
  [
    'curl: (60) SSL certificate problem: unable to get local issuer certificate',
    'unknown-authority',
    'ca-of-another-cluster',
  ],
  [
    "Error: unable to verify the first certificate\n code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'",
    'first-certificate-unverified',
    'intermediate-not-sent',
  ],
  [
    'curl: (60) SSL certificate problem: self-signed certificate in certificate chain',
    'self-signed-in-chain',
    'no-ca-given',
  ],
  ['DEPTH_ZERO_SELF_SIGNED_CERT: self-signed certificate', 'self-signed-leaf', 'default-certificate'],
  [
    "requests.exceptions.SSLError: HTTPSConnectionPool(host='192.0.2.10', port=6443): Max retries exceeded (Caused by SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get local issuer certificate (_ssl.c:1006)')))",
    'unknown-authority',
    'ca-of-another-cluster',
  ],
  ['ssl.SSLError: [SSL: CERTIFICATE_VERIFY_FAILED]', 'verification-failed', 'reason-not-stated'],
  [
    'javax.net.ssl.SSLHandshakeException: PKIX path building failed: sun.security.provider.certpath.SunCertPathBuilderException: unable to find valid certification path to requested target',
    'unknown-authority',
    'ca-of-another-cluster',
  ],
  [
    'Caused by: java.security.cert.CertPathValidatorException: validity check failed\nCaused by: java.security.cert.CertificateExpiredException: NotAfter: Sat Nov 21 10:00:00 UTC 2026',
    'certificate-expired',
    'expired-server-certificate',
  ],
  [
    `Get "${server}": tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-11-22T01:00:00Z is after 2026-11-20T01:00:00Z`,
    'certificate-expired',
    'expired-server-certificate',
  ],
  [
    'x509: certificate has expired or is not yet valid: current time 2026-11-20T00:00:00Z is before 2026-11-20T03:00:00Z',
    'not-yet-valid',
    'clock-behind',
  ],
  ['error 9 at 0 depth lookup: certificate is not yet valid', 'not-yet-valid', 'clock-behind'],
  ['x509: certificate has expired or is not yet valid', 'certificate-expired', 'expired-server-certificate'],
  ["{ code: 'CERT_HAS_EXPIRED' }", 'certificate-expired', 'expired-server-certificate'],
  [
    '"Unable to authenticate the request" err="[x509: certificate has expired or is not yet valid: current time 2026-11-22T01:00:00Z is after 2026-11-20T01:00:00Z, verifying certificate SN=1"',
    'client-certificate-expired',
    'expired-client-certificate',
  ],
  [
    `Get "${server}": x509: certificate is valid for 10.96.0.1, kubernetes.default.svc, kubernetes, not api.example.com`,
    'name-mismatch',
    'name-not-in-certificate',
  ],
  [
    'x509: certificate is valid for ingress.local, not shop.example.com',
    'name-mismatch',
    'default-certificate',
  ],
  [
    "Error [ERR_TLS_CERT_ALTNAME_INVALID]: Hostname/IP does not match certificate's altnames: Host: a.example.com. is not in the cert's altnames: DNS:b.example.com, IP Address:192.0.2.1",
    'name-mismatch',
    'name-not-in-certificate',
  ],
  [
    "x509: cannot validate certificate for 192.0.2.21 because it doesn't contain any IP SANs",
    'no-address-in-certificate',
    'name-not-in-certificate',
  ],
  [
    'x509: certificate relies on legacy Common Name field, use SANs instead',
    'legacy-common-name',
    'created-without-sans',
  ],
  [`Get "${server}": remote error: tls: bad certificate`, 'alert-bad-certificate', 'client-of-another-ca'],
  [`${handshakeLog}remote error: tls: bad certificate`, 'client-refuses-server', 'client-does-not-trust-ca'],
  [
    'error:0A000412:SSL routines::ssl/tls alert bad certificate',
    'alert-bad-certificate',
    'client-of-another-ca',
  ],
  ['remote error: tls: certificate required', 'alert-certificate-required', 'no-client-certificate'],
  [
    `${handshakeLog}tls: client didn't provide a certificate`,
    'alert-certificate-required',
    'no-client-certificate',
  ],
  ['remote error: tls: unknown certificate authority', 'alert-unknown-authority', 'client-of-another-ca'],
  [
    'javax.net.ssl.SSLHandshakeException: Received fatal alert: unknown_ca',
    'alert-unknown-authority',
    'client-of-another-ca',
  ],
  ['remote error: tls: unknown certificate', 'alert-unknown-certificate', 'client-of-another-ca'],
  ['remote error: tls: expired certificate', 'alert-expired-certificate', 'expired-client-certificate'],
  [
    'Error from server: Get "https://192.0.2.21:10250/containerLogs/kube-system/x/y": remote error: tls: internal error',
    'alert-internal-error',
    'kubelet-serving-unapproved',
  ],
  ['remote error: tls: unsupported certificate', 'alert-unsupported-certificate', 'client-usage-wrong'],
  ['remote error: tls: unrecognized name', 'alert-unrecognized-name', 'no-certificate-for-name'],
  [
    'x509: subject with cn=ann is not in the allowed list',
    'front-proxy-not-allowed',
    'front-proxy-client-wrong',
  ],
  ['error: You must be logged in to the server (Unauthorized)', 'unauthorized', 'expired-client-certificate'],
  [
    '"Unable to authenticate the request" err="[]"',
    'request-not-authenticated',
    'expired-client-certificate',
  ],
  [
    '"Unable to register node with API server" err="Unauthorized" node="w1"',
    'unauthorized',
    'expired-kubelet-client',
  ],
  ['forbidden: User "system:anonymous" cannot list resource "nodes"', 'anonymous', 'no-credential'],
  ['tls: private key does not match public key', 'key-mismatch', 'one-file-of-two-replaced'],
  [
    'error reading CA cert file "csr-controller::/a/ca.crt::/a/ca.key": expected 1 certificate, found 2',
    'signing-file-not-single',
    'bundle-as-signing-file',
  ],
  ['tls: failed to find any PEM data in certificate input', 'not-pem', 'wrong-content'],
  ['x509: malformed certificate', 'malformed', 'damaged-or-unusual'],
  ['x509: certificate specifies an incompatible key usage', 'usage-wrong', 'wrong-extended-key-usage'],
  ['x509: ECDSA verification failure', 'signature-wrong', 'same-name-other-key'],
  ['x509: cannot verify signature: insecure algorithm SHA1-RSA', 'signature-weak', 'old-certificate'],
  ['x509: certificate is not authorized to sign other certificates', 'issuer-not-a-ca', 'chain-not-allowed'],
  [
    'x509: no valid chains built: 0 candidate chains with invalid policies',
    'no-valid-chains',
    'chain-not-allowed',
  ],
  [
    'part of the existing bootstrap client certificate in /etc/kubernetes/kubelet.conf is expired: 2026-02-18 22:10:15 +0000 UTC',
    'kubelet-client-expired',
    'renewal-missed',
  ],
  [
    'could not find a JWS signature in the cluster-info ConfigMap for token ID "abcdef"',
    'cluster-info-unsigned',
    'expired-token',
  ],
  [
    'cluster CA found in cluster-info ConfigMap is invalid: none of the public keys "sha256:00" are pinned',
    'pin-mismatch',
    'ca-was-replaced',
  ],
  ['cannot create certificate signing request: Unauthorized', 'unauthorized', 'expired-kubelet-client'],
  [
    'failed to run Kubelet: cannot create certificate signing request: the moon is full',
    'request-not-sent',
    'api-server-rejects-kubelet',
  ],
  [
    'The connection to the server 192.0.2.10:6443 was refused - did you specify the right host or port?',
    'connection-refused',
    'stopped-by-its-certificates',
  ],
  ['net/http: TLS handshake timeout', 'handshake-timeout', 'overloaded-or-cut-off'],
  ['http: server gave HTTP response to HTTPS client', 'tls-on-one-side-only', 'http-instead-of-https'],
  ['remote error: tls: handshake failure', 'nothing-in-common', 'versions-or-ciphers'],
  [`error: Metrics API not available`, 'aggregated-api-unavailable', 'its-server-or-its-certificate'],
  [
    `Error from server (ServiceUnavailable): the server is currently unable to handle the request (get nodes.metrics.k8s.io)`,
    'aggregated-api-unavailable',
    'its-server-or-its-certificate',
  ],
  [
    `E1122 05:00:00 kubelet.go:2466] "Error getting node" err="node \\"w1\\" not found"\nNov 22 05:00:00 w1 kubelet[812]: E1122 05:00:00.1 812 bootstrap.go:266] part of the existing bootstrap client certificate in /etc/kubernetes/kubelet.conf is expired: 2026-11-01 00:00:00 +0000 UTC\nNov 22 05:00:00 w1 kubelet[812]: E1122 run.go:74] "command failed" err="failed to run Kubelet: unable to load bootstrap kubeconfig: stat /etc/kubernetes/bootstrap-kubelet.conf: no such file or directory"`,
    'kubelet-client-expired',
    'renewal-missed',
  ],
  [
    `W1122 05:00:00.123 1 logging.go:55] [core] [Channel #1 SubChannel #2]grpc: addrConn.createTransport failed to connect to {Addr: "127.0.0.1:2379", ServerName: "127.0.0.1:2379", }. Err: connection error: desc = "transport: authentication handshake failed: tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-11-22T05:00:00Z is after 2026-11-01T00:00:00Z"`,
    'certificate-expired',
    'expired-server-certificate',
  ],
  [
    `{"level":"warn","ts":"2026-11-22T05:00:00.123Z","caller":"embed/config_logging.go:160","msg":"rejected connection","remote-addr":"10.0.0.2:48292","server-name":"","error":"remote error: tls: bad certificate"}`,
    'client-refuses-server',
    'client-does-not-trust-ca',
  ],
  [
    `{"level":"warn","ts":"2026-11-22T05:00:00.123Z","caller":"rafthttp/probing_status.go:68","msg":"prober detected unhealthy status","round-tripper-name":"ROUND_TRIPPER_RAFT_MESSAGE","remote-peer-id":"8e9e05c52164694d","rtt":"0s","error":"x509: certificate signed by unknown authority (possibly because of \\"crypto/rsa: verification error\\" while trying to verify candidate authority certificate \\"etcd-ca\\")"}`,
    'unknown-authority',
    'etcd-ca-differs',
  ],
  [
    `2020-01-01 00:00:00.000000 I | embed: rejected connection from "10.0.0.2:48292" (error "tls: failed to verify client's certificate: x509: certificate has expired or is not yet valid", ServerName "")`,
    'client-certificate-expired',
    'expired-client-certificate',
  ],
  [`{"level":"warn","msg":"rejected connection","error":"EOF"}`, 'connection-closed', 'health-check'],
  [
    `E1122 controller.go:146] "Unhandled Error" err="error updating APIService \\"v1beta1.metrics.k8s.io\\" with retry...: failing or missing response from https://10.96.12.3:443/apis/metrics.k8s.io/v1beta1: Get \\"https://10.96.12.3:443/apis/metrics.k8s.io/v1beta1\\": tls: failed to verify certificate: x509: certificate signed by unknown authority"`,
    'unknown-authority',
    'ca-bundle-stale',
  ],
  [
    `tls: failed to verify certificate: x509: “kube-apiserver” certificate is not standards compliant`,
    'refused-by-platform',
    'valid-for-too-long',
  ],
  [`x509: “*.example.com” certificate is expired`, 'certificate-expired', 'expired-server-certificate'],
  [
    `Error response from daemon: Get "https://registry.local:5000/v2/": tls: failed to verify certificate: x509: certificate signed by unknown authority`,
    'unknown-authority',
    'private-ca-not-given',
  ],
  [
    `failed to pull and unpack image "registry.local/foo:latest": failed to resolve reference "registry.local/foo:latest": failed to do request: Head "https://registry.local/v2/foo/manifests/latest": tls: failed to verify certificate: x509: certificate relies on legacy Common Name field, use SANs instead`,
    'legacy-common-name',
    'created-without-sans',
  ],
  [
    `Error: INSTALLATION FAILED: Kubernetes cluster unreachable: Get "https://10.0.0.1:6443/version": tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-11-22T14:00:00+09:00 is after 2026-11-21T00:00:00Z`,
    'certificate-expired',
    'expired-server-certificate',
  ],
  [
    `error execution phase check-etcd: etcd cluster is not healthy: failed to dial endpoint https://10.0.0.1:2379 with maintenance client: context deadline exceeded`,
    'etcd-deadline',
    'refused-and-tried-again',
  ],
  [
    `error execution phase preflight: couldn't validate the identity of the API Server: Get "https://10.0.0.1:6443/api/v1/namespaces/kube-public/configmaps/cluster-info?timeout=10s": dial tcp 10.0.0.1:6443: connect: no route to host`,
    'not-reached',
    'network-or-name',
  ],
  [
    `error execution phase certs/apiserver: [certs] certificate apiserver not signed by CA certificate ca: x509: certificate signed by unknown authority (possibly because of "crypto/rsa: verification error" while trying to verify candidate authority certificate "kubernetes")`,
    'not-signed-by-ca-file',
    'leaves-of-another-ca',
  ],
  [
    `requests.exceptions.SSLError: HTTPSConnectionPool(host='10.0.0.1', port=6443): Max retries exceeded with url: /api (Caused by SSLError(SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: IP address mismatch, certificate is not valid for '10.0.0.1'. (_ssl.c:1006)")))`,
    'no-address-in-certificate',
    'name-not-in-certificate',
  ],
  [
    `ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: Missing Authority Key Identifier (_ssl.c:1028)`,
    'strict-rules',
    'created-without-extensions',
  ],
  [
    `OSError: Could not find a suitable TLS CA certificate bundle, invalid path: /etc/ssl/ca.pem`,
    'file-not-read',
    'missing-or-closed',
  ],
  [
    `ssl.SSLEOFError: EOF occurred in violation of protocol (_ssl.c:1129)`,
    'connection-closed',
    'proxy-without-server',
  ],
  [`ssl.SSLError: [SSL] PEM lib (_ssl.c:4067)`, 'not-pem', 'wrong-content'],
  [
    `Error: self-signed certificate; if the root CA is installed locally, try running Node.js with --use-system-ca\n code: 'DEPTH_ZERO_SELF_SIGNED_CERT'`,
    'self-signed-leaf',
    'default-certificate',
  ],
  [
    `TypeError: fetch failed\n  [cause]: Error: certificate has expired\n      code: 'CERT_HAS_EXPIRED'`,
    'certificate-expired',
    'expired-server-certificate',
  ],
  [
    `curl: (60) SSL certificate problem: unable to get local issuer certificate\nMore details here: https://curl.se/docs/sslcerts.html`,
    'unknown-authority',
    'ca-of-another-cluster',
  ],
  [
    `curl: (56) OpenSSL SSL_read: OpenSSL/3.0.11: error:0A00045C:SSL routines::tlsv13 alert certificate required, errno 0`,
    'alert-certificate-required',
    'no-client-certificate',
  ],
  [
    `curl: (35) OpenSSL SSL_connect: Connection reset by peer in connection to 10.0.0.1:6443`,
    'connection-closed',
    'proxy-without-server',
  ],
  [
    `curl: (77) error setting certificate verify locations:  CAfile: /etc/kubernetes/pki/ca.crt CApath: none`,
    'file-not-read',
    'missing-or-closed',
  ],
  [
    `curl: (60) server certificate verification failed. CAfile: /etc/ssl/certs/ca-certificates.crt CRLfile: none`,
    'verification-failed',
    'reason-not-stated',
  ],
  [
    `curl: (60) schannel: SEC_E_UNTRUSTED_ROOT (0x80090325) - The certificate chain was issued by an authority that is not trusted.`,
    'unknown-authority',
    'ca-of-another-cluster',
  ],
  [
    `Invoke-WebRequest : The underlying connection was closed: Could not establish trust relationship for the SSL/TLS secure channel.`,
    'verification-failed',
    'reason-not-stated',
  ],
  [
    `System.Security.Authentication.AuthenticationException: The remote certificate is invalid because of errors in the certificate chain: PartialChain`,
    'unknown-authority',
    'ca-of-another-cluster',
  ],
  [
    `The remote certificate is invalid according to the validation procedure: RemoteCertificateNameMismatch`,
    'name-mismatch',
    'name-not-in-certificate',
  ],
  [
    `ERROR: cannot verify 10.0.0.1's certificate, issued by ‘CN=kubernetes’:\n  Unable to locally verify the issuer's authority.`,
    'unknown-authority',
    'ca-of-another-cluster',
  ],
  [
    `javax.net.ssl.SSLPeerUnverifiedException: Hostname 10.0.0.1 not verified:\n    certificate: sha256/aaa=\n    DN: CN=kube-apiserver\n    subjectAltNames: [10.96.0.1]`,
    'name-mismatch',
    'name-not-in-certificate',
  ],
  [
    `javax.net.ssl.SSLException: Unsupported or unrecognized SSL message`,
    'tls-on-one-side-only',
    'http-instead-of-https',
  ],
  [`NET::ERR_CERT_WEAK_SIGNATURE_ALGORITHM`, 'signature-weak', 'old-certificate'],
  [`ERR_BAD_SSL_CLIENT_AUTH_CERT`, 'alert-bad-certificate', 'client-of-another-ca'],
  [`ERR_SSL_PROTOCOL_ERROR`, 'tls-on-one-side-only', 'http-instead-of-https'],
  [`MOZILLA_PKIX_ERROR_SELF_SIGNED_CERT`, 'self-signed-leaf', 'default-certificate'],
  [`SEC_ERROR_REUSED_ISSUER_AND_SERIAL`, 'serial-reused', 'serial-numbers-repeated'],
  [`SEC_ERROR_BAD_SIGNATURE`, 'signature-wrong', 'same-name-other-key'],
  [`SSL_ERROR_RX_CERTIFICATE_REQUIRED_ALERT`, 'alert-certificate-required', 'no-client-certificate'],
  [
    `invalid peer certificate: certificate not valid for name "api.example.com"; certificate is only valid for DnsName("x")`,
    'name-mismatch',
    'name-not-in-certificate',
  ],
  [
    `invalid peer certificate: certificate expired: verification time 1700000000 (UNIX), but certificate is not valid after 1690000000 (10000000 seconds ago)`,
    'certificate-expired',
    'expired-server-certificate',
  ],
  [
    `2026/11/22 05:00:00 [error] 7#7: *1 upstream SSL certificate verify error: (20:unable to get local issuer certificate) while SSL handshaking to upstream`,
    'unknown-authority',
    'ca-of-another-cluster',
  ],
  [
    `400 Bad Request\nThe plain HTTP request was sent to HTTPS port`,
    'tls-on-one-side-only',
    'http-instead-of-https',
  ],
  [`400 No required SSL certificate was sent`, 'alert-certificate-required', 'no-client-certificate'],
  [
    `upstream connect error or disconnect/reset before headers. reset reason: remote connection failure, transport failure reason: TLS error: 268435581:SSL routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED`,
    'verification-failed',
    'mesh-ca-changed',
  ],
  [
    `transport failure reason: TLS_error:|268435703:SSL routines:OPENSSL_internal:WRONG_VERSION_NUMBER:TLS_error_end`,
    'tls-on-one-side-only',
    'http-instead-of-https',
  ],
  [
    `Unable to connect to the server: x509: certificate signed by unknown authority (possibly because of "x509: invalid signature: parent certificate cannot sign this kind of certificate"...`,
    'unknown-authority',
    'ca-of-another-cluster',
  ],
  [
    `error: unable to upgrade connection: Forbidden (user=kube-apiserver-kubelet-client, verb=create, resource=nodes, subresource=proxy)`,
    'kubelet-forbids',
    'kubelet-client-without-rights',
  ],
  [
    `Error from server: error dialing backend: remote error: tls: internal error`,
    'alert-internal-error',
    'kubelet-serving-unapproved',
  ],
  [
    `Error from server: error dialing backend: tls: failed to verify certificate: x509: certificate signed by unknown authority`,
    'unknown-authority',
    'kubelet-serves-self-signed',
  ],
  [
    `Error from server: error dialing backend: dial tcp 10.0.0.2:10250: i/o timeout`,
    'not-reached',
    'network-or-name',
  ],
  [`error: unable to load root certificates: unable to parse bytes as PEM block`, 'not-pem', 'wrong-content'],
  [
    `error: unable to read client-cert /var/lib/kubelet/pki/kubelet-client-current.pem for default-auth due to open /var/lib/kubelet/pki/kubelet-client-current.pem: permission denied`,
    'file-not-read',
    'missing-or-closed',
  ],
  [
    `error: specifying a root certificates file with the insecure flag is not allowed`,
    'insecure-with-ca',
    'both-are-set',
  ],
  [
    `E1122 authentication.go:73] "Unable to authenticate the request" err="[invalid bearer token, square/go-jose: error in cryptographic primitive]"`,
    'token-signed-by-another-key',
    'service-account-keys-differ',
  ],
  [
    `tls: peer doesn't support any of the certificate's signature algorithms`,
    'nothing-in-common',
    'versions-or-ciphers',
  ],
  [`Unable to connect to the server: EOF`, 'connection-closed', 'proxy-without-server'],
]

test.each(texts)('%s', (text, id, cause) => {
  const [first] = explain(text).errors
  expect({ id: first?.id, cause: first?.causes[0]?.id }).toEqual({ id, cause })
})

test.each(triedMessages)(
  'finds %s as the first cause of each message that was tried',
  (outcome, messages) => {
    const others = messages
      .map((message) => ({ message, error: explain(message).errors[0] }))
      .filter(({ error }) => `${error?.id} > ${error?.causes[0]?.id}` !== outcome)
    expect(others.map(({ message, error }) => [message, error?.id, error?.causes[0]?.id])).toEqual([])
  },
)

test('reports an error that is not about certificates as unknown', () => {
  for (const message of otherMessages)
    expect(explain(message), message).toMatchObject({ errors: [], subject: 'other' })
})

test('covers every rule with a text above, or a message that was tried', () => {
  const shown = new Set([
    ...texts.map(([, id]) => id),
    ...triedMessages.map(([outcome]) => outcome.split(' > ')[0]),
  ])
  expect(rules.map(({ id }) => id).filter((id) => !shown.has(id))).toEqual([])
})

test('finds every rule by each of its phrases, unless another rule takes precedence for a reason', () => {
  for (const { id, words, holds } of rules) {
    if (holds !== undefined) continue
    for (const phrase of words) {
      const ids = idsOf(phrase)
      const earlier = rules.filter((rule) => rule.words.includes(phrase)).map((rule) => rule.id)
      expect(ids.length, phrase).toBeGreaterThan(0)
      expect([id, ...earlier], phrase).toContain(ids[0])
    }
  }
})

describe('puts names, hosts and times of the text into the commands', () => {
  test('a name that is not in the certificate', () => {
    const text =
      'Get "https://192.0.2.10:6443/": x509: certificate is valid for a.example.com, 10.96.0.1, not b.example.com'
    const [error] = explain(text).errors
    expect(error?.found).toMatchObject({
      endpoints: ['192.0.2.10:6443'],
      serverName: 'b.example.com',
      certificateNames: ['a.example.com', '10.96.0.1'],
    })
    expect(commandsOf(text)).toEqual(
      expect.arrayContaining([
        'kcert probe 192.0.2.10:6443 --name b.example.com',
        'kcert verify 192.0.2.10:6443 --roots ~/.kube/config --name a.example.com',
      ]),
    )
  })

  test('the expiry time, and a clock that is years ahead', () => {
    const refusedAt = (now: string): string =>
      `certificate has expired or is not yet valid: current time ${now} is after 2026-11-20T02:00:00+02:00`
    expect(explain(refusedAt('2026-11-23T00:00:00Z')).errors[0]?.meaning).toBe(
      'the certificate of the server, or its CA, expired on 2026-11-20T00:00:00Z, 3 days before the time on the verifying side',
    )
    expect(explain(refusedAt('2099-01-01T00:00:00Z')).errors[0]?.causes[0]).toMatchObject({
      id: 'clock-ahead',
      evidence: expect.stringContaining('2099-01-01T00:00:00Z'),
    })
  })

  test('IPv6, a token in a URL, escaped quotes', () => {
    const text =
      'err="Get \\"https://s3cr3t-user:hunter2@[2001:db8::1]:6443/api\\": x509: certificate signed by unknown authority"'
    expect(explain(text).errors[0]?.found.endpoints).toEqual(['[2001:db8::1]:6443'])
    expect(JSON.stringify(explain(text))).not.toMatch(/hunter2|s3cr3t/)
  })

  test.each(['->', '-\\u003e'])(
    'the server of a connection with both endpoints, "%s" in between',
    (arrow) => {
      const text = `"error":"dial tcp 10.0.0.9:41234${arrow}10.0.0.1:6443: connect: connection refused"`
      expect(explain(text).errors[0]?.found.endpoints).toEqual(['10.0.0.1:6443'])
    },
  )

  test('probes many servers of a log together, each once, and counts them', () => {
    const line = (host: string): string =>
      `dial: Get "https://${host}:10250/": remote error: tls: internal error\n`
    const text = [1, 2, 3, 2, 1].map((n) => line(`192.0.2.${n}`)).join('')
    const { errors } = explain(text)
    expect(errors).toHaveLength(1)
    expect(errors[0]).toMatchObject({ count: 5, line: 1 })
    expect(errors[0]?.found.endpoints).toEqual(['192.0.2.1:10250', '192.0.2.2:10250', '192.0.2.3:10250'])
  })

  test('does not use an endpoint from another line of a long text', () => {
    const text =
      'Get "https://a.example.com/"\nGet "https://b.example.com/"\nremote error: tls: bad certificate\n'
    expect(explain(text).errors[0]?.found.endpoints).toEqual([])
  })
})

describe('reads texts as they are pasted', () => {
  test('broken by a terminal in the middle of a word, and colored', () => {
    expect(idsOf('\x1b[31mx509: certificate sig\n   ned by unkno\nwn authority\x1b[0m')).toEqual([
      'unknown-authority',
    ])
  })

  test('from grep --color, a terminal with links, and a log from Windows', () => {
    const colouredByGrep = 'x509: certificate signed by \x1b[01;31m\x1b[Kunknown\x1b[m\x1b[K authority'
    const link = '\x1b]8;;https://a.example.com\x1b\\certificate signed\x1b]8;;\x1b\\ by unknown authority'
    for (const text of [colouredByGrep, link, 'certificate signed\r\nby unknown authority\r\n'])
      expect(idsOf(text)).toEqual(['unknown-authority'])
  })

  test.each([
    ['"msg":"rejected connection","error":"EOF"', 'EOF'],
    ['failed to list *v1.Node: Unauthorized', 'Unauthorized'],
    ['"reason":"Unauthorized"', '"reason":"Unauthorized"'],
    ['error: You must be logged in to the server', 'You must be logged in to the server'],
  ])('shows the phrase of %s without the preceding punctuation', (text, words) => {
    expect(explain(text).errors[0]?.message).toBe(words)
  })

  test('ignores a hint that a log has cut off', () => {
    const cut =
      'x509: certificate signed by unknown authority (possibly because of "x509: invalid signature: parent certificate cannot sign this kind of certificate"...\nremote error: tls: internal error'
    expect(idsOf(cut)).toEqual(['unknown-authority', 'alert-internal-error'])
  })

  test("does not treat the manual in curl's message as the server", () => {
    const text =
      'curl: (60) SSL certificate problem: unable to get local issuer certificate\nMore details here: https://curl.se/docs/sslcerts.html\n'
    expect(explain(text).errors[0]?.found.endpoints).toEqual([])
  })

  test("explains an identity provider's certificate that the API server, as a client, rejects", () => {
    const text =
      '"Unable to authenticate the request" err="[invalid bearer token, oidc: verify token: fetching keys oidc: get keys failed: Get \\"https://dex.example.com/keys\\": x509: certificate signed by unknown authority]"'
    expect(explain(text).errors).toMatchObject([{ id: 'unknown-authority', found: { side: 'unknown' } }])
  })

  test('ignores a hint in brackets', () => {
    const [error, ...others] = explain(texts[0]![0]).errors
    expect(others).toEqual([])
    expect(error?.found.candidate).toBe('kubernetes')
    expect(error?.message).toBe('certificate signed by unknown authority')
  })

  test('omits generic errors next to specific ones', () => {
    expect(idsOf('connection refused\nremote error: tls: internal error')).toEqual(['alert-internal-error'])
  })

  test('says whether an unknown message is about certificates', () => {
    const { errors, subject, next } = explain('x509: the moon is full')
    expect({ errors, subject }).toEqual({ errors: [], subject: 'certificates' })
    expect(next.map(({ command }) => command)).toContain('kcert probe --api-servers')
    expect(explain('segmentation fault (core dumped)')).toMatchObject({ errors: [], subject: 'other' })
    expect(explain(handshakeLog).subject).toBeUndefined()
  })

  test("reads Terraform's frame and JSON escapes", () => {
    expect(
      idsOf('│ tls: failed to verify certificate: x509: certificate signed by unknown\n│ authority\n'),
    ).toEqual(['unknown-authority'])
    expect(idsOf('pods is forbidden: User \\"system:anonymous\\" cannot list')).toEqual(['anonymous'])
  })

  test('reads a log of four megabytes to its end, and counts each error once', () => {
    const line = 'Get "https://192.0.2.1:10250/": remote error: tls: internal error node="w1" '.repeat(2)
    for (const [text, times] of [
      [`${line}\n`.repeat(26_000), 52_000],
      // No line break, and phrases that are broken everywhere.
      [line.repeat(26_000), 52_000],
      [[...line].join('\n').repeat(3_500), 7_000],
    ] as const)
      expect(explain(text).errors[0]?.count).toBe(times)
  })

  test('counts an error once if it is stated in two ways, and twice if it occurs twice', () => {
    const line =
      'error: You must be logged in to the server (the server has asked for the client to provide credentials)'
    for (const [text, times] of [
      [line, 1],
      [`${line}\n${line}\n`, 2],
      [`${line} ${line}`, 2],
      ['error: You must be logged in to the server (Unauthorized)', 1],
    ] as const)
      expect(explain(text).errors.map((error) => error.count)).toEqual([times])
  })

  test('accepts bytes that are not text', () => {
    const bytes = new TextDecoder('latin1').decode(
      Uint8Array.from({ length: 100_000 }, (_, i) => (i * i) >> 3),
    )
    expect(explain(bytes).errors).toEqual([])
    expect(idsOf(`${bytes}x509: certificate signed by unknown authority${bytes}`)).toEqual([
      'unknown-authority',
    ])
  })
})

test('does not print secrets from the text', () => {
  const secrets = [
    'eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.eyJzdWIiOiJhIn0.c2lnbmF0dXJl',
    'abcdef.0123456789abcdef',
    'MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7',
    'hunter2',
    'ghp_0123456789abcdefghijklmnopqrstuvwxyz',
  ]
  const around = secrets.map(
    (secret) =>
      `curl -H "Authorization: Bearer ${secret}" --password ${secret} https://${secret}@192.0.2.1:6443 https://${secret}/ host='${secret}', port=443 user "${secret}" node=${secret} webhook "${secret}" candidate authority certificate "${secret}" /etc/${secret}/${secret}.pem certificate is valid for ${secret}, not ${secret} x509: certificate signed by unknown authority`,
  )
  const shown = JSON.stringify(
    explain(`${around.join('\n')}\n-----BEGIN PRIVATE KEY-----\n${secrets[2]}\n-----END PRIVATE KEY-----\n`),
  )
  // A short password in the position of a name is treated as a name, but must not appear elsewhere.
  for (const secret of secrets.filter((one) => one !== 'hunter2')) expect(shown).not.toContain(secret)
  expect(
    JSON.stringify(explain('Bearer hunter2 --password=hunter2 https://u:hunter2@a/ tls: bad certificate')),
  ).not.toContain('hunter2')
})

test.each([
  ['err="Unauthorized" when it should register node with the API server, node="w1"', 'w1'],
  ['"Unable to register node with API server" err="Unauthorized" node="w1"', 'w1'],
  ['Unable to register node with API server: Unauthorized', undefined],
  ['error: Unauthorized, node w1', 'w1'],
])('uses the node’s name, not another word after "node": %s', (text, node) => {
  expect(explain(text).errors[0]?.found.node).toBe(node)
})

test('requests an IP address in the name as an IP address', () => {
  expect(commandsOf('No subject alternative names present https://10.0.0.5:6443/api')).toContainEqual(
    expect.stringMatching(/^kcert csr create --cn 10\.0\.0\.5 --ip 10\.0\.0\.5 /),
  )
})

test.each([
  ['10.0.0.2:10250', '/var/lib/kubelet/pki/kubelet-server-current.pem'],
  ['10.0.0.2:2379', '/etc/kubernetes/pki/etcd/server.crt'],
  ['10.0.0.2:6443', '/etc/kubernetes/pki/apiserver.crt'],
])('advises to check the file of %s for a renewed certificate that is not served', (endpoint, file) => {
  const text = `Get "https://${endpoint}/": x509: certificate has expired or is not yet valid: current time 2026-11-22T11:38:43Z is after 2026-11-20T23:59:59Z`
  const inspected = commandsOf(text).filter((command) => /^kcert inspect \/\S+\.(?:crt|pem)$/.test(command))
  expect(inspected).toEqual([`kcert inspect ${file}`])
})

describe('every advised command exists', () => {
  interface CachedFlag {
    readonly name: string
    readonly char?: string
    readonly type: 'boolean' | 'option'
    readonly options?: readonly string[]
    readonly allowNo?: boolean
  }
  const { commands } = JSON.parse(readFileSync('oclif.manifest.json', 'utf8')) as {
    commands: Record<
      string,
      { flags: Record<string, CachedFlag>; args: Record<string, { required?: boolean; multiple?: boolean }> }
    >
  }

  const plain: Found = { endpoints: [], certificateNames: [], files: [], side: 'unknown' }
  const situations: readonly Found[] = [
    plain,
    { ...plain, side: 'server', candidate: 'kubernetes' },
    {
      ...plain,
      endpoints: ['192.0.2.1:6443', '[2001:db8::1]:6443'],
      serverName: 'a.example.com',
      certificateNames: ['b.example.com'],
    },
    { ...plain, endpoints: ['192.0.2.1:10250'], node: 'w1', files: ['/etc/kubernetes/kubelet.conf'] },
    { ...plain, endpoints: ['192.0.2.1:2379'], files: ['/etc/kubernetes/pki/etcd/ca.crt'] },
    { ...plain, endpoints: ['hook.shop.svc:443'], webhook: 'a.example.com', serverName: 'hook.shop.svc' },
    { ...plain, tokenId: 'abcdef', files: ['~/.kube/config', "/tmp/it's.pem"] },
    { ...plain, notAfter: '2026-01-01T00:00:00Z', currentTime: '2026-02-01T00:00:00Z' },
    {
      ...plain,
      notBefore: '2026-03-01T00:00:00Z',
      currentTime: '2026-02-01T00:00:00Z',
      apiGroup: 'metrics.k8s.io',
    },
  ]

  const advised = (rule: Rule): string[] =>
    situations.flatMap((found) =>
      rule.causes
        .filter(({ holds }) => holds?.(found) ?? true)
        .flatMap(({ checks }) => checks(found).map(({ command }) => command)),
    )

  test.each(rules.map((rule) => [rule.id, rule] as const))('%s', (_, rule) => {
    for (const command of advised(rule)) expect(faultOf(command), command).toBeUndefined()
    expect(advised(rule).length).toBeGreaterThan(0)
    for (const found of situations) {
      if (rule.holds?.(found) === false) continue
      const causes = rule.causes.filter(({ holds }) => holds?.(found) ?? true)
      expect(causes.length, `${rule.id} has no cause for ${JSON.stringify(found)}`).toBeGreaterThan(0)
    }
  })

  test('commands for unknown errors', () => {
    for (const found of situations)
      for (const { command } of [...unknownError(found), ...otherSubject()])
        expect(faultOf(command)).toBeUndefined()
  })

  test('the command check finds mistakes', () => {
    expect(faultOf('kcert prob --nodes')).toBe('no such command')
    expect(faultOf('kcert probe --node')).toBe('no flag --node')
    expect(faultOf('kcert inspect --only')).toBe('--only lacks its value')
    expect(faultOf('kcert verify a --roots b --purpose servr')).toBe('--purpose cannot be servr')
    expect(faultOf('kcert bootstrap check')).toBe('node is missing')
    expect(faultOf('kcert renew a b c')).toBeUndefined()
    expect(faultOf('rm -rf /')).toBe('not of kcert')
  })

  /** Returns the error of kcert's parser for a command line. */
  function faultOf(command: string): string | undefined {
    if (command === 'date -u') return undefined
    const [program, ...words] = (command.match(/(?:'[^']*'|\\'|[^\s'\\]+)+/g) ?? []).map((word) =>
      word.replaceAll(/'([^']*)'/g, '$1').replaceAll("\\'", "'"),
    )
    if (program !== 'kcert') return 'not of kcert'
    const length = [3, 2, 1].find(
      (count) => words.length >= count && words.slice(0, count).join(':') in commands,
    )
    if (length === undefined) return 'no such command'
    const { flags, args } = commands[words.slice(0, length).join(':')]!
    const operands: string[] = []
    for (let i = length; i < words.length; i++) {
      const word = words[i]!
      if (!word.startsWith('-') || word === '-') {
        operands.push(word)
        continue
      }
      const flag = Object.values(flags).find(({ name, char }) => word === `--${name}` || word === `-${char}`)
      if (flag === undefined) {
        if (word === '--help') continue
        return `no flag ${word}`
      }
      if (flag.type === 'boolean') continue
      const value = words[++i]
      if (value === undefined) return `${word} lacks its value`
      if (flag.options !== undefined && !flag.options.includes(value)) return `${word} cannot be ${value}`
    }
    const missing = Object.entries(args).filter(([, { required }]) => required)[operands.length]
    return missing && `${missing[0]} is missing`
  }
})
