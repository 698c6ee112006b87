import { commandLine } from '../../errors/command-line.ts'
import { kubeconfigOf } from '../place.ts'
import { type CauseRow, check, type Rule } from '../rule.ts'

// Bearer tokens: of service accounts, of identity providers, of kubeadm join and of k3s.

export const tokenEnded: CauseRow = {
  id: 'token-ended',
  detail:
    'a token has ended or is of another cluster: of a service account (an hour, unless asked otherwise), of an identity provider, of kubeadm join (24 h)',
  checks: (found) => [
    check(
      commandLine`kcert inspect ${kubeconfigOf(found)}`,
      'a user with a token, an exec plugin or nothing, and no client certificate',
    ),
    check('kcert token list', 'for kubeadm join: a bootstrap token that has ended'),
  ],
}

const keysDiffer: CauseRow = {
  id: 'service-account-keys-differ',
  detail:
    'a token of a service account that another key signed: sa.key was made anew, control planes have different ones, or the token is of another cluster',
  checks: () => [
    check(
      'kcert inspect /etc/kubernetes/pki',
      'on each control plane: KEY_MISMATCH for sa.key; with -o json another publicKey.sha256 of it than on the others',
    ),
  ],
}

export const tokenRules: readonly Rule[] = [
  {
    id: 'token-signed-by-another-key',
    words: ['error in cryptographic primitive', 'no keys found for token', 'failed to verify signature'],
    means: 'in the log of an API server: somebody showed a token whose signature none of its keys made',
    causes: [keysDiffer, tokenEnded],
  },
  {
    id: 'token-expired',
    words: ['token has expired', 'oidc: token is expired', 'token is expired by'],
    means: 'in the log of an API server: somebody goes on to show a token that has ended',
    causes: [
      {
        id: 'token-not-read-again',
        detail:
          'a pod holds the token that it read at its start (the file is replaced every hour, old clients read it once), a login with an identity provider has ended, or a kubeconfig has a fixed token. No certificate is at fault',
        checks: (found) => [
          check(commandLine`kcert inspect ${kubeconfigOf(found)}`, 'a user with a token'),
          check('date -u', 'the time of the control plane: one that is ahead ends tokens early'),
        ],
      },
    ],
  },
  {
    id: 'token-not-yet-valid',
    words: ['token is not valid yet', 'token used before issued'],
    means: 'a token begins in the future, by the clock of the API server that refused it',
    causes: [
      {
        id: 'clocks-differ',
        detail:
          'control planes have different times: one signs tokens (and dates certificates) ahead of the other; after a restart without NTP',
        checks: () => [check('date -u', 'on every control plane: another time than the true one')],
      },
    ],
  },
  {
    id: 'token-of-what-is-gone',
    words: [
      'token has been invalidated',
      'token lookup failed',
      'invalid bearer token, serviceaccounts "',
      'invalid bearer token, pods "',
    ],
    means: 'a token whose service account, Secret or pod is gone or was made anew',
    causes: [
      {
        id: 'object-deleted',
        detail:
          'the ServiceAccount, its Secret or the pod was deleted or restored from a backup (another uid), and somebody still uses the token: start that pod anew. No certificate is at fault',
        checks: (found) => [check(commandLine`kcert inspect ${kubeconfigOf(found)}`, 'a user with a token')],
      },
    ],
  },
  {
    id: 'token-refused',
    isGeneric: true,
    words: [
      'invalid bearer token',
      'Unable to authenticate the request" err="invalid bearer token',
      'Unable to authenticate the request" err="[invalid bearer token',
    ],
    means: 'in the log of an API server: somebody showed a token that does not count',
    causes: [tokenEnded, keysDiffer],
  },
  {
    id: 'identity-provider-differs',
    words: [
      'issuer did not match the issuer returned by provider',
      'oidc: expected audience',
      'oidc: id token issued by a different provider',
    ],
    means: 'the API server or a token names another identity provider or client than the other',
    causes: [
      {
        id: 'issuer-or-audience-written-otherwise',
        detail:
          '--oidc-issuer-url must be the issuer of the tokens to the letter, a slash at its end too, and --oidc-client-id their audience. No certificate is at fault',
        checks: (found) => [
          check(
            commandLine`kcert inspect ${kubeconfigOf(found)}`,
            'whether the user has a token or a plugin',
          ),
        ],
      },
    ],
  },
]
