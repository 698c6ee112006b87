// Nodes joining and remaining in a cluster, and CertificateSigningRequests.

export const joining = `
// Nodes joining and remaining in a cluster: kubeadm join, TLS bootstrap, a kubelet's renewal.
# kubelet-client-expired: a kubelet has no valid client certificate[ (it expired on {notAfter})], and no credential to request another
> part of the existing bootstrap client certificate | unable to load bootstrap kubeconfig
> The currently active client certificate has expired | No valid client certificate is found
- renewal-missed: the node was off, or could not reach the API server, when its certificate was due for renewal; without bootstrap-kubelet.conf the kubelet cannot bootstrap again
  $ kcert kubelet doctor # on that node: RENEWAL_OVERDUE or an expired pair; --fix uses a newer one if there is one
  $ kcert renew # on a control plane, or with kcert.yaml for all nodes: whether kubelet.conf is due
- newer-pair-not-used: /var/lib/kubelet/pki has a newer pair, but the link or the kubeconfig uses the old one
  $ kcert kubelet doctor # LINK_DANGLING, LINK_IS_FILE or KUBECONFIG_EMBEDS

# cluster-info-unsigned: kubeadm join does not trust cluster-info: it has no valid signature of the token[ {tokenId}]
> could not find a JWS signature in the cluster-info ConfigMap | failed to verify JWS signature
- expired-token: the token expired (24 h by default) or was mistyped
  $ {checkToken} # no such token, or expired
  $ kcert token create # a new one, with the kubeadm join command
- not-signed-yet: it is not signed: kube-controller-manager has no leader or bootstrapsigner is off, or
  cluster-info was just edited
  $ kcert cluster-info verify # a missing or invalid signature

# cluster-info-not-verified generic: kubeadm join timed out before it trusted the cluster, and only with --v=5 says why
> abort connecting to API servers
- expired-token-or-not-reached: the token expired (its signature was removed from cluster-info), the address is unreachable from this node, or the clock of this node is wrong
  $ {checkToken} # from a control plane: no such token, or expired
  $ kcert cluster-info verify # a missing or invalid signature
  $ {probe} # from this node: UNREACHABLE, or ok
  $ date -u # on this node: a wrong time

# join-arguments-wrong: kubeadm join rejects its arguments: it connected to no server
> expected a 32 byte SHA-256 hash | the bootstrap token is invalid | without caCertHashes can be unsafe
> invalid public key hash
- mistyped-or-cut: a token is six and sixteen lowercase letters and digits with a dot between; a hash is sha256: and 64
  hexadecimal digits
  $ kcert token create # a new token, with the whole kubeadm join command
  $ kcert cluster-info pin -o args # the hashes as kubeadm join arguments

# uploaded-certificates: a joining control plane did not get the uploaded certificates
> Secret "kubeadm-certs" was not found | secrets "kubeadm-certs" is forbidden
> error decoding secret data with provided key | cipher: message authentication failed
- uploaded-secret-expired: the Secret kubeadm-certs and the permission to read it expire after two hours, with their token; or --certificate-key is of an earlier upload: kubeadm init phase upload-certs --upload-certs creates both again
  $ kcert token list # no token with the description of kubeadm-certs, or one that expires soon

# ca-hash-mismatch: k3s, RKE2 or Rancher: the given token or checksum is of another CA or cluster
> token CA hash does not match the Cluster CA certificate hash | Configured cacerts checksum
> CA certificate is not trusted by the host CA bundle, but the token does not include a CA hash
> bootstrap data already found and encrypted with different token
- token-of-another-ca: the server was installed again or its CA rotated, and the agent has the earlier token; or a load balancer presents its own certificate
  $ {inspect} # the CA of the served certificate; the server has its token in /var/lib/rancher/k3s/server/node-token

# pin-mismatch: kubeadm join reached a cluster whose CA does not have the given hash
> none of the public keys | cluster CA found in cluster-info ConfigMap is invalid
- ca-was-replaced: --discovery-token-ca-cert-hash is of the CA before a rotation, or of another cluster; or
  cluster-info still has the old CA
  $ kcert cluster-info pin # the current hashes; -o args prints them for kubeadm join
  $ kcert cluster-info verify # whether cluster-info has the CA of the running API servers

# request-not-issued: a certificate was requested[ by the node {node}] but not issued
> timed out waiting for certificate signing request | certificate request was not signed
> certificate signing request is denied | SignerValidationFailure | still unable to rotate certs
- request-waits: it is not approved, no signer runs, or the signer rejected it
  $ kcert csr list --pending # pending requests; kcert csr explain NAME shows why
  $ kcert csr list --denied --failed # denied and failed requests
- no-right-to-request: a joining kubelet lacks the RBAC bindings of TLS bootstrap, or its token is invalid
  $ {checkBootstrap} # the step at which it stopped, and why

# secret-without-certificate: a Secret has no certificate, or one for another name
> Error getting SSL certificate | Unexpected error validating SSL certificate | local SSL certificate
> Issuing certificate as Secret does not exist
- not-issued-yet: cert-manager has not issued it (kubectl describe its Certificate, CertificateRequest, Order
  and Challenge), the Secret is in another namespace than the Ingress, or it was created by hand for other names
  $ kcert inspect --cluster --only problem # Secrets without a certificate, or that do not match
  $ kcert inspect --cluster # whether the Secret exists, and its SANs

# acme-refused generic: cert-manager requests a certificate from an ACME server (such as Let’s Encrypt) and does not get it
> urn:ietf:params:acme:error | propagation check failed | failed to perform self check
- name-not-proven: the proof of ownership of the name fails (HTTP-01: port 80 of the name leads
  elsewhere, is redirected or not reached from within; DNS-01: the record is not seen), or the server has
  issued too often for these names. What it asks for is in the Challenge: kubectl describe challenge
  $ kcert inspect --cluster --only expired,expiring # certificates that are not renewed

# request-not-sent generic: the kubelet[ of {node}] could not request its certificate; the reason follows
> cannot create certificate signing request
> failed while requesting a signed certificate from the control plane
> failed while requesting a signed certificate from the master
- api-server-rejects-kubelet: the API server was not reached, not trusted, or rejects the kubelet: its client certificate or bootstrap token expired
  $ kcert kubelet doctor # on that node: what is wrong with its certificates
  $ {checkBootstrap} # the step at which it stopped, and why

// CertificateSigningRequests that the API server rejects, or whose approval it does not allow.
# request-api-old: the API server has no CertificateSigningRequest of that version
> no matches for kind "CertificateSigningRequest"
> the server doesn't have a resource type "certificatesigningrequest
- v1beta1-removed: Kubernetes 1.22 removed certificates.k8s.io/v1beta1: apiVersion is
  certificates.k8s.io/v1, which needs spec.signerName and spec.usages
  $ kcert csr check MANIFEST.yaml # what the API server would reject in the manifest
  $ kcert csr create --help # creates the object in the current version

# request-invalid: the API server rejects a CertificateSigningRequest
> The CertificateSigningRequest " | cannot be handled as a CertificateSigningRequest
> cannot be handled as a CertificateSigningRequest: illegal base64 data at input byte
> PEM block type must be CERTIFICATE REQUEST | signer with system:masters group is not allowed
- breaks-a-rule: spec.request is base64 of the PEM on one line (base64 -w0), once; spec.signerName and
  spec.usages are required; admission rejects requests for system:masters from every user
  $ kcert csr check MANIFEST.yaml # each rule that it breaks, and what to change

# approver-without-right: the approver or signer lacks the permission for this signer: RBAC also requires the verb approve or sign on signers
> user not permitted to approve requests with signerName | user not permitted to sign requests with signerName
> user not permitted to attest
- signer-right-missing: a ClusterRole needs apiGroups certificates.k8s.io, resources signers, resourceNames
  with the signer, verbs approve (or sign), beside update on certificatesigningrequests/approval (or /status)
  $ kcert csr list --pending # the signers of the requests
  $ kcert inspect {kubectlConfig} # your user: CN is the user, O are the groups
`
