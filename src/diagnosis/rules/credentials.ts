// The API server was reached and trusted, and does not know who asks.

export const credentials = `
# front-proxy-not-allowed: an aggregated API server got a request from somebody who is not the front proxy:
  the common name is not among --requestheader-allowed-names
> is not in the allowed list
- front-proxy-client-wrong: the certificate front-proxy-client has another common name, or a client
  certificate of the cluster was signed by the front-proxy CA
  $ kcert inspect /etc/kubernetes/pki # ROLE_SUBJECT_WRONG for front-proxy-client
  $ kcert rotate-ca plan # what the cluster holds as request header CA and allowed names

# kubelet-knows-nobody: a kubelet was reached through the API server, and does not know the client certificate
  that the API server showed it
> unable to upgrade connection: Unauthorized | Forbidden (user=system:anonymous
> the server has asked for the client to provide credentials ( pods/log
> You must be logged in to the server (the server has asked for the client to provide credentials ( pods/log
- api-server-is-not-known: apiserver-kubelet-client.crt has ended, is of another CA than the clientCAFile of
  that kubelet, or the API server was started without --kubelet-client-certificate; your own kubeconfig has no
  part in it
  $ kcert inspect /etc/kubernetes/pki/apiserver-kubelet-client.crt # on the control plane: a certificate that
    has ended
  $ kcert verify /etc/kubernetes/pki/apiserver-kubelet-client.crt --roots CA.crt --purpose client # with the
    kubelet's clientCAFile (/etc/kubernetes/pki/ca.crt of its node) as CA.crt: NOT TRUSTED
  $ {probeKubelet} # CLIENT_REFUSED with -i kcert.yaml, which shows kubelets what API servers show

# kubelet-forbids: the kubelet knows who calls it, and that user has no rights there (403)
> Forbidden (user=kube-apiserver-kubelet-client | request failed, status: "403 Forbidden"
- kubelet-client-without-rights: apiserver-kubelet-client.crt was made by hand, without the group that has the
  rights, or the ClusterRoleBinding of its user or group is gone
  $ kcert inspect /etc/kubernetes/pki/apiserver-kubelet-client.crt # on a control plane: ROLE_SUBJECT_WRONG,
    or its user and groups
- caller-without-nodes-metrics: the ServiceAccount of metrics-server or Prometheus lacks nodes/metrics
  (ClusterRole system:metrics-server), or the kubelet does not ask the API server (authorization.mode:
  Webhook)
  ! somebody who collects metrics called the kubelet of {node}
  $ {probe} # TLS is in order there: then it is RBAC and no certificate

# insecure-with-ca: the cluster of a context has a CA and insecure-skip-tls-verify, and clients refuse both
  together
> specifying a root certificates file with the insecure flag is not allowed
- both-are-set: one of them was added by hand, or --insecure-skip-tls-verify was given beside a CA
  $ kcert inspect {kubeconfig} # KUBECONFIG_INSECURE

# refused-elsewhere if at=mesh,outside: {server} was reached by TLS, and does not know who asks (HTTP status
  401)
> You must be logged in to the server | (Unauthorized) | error: Unauthorized
> Error from server (Unauthorized) | 401 Unauthorized | "reason":"Unauthorized" | : Unauthorized
> ="Unauthorized" | the server has asked for the client to provide credentials
- password-or-token-there: it is no API server: a registry wants the password of an imagePullSecret, a
  repository, an identity provider or Argo CD its own login, istiod the token of the pod. No certificate of
  the cluster has a part in it
  $ {inspect} # TLS is in order there: then it is the password or token

# refused-elsewhere generic: {server} was reached by TLS, and does not know who asks (HTTP status 401)
> code = Unauthenticated
- password-or-token-there

# kubelet-refuses-caller if at=kubelet: a kubelet does not know who calls it (HTTP status 401)
> You must be logged in to the server | (Unauthorized) | error: Unauthorized
> Error from server (Unauthorized) | 401 Unauthorized | "reason":"Unauthorized" | : Unauthorized
> ="Unauthorized" | the server has asked for the client to provide credentials
- kubelet-asks-nobody: metrics-server and Prometheus show a token of their ServiceAccount, and this kubelet
  does not have it checked (authentication.webhook.enabled), or it has ended; with a client certificate: it is
  not of the clientCAFile of that kubelet
  $ kcert kubelet doctor # on that node: what is wrong with the kubelet's own certificates
  $ {probe} # the CAs that it asks client certificates of

# unauthorized: the API server was reached and trusted, and does not know who asks (HTTP status 401)
> You must be logged in to the server | (Unauthorized) | error: Unauthorized
> Error from server (Unauthorized) | 401 Unauthorized | "reason":"Unauthorized" | : Unauthorized
> ="Unauthorized" | the server has asked for the client to provide credentials
- client-certificate-ended: the client certificate in the kubeconfig has ended; the API server says nothing
  but Unauthorized then
  $ kcert inspect {kubeconfig} # CERT_EXPIRED for the client of a user
  $ kcert renew # on a control plane: admin.conf and the others that are due
- client-of-another-ca: the client certificate is of another cluster, or of the CA before a rotation that has
  dropped it
  $ kcert verify {kubeconfig} # NOT TRUSTED by the CA in the same kubeconfig
  $ kcert probe --api-servers # CLIENT_REFUSED, with the CAs that API servers ask for
- token-ended
- kubelet-client-ended: a kubelet's client certificate has ended, or was signed by a CA that was dropped; its
  node is NotReady
  ! if kubeletNamed: a kubelet or its Node is named
  $ kcert kubelet doctor # on that node: what is wrong with its certificates; --fix mends what lies there
  $ {forecast} # from elsewhere: when it should have been renewed
- api-server-knows-another-ca: the API server was started with another client CA or other service account keys
  (--client-ca-file, --service-account-key-file)
  $ kcert inspect /etc/kubernetes /var/lib/kubelet/pki -o tree # on a control plane: client certificates that
    hang below another CA than ca.crt

# request-not-authenticated generic: in the log of a server: somebody showed a credential that does not count;
  the text does not say why
> Unable to authenticate the request
- client-certificate-ended, client-of-another-ca, token-ended, kubelet-client-ended,
  api-server-knows-another-ca

# anonymous: the API server took the request for one of nobody: no credential reached it (HTTP status 403)
> is forbidden: User "system:anonymous" | User "system:anonymous" cannot | system:anonymous
- no-credential: the kubeconfig has no certificate or token for the user of its context, or a proxy in between
  has ended TLS and with it the client certificate
  $ kcert inspect {kubeconfig} # no client certificate for the user of the context
  $ kcert probe --api-servers # whether API servers ask for a client certificate at this address

# key-mismatch: a certificate and a private key were given as a pair, and are none
> tls: private key does not match public key | private key type does not match public key type
> key values mismatch | ERR_OSSL_X509_KEY_VALUES_MISMATCH | SSL_CTX_use_PrivateKey failed
> private key does not match certificate | CSR not signed by referenced private key
- one-file-of-two-replaced: one of the two files was replaced and the other was not: a renewal that was copied
  by half, kube-controller-manager with a new --cluster-signing-cert-file and the old key
  $ kcert inspect {certificateFolder} # KEY_MISMATCH, with the certificate and the key that it was held against
  $ kcert kubelet doctor # on a node: a kubelet's own pair that does not belong together
`
