// The client's identity: tokens, kubeconfigs, permissions, and credentials that the API server does not recognize.

export const credentials = `
// Bearer tokens: from service accounts, identity providers, kubeadm join and k3s.
# token-signed-by-another-key: in the log of an API server: a client presented a token that none of its keys signed
> error in cryptographic primitive | no keys found for token | failed to verify signature
- service-account-keys-differ: a token of a service account that another key signed: sa.key was created again, control planes have different ones, or the token is of another cluster
  $ kcert inspect /etc/kubernetes/pki # on each control plane: KEY_MISMATCH for sa.key; with -o json another
    publicKey.sha256 of it than on the others
- expired-token: a token expired or is of another cluster: of a service account (default one hour), of an identity provider, of kubeadm join (24 h)
  $ kcert inspect {kubeconfig} # a user with a token, an exec plugin or nothing, and no client certificate
  $ kcert token list # for kubeadm join: an expired bootstrap token

# token-expired: in the log of an API server: a client still presents an expired token
> token has expired | oidc: token is expired | token is expired by
- token-not-read-again: a pod still uses the token that it read when it started (the file is replaced every hour, old
  clients read it once), a login with an identity provider expired, or a kubeconfig has a fixed token. No certificate is the cause
  $ kcert inspect {kubeconfig} # a user with a token
  $ date -u # the time of the control plane: if it is ahead, tokens expire early

# token-not-yet-valid: a token is not valid yet by the clock of the API server
> token is not valid yet | token used before issued
- clocks-differ: control planes have different times: one signs tokens and certificates with a time ahead of the other; after a restart without NTP
  $ date -u # on every control plane: a wrong time

# token-object-deleted: a token whose service account, Secret or pod was deleted or created again
> token has been invalidated | token lookup failed | invalid bearer token, serviceaccounts "
> invalid bearer token, pods "
- object-deleted: the ServiceAccount, its Secret or the pod was deleted or restored from a backup (another
  uid), and a client still uses the token: restart that pod. No certificate is the cause
  $ kcert inspect {kubeconfig} # a user with a token

# token-refused generic: in the log of an API server: a client presented an invalid token
> invalid bearer token | Unable to authenticate the request" err="invalid bearer token
> Unable to authenticate the request" err="[invalid bearer token
- expired-token, service-account-keys-differ

# identity-provider-differs: the API server or a token names another identity provider or client than the
  other
> issuer did not match the issuer returned by provider | oidc: expected audience
> oidc: id token issued by a different provider
- issuer-or-audience-differs: --oidc-issuer-url must equal the issuer of the tokens exactly, with a
  trailing slash if they have one, and --oidc-client-id their audience. No certificate is the cause
  $ kcert inspect {kubeconfig} # whether the user has a token or a plugin

// Errors in a kubeconfig: a missing file, an incomplete context, a credential plugin that fails.
# no-kubeconfig: the client found no kubeconfig and used its default address (localhost): no certificate was involved
> http://localhost:8080 | localhost:8080 was refused | 127.0.0.1:8080 was refused | http://localhost/api
> no configuration has been provided | Invalid kube-config file. No configuration found
- file-not-found: there is no ~/.kube/config for this user (sudo has another home), KUBECONFIG is not set or names no file, or a Terraform provider has no cluster setting
  $ kcert inspect ~/.kube/config # does not exist, or has no current context
  $ kcert inspect /etc/kubernetes/admin.conf # on a control plane: one that works;
    KUBECONFIG=/etc/kubernetes/admin.conf kubectl get nodes

# kubeconfig-incomplete: the kubeconfig was read, but lacks what the context needs
> no context exists with the name | context was not found for specified context | current-context must exist
> no server found for cluster | cluster has no server defined | error loading config file
- entry-missing: contexts refer to clusters and users by name: one of the names does not exist, KUBECONFIG names another file, or the data is damaged
  $ kcert inspect {kubeconfig} # its contexts, with the cluster and user of each, and what is wrong

# kubeconfig-of-another-ca: kubeadm found a kubeconfig with another CA than /etc/kubernetes/pki/ca.crt, and changes neither
> exists already but has got the wrong CA cert
- ca-recreated: the CA was created again or copied from elsewhere, and the kubeconfig is older
  $ kcert verify {kubeconfig} --roots /etc/kubernetes/pki/ca.crt # NOT TRUSTED: its client certificate is of the other CA as well, and must be created again
  $ kcert kubeconfig set-ca {kubeconfig} --certificate-authority /etc/kubernetes/pki/ca.crt --dry-run # where the client
    certificate is TRUSTED: what would change

# kubeconfig-of-another-server: kubeadm found a kubeconfig with another API server than its configuration
> exists already but has an unexpected API Server URL
- address-changed: controlPlaneEndpoint or the address of the node has changed; certificates need the new name too
  $ kcert inspect {kubeconfig} # its server
  $ kcert inspect /etc/kubernetes/pki/apiserver.crt # whether the new name is in the certificate

# plugin-not-installed if !isPluginFailed: the kubeconfig uses a credential plugin, and kubectl could not run it: no request was sent
> client-go credential plugin that is not installed | getting credentials: exec: executable
> unable to run auth exec | No Auth Provider found for name | auth plugin has been removed
- plugin-missing: the program under exec is not on the PATH of the user who runs kubectl (an IDE, a CI job or a container has another PATH), fails by itself, or was removed from kubectl (gcp and azure, in 1.26)
  $ kcert inspect {kubeconfig} # the user of the context has a plugin and no client certificate; its command is in the file under exec

# plugin-failed: the plugin of the kubeconfig ran, and returned no credential: no request was sent
> getting credentials: exec: executable | failed to refresh token | cannot fetch token: 401 Unauthorized
> No valid id-token, and cannot refresh | getting credentials:
- expired-login: the login with the cloud or identity provider expired, or the plugin has other settings here
  (profile, region): run the command under exec by hand, it prints the reason
  $ kcert inspect {kubeconfig} # the user of the context has a plugin and no client certificate; its command is in the file under exec

# plugin-version: kubectl and the plugin of the kubeconfig use different versions of
  client.authentication.k8s.io
> no kind "ExecCredential" is registered
> getting credentials: decoding stdout: no kind "ExecCredential" is registered
> getting credentials: exec plugin is configured to use API version | exec plugin: invalid apiVersion
> exec plugin is configured to use API version | interactiveMode must be specified
- kubeconfig-of-older-tools: kubectl 1.24 removed v1alpha1, and v1 needs interactiveMode: update the plugin, and let it write its kubeconfig entry again
  $ kcert inspect {kubeconfig} # the user of the context has a plugin and no client certificate; its command is in the file under exec

// HTTP status 403: the API server has authenticated the user, and RBAC denies the request. The certificate determines the user.
# forbidden: the API server authenticated the user[ ({user})], but that user has no permission (HTTP status 403):
  certificate or token are valid
> is forbidden: User "
- bootstrap-rights-missing if userKind=bootstrap: the groups of a bootstrap token lack the bindings of TLS
  bootstrap, or the token has other groups than the bindings (system:bootstrappers:kubeadm:default-node-token)
  ! the user is {user}
  $ kcert token check {bootstrapUser} || kcert token list # the groups and usages of the token
  $ kcert bootstrap rbac # the bindings that are needed, for kubectl apply
- node-limited-to-own-objects if userKind=node: kubelets may read only the objects of their own pods (Node authorizer): another user has the kubelet's kubeconfig, or the certificate is of another node
  ! the user is {user}
  $ kcert kubelet doctor # on the node: the node name in its certificate; here {user}
- admin-binding-missing if userKind=admin: since Kubernetes 1.29 admin.conf is of the group
  kubeadm:cluster-admins, which needs a ClusterRoleBinding; an admin.conf of a newer kubeadm, or
  a restored etcd, has none
  ! the user is {user}
  $ kcert inspect /etc/kubernetes/admin.conf # the groups (O) of its certificate
  $ kcert inspect /etc/kubernetes/super-admin.conf # system:masters, which needs no binding: with it you can create the binding kubeadm:cluster-admins
- no-role if userKind=other: no RoleBinding or ClusterRoleBinding gives it to this user or one of its groups;
  or it is not the intended user (CN and O of the client certificate)
  $ kcert inspect {kubeconfig} # the user of the client certificate: CN is the user, O are the groups

# forbidden-without-user generic: the server authenticated the user, but that user has no permission: TLS and the
  credential were accepted
> 403 Forbidden | (403) Reason: Forbidden
- no-role: the user, its groups or the ServiceAccount lack a permission (RBAC)
  $ kcert inspect {kubeconfig} # the user of a client certificate: CN is the user, O are the groups

// The API server was reached and is trusted, but it does not recognize the client's credentials.
# front-proxy-not-allowed: an aggregated API server got a request that is not from the front proxy:
  the common name is not among --requestheader-allowed-names
> is not in the allowed list
- front-proxy-client-wrong: the certificate front-proxy-client has another common name, or a client
  certificate of the cluster was signed by the front-proxy CA
  $ kcert inspect /etc/kubernetes/pki # ROLE_SUBJECT_WRONG for front-proxy-client
  $ kcert rotate-ca plan # the request header CA and allowed names of the cluster

# kubelet-rejects-api-server: a kubelet was reached through the API server, and rejects the client certificate of the API server
> unable to upgrade connection: Unauthorized | Forbidden (user=system:anonymous
> the server has asked for the client to provide credentials ( pods/log
> You must be logged in to the server (the server has asked for the client to provide credentials ( pods/log
- api-server-credential-rejected: apiserver-kubelet-client.crt expired, is of another CA than the clientCAFile of
  that kubelet, or the API server was started without --kubelet-client-certificate; your own kubeconfig is not the cause
  $ kcert inspect /etc/kubernetes/pki/apiserver-kubelet-client.crt # on the control plane: an expired certificate
  $ kcert verify /etc/kubernetes/pki/apiserver-kubelet-client.crt --roots CA.crt --purpose client # with the
    kubelet's clientCAFile (/etc/kubernetes/pki/ca.crt of its node) as CA.crt: NOT TRUSTED
  $ {probeKubelet} # CLIENT_REFUSED with -i kcert.yaml, which presents the certificate of the API server to kubelets

# kubelet-forbids: the kubelet authenticates the client, but that user has no permission there (403)
> Forbidden (user=kube-apiserver-kubelet-client | request failed, status: "403 Forbidden"
- kubelet-client-without-rights: apiserver-kubelet-client.crt has no O, as in kubeadm since 1.33.12, 1.34.8, 1.35.5 and 1.36.1, and the ClusterRoleBinding of its user is missing; or it was
  created by hand with another group
  $ kcert inspect /etc/kubernetes/pki/apiserver-kubelet-client.crt # on a control plane: ROLE_SUBJECT_WRONG,
    or its user and groups; without O, this must exist: kubectl get clusterrolebinding
    kubeadm:apiserver-kubelet-client
- caller-without-nodes-metrics: the ServiceAccount of metrics-server or Prometheus lacks nodes/metrics
  (ClusterRole system:metrics-server), or the kubelet does not use the API server (authorization.mode:
  Webhook)
  ! a metrics collector called the kubelet of {node}
  $ {probe} # TLS works there: the cause is RBAC, not a certificate

# insecure-with-ca: the cluster of a context has a CA and insecure-skip-tls-verify, and clients reject the combination
> specifying a root certificates file with the insecure flag is not allowed
- both-are-set: one of them was added by hand, or --insecure-skip-tls-verify was given together with a CA
  $ kcert inspect {kubeconfig} # KUBECONFIG_INSECURE

# rejected-by-other-server if at=mesh,outside: {server} was reached by TLS, but cannot authenticate the client (HTTP status
  401)
> You must be logged in to the server | (Unauthorized) | error: Unauthorized
> Error from server (Unauthorized) | 401 Unauthorized | "reason":"Unauthorized" | : Unauthorized
> ="Unauthorized" | the server has asked for the client to provide credentials
- password-or-token-required: it is not an API server: a registry requires the password of an imagePullSecret, a
  repository, an identity provider or Argo CD its own login, istiod the token of the pod. No certificate of the cluster is the cause
  $ {inspect} # TLS works there: the cause is the password or token

# rejected-by-other-server generic: {server} was reached by TLS, but cannot authenticate the client (HTTP status 401)
> code = Unauthenticated
- password-or-token-required

# kubelet-refuses-caller if at=kubelet: a kubelet cannot authenticate the client (HTTP status 401)
> You must be logged in to the server | (Unauthorized) | error: Unauthorized
> Error from server (Unauthorized) | 401 Unauthorized | "reason":"Unauthorized" | : Unauthorized
> ="Unauthorized" | the server has asked for the client to provide credentials
- kubelet-verifies-no-tokens: metrics-server and Prometheus present a token of their ServiceAccount, and this kubelet does not verify tokens (authentication.webhook.enabled), or the token expired; with a client certificate: the clientCAFile of that kubelet lacks its CA
  $ kcert kubelet doctor # on that node: what is wrong with the kubelet's own certificates
  $ {probe} # the CAs of the client certificates that it accepts

# unauthorized: the API server was reached and trusted, but cannot authenticate you (HTTP status 401)
> You must be logged in to the server | (Unauthorized) | error: Unauthorized
> Error from server (Unauthorized) | 401 Unauthorized | "reason":"Unauthorized" | : Unauthorized
> ="Unauthorized" | the server has asked for the client to provide credentials
- expired-client-certificate: the client certificate in the kubeconfig expired; the API server then returns only Unauthorized
  $ kcert inspect {kubeconfig} # CERT_EXPIRED for the client of a user
  $ kcert renew # on a control plane: admin.conf and the others that are due
- client-of-another-ca: the client certificate is of another cluster, or of a CA that a rotation removed
  $ kcert verify {kubeconfig} # NOT TRUSTED by the CA in the same kubeconfig
  $ kcert probe --api-servers # CLIENT_REFUSED, with the CAs that API servers accept
- expired-token
- expired-kubelet-client: a kubelet's client certificate expired, or was signed by a CA that was removed; its
  node is NotReady
  ! if kubeletNamed: a kubelet or its Node is named
  $ kcert kubelet doctor # on that node: what is wrong with its certificates; --fix repairs its files
  $ {forecast} # from elsewhere: when it should have been renewed
- api-server-has-another-ca: the API server was started with another client CA or other service account keys
  (--client-ca-file, --service-account-key-file)
  $ kcert inspect /etc/kubernetes /var/lib/kubelet/pki -o tree # on a control plane: client certificates of a CA other than ca.crt

# request-not-authenticated generic: in the log of a server: a client presented an invalid credential; the text does not say why
> Unable to authenticate the request
- expired-client-certificate, client-of-another-ca, expired-token, expired-kubelet-client,
  api-server-has-another-ca

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
