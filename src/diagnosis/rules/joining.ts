// How nodes come into a cluster and stay there: kubeadm join, TLS bootstrap, a kubelet's own renewal.

export const joining = `
# kubelet-client-expired: a kubelet has no client certificate that still counts[ (it ended on {notAfter})],
  and nothing with which it could ask for another
> part of the existing bootstrap client certificate | unable to load bootstrap kubeconfig
> The currently active client certificate has expired | No valid client certificate is found
- renewal-missed: the node was off, or could not reach the API server, while its certificate was to be
  renewed; without bootstrap-kubelet.conf the kubelet cannot begin anew
  $ kcert kubelet doctor # on that node: RENEWAL_OVERDUE or an expired pair; --fix takes a newer one where one
    lies there
  $ kcert renew # on a control plane, or with kcert.yaml for all nodes: kubelet.conf among what is due
- newer-pair-not-used: a newer pair lies in /var/lib/kubelet/pki and the link or the kubeconfig names the old
  one
  $ kcert kubelet doctor # LINK_DANGLING, LINK_IS_FILE or KUBECONFIG_EMBEDS

# cluster-info-unsigned: kubeadm join does not believe cluster-info: it has no right signature of the token[
  {tokenId}]
> could not find a JWS signature in the cluster-info ConfigMap | failed to verify JWS signature
- token-ended: the token has ended (24 h by default) or was mistyped
  $ {checkToken} # no such token, or expired
  $ kcert token create # a new one, with the command to join by
- not-signed-yet: nobody signs: kube-controller-manager has no leader or bootstrapsigner is off, or
  cluster-info was just edited
  $ kcert cluster-info verify # a signature that is missing or wrong

# cluster-info-not-judged generic: kubeadm join gave up before it believed the cluster, and with less than
  --v=5 does not say at what
> abort connecting to API servers
- token-ended-or-not-reached: the token has ended (its signature is gone from cluster-info), the address is
  not reached from this node, or the clock of this node is wrong
  $ {checkToken} # from a control plane: no such token, or expired
  $ kcert cluster-info verify # a signature that is missing or wrong
  $ {probe} # from this node: UNREACHABLE, or ok
  $ date -u # on this node: another time than the true one

# join-arguments-wrong: kubeadm join does not take its arguments: nothing was connected to
> expected a 32 byte SHA-256 hash | the bootstrap token is invalid | without caCertHashes can be unsafe
> invalid public key hash
- mistyped-or-cut: a token is six and sixteen small letters and digits with a dot; a hash is sha256: and 64
  hexadecimal digits
  $ kcert token create # a new token, with the whole command to join by
  $ kcert cluster-info pin -o args # the hashes as kubeadm join takes them

# uploaded-certificates: a control plane that joins did not get the certificates that another one uploaded for
  it
> Secret "kubeadm-certs" was not found | secrets "kubeadm-certs" is forbidden
> error decoding secret data with provided key | cipher: message authentication failed
- uploaded-secret-gone: the Secret kubeadm-certs lives for two hours, as long as the token that owns it, and
  with it the right to read it goes; or --certificate-key is of an earlier upload: kubeadm init phase
  upload-certs --upload-certs makes both anew
  $ kcert token list # no token that is described as the owner of kubeadm-certs, or one that ends soon

# ca-hash-mismatch: k3s, RKE2 or Rancher: the token or checksum that was given is of another CA or cluster
  than the one that answers
> token CA hash does not match the Cluster CA certificate hash | Configured cacerts checksum
> CA certificate is not trusted by the host CA bundle, but the token does not include a CA hash
> bootstrap data already found and encrypted with different token
- token-of-another-ca: the server was set up anew or its CA rotated, and the agent has the token of before; or
  a load balancer in between shows a certificate of its own
  $ {inspect} # whose CA answers there; the server has its token in /var/lib/rancher/k3s/server/node-token

# pin-mismatch: kubeadm join reached a cluster whose CA does not have the hash that it was given
> none of the public keys | cluster CA found in cluster-info ConfigMap is invalid
- ca-was-replaced: --discovery-token-ca-cert-hash is of the CA before a rotation, or of another cluster; or
  cluster-info still has the old CA
  $ kcert cluster-info pin # the hashes of today; -o args prints them for kubeadm join
  $ kcert cluster-info verify # whether cluster-info leads to the API servers that run

# request-not-issued: a certificate was asked for[ by the node {node}], and did not come
> timed out waiting for certificate signing request | certificate request was not signed
> certificate signing request is denied | SignerValidationFailure | still unable to rotate certs
- request-waits: nobody approved it, nobody signs for its signer, or the signer refused it
  $ kcert csr list --pending # requests that wait; kcert csr explain NAME says for what
  $ kcert csr list --denied --failed # requests that were refused
- no-right-to-ask: a kubelet that joins lacks the bindings of TLS bootstrap, or its token does not count
  $ {checkBootstrap} # the step at which it stopped, and why

# secret-without-certificate: a certificate is looked for in a Secret, and is not there, or is for another
  name
> Error getting SSL certificate | Unexpected error validating SSL certificate | local SSL certificate
> Issuing certificate as Secret does not exist
- not-issued-yet: cert-manager has not issued it (kubectl describe its Certificate, CertificateRequest, Order
  and Challenge), the Secret is in another namespace than the Ingress, or it was made by hand for other names
  $ kcert inspect --cluster --only problem # Secrets without a certificate, or that do not fit
  $ kcert inspect --cluster # whether the Secret is there at all, and its names

# acme-refused generic: cert-manager asks an ACME server (as that of Let’s Encrypt) for a certificate, and
  does not get it
> urn:ietf:params:acme:error | propagation check failed | failed to perform self check
- name-not-proven: the proof that the name is yours does not hold (HTTP-01: port 80 of the name leads
  elsewhere, is redirected or not reached from within; DNS-01: the record is not seen), or the server has
  issued too often for these names. What it asks for is in the Challenge: kubectl describe challenge
  $ kcert inspect --cluster --only expired,expiring # what ends while it is not renewed

# request-not-sent generic: the kubelet[ of {node}] could not even ask for its certificate; why stands behind
  it
> cannot create certificate signing request
> failed while requesting a signed certificate from the control plane
> failed while requesting a signed certificate from the master
- api-server-said-no: the API server was not reached, not trusted, or does not know the kubelet: its client
  certificate or bootstrap token has ended
  $ kcert kubelet doctor # on that node: what is wrong with what it has
  $ {checkBootstrap} # the step at which it stopped, and why
`
