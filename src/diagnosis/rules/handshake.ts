// No certificate was looked at: nobody answered, or something answered that is no TLS, or not the same TLS.

export const handshakes = `
# etcd-deadline generic if at=etcd: a client of etcd tried until its time was over. It says no more than that
  also where a certificate was refused, on either side
> context deadline exceeded | latest balancer error
- refused-and-tried-again: etcd or its client does not take the certificate of the other: it has ended, is of
  another etcd CA, or lacks the address; the log of etcd says which ("rejected connection")
  $ {probe} # CERT_EXPIRED, NOT_TRUSTED, NAME_NOT_COVERED or CLIENT_REFUSED
  $ kcert renew # on the control plane, needs no API server: what has ended
- etcd-down-or-slow: etcd does not run, has no quorum, or its disk is slow; it is no matter of certificates
  $ {probe} # UNREACHABLE, or ok: then look at its log

# connection-refused generic: nothing listens at {server}: no certificate was looked at
> connection refused | was refused - did you specify the right host or port | ECONNREFUSED
> target machine actively refused it
- kubelet-does-not-run if kubeletPort: the kubelet does not run, or starts again and again: no configuration
  yet, swap or cgroups; or a client certificate that has ended
  ! {kubeletPort} is a port of a kubelet
  $ kcert kubelet doctor # on that node: in order: then it is no matter of certificates, and journalctl -u
    kubelet says what is
- stopped-by-its-certificates if at=api-server,etcd,unknown: a control plane whose certificates have ended:
  etcd and the API server refuse each other, the API server ends and is started again and again
  $ kcert renew # on the control plane, needs no API server: what has ended; --all renews it
  $ kcert inspect /etc/kubernetes /var/lib/kubelet/pki --only expired # on the control plane: which
    certificates
- not-there: the process is down for another reason, or the address is wrong
  $ {probe} # UNREACHABLE here too: then it is not the client

# not-reached generic: {server} was not reached: no certificate was looked at
> i/o timeout | context deadline exceeded | no route to host | the connected party did not properly respond
> network is unreachable | connection timed out | no such host | Could not resolve host
> Name or service not known | ETIMEDOUT | EHOSTUNREACH | ENOTFOUND
- network-or-name: a firewall, a route, a name that does not resolve, a network policy, or a load balancer
  without a healthy server; it is no matter of certificates
  $ {probe} # UNREACHABLE from here too, or an answer: then it is the way from there
- stopped-by-its-certificates

# cut-short generic: if side=server: in the log of a server: somebody opened a connection and closed it before
  the handshake was over || {server} closed the connection before the handshake was over, and said nothing
> connection reset by peer | ECONNRESET | forcibly closed by the remote host | ERR_CONNECTION_RESET
> SSL_ERROR_SYSCALL | EOF occurred in violation of protocol | unexpected eof while reading | unexpected EOF
> : EOF | :"EOF" | TLS handshake error from | Remote host terminated the handshake
> socket disconnected before secure TLS connection was established
- health-check if side=server: a load balancer or a scanner that only looks whether the port is open: one
  address, again and again, and nothing else fails
  $ kcert probe --all # all ok: then nothing of the cluster is wrong
- proxy-without-server if side!=server: a load balancer or proxy in between has no healthy server behind it,
  or the process there ends as soon as it is asked
  $ {probe} # UNREACHABLE through it, and ok at the address of the server itself
- stopped-by-its-certificates if side!=server at=api-server,unknown

# webhook-not-answered generic: API servers call the webhook[ "{webhook}"], and it gave no answer that counts
> failed calling webhook | failed to call webhook | conversion webhook for
- webhook-not-served: its Service or pods are not there or not ready, a network policy or firewall keeps
  control planes from them (its port, not 443, must be open towards the pods), or what it was installed by is
  gone and the webhook was left
  $ kcert probe --webhooks # UNREACHABLE for this one; with -i kcert.yaml it dials from a control plane

# aggregated-api-unavailable generic: an aggregated API (kubectl top: metrics.k8s.io) is registered, and API
  servers get no answer of it
> the server is currently unable to handle the request | Metrics API not available | FailedDiscoveryCheck
> failing or missing response from | loading OpenAPI spec for | no metrics to serve
- its-server-or-its-certificate: its pods do not run, cannot be reached, or serve a certificate that the
  caBundle of the APIService does not lead to; metrics-server is ready only once kubelets let it in by a
  certificate that it trusts (its own log says)
  $ kcert probe --nodes # for metrics-server: what kubelets serve
  $ kcert probe --webhooks # NOT_TRUSTED or UNREACHABLE for the Service of the API
  $ kcert inspect --cluster --only problem # a caBundle that is empty, expired or wrong

# handshake-timeout: {server} took the connection and did not answer the handshake in time
> TLS handshake timeout | net/http: TLS handshake timeout | handshake timed out
- overloaded-or-cut-off: it is overloaded, or something between drops large packets (MTU) or speaks no TLS; it
  is no matter of certificates
  $ {probe} --timeout 30s # how long a handshake takes from here

# no-tls-there: one side spoke TLS and the other did not ({server})
> first record does not look like a TLS handshake | server gave HTTP response to HTTPS client
> client sent an HTTP request to an HTTPS server | wrong version number | ERR_SSL_WRONG_VERSION_NUMBER
> SSL_ERROR_RX_RECORD_TOO_LONG | packet length too long | Unrecognized SSL message, plaintext connection
> oversized record received with length | Unsupported or unrecognized SSL message
> The plain HTTP request was sent to HTTPS port | OPENSSL_internal:WRONG_VERSION_NUMBER
> ERR_SSL_PROTOCOL_ERROR | malformed HTTP response "\\x15\\x03 | An unexpected TLS packet was received
> upstream sent no valid HTTP/1.0 header | received corrupt message of type InvalidContentType
- http-instead-of-https: http and https, or two ports, are mixed up: a URL, a probe of the kubelet, a proxy
  that is reached by https and speaks http (HTTPS_PROXY=https://…)
  $ {inspect} # NO_CERTIFICATE, or that what answers does not speak TLS

# nothing-in-common: client and {server} have no version of TLS, no cipher or no kind of key in common; with
  TLS 1.2 also: a client certificate is missing
> tls: handshake failure | sslv3 alert handshake failure | tlsv1 alert handshake failure
> ssl/tls alert handshake failure | fatal alert: handshake failure | tls: protocol version not supported
> tlsv1 alert protocol version | ssl/tls alert protocol version | fatal alert: protocol version
> tls: insufficient security level | alert insufficient security | No appropriate protocol
> unsafe legacy renegotiation disabled | dh key too small | peer is incompatible:
> unsupported application protocols | unsupported protocol
> no cipher suite supported by both client and server | client offered only unsupported versions
> server selected unsupported protocol version | no common algorithm | no shared cipher
> ERR_SSL_VERSION_OR_CIPHER_MISMATCH | peer doesn't support any of the certificate's signature algorithms
> tls: no application protocol
- versions-or-ciphers: one of them is old, or was restricted (--tls-min-version, --tls-cipher-suites; a key of
  RSA with ciphers for ECDSA alone)
  $ {probe} --tls 1.2 # whether TLS 1.2 goes
  $ {probe} --tls 1.3 # whether TLS 1.3 goes
- no-client-certificate: with TLS 1.2 a Go server says handshake failure also when it insists on a client
  certificate and gets none
  $ {probe} # "asked for", and the CAs that it takes
`
