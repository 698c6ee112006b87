// Unspecific alerts, and handshakes without an alert or a certificate.

export const handshakes = `
// Unspecific alerts, and handshakes that end without an alert.
# no-certificate-sent: {server} has no certificate, or does not use TLS
> no peer certificate available | peer sent no certificates
> neither Certificates, GetCertificate, nor GetConfigForClient set in Config | Secret is not supplied by SDS
- started-without-certificate: the server was started without a certificate, or waits for its Secret (a gateway: credentialName and its namespace); or the server there does not use TLS
  $ {inspect} # no certificate, or that the server does not use TLS
  $ kcert inspect --cluster --only problem # Secrets without a certificate

# alert-decrypt-error: if side=server: in the log of a server: a client rejects the signature of this server: its key does not match its certificate || {server} rejects the signature of the client: its key does not match the client certificate
> tls alert: error decrypting message / decrypt error | ERR_SSL_DECRYPT_ERROR_ALERT
- key-of-another-certificate: certificate and private key do not match, and the program did not check that when it started
  $ kcert inspect {kubeconfig} # KEY_MISMATCH for the client of a user
  $ kcert inspect /etc/kubernetes /var/lib/kubelet/pki --only problem # on the node: KEY_MISMATCH

# alert-access-denied: {server} accepts the client certificate, but its policy rejects that client
> tls alert: access denied
- not-allowed-by-policy: the server allows certain names only (etcd --client-cert-allowed-hostname, a mesh)
  $ kcert inspect {kubeconfig} # the user of the client

# handshake-corrupted: one side did not understand the TLS of the other, or the data changed in transit
> tls alert: decode error | tls alert: illegal parameter | tls alert: unexpected message | tls: bad record MAC
> decryption failed or bad record mac | tls: received unexpected handshake message
> The TLS connection was non-properly terminated
- stream-changed-in-transit: the network changes the stream (a firewall that inspects TLS, a broken network
  card or MTU), or one of the TLS libraries has a bug; certificates are not the cause
  $ {probe} --tls 1.2 # whether TLS 1.2 works
  $ {probe} --tls 1.3 # whether TLS 1.3 works; and from another machine?

// No certificate was checked: the server did not answer, does not speak TLS, or has no TLS version in common.
# etcd-deadline generic if at=etcd: a client of etcd timed out. It says only that, even if either side rejected a certificate
> context deadline exceeded | latest balancer error
- refused-and-tried-again: etcd or its client rejects the certificate of the other: it expired, is of another etcd CA, or lacks the address; the log of etcd has the reason ("rejected connection")
  $ {probe} # CERT_EXPIRED, NOT_TRUSTED, NAME_NOT_COVERED or CLIENT_REFUSED
  $ kcert renew # on the control plane, needs no API server: what expired
- etcd-down-or-slow: etcd does not run, has no quorum, or its disk is slow; certificates are not the cause
  $ {probe} # UNREACHABLE; ok: read its log

# connection-refused generic: nothing listens at {server}: no certificate was involved
> connection refused | was refused - did you specify the right host or port | ECONNREFUSED
> target machine actively refused it
- kubelet-does-not-run if kubeletPort: the kubelet does not run, or restarts repeatedly: no configuration
  yet, swap or cgroups; or an expired client certificate
  ! {kubeletPort} is a port of a kubelet
  $ kcert kubelet doctor # on that node: no problems: then certificates are not the cause, and journalctl -u
    kubelet says what is
- stopped-by-its-certificates if at=api-server,etcd,unknown: a control plane with expired certificates: etcd and the API server reject each other, and the API server restarts repeatedly
  $ kcert renew # on the control plane, needs no API server: what expired; --all renews it
  $ kcert inspect /etc/kubernetes /var/lib/kubelet/pki --only expired # on the control plane: which
    certificates
- not-running: the process is down for another reason, or the address is wrong
  $ {probe} # UNREACHABLE here too: it is not the client

# not-reached generic: {server} was not reached: no certificate was involved
> i/o timeout | context deadline exceeded | no route to host | the connected party did not properly respond
> network is unreachable | connection timed out | no such host | Could not resolve host
> Name or service not known | ETIMEDOUT | EHOSTUNREACH | ENOTFOUND
- network-or-name: a firewall, a route, a name that does not resolve, a network policy, or a load balancer
  without a healthy server; certificates are not the cause
  $ {probe} # UNREACHABLE from here too; otherwise the cause is the network of the client
- stopped-by-its-certificates

# connection-closed generic: if side=server: in the log of a server: a client closed the connection during the handshake || {server} closed the connection during the handshake without an alert
> connection reset by peer | ECONNRESET | forcibly closed by the remote host | ERR_CONNECTION_RESET
> SSL_ERROR_SYSCALL | EOF occurred in violation of protocol | unexpected eof while reading | unexpected EOF
> : EOF | :"EOF" | TLS handshake error from | Remote host terminated the handshake
> socket disconnected before secure TLS connection was established
- health-check if side=server: a load balancer or a scanner that only checks whether the port is open: the same address repeatedly, and nothing else fails
  $ kcert probe --all # all ok: the cluster is fine
- proxy-without-server if side!=server: a load balancer or proxy in between has no healthy server behind it,
  or the process there exits on each request
  $ {probe} # UNREACHABLE through it, and ok at the address of the server itself
- stopped-by-its-certificates if side!=server at=api-server,unknown

# webhook-not-answered generic: API servers call the webhook[ "{webhook}"], and got no valid response
> failed calling webhook | failed to call webhook | conversion webhook for
- webhook-not-served: its Service or pods do not exist or are not ready, a network policy or firewall blocks control planes (its port, not 443, must be open towards the pods), or its application was uninstalled and the webhook was not
  $ kcert probe --webhooks # UNREACHABLE for this one; with -i kcert.yaml it connects from a control plane

# aggregated-api-unavailable generic: an aggregated API (kubectl top: metrics.k8s.io) is registered, and API servers get no response from it
> the server is currently unable to handle the request | Metrics API not available | FailedDiscoveryCheck
> failing or missing response from | loading OpenAPI spec for | no metrics to serve
- its-server-or-its-certificate: its pods do not run, cannot be reached, or serve a certificate that the caBundle of the APIService does not verify; metrics-server is ready only once it trusts the serving certificates of kubelets (see its log)
  $ kcert probe --nodes # for metrics-server: the serving certificates of kubelets
  $ kcert probe --webhooks # NOT_TRUSTED or UNREACHABLE for the Service of the API
  $ kcert inspect --cluster --only problem # a caBundle that is empty, expired or wrong

# handshake-timeout: {server} accepted the connection but did not complete the handshake in time
> TLS handshake timeout | net/http: TLS handshake timeout | handshake timed out
- overloaded-or-cut-off: it is overloaded, or the network drops large packets (MTU), or the server does not use TLS; certificates are not the cause
  $ {probe} --timeout 30s # how long a handshake takes from here

# tls-on-one-side-only: only one side used TLS ({server})
> first record does not look like a TLS handshake | server gave HTTP response to HTTPS client
> client sent an HTTP request to an HTTPS server | wrong version number | ERR_SSL_WRONG_VERSION_NUMBER
> SSL_ERROR_RX_RECORD_TOO_LONG | packet length too long | Unrecognized SSL message, plaintext connection
> oversized record received with length | Unsupported or unrecognized SSL message
> The plain HTTP request was sent to HTTPS port | OPENSSL_internal:WRONG_VERSION_NUMBER
> ERR_SSL_PROTOCOL_ERROR | malformed HTTP response "\\x15\\x03 | An unexpected TLS packet was received
> upstream sent no valid HTTP/1.0 header | received corrupt message of type InvalidContentType
- http-instead-of-https: http and https, or two ports, are mixed up: a URL, a probe of the kubelet, a proxy
  that is addressed by https but uses http (HTTPS_PROXY=https://…)
  $ {inspect} # NO_CERTIFICATE, or that the server does not use TLS

# nothing-in-common: client and {server} have no TLS version, cipher or key type in common; with
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
- versions-or-ciphers: one of them is old or restricted (--tls-min-version, --tls-cipher-suites; a key of
  RSA with ciphers for ECDSA alone)
  $ {probe} --tls 1.2 # whether TLS 1.2 works
  $ {probe} --tls 1.3 # whether TLS 1.3 works
- no-client-certificate: with TLS 1.2 a Go server says handshake failure also if it requires a client certificate and gets none
  $ {probe} # "requested", and the CAs that it accepts
`
