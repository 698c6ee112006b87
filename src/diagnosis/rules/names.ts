// A certificate that is not for the name or address that the client used.

export const names = `
# certificate-of-another-node: a control plane has a certificate that is not for it[: {wantedName} is not
  among its names]
> is invalid: x509: certificate is valid for | failed to write or validate certificate
> does not match any of DNSNames
- copied-from-another-node: /etc/kubernetes/pki was copied whole: only ca, etcd/ca, front-proxy-ca and sa may
  be; every control plane makes the others for its own names. Or a member of etcd comes from an address that
  is not in its certificate (NAT between the control planes, another network card)
  $ kcert inspect /etc/kubernetes/pki -o wide # on that control plane: the names of apiserver.crt,
    etcd/server.crt and etcd/peer.crt; those of another node: move them away, and run the command again

# legacy-common-name: the certificate of {server} has its name in the common name alone, which no client of
  today looks at
> certificate relies on legacy Common Name field, use SANs instead
> certificate relies on legacy Common Name field | no appropriate subjectAltName fields were found
> No subject alternative names present
- made-without-alternative-names: it was made without subject alternative names, mostly by openssl req without
  -addext
  $ {inspect} # SAN_MISSING
  $ {createRequest} # a request that has the name where clients look
- another-server: somebody else answers there: a load balancer, an ingress default, an address that was given
  to another machine
  $ {inspect} # a subject and an issuer that you do not expect

# no-address-in-certificate: the client connected to the address {asked}, and the certificate has no such IP
  address among its names; DNS names do not count for an address
> because it doesn't contain any IP SANs | No subject alternative names matching IP address
> no alternative certificate subject name matches target ipv4 address
> no alternative certificate subject name matches target ipv6 address
> IP address mismatch, certificate is not valid for
- default-certificate if defaultName at!=etcd: the server has no certificate for this name, and shows one of
  its own: an ingress controller without the Secret, a Service or port that leads to another server than is
  meant, kube-controller-manager and kube-scheduler without --tls-cert-file, a webhook whose Secret is not
  mounted
  ! the certificate is for {fallbackName}, which is a default that a server falls back to || the certificate
    is for {ownNames} alone, as servers make for themselves at their start
  $ {inspect} # the names, and a subject and an issuer that are no CA of yours
  $ kcert inspect --cluster --only problem # Secrets that have no certificate for the name
- kubelet-without-this-name if at=kubelet: a kubelet that signs its own serving certificate puts its host name
  in and no address; with serverTLSBootstrap it has the addresses of its Node, as they were when it asked
  ! {kubeletCalled}
  $ {inspectKubelet} # what it is valid for; a subject that is neither CN=system:node:NODE nor
    CN=NODE@1700000000: then it is not the kubelet's
  $ {forecast} # whether serverTLSBootstrap is on, and what it waits for
- service-without-this-name if at=in-cluster: API servers call a Service as NAME.NAMESPACE.svc, and the
  certificate of its pods lacks that name
  ! the webhook "{webhook}" is called
  $ kcert probe --webhooks # NAME_NOT_COVERED for this one
  $ if service: kcert csr create --service {service} --key-out server-key.pem --out server.csr # a request
    with every name that this Service has
- etcd-without-this-name if at=etcd: {asked} is not in etcd's certificate: it was copied from another control
  plane, or made before the node got this address (each has its own names in etcd/server.crt and
  etcd/peer.crt)
  ! {etcdCalled}
  $ kcert inspect /etc/kubernetes/pki/etcd -o wide # on that control plane: the names of server.crt and
    peer.crt; move the pair away, then kubeadm init phase certs etcd-server and etcd-peer
- server-outside-without-this-name if at=mesh,outside: {server} is none of the cluster's, and has no
  certificate for {asked}: a redirect to another host whose name is checked against the first (charts), a
  proxy on the way out, a wrong name in the URL, no SNI
  $ {inspect} # who answers there, and by which names
- name-not-in-certificate if at=api-server,other,unknown: {asked} was not among the names when the certificate
  was made: a load balancer, a DNS name or an address that came later (kubeadm: certSANs of the API server)
  ! if kubernetesName: it is an API server's certificate: it has the names of the service kubernetes
  $ {probeByName} # NAME_NOT_COVERED, with the names that the certificate has
  $ kcert inspect /etc/kubernetes/pki/apiserver.crt # on a control plane: names without {asked}; add it to
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
