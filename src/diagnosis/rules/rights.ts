// HTTP status 403: the API server knows who asks. It is RBAC that says no, but a certificate says who one is.

export const rights = `
# forbidden: the API server knows who asks[ ({user})], and that user has no right to do it (HTTP status 403):
  certificate or token are accepted
> is forbidden: User "
- bootstrap-rights-missing if userKind=bootstrap: the groups of a bootstrap token lack the bindings of TLS
  bootstrap, or the token has other groups than the bindings (system:bootstrappers:kubeadm:default-node-token)
  ! the user is {user}
  $ kcert token check {bootstrapUser} || kcert token list # the groups and usages of the token
  $ kcert bootstrap rbac # the bindings that are needed, for kubectl apply
- node-may-only-its-own if userKind=node: kubelets may read what belongs to their own pods only (Node
  authorizer): somebody else uses the kubelet's kubeconfig, or the certificate is of another node than the
  Node is called
  ! the user is {user}
  $ kcert kubelet doctor # on the node: whose certificate it has; here {user}
- admin-binding-missing if userKind=admin: since Kubernetes 1.29 admin.conf is of the group
  kubeadm:cluster-admins, which needs a ClusterRoleBinding; an admin.conf that was made by a newer kubeadm, or
  a restored etcd, has none
  ! the user is {user}
  $ kcert inspect /etc/kubernetes/admin.conf # the groups (O) of its certificate
  $ kcert inspect /etc/kubernetes/super-admin.conf # system:masters, which needs no binding: with this one the
    binding kubeadm:cluster-admins is made
- no-role if userKind=other: no RoleBinding or ClusterRoleBinding gives it to this user or one of its groups;
  or it is another user than was meant (CN and O of the client certificate)
  $ kcert inspect {kubeconfig} # as whom the client certificate comes: CN is the user, O are the groups

# forbidden-without-user generic: the server knows who asks, and that user has no right to do it: TLS and the
  credential were accepted
> 403 Forbidden | (403) Reason: Forbidden
- no-role: a right that the user, its groups or the ServiceAccount does not have (RBAC)
  $ kcert inspect {kubeconfig} # as whom a client certificate comes: CN is the user, O are the groups
`
