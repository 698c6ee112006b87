import type { KubeConfig } from '@kubernetes/client-node'

/** A kubeconfig in JSON's types, as client-node's KubeConfig reads it: one cluster, one user, one context; it names no files. */
export interface SelectedKubeconfig {
  readonly cluster: Readonly<Record<string, unknown>>
  readonly user: Readonly<Record<string, unknown>>
}

/**
 * Returns client-node's KubeConfig of what was selected. The lean bundle (scripts/lean-client-node.ts) holds what nearly all
 * use; identity providers and SOCKS proxies take the package itself, which loads eight times slower.
 */
export async function loadKubeConfig({ cluster, user }: SelectedKubeconfig): Promise<KubeConfig> {
  const usesSocks = String(cluster['proxy-url'] ?? '').startsWith('socks')
  const { KubeConfig } =
    usesSocks || user['auth-provider']
      ? await import('@kubernetes/client-node')
      : await import('@kubernetes/client-node/dist/config.js')
  const config = new KubeConfig()
  // JSON is YAML too; in the lean bundle it is read as JSON.
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
