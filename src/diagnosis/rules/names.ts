// A certificate that is not for the name or address that the client used.

export const names = `
# certificate-of-another-node: a control plane has the certificate of another node[: its SANs lack {wantedName}]
> is invalid: x509: certificate is valid for | failed to write or validate certificate
> does not match any of DNSNames
- copied-from-another-node: /etc/kubernetes/pki was copied whole: only ca, etcd/ca, front-proxy-ca and sa may be copied; every control plane creates the others for its own names. Or an etcd member connects from an address that is not in its certificate (NAT between the control planes, another network card)
  $ kcert inspect /etc/kubernetes/pki -o wide # on that control plane: the SANs of apiserver.crt, etcd/server.crt and etcd/peer.crt; if they are of another node, move the files away and run the command again

# legacy-common-name: the certificate of {server} has its name only in the common name, which current clients ignore
> certificate relies on legacy Common Name field, use SANs instead
> certificate relies on legacy Common Name field | no appropriate subjectAltName fields were found
> No subject alternative names present
- made-without-alternative-names: it was created without SANs, usually by openssl req without -addext
  $ {inspect} # SAN_MISSING
  $ {createRequest} # a request with the name in the SANs
- another-server: another server answers there: a load balancer, an ingress default, an address that was given
  to another machine
  $ {inspect} # a subject and an issuer that you do not expect

# no-address-in-certificate: the client connected to the address {asked}, and the SANs of the certificate lack that IP address; DNS names do not match an address
> because it doesn't contain any IP SANs | No subject alternative names matching IP address
> no alternative certificate subject name matches target ipv4 address
> no alternative certificate subject name matches target ipv6 address
> IP address mismatch, certificate is not valid for
- default-certificate if defaultName at!=etcd: the server has no certificate for this name, and presents its default certificate: an ingress controller without the Secret, a Service or port of another server, kube-controller-manager and kube-scheduler without --tls-cert-file, a webhook whose Secret is not
  mounted
  ! the certificate is for {fallbackName}, the default name of a server || the certificate is only for {ownNames}, as servers create for themselves
  $ {inspect} # the SANs, and a subject and an issuer that are not your CA
  $ kcert inspect --cluster --only problem # Secrets that have no certificate for the name
- kubelet-without-this-name if at=kubelet: a self-signed kubelet serving certificate has the host name and no address; with serverTLSBootstrap it has the addresses of the Node at the time of the request
  ! {kubeletCalled}
  $ {inspectKubelet} # its SANs; a subject that is neither CN=system:node:NODE nor
    CN=NODE@1700000000: another server answers
  $ {forecast} # whether serverTLSBootstrap is on, and what it is waiting for
- service-without-this-name if at=in-cluster: API servers call a Service as NAME.NAMESPACE.svc, and the
  certificate of its pods lacks that name
  ! the webhook "{webhook}" is called
  $ kcert probe --webhooks # NAME_NOT_COVERED for this one
  $ if service: kcert csr create --service {service} --key-out server-key.pem --out server.csr # a request
    with every name that this Service has
- etcd-without-this-name if at=etcd: {asked} is not in etcd's certificate: it was copied from another control
  plane, or created before the node got this address (each has its own SANs in etcd/server.crt and etcd/peer.crt)
  ! {etcdCalled}
  $ kcert inspect /etc/kubernetes/pki/etcd -o wide # on that control plane: the names of server.crt and
    peer.crt; move the pair away, then kubeadm init phase certs etcd-server and etcd-peer
- server-outside-without-this-name if at=mesh,outside: {server} is not part of the cluster and has no certificate for {asked}: a redirect to another host whose name is checked against the first (charts), an egress proxy, a wrong name in the URL, no SNI
  $ {inspect} # the server that answers, and its SANs
- name-not-in-certificate if at=api-server,other,unknown: {asked} was not in the SANs when the certificate was created: a load balancer, a DNS name or an address that was added later (kubeadm: certSANs of the API server)
  ! if kubernetesName: it is an API server's certificate: it has the names of the service kubernetes
  $ {probeByName} # NAME_NOT_COVERED, with the names that the certificate has
  $ kcert inspect /etc/kubernetes/pki/apiserver.crt # on a control plane: SANs without {asked}; add it to
    certSANs in kubeadm-config, move the pair away, then kubeadm init phase certs apiserver
- connected-by-another-name if anyName at=api-server,other,unknown: the client may use a name that the
  certificate has[: {sixNames}] (server or tls-server-name in the kubeconfig)
  $ kcert verify {endpoint} --roots {kubeconfig} --name {exactName} || kcert inspect {kubeconfig}
    # if endpoint exactName: TRUSTED by that name || which server the kubeconfig names
- another-server if at!=outside

# name-mismatch: the certificate of {server} is not for {asked}[, but for {tenNames}]
> certificate is valid for | certificate is not valid for any names | ERR_TLS_CERT_ALTNAME_INVALID
> does not match certificate's altnames | hostname mismatch | no alternative certificate subject name matches
> No subject alternative DNS name matching | No name matching | ERR_CERT_COMMON_NAME_INVALID
> SSL_ERROR_BAD_CERT_DOMAIN | invalid peer certificate: NotValidForName | doesn't match either of
> doesn't match requested host name | does not match target host name | certificate not valid for name
> RemoteCertificateNameMismatch | SSLPeerUnverifiedException | no certificate subject alternative name matches
> certificate name does not match input | CertNotValidForName | SEC_E_WRONG_PRINCIPAL
> The target principal name is incorrect
> certificate is NOT trusted. The name in the certificate does not match
- default-certificate, kubelet-without-this-name, service-without-this-name, etcd-without-this-name,
  server-outside-without-this-name, name-not-in-certificate, connected-by-another-name
- another-server if at!=outside
`
