// Bearer tokens: from service accounts, identity providers, kubeadm join and k3s.

export const tokens = `
# token-signed-by-another-key: in the log of an API server: a client presented a token that none of its keys signed
> error in cryptographic primitive | no keys found for token | failed to verify signature
- service-account-keys-differ: a token of a service account that another key signed: sa.key was created again, control planes have different ones, or the token is of another cluster
  $ kcert inspect /etc/kubernetes/pki # on each control plane: KEY_MISMATCH for sa.key; with -o json another
    publicKey.sha256 of it than on the others
- token-ended: a token expired or is of another cluster: of a service account (default one hour), of an identity provider, of kubeadm join (24 h)
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

# token-of-what-is-gone: a token whose service account, Secret or pod was deleted or created again
> token has been invalidated | token lookup failed | invalid bearer token, serviceaccounts "
> invalid bearer token, pods "
- object-deleted: the ServiceAccount, its Secret or the pod was deleted or restored from a backup (another
  uid), and a client still uses the token: restart that pod. No certificate is the cause
  $ kcert inspect {kubeconfig} # a user with a token

# token-refused generic: in the log of an API server: a client presented an invalid token
> invalid bearer token | Unable to authenticate the request" err="invalid bearer token
> Unable to authenticate the request" err="[invalid bearer token
- token-ended, service-account-keys-differ

# identity-provider-differs: the API server or a token names another identity provider or client than the
  other
> issuer did not match the issuer returned by provider | oidc: expected audience
> oidc: id token issued by a different provider
- issuer-or-audience-written-otherwise: --oidc-issuer-url must be the issuer of the tokens to the letter, a
  slash at its end too, and --oidc-client-id their audience. No certificate is the cause
  $ kcert inspect {kubeconfig} # whether the user has a token or a plugin
`
