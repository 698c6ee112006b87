import { join } from 'node:path'
import type { RequestObject } from '../../src/csr/requests-api.ts'
import { generatePrivateKey } from '../../src/x509/new-key.ts'
import { nodeNames, requestPem, servingDescription } from '../csr/made-requests.ts'
import type { FakeApiServer } from '../fakes/api-server.ts'
import { kcertBeside, type Session } from './program.ts'

// Shared parts of approvers' and signers' sessions on the fake API server: a cluster with a node, and pending requests.

export const requestsKey = {
  group: 'certificates.k8s.io',
  version: 'v1',
  resource: 'certificatesigningrequests',
} as const

const core = { group: '', version: 'v1' } as const

/** Stores the objects that an approver looks up: Nodes, the Service range, and the addresses of API servers. */
export function putCluster(server: FakeApiServer): void {
  const addresses = [
    ...nodeNames.dns.map((address) => ({ type: 'InternalDNS', address })),
    ...nodeNames.ip.map((address) => ({ type: 'InternalIP', address })),
  ]
  server.put({ ...core, resource: 'nodes' }, { metadata: { name: 'node-1' }, status: { addresses } })
  server.put(
    { group: 'networking.k8s.io', version: 'v1', resource: 'servicecidrs' },
    { metadata: { name: 'kubernetes' }, spec: { cidrs: ['10.96.0.0/12'] } },
  )
  server.put(
    { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices', namespace: 'default' },
    {
      metadata: { name: 'kubernetes', labels: { 'kubernetes.io/service-name': 'kubernetes' } },
      endpoints: [{ addresses: ['192.0.2.10'] }],
    },
  )
}

const honest = Buffer.from(requestPem(servingDescription())).toString('base64')

/** Returns a request for the same SANs with another key. */
export function foreignRequest(): string {
  const key = generatePrivateKey({ algorithm: 'ECDSA', curve: 'P-256' })
  return Buffer.from(requestPem(servingDescription(), key)).toString('base64')
}

/** Stores node-1's request for its serving certificate. */
export function putServing(
  server: FakeApiServer,
  name: string,
  spec: Partial<RequestObject['spec']> = {},
  rest: { labels?: Record<string, string>; status?: RequestObject['status'] } = {},
): void {
  server.put(requestsKey, {
    metadata: { name, ...(rest.labels && { labels: rest.labels }) },
    spec: {
      request: honest,
      signerName: 'kubernetes.io/kubelet-serving',
      usages: ['digital signature', 'server auth'],
      username: 'system:node:node-1',
      groups: ['system:nodes', 'system:authenticated'],
      ...spec,
    },
    status: rest.status ?? {},
  })
}

/** Returns the conditions of a request on the server. */
export function conditionsOf(server: FakeApiServer, name: string): string[] {
  const object = server.peek(requestsKey, name) as unknown as RequestObject | undefined
  return (object?.status?.conditions ?? []).map(({ type }) => type)
}

/** Returns a function that runs kcert as the administrator of the fake cluster. */
export function operatorOf(server: FakeApiServer, folder: string) {
  const kubeconfig = server.writeKubeconfig(join(folder, 'admin.conf'))
  return (args: readonly string[], stdin = ''): Promise<Session> =>
    kcertBeside(args, { cwd: folder, stdin, env: { KUBECONFIG: kubeconfig } })
}
