// "remote error": the TLS alert that the peer sent before it closed the connection. Only the peer's log has details. In a
// server's log the peer is the client, which rejects the server's certificate.

export const alerts = `
# client-refuses-server if side=server: in the log of a server: a client closed the connection because it rejects the certificate of this server
> tls alert: bad certificate | tls alert: unknown certificate authority / unknown ca
> tls alert: unknown certificate / certificate unknown | tls alert: expired certificate / certificate expired
- client-does-not-trust-ca: the client trusts another CA than the one that signed the certificate of this
  server: it has the CA from before a rotation, or none
  $ kcert probe --all # NOT_TRUSTED: it is the server; all ok: it is that client
  $ if at=etcd: kcert inspect /etc/kubernetes/pki -o tree # on each control plane: server or peer not signed by etcd/ca.crt, or another etcd/ca.crt than on the others
  $ if at!=etcd: kcert rotate-ca verify # pods and kubeconfigs that still contain an old CA
  $ if endpoint: {verify} # whether its chain verifies with the CA of its clients
- expired-own-certificate: the certificate of this server expired, or its SANs lack the name that the client uses
  $ kcert probe --all # CERT_EXPIRED or NAME_NOT_COVERED
  $ kcert inspect /etc/kubernetes /var/lib/kubelet/pki --only problem # on the node of this server: what is wrong there
- health-check-or-scanner: a health check, a scanner or a browser that does not know the CA: the same address repeatedly, and nothing else fails
  $ kcert probe --api-servers # all ok: the cluster is fine

# alert-bad-certificate: {server} rejects the client certificate; only its log has the reason
> tls alert: bad certificate | ERR_BAD_SSL_CLIENT_AUTH_CERT | SSL_ERROR_BAD_CERT_ALERT
> The SSL certificate error
- client-of-another-ca: the client certificate is of a CA that the server does not trust: another cluster, the
  CA before a rotation, the cluster CA shown to etcd
  $ {probe} # CLIENT_REFUSED, with the CAs that the server accepts
  $ if at=etcd: kcert verify /etc/kubernetes/pki/apiserver-etcd-client.crt --roots {clientCa} --purpose client # NOT
    TRUSTED: the API server presents a certificate that its etcd rejects
  $ if at!=etcd: kcert verify {kubeconfig} # NOT TRUSTED by the CA in the same kubeconfig
- expired-client-certificate: the client certificate expired
  $ if at=etcd: kcert inspect /etc/kubernetes/pki/apiserver-etcd-client.crt # a client certificate that is
    expired
  $ if at!=etcd: kcert inspect {kubeconfig} # a client certificate that is expired
  $ kcert inspect /etc/kubernetes /var/lib/kubelet/pki --only expired # on the node of the client: what expired
- client-usage-wrong: the client certificate is for servers only: its extended key usages lack clientAuth. Current Go servers report unknown CAs and expired certificates as such, so with them this is the remaining cause
  $ kcert verify CLIENT.crt --roots CA.crt --purpose client # NOT TRUSTED because of its usages
- no-client-certificate: the server requires a client certificate, and the client presented none: not
  configured, or it has none of the requested CAs
  $ {probe} # "requested", with the CAs that the server names
  $ if at=etcd: kcert inspect /etc/kubernetes/pki/apiserver-etcd-client.crt # what the API server must present
    (--etcd-certfile), and etcdctl (--cert, --key)
  $ if at!=etcd: kcert inspect {kubeconfig} # no client certificate for the user of the context

# alert-certificate-required: if side=server: a client presented no certificate to a server that requires one
  || {server} requires a client certificate, and got none
> tls alert: certificate required | tls: client didn't provide a certificate
> peer did not return a certificate | SSL_ERROR_RX_CERTIFICATE_REQUIRED_ALERT
> No required SSL certificate was sent
- no-client-certificate

# alert-unknown-authority: {server} does not trust the CA of the client certificate
> tls alert: unknown certificate authority / unknown ca
- client-of-another-ca

# alert-unknown-certificate: the other side rejects the certificate without a reason
> tls alert: unknown certificate / certificate unknown
- client-of-another-ca, expired-client-certificate, client-usage-wrong

# alert-expired-certificate: {server} rejects the client certificate because it expired
> tls alert: expired certificate / certificate expired
- expired-client-certificate
- clock-of-server: the clock of the server is ahead
  $ date -u # on {server}: a wrong time

# alert-internal-error: if at=kubelet: the kubelet[ at {endpoint}] has no serving certificate: its request is not approved || if at=unknown: {server} has no certificate: for a kubelet, its request was never approved || {server} has no certificate, or failed to select one
> tls alert: internal error | no serving certificate available for the kubelet
- kubelet-serving-unapproved if at=kubelet,unknown: with serverTLSBootstrap a kubelet requests its serving certificate, and Kubernetes does not approve it by itself: logs, exec, port-forward and metrics fail until you approve it
  ! {kubeletCalled}
  $ kcert csr list --pending --signer kubernetes.io/kubelet-serving # a request[ of system:node:{node}] that is pending
  $ kcert csr approve --policy kubelet-serving --dry-run # which of them are valid; without --dry-run they are approved
- kubelet-serving-refused if at=kubelet,unknown: the request was denied, failed, or was deleted before it was approved (after a day), and the kubelet requests again later
  $ kcert csr list --denied --failed # a request of this node
  $ {forecast} # no serving certificate, and since when
- kubelet-store-broken if at=kubelet,unknown: the files in /var/lib/kubelet/pki cannot be used: a dangling link, or a key that does not match
  $ kcert kubelet doctor # on that node: what is wrong; --fix repairs it
- other-server if at!=kubelet: a server that chooses its certificate by name or reads it at each handshake has
  none: a load balancer, an ingress or a service mesh in front of it, a webhook or aggregated API whose Secret
  is empty or not mounted yet
  $ {inspect} # no certificate at all, or an aborted handshake
  $ if at=in-cluster: kcert inspect --cluster --only problem # its Secret

# alert-unsupported-certificate: the other side does not support the certificate: its key type, or its usages
> tls alert: unsupported certificate
- client-usage-wrong

# alert-unrecognized-name: {server} has no certificate for the name that the client asked for (SNI)
> tls alert: unrecognized name | received fatal alert: UnrecognisedName | acme/autocert: missing server name
> acme/autocert: host
- no-certificate-for-name: the server chooses its certificate by name, and has none for this one; or it has
  none at all yet
  $ {inspect} # the certificate that it presents for this name
`
