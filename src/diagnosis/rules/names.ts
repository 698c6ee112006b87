// A certificate outside its validity, or not for the name or address that the client used.

export const names = `
// A certificate outside its validity, or a wrong clock.
# not-yet-valid if notBefore: a certificate is valid from {notBefore}, and the clock of the verifying side says
  {currentTime} || a certificate is not valid yet by the clock of the verifying side
> certificate has expired or is not yet valid
- clock-behind: a clock is behind on the machine that rejects the certificate (after a pause or a restore, without NTP), or
  was ahead on the one that signed. Kubernetes backdates certificates by 5 minutes only
  ! the clock is {tooEarly} before the notBefore of the certificate
  $ date -u # on both machines: a wrong time
  $ {inspect} # CERT_NOT_YET_VALID also by the clock of this machine
- issued-for-later: the certificate was issued for later, or installed too early
  $ {inspect} # a notBefore in the future, although the clocks are right

# not-yet-valid: a certificate is valid from {notBefore}, and the clock of the verifying side says {currentTime}
  || a certificate is not valid yet by the clock of the verifying side
> certificate is not yet valid | certificate is not valid yet | CERT_NOT_YET_VALID
> CertificateNotYetValidException | invalid peer certificate: NotValidYet
> invalid peer certificate: certificate not valid yet
- clock-behind, issued-for-later

# client-certificate-expired if side=server: a server rejects a client whose certificate {ended}
> certificate has expired or is not yet valid
> client SSL certificate verify error: (10:certificate has expired
- expired-client-certificate: a client presents an expired certificate: an admin.conf or a kubeconfig of a
  year ago, a kubelet that could not renew
  $ kcert inspect {kubeconfig} # a client certificate that is expired
  $ kcert inspect /etc/kubernetes /var/lib/kubelet/pki --only expired # on the node of that client: what expired there
  $ kcert kubelet doctor # on that node: whether it is the kubelet, and how to repair it
- clock-ahead if !inTime: the clock of the program that rejects it is ahead
  ! if the clock is right, it is {yearsLate}, more than ten years after the certificate expired
  $ date -u # a wrong time[; the text says {currentTime}]

# certificate-expired: the certificate of {server}, or its CA, {ended}
> certificate has expired or is not yet valid | certificate has expired | CERT_HAS_EXPIRED
> CertificateExpiredException | invalid peer certificate: Expired | ERR_CERT_DATE_INVALID
> SEC_ERROR_EXPIRED_CERTIFICATE | SEC_ERROR_EXPIRED_ISSUER_CERTIFICATE | certificate is expired
> invalid peer certificate: certificate expired | errors in the certificate chain: NotTimeValid
> certificate is NOT trusted. The certificate chain uses expired certificate | SEC_E_CERT_EXPIRED
> not valid anymore. Expired on
- expired-webhook-certificate if at=in-cluster: the certificate in the Secret of a webhook or aggregated API expired, or its pod has not read the new one
  ! the webhook "{webhook}" is called
  $ kcert probe --webhooks # CERT_EXPIRED for this one
  $ kcert inspect --cluster --only expired,expiring # its Secret, if that expired too
- expired-kubelet-serving if at=kubelet: the next serving certificate of the kubelet is pending: Kubernetes does not approve it by itself
  ! {kubeletCalled}
  $ kcert csr list --pending --signer kubernetes.io/kubelet-serving # a pending request of this node; kcert
    csr approve --policy kubelet-serving approves valid ones
  $ {forecast} # why the kubelet does not renew
- expired-mesh-certificate if at=mesh: an issuer or root of the service mesh expired (linkerd's trust anchor
  and issuer last a year unless others are given), or a proxy could not renew its certificate
  $ kcert inspect --cluster --only expired,expiring # Secrets and ConfigMaps of the mesh among them
- expired-external-certificate if at=outside: {thatServer} is not part of the cluster: its operator must renew it, or a TLS-inspecting proxy presents an expired certificate of its own
  $ {inspect} # the served certificate and its issuer; compare from another network
- expired-server-certificate if at=api-server,etcd,other,unknown: the server's certificate was not renewed:
  kubeadm's last a year, and are renewed by kubeadm upgrade or by hand
  $ {probe} # CERT_EXPIRED
  $ kcert renew # on a control plane: what is due; kcert renew --all renews it and restarts what uses it
- renewed-but-not-served if at=api-server,kubelet,etcd,other,unknown: it was renewed on disk, but the process still serves the old one
  $ kcert probe -i kcert.yaml # OLD_CERTIFICATE_SERVED: the file on the node is newer than the served certificate
  $ kcert inspect {servedFile} # a valid certificate, although the served one expired
- expired-ca if at=api-server,etcd,other,unknown: the CA itself expired (after ten years with kubeadm), so everything that it signed is rejected
  ! if caFile: the text names a CA file
  $ kcert inspect /etc/kubernetes/pki --only ca # a CA that is expired
  $ kcert rotate-ca recover --dry-run # what would recover the cluster
- clock-ahead

// A certificate that is not for the name or address that the client used.
# certificate-of-another-node: a control plane has the certificate of another node[: its SANs lack {serverName}]
> is invalid: x509: certificate is valid for | failed to write or validate certificate
> does not match any of DNSNames
- copied-from-another-node: /etc/kubernetes/pki was copied whole: only ca, etcd/ca, front-proxy-ca and sa may be copied; every control plane creates the others for its own names. Or an etcd member connects from an address that is not in its certificate (NAT between the control planes, another network card)
  $ kcert inspect /etc/kubernetes/pki -o wide # on that control plane: the SANs of apiserver.crt, etcd/server.crt and etcd/peer.crt; if they are of another node, move the files away and run the command again

# legacy-common-name: the certificate of {server} has its name only in the common name, which current clients ignore
> certificate relies on legacy Common Name field, use SANs instead
> certificate relies on legacy Common Name field | no appropriate subjectAltName fields were found
> No subject alternative names present
- created-without-sans: it was created without SANs, usually by openssl req without -addext
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
