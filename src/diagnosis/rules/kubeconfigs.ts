import { commandLine } from '../../errors/command-line.ts'
import type { Found } from '../found.ts'
import { kubeconfigOf } from '../place.ts'
import { check, type Rule } from '../rule.ts'

// What stands in a kubeconfig, or fails to: no file at all, half a context, a plugin that should bring a credential.

const seePlugin = (found: Found) => [
  check(
    commandLine`kcert inspect ${kubeconfigOf(found)}`,
    'the user of the context has a plugin and no client certificate; its command stands in the file under exec',
  ),
]

export const kubeconfigRules: readonly Rule[] = [
  {
    id: 'no-kubeconfig',
    words: [
      'http://localhost:8080',
      'localhost:8080 was refused',
      '127.0.0.1:8080 was refused',
      'http://localhost/api',
      'no configuration has been provided',
      'Invalid kube-config file. No configuration found',
    ],
    means:
      'the client found no kubeconfig, and turned to the address that it has without one (localhost): no certificate was looked at',
    causes: [
      {
        id: 'file-not-found',
        detail:
          'there is no ~/.kube/config for this user (sudo has another home), KUBECONFIG is not set or names no file, or a provider of Terraform was given no cluster',
        checks: () => [
          check('kcert inspect ~/.kube/config', 'does not exist, or has no current context'),
          check(
            'kcert inspect /etc/kubernetes/admin.conf',
            'on a control plane: one that works; KUBECONFIG=/etc/kubernetes/admin.conf kubectl get nodes',
          ),
        ],
      },
    ],
  },
  {
    id: 'kubeconfig-incomplete',
    words: [
      'no context exists with the name',
      'context was not found for specified context',
      'current-context must exist',
      'no server found for cluster',
      'cluster has no server defined',
      'error loading config file',
    ],
    means: 'the kubeconfig was read, and what the context needs is not in it',
    causes: [
      {
        id: 'entry-missing',
        detail:
          'context, cluster and user are three lists that name one another: one of the names is not there, KUBECONFIG names another file, or the data is damaged',
        checks: (found) => [
          check(
            commandLine`kcert inspect ${kubeconfigOf(found)}`,
            'its contexts, with the cluster and user of each, and what is wrong',
          ),
        ],
      },
    ],
  },
  {
    id: 'kubeconfig-of-another-ca',
    words: ['exists already but has got the wrong CA cert'],
    means:
      'kubeadm found a kubeconfig with another CA than /etc/kubernetes/pki/ca.crt, and leaves both alone',
    causes: [
      {
        id: 'ca-made-anew',
        detail: 'the CA was made anew or brought from elsewhere, and the kubeconfig is of before',
        checks: (found) => [
          check(
            commandLine`kcert verify ${kubeconfigOf(found)} --roots /etc/kubernetes/pki/ca.crt`,
            'NOT TRUSTED: its client certificate is of the other CA as well, and it must be made anew',
          ),
          check(
            commandLine`kcert kubeconfig set-ca ${kubeconfigOf(found)} --ca /etc/kubernetes/pki/ca.crt --dry-run`,
            'where the client certificate is TRUSTED: what would change',
          ),
        ],
      },
    ],
  },
  {
    id: 'kubeconfig-of-another-server',
    words: ['exists already but has an unexpected API Server URL'],
    means: 'kubeadm found a kubeconfig that leads to another API server than its configuration says',
    causes: [
      {
        id: 'address-changed',
        detail:
          'controlPlaneEndpoint or the address of the node has changed; certificates need the new name as well',
        checks: (found) => [
          check(commandLine`kcert inspect ${kubeconfigOf(found)}`, 'the server that it names'),
          check(
            'kcert inspect /etc/kubernetes/pki/apiserver.crt',
            'whether the new name is in the certificate',
          ),
        ],
      },
    ],
  },
  {
    id: 'plugin-not-installed',
    words: [
      'client-go credential plugin that is not installed',
      'getting credentials: exec: executable',
      'unable to run auth exec',
      'No Auth Provider found for name',
      'auth plugin has been removed',
    ],
    holds: ({ isPluginFailed }) => isPluginFailed !== true,
    means:
      'the kubeconfig leaves the credential to a plugin, and kubectl could not run it: no request was sent',
    causes: [
      {
        id: 'plugin-missing',
        detail:
          'the program under exec is not on the PATH of whoever runs kubectl (an IDE, a CI job, a container has another), fails by itself, or the plugin was built into kubectl and is gone (gcp and azure, since 1.26)',
        checks: seePlugin,
      },
    ],
  },
  {
    id: 'plugin-failed',
    words: [
      'getting credentials: exec: executable',
      'failed to refresh token',
      'cannot fetch token: 401 Unauthorized',
      'No valid id-token, and cannot refresh',
      'getting credentials:',
    ],
    means: 'the plugin of the kubeconfig ran, and brought no credential: no request was sent',
    causes: [
      {
        id: 'login-ended',
        detail:
          'the login with the cloud or identity provider has ended, or the plugin has other settings here (profile, region): run the command that stands under exec by hand, it says why',
        checks: seePlugin,
      },
    ],
  },
  {
    id: 'plugin-version',
    words: [
      'no kind "ExecCredential" is registered',
      'getting credentials: decoding stdout: no kind "ExecCredential" is registered',
      'getting credentials: exec plugin is configured to use API version',
      'exec plugin: invalid apiVersion',
      'exec plugin is configured to use API version',
      'interactiveMode must be specified',
    ],
    means:
      'kubectl and the plugin of the kubeconfig speak different versions of client.authentication.k8s.io',
    causes: [
      {
        id: 'kubeconfig-of-older-tools',
        detail:
          'v1alpha1 is gone since kubectl 1.24, and v1 needs interactiveMode: bring the plugin up to date, and let it write its entry of the kubeconfig anew',
        checks: seePlugin,
      },
    ],
  },
]
