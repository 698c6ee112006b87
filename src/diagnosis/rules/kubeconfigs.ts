// Errors in a kubeconfig: a missing file, an incomplete context, a credential plugin that fails.

export const kubeconfigs = `
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
- ca-made-anew: the CA was created again or copied from elsewhere, and the kubeconfig is older
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
- login-ended: the login with the cloud or identity provider expired, or the plugin has other settings here
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
`
