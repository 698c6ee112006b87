// "remote error": what the other side said as a TLS alert before it hung up. It says little, and only its own log says more. In the
// log of a server it is the client that complains, and what it complains of is the server's certificate.

export const alerts = `
# client-refuses-server if side=server: in the log of a server: a client hung up because it does not take the
  certificate of this server
> tls alert: bad certificate | tls alert: unknown certificate authority / unknown ca
> tls alert: unknown certificate / certificate unknown | tls alert: expired certificate / certificate expired
- client-does-not-trust-us: the client trusts another CA than the one that signed the certificate of this
  server: it holds the CA of before a rotation, or none
  $ kcert probe --all # NOT_TRUSTED: then it is the server; all ok: then it is that client
  $ if at=etcd: kcert inspect /etc/kubernetes/pki -o tree # on each control plane: server or peer not below
    etcd/ca.crt, or another etcd/ca.crt than on the others
  $ if at!=etcd: kcert rotate-ca verify # pods and kubeconfigs that still hold an old CA
  $ if endpoint: {verify} # whether the CA of its clients leads there
- our-certificate-ended: the certificate of this server has ended, or lacks the name that the client uses
  $ kcert probe --all # CERT_EXPIRED or NAME_NOT_COVERED
  $ kcert inspect /etc/kubernetes /var/lib/kubelet/pki --only problem # on the node of this server: what is
    wrong there
- health-check-or-scanner: a health check, a scanner or a browser that does not know the CA: one address,
  again and again, and nothing else fails
  $ kcert probe --api-servers # all ok: then nothing of the cluster is wrong

# alert-bad-certificate: {server} refuses the client certificate that it was shown; why stands in its log
  alone
> tls alert: bad certificate | ERR_BAD_SSL_CLIENT_AUTH_CERT | SSL_ERROR_BAD_CERT_ALERT
> The SSL certificate error
- client-of-another-ca: the client certificate is of a CA that the server does not take: another cluster, the
  CA before a rotation, the cluster CA shown to etcd
  $ {probe} # CLIENT_REFUSED, with the CAs that the server asks for
  $ if at=etcd: kcert verify /etc/kubernetes/pki/apiserver-etcd-client.crt --roots {clientCa} --purpose client # NOT
    TRUSTED: the API server shows a certificate that its etcd does not take
  $ if at!=etcd: kcert verify {kubeconfig} # NOT TRUSTED by the CA in the same kubeconfig
- client-certificate-ended: the client certificate has ended
  $ if at=etcd: kcert inspect /etc/kubernetes/pki/apiserver-etcd-client.crt # a client certificate that is
    expired
  $ if at!=etcd: kcert inspect {kubeconfig} # a client certificate that is expired
  $ kcert inspect /etc/kubernetes /var/lib/kubelet/pki --only expired # on the node of the client: what has
    ended
- client-usage-wrong: the client certificate is for servers only: clientAuth is not among its extended key
  usages. Servers in Go of today name an unknown CA and an ended certificate as such, so that with them this
  is what is left
  $ kcert verify CLIENT.crt --roots CA.crt --purpose client # NOT TRUSTED because of its usages
- no-client-certificate: the server insists on a client certificate, and the client showed none: not
  configured, or it has none of the CAs that were asked for
  $ {probe} # "asked for", with the CAs that the server names
  $ if at=etcd: kcert inspect /etc/kubernetes/pki/apiserver-etcd-client.crt # what the API server has to show
    (--etcd-certfile), and etcdctl (--cert, --key)
  $ if at!=etcd: kcert inspect {kubeconfig} # no client certificate for the user of the context

# alert-certificate-required: if side=server: a client showed no certificate to a server that insists on one
  || {server} insists on a client certificate, and was shown none
> tls alert: certificate required | tls: client didn't provide a certificate
> peer did not return a certificate | SSL_ERROR_RX_CERTIFICATE_REQUIRED_ALERT
> No required SSL certificate was sent
- no-client-certificate

# alert-unknown-authority: {server} does not know the CA of the client certificate that it was shown
> tls alert: unknown certificate authority / unknown ca
- client-of-another-ca

# alert-unknown-certificate: the other side refuses the certificate that it was shown, for a reason that it
  does not say
> tls alert: unknown certificate / certificate unknown
- client-of-another-ca, client-certificate-ended, client-usage-wrong

# alert-expired-certificate: {server} refuses the client certificate because it has ended
> tls alert: expired certificate / certificate expired
- client-certificate-ended
- clock-of-server: the clock of the server is ahead of time
  $ date -u # on {server}: another time than the true one

# alert-internal-error: if at=kubelet: the kubelet[ at {endpoint}] has no serving certificate: it asked for
  one, and nobody has approved || if at=unknown: {server} has no certificate to show: for a kubelet that is
  one that was never approved || {server} has no certificate to show, or failed to choose one
> tls alert: internal error | no serving certificate available for the kubelet
- kubelet-serving-unapproved if at=kubelet,unknown: with serverTLSBootstrap a kubelet asks for its serving
  certificate and Kubernetes approves none of those: logs, exec, port-forward and metrics fail until somebody
  does
  ! {kubeletCalled}
  $ kcert csr list --pending --signer kubernetes.io/kubelet-serving # a request[ of system:node:{node}] that
    waits
  $ kcert csr approve --policy kubelet-serving --dry-run # which of them are right; without --dry-run they are
    approved
- kubelet-serving-refused if at=kubelet,unknown: the request was denied, has failed, or was removed before
  anybody looked (a day after it was made), and the kubelet asks again later
  $ kcert csr list --denied --failed # a request of this node
  $ {forecast} # no serving certificate, and since when
- kubelet-store-broken if at=kubelet,unknown: what lies in /var/lib/kubelet/pki cannot be used: a link that
  leads nowhere, a key of another certificate
  $ kcert kubelet doctor # on that node: what is wrong, and --fix mends it
- other-server if at!=kubelet: a server that chooses its certificate by name or reads it at each handshake has
  none: a load balancer, an ingress or a service mesh in front of it, a webhook or aggregated API whose Secret
  is empty or not mounted yet
  $ {inspect} # no certificate at all, or a handshake that is broken off
  $ if at=in-cluster: kcert inspect --cluster --only problem # the Secret that it should have

# alert-unsupported-certificate: the other side cannot use the certificate that it was shown: its kind of key,
  or its usages
> tls alert: unsupported certificate
- client-usage-wrong

# alert-unrecognized-name: {server} has no certificate for the name that the client asked for (SNI)
> tls alert: unrecognized name | received fatal alert: UnrecognisedName | acme/autocert: missing server name
> acme/autocert: host
- no-certificate-for-name: the server chooses its certificate by name, and has none for this one; or it has
  none at all yet
  $ {inspect} # which certificate it shows when asked by this name
`
