// HTTP status 403: the API server has authenticated the user, and RBAC denies the request. The certificate determines the user.

export const rights = `
# forbidden: the API server authenticated the user[ ({user})], but that user has no permission (HTTP status 403):
  certificate or token are valid
> is forbidden: User "
- bootstrap-rights-missing if userKind=bootstrap: the groups of a bootstrap token lack the bindings of TLS
  bootstrap, or the token has other groups than the bindings (system:bootstrappers:kubeadm:default-node-token)
  ! the user is {user}
  $ kcert token check {bootstrapUser} || kcert token list # the groups and usages of the token
  $ kcert bootstrap rbac # the bindings that are needed, for kubectl apply
- node-may-only-its-own if userKind=node: kubelets may read only the objects of their own pods (Node authorizer): another user has the kubelet's kubeconfig, or the certificate is of another node
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
`
