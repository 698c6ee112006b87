// A chain without a CA that the client trusts, for each kind of server.

export const trust = `
# client-certificate-unknown-authority if side=server: a server rejects the certificate of a client: none of its client CAs signed it
> certificate signed by unknown authority | certificate is not trusted
> client SSL certificate verify error: (18:self-signed certificate
> client SSL certificate verify error: (18:self signed certificate
> client SSL certificate verify error: (20:unable to get local issuer certificate
> client SSL certificate verify error: (21:unable to verify the first certificate
- client-of-old-ca: a client presents a certificate of another CA: that of another cluster, or one that a CA rotation removed
  ! "{candidate}" is trusted but did not sign it: same name, another key
  $ if clientCa=/etc/kubernetes/pki/ca.crt: kcert rotate-ca verify # clients that still present a certificate of the old CA
  $ if clientCa!=/etc/kubernetes/pki/ca.crt: kcert inspect /etc/kubernetes/pki -o tree # on each control
    plane: client certificates not signed by {clientCa}, or a CA that differs between nodes
  $ kcert verify CLIENT.crt --roots {clientCa} --purpose client # NOT TRUSTED for the certificate of that
    client
- client-ca-file-wrong: the CA file of the server (--client-ca-file, clientCAFile) lacks a CA
  $ kcert inspect /etc/kubernetes /var/lib/kubelet/pki -o tree # CA_NOT_IN_BUNDLE, or client certificates of another CA

# unknown-authority: the client does not trust {server}: the chain leads to no CA that the client trusts
> certificate signed by unknown authority | certificate is not trusted
> unable to get local issuer certificate | UNABLE_TO_GET_ISSUER_CERT | UNABLE_TO_GET_ISSUER_CERT_LOCALLY
> unable to get issuer certificate | unable to find valid certification path to requested target
> invalid peer certificate: UnknownIssuer | SEC_ERROR_UNKNOWN_ISSUER | ERR_CERT_AUTHORITY_INVALID
> the issuer certificate of a locally looked up certificate could not be found
> x509: failed to load system roots and no roots provided
> The certificate chain was issued by an authority that is not trusted
> errors in the certificate chain: PartialChain | errors in the certificate chain: UntrustedRoot
> Unable to locally verify the issuer's authority | Path does not chain with any of the trust anchors
> Peer's Certificate issuer is not recognized | x509 certificate is not issued by the trust anchor
> X509 - Certificate verification failed, e.g. CRL, CA or signature check failed
- ca-bundle-stale if at=in-cluster: API servers verify webhooks, aggregated APIs and conversions by a caBundle
  in their objects; it is not the CA that signed the served certificate (certificate renewed from another CA, injector not run)
  ! the webhook "{webhook}" is called || the aggregated API {apiGroup} is called
  $ kcert probe --webhooks # NOT_TRUSTED for this one; with -i kcert.yaml it connects from a control plane
  $ kcert inspect --cluster --only problem # a caBundle that is empty, expired or does not match the Secret
- kubelet-serves-self-signed if at=kubelet: kubelets sign their serving certificates themselves unless
  serverTLSBootstrap is on, so that metrics-server, Prometheus and --kubelet-certificate-authority reject them
  ! {kubeletCalled}
  $ {inspectKubelet} # an issuer such as NODE-ca@1700000000; CN=system:node:NODE signed by the cluster CA: then this is not the cause
  $ kcert csr list --pending --signer kubernetes.io/kubelet-serving # serverTLSBootstrap is on, and the request is pending
  $ if node: {forecast} # how this kubelet gets its certificates
- etcd-ca-differs if at=etcd: control planes have different etcd CAs: etcd/ca.crt was created again (kubeadm reset
  and init, a restore), or a control plane joined without a copy of etcd/ca.crt and etcd/ca.key. The cluster CA and kubeconfigs are not the cause
  ! a CA named "{candidate}" is trusted, but it did not sign the certificate: same name, another key
  $ kcert inspect /etc/kubernetes/pki/etcd/ca.crt -o wide # on each control plane: another key identifier or
    fingerprint than on the others
  $ kcert inspect /etc/kubernetes/pki -o tree # on each: server, peer, healthcheck-client or
    apiserver-etcd-client not signed by etcd/ca.crt
  $ {probe} # NOT_TRUSTED by etcd/ca.crt of this control plane
- etcd-has-its-own-ca if at=etcd: etcd has its own CA, but the client uses the cluster CA, or the reverse (--etcd-cafile, etcdctl --cacert)
  ! if !candidate: {etcdCalled}
  $ {probe} # ok with this CA: the failing client uses another one
  $ kcert inspect /etc/kubernetes/pki -o tree # the certificates of each CA
- mesh-ca-changed if at=mesh: the CA of the service mesh was changed, and some proxies still use the old root or certificate until they restart; or a sidecar calls a server outside of the mesh without
  that server's CA
  ! the text is from a service mesh
  $ kcert inspect --cluster -o tree # the CAs of the mesh (istio-ca-secret or cacerts, istio-ca-root-cert,
    linkerd-identity-issuer), their issuers and start dates
- private-ca-not-given if at=outside: a private CA, or that of a TLS-inspecting proxy, signed the served certificate, and the client does not trust it. The cluster CA is not the cause. Where it goes: {placeOfCa}
  ! if peer=registry: a registry of images is called
    || if peer=repository: a repository of charts or sources is called
    || if peer=identity-provider: an identity provider is called
    || if peer=acme: an ACME server is called
    || if peer=elsewhere: no API of Kubernetes has that path
  $ {inspect} # the issuer: a private CA, a proxy (connect from where the program runs), or a public CA that an old image lacks
  $ {verify} # with your candidate as CA.crt: TRUSTED if it is the right CA
- ca-of-another-cluster if at=api-server,other,unknown: the kubeconfig has the CA of another cluster, or an earlier CA of this one (kubeadm reset and init, a rotation)
  ! a CA named "{candidate}" is trusted, but it did not sign the certificate: same name, another key
  $ {verify} # NOT TRUSTED, with the key identifier that the certificate requires and the one that the kubeconfig has
  $ kcert kubeconfig set-ca {kubeconfig} --certificate-authority /etc/kubernetes/pki/ca.crt --dry-run # on a control plane: what would change; without --dry-run it is repaired
- no-ca-given if at=api-server,other,unknown: the client has no CA setting and uses the system CAs, which never contain a cluster CA: no certificate-authority in the kubeconfig, curl without --cacert, a
  pod's client without /var/run/secrets/kubernetes.io/serviceaccount/ca.crt
  $ kcert inspect {kubeconfig} # no line "cluster CA" for the cluster of the context
- intermediate-not-sent if !candidate: the server sends its own certificate without the CA certificates
  between it and the root
  $ {inspect} # one certificate alone, whose issuer is not in the chain that the server sends
- tls-terminating-proxy if at=api-server,other,unknown: a proxy or load balancer terminates TLS and presents its own certificate (HTTPS_PROXY, proxy-url, a company proxy)
  $ {inspect} # a leaf whose issuer is not the CA of the cluster
- ca-read-before-rotation if at=api-server,kubelet,in-cluster,other,unknown: the cluster CA was changed, and this client still has the one that it read when it started (pods, controller-managers, schedulers)
  $ kcert rotate-ca status # a rotation that is in progress or incomplete
  $ kcert rotate-ca verify # the pods, files and kubeconfigs that still have the old CA
- not-the-kubelet if at=kubelet: another server answers at the node's address (an address given to two
  machines, NAT, a proxy, the address of another network card), and what kcert probe --nodes and kcert kubelet
  forecast read there is not about the kubelet
  $ {inspectKubelet} # a subject that is neither CN=system:node:NODE nor CN=NODE@1700000000
  $ kcert kubelet doctor # on that node: compare its certificate with the one above

# first-certificate-unverified: OpenSSL or Node found no issuer at all for the certificate of {server}: it
  came alone, and no trusted CA signed it
> unable to verify the first certificate | UNABLE_TO_VERIFY_LEAF_SIGNATURE
- intermediate-not-sent, ca-bundle-stale, kubelet-serves-self-signed, etcd-ca-differs, etcd-has-its-own-ca,
  mesh-ca-changed, private-ca-not-given, ca-of-another-cluster, no-ca-given, tls-terminating-proxy,
  ca-read-before-rotation, not-the-kubelet

# self-signed-in-chain: {server} sends its root CA, and the client does not trust that root
> self-signed certificate in certificate chain | self signed certificate in certificate chain
> SELF_SIGNED_CERT_IN_CHAIN
- kubelet-serves-self-signed
- no-ca-given if at!=mesh,outside
- private-ca-not-given, mesh-ca-changed, ca-of-another-cluster
- default-certificate if at=in-cluster,other,unknown: the server created its own CA and certificate
  because none is configured: metrics-server or another aggregated API with --cert-dir, kube-controller-manager
  or kube-scheduler without --tls-cert-file
  $ {inspect} # a subject such as localhost@1700000000 below localhost-ca@1700000000
- tls-terminating-proxy, ca-read-before-rotation

# self-signed-leaf: the certificate of {server} is self-signed, and the client does not trust it
> self-signed certificate | self signed certificate | DEPTH_ZERO_SELF_SIGNED_CERT
> MOZILLA_PKIX_ERROR_SELF_SIGNED_CERT
- kubelet-serves-self-signed, not-the-kubelet
- default-certificate if at!=kubelet,outside: the server created its own certificate because none is configured: an ingress controller's default, a webhook
  $ {inspect} # one certificate, its subject equal to its issuer
- private-ca-not-given, ca-bundle-stale, tls-terminating-proxy

# verification-failed generic: the client refuses the certificate of {server}; the text does not say for which
  of the reasons
> CERTIFICATE_VERIFY_FAILED | certificate verify failed | PKIX path building failed
> PKIX path validation failed | tls: failed to verify certificate | failed to verify certificate
> SSL certificate problem | Sending fatal alert BadCertificate | Sending fatal alert UnknownCA
> x509: OSStatus | server certificate verification failed
> Could not establish trust relationship for the SSL/TLS secure channel | The remote certificate is invalid
- reason-not-stated: its validity, its SANs or its CA: compare the served certificate with the CAs that the client trusts
  $ {verify} # the certificate at fault, and why
  $ {probe} # the served certificate
- ca-bundle-stale, kubelet-serves-self-signed, etcd-ca-differs, etcd-has-its-own-ca, mesh-ca-changed,
  private-ca-not-given, ca-of-another-cluster, no-ca-given, intermediate-not-sent, tls-terminating-proxy,
  ca-read-before-rotation, not-the-kubelet
`
