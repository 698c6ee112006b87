import { randomBytes } from 'node:crypto'
import { clusterInfoResource, tokenSecrets } from '../../src/app/bootstrap/objects.ts'
import { signatureKeyPrefix, signKubeconfig } from '../../src/bootstrap/signature.ts'
import { type BootstrapToken, newToken } from '../../src/bootstrap/token.ts'
import { kubeadmJoiners, secretOfToken, type TokenSettings } from '../../src/bootstrap/token-secret.ts'
import type { FakeApiServer } from '../fakes/api-server.ts'

// The fake cluster data that joining nodes read: cluster-info with a comment, signed by kube-controller-manager for the tokens.

const { name: clusterInfoName, ...clusterInfoKey } = clusterInfoResource
const dayMs = 86_400_000

/** Returns a random token for a test. */
export function someToken(): BootstrapToken {
  return newToken((count) => randomBytes(count))
}

/** Stores a token as kubeadm creates it, with changes. */
export function putToken(
  server: FakeApiServer,
  token: BootstrapToken,
  settings: Partial<TokenSettings> = {},
): void {
  const { apiVersion, kind, metadata, type, stringData } = secretOfToken({
    token,
    expiration: new Date(Date.now() + dayMs),
    usages: ['signing', 'authentication'],
    groups: [kubeadmJoiners],
    ...settings,
  })
  const data = Object.entries(stringData ?? {}).map(([key, value]) => [
    key,
    Buffer.from(value).toString('base64'),
  ])
  server.put(tokenSecrets, { apiVersion, kind, metadata, type, data: Object.fromEntries(data) })
}

export function clusterInfoText(server: FakeApiServer, caPem = server.caPem): string {
  return `apiVersion: v1
kind: Config
# the load balancer, see OPS-17
clusters:
- name: ""
  cluster:
    server: ${server.url}
    certificate-authority-data: ${Buffer.from(caPem).toString('base64')}
contexts: null
current-context: ""
users: null
`
}

/** Stores cluster-info, signed by these tokens. */
export function putClusterInfo(
  server: FakeApiServer,
  tokens: readonly BootstrapToken[],
  text = clusterInfoText(server),
): void {
  const signatures = tokens.map((token) => [signatureKeyPrefix + token.id, signKubeconfig(text, token)])
  server.put(clusterInfoKey, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: clusterInfoName, annotations: { 'example.com/owner': 'ops' } },
    data: { kubeconfig: text, ...Object.fromEntries(signatures) },
  })
}

/** Returns the current data of cluster-info on the server. */
export function clusterInfoData(server: FakeApiServer): Record<string, string> {
  return server.peek(clusterInfoKey, clusterInfoName)?.data as Record<string, string>
}

export { clusterInfoKey }
