// The API server was reached and is trusted, but it does not recognize the client's credentials.

export const credentials = `
# front-proxy-not-allowed: an aggregated API server got a request that is not from the front proxy:
  the common name is not among --requestheader-allowed-names
> is not in the allowed list
- front-proxy-client-wrong: the certificate front-proxy-client has another common name, or a client
  certificate of the cluster was signed by the front-proxy CA
  $ kcert inspect /etc/kubernetes/pki # ROLE_SUBJECT_WRONG for front-proxy-client
  $ kcert rotate-ca plan # the request header CA and allowed names of the cluster

# kubelet-knows-nobody: a kubelet was reached through the API server, and rejects the client certificate of the API server
> unable to upgrade connection: Unauthorized | Forbidden (user=system:anonymous
> the server has asked for the client to provide credentials ( pods/log
> You must be logged in to the server (the server has asked for the client to provide credentials ( pods/log
- api-server-is-not-known: apiserver-kubelet-client.crt expired, is of another CA than the clientCAFile of
  that kubelet, or the API server was started without --kubelet-client-certificate; your own kubeconfig is not the cause
  $ kcert inspect /etc/kubernetes/pki/apiserver-kubelet-client.crt # on the control plane: an expired certificate
  $ kcert verify /etc/kubernetes/pki/apiserver-kubelet-client.crt --roots CA.crt --purpose client # with the
    kubelet's clientCAFile (/etc/kubernetes/pki/ca.crt of its node) as CA.crt: NOT TRUSTED
  $ {probeKubelet} # CLIENT_REFUSED with -i kcert.yaml, which presents the certificate of the API server to kubelets

# kubelet-forbids: the kubelet authenticates the client, but that user has no permission there (403)
> Forbidden (user=kube-apiserver-kubelet-client | request failed, status: "403 Forbidden"
- kubelet-client-without-rights: apiserver-kubelet-client.crt was created by hand without the group that has the permission, or the ClusterRoleBinding of its user or group was deleted
  $ kcert inspect /etc/kubernetes/pki/apiserver-kubelet-client.crt # on a control plane: ROLE_SUBJECT_WRONG,
    or its user and groups
- caller-without-nodes-metrics: the ServiceAccount of metrics-server or Prometheus lacks nodes/metrics
  (ClusterRole system:metrics-server), or the kubelet does not use the API server (authorization.mode:
  Webhook)
  ! a metrics collector called the kubelet of {node}
  $ {probe} # TLS works there: the cause is RBAC, not a certificate

# insecure-with-ca: the cluster of a context has a CA and insecure-skip-tls-verify, and clients reject the combination
> specifying a root certificates file with the insecure flag is not allowed
- both-are-set: one of them was added by hand, or --insecure-skip-tls-verify was given together with a CA
  $ kcert inspect {kubeconfig} # KUBECONFIG_INSECURE

# refused-elsewhere if at=mesh,outside: {server} was reached by TLS, but cannot authenticate the client (HTTP status
  401)
> You must be logged in to the server | (Unauthorized) | error: Unauthorized
> Error from server (Unauthorized) | 401 Unauthorized | "reason":"Unauthorized" | : Unauthorized
> ="Unauthorized" | the server has asked for the client to provide credentials
- password-or-token-there: it is not an API server: a registry wants the password of an imagePullSecret, a
  repository, an identity provider or Argo CD its own login, istiod the token of the pod. No certificate of the cluster is the cause
  $ {inspect} # TLS works there: the cause is the password or token

# refused-elsewhere generic: {server} was reached by TLS, but cannot authenticate the client (HTTP status 401)
> code = Unauthenticated
- password-or-token-there

# kubelet-refuses-caller if at=kubelet: a kubelet cannot authenticate the client (HTTP status 401)
> You must be logged in to the server | (Unauthorized) | error: Unauthorized
> Error from server (Unauthorized) | 401 Unauthorized | "reason":"Unauthorized" | : Unauthorized
> ="Unauthorized" | the server has asked for the client to provide credentials
- kubelet-asks-nobody: metrics-server and Prometheus present a token of their ServiceAccount, and this kubelet does not verify tokens (authentication.webhook.enabled), or the token expired; with a client certificate: the clientCAFile of that kubelet lacks its CA
  $ kcert kubelet doctor # on that node: what is wrong with the kubelet's own certificates
  $ {probe} # the CAs of the client certificates that it accepts

# unauthorized: the API server was reached and trusted, but cannot authenticate you (HTTP status 401)
> You must be logged in to the server | (Unauthorized) | error: Unauthorized
> Error from server (Unauthorized) | 401 Unauthorized | "reason":"Unauthorized" | : Unauthorized
> ="Unauthorized" | the server has asked for the client to provide credentials
- client-certificate-ended: the client certificate in the kubeconfig expired; the API server then says only Unauthorized
  $ kcert inspect {kubeconfig} # CERT_EXPIRED for the client of a user
  $ kcert renew # on a control plane: admin.conf and the others that are due
- client-of-another-ca: the client certificate is of another cluster, or of a CA that a rotation removed
  $ kcert verify {kubeconfig} # NOT TRUSTED by the CA in the same kubeconfig
  $ kcert probe --api-servers # CLIENT_REFUSED, with the CAs that API servers accept
- token-ended
- kubelet-client-ended: a kubelet's client certificate expired, or was signed by a CA that was removed; its
  node is NotReady
  ! if kubeletNamed: a kubelet or its Node is named
  $ kcert kubelet doctor # on that node: what is wrong with its certificates; --fix repairs its files
  $ {forecast} # from elsewhere: when it should have been renewed
- api-server-knows-another-ca: the API server was started with another client CA or other service account keys
  (--client-ca-file, --service-account-key-file)
  $ kcert inspect /etc/kubernetes /var/lib/kubelet/pki -o tree # on a control plane: client certificates of a CA other than ca.crt

# request-not-authenticated generic: in the log of a server: a client presented an invalid credential; the text does not say why
> Unable to authenticate the request
- client-certificate-ended, client-of-another-ca, token-ended, kubelet-client-ended,
  api-server-knows-another-ca

# anonymous: the API server treats the request as anonymous: no credential reached it (HTTP status 403)
> is forbidden: User "system:anonymous" | User "system:anonymous" cannot | system:anonymous
- no-credential: the kubeconfig has no certificate or token for the user of its context, or a proxy terminates TLS, which drops the client certificate
  $ kcert inspect {kubeconfig} # no client certificate for the user of the context
  $ kcert probe --api-servers # whether API servers ask for a client certificate at this address

# key-mismatch: a certificate and a private key do not match
> tls: private key does not match public key | private key type does not match public key type
> key values mismatch | ERR_OSSL_X509_KEY_VALUES_MISMATCH | SSL_CTX_use_PrivateKey failed
> private key does not match certificate | CSR not signed by referenced private key
- one-file-of-two-replaced: one of the two files was replaced and the other was not: a renewal that was copied incompletely, kube-controller-manager with a new --cluster-signing-cert-file and the old key
  $ kcert inspect {certificateFolder} # KEY_MISMATCH, with the certificate and the key that it was compared with
  $ kcert kubelet doctor # on a node: a kubelet's certificate and key that do not match
`
