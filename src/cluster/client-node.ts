import type { KubeConfig } from '@kubernetes/client-node'

/** A kubeconfig in JSON's types, as client-node's KubeConfig reads it: one cluster, one user, one context; it names no files. */
export interface SelectedKubeconfig {
  readonly cluster: Readonly<Record<string, unknown>>
  readonly user: Readonly<Record<string, unknown>>
}

/**
 * Returns client-node's KubeConfig of the selection. The lean bundle (scripts/lean-client-node.ts) serves nearly all users.
 * Identity providers and SOCKS proxies need the full package, which loads eight times slower.
 */
export async function loadKubeConfig({ cluster, user }: SelectedKubeconfig): Promise<KubeConfig> {
  const usesSocks = String(cluster['proxy-url'] ?? '').startsWith('socks')
  const { KubeConfig } =
    usesSocks || user['auth-provider']
      ? await import('@kubernetes/client-node')
      : await import('@kubernetes/client-node/dist/config.js')
  const config = new KubeConfig()
  // JSON is valid YAML. The lean bundle parses it as JSON.
  config.loadFromString(
    JSON.stringify({
      clusters: [{ name: 'cluster', cluster }],
      users: [{ name: 'user', user }],
      contexts: [{ name: 'context', context: { cluster: 'cluster', user: 'user' } }],
      'current-context': 'context',
    }),
  )
  return config
}
