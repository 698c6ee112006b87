import { isIP } from 'node:net'
import type { Duplex } from 'node:stream'
import type { ObjectsApi } from '../cluster/objects.ts'
import { commandLine } from '../errors/command-line.ts'
import type { Anchor, EndpointKind } from '../probe/target.ts'
import type { CaBundleSnapshot } from '../rotation/snapshot.ts'
import { Certificates } from './certificates.ts'
import type { ProbeTarget } from './dialling.ts'
import { FileReading } from './file-reading.ts'
import { addressesOf } from './handshakes.ts'
import { caBundles } from './workloads.ts'

/** Where connections to pods start. */
export interface Origin {
  readonly node: string
  dial(host: string, port: number): Duplex
}

const kinds: Readonly<Record<string, EndpointKind>> = {
  APIService: 'aggregated-api',
  CustomResourceDefinition: 'conversion-webhook',
}

/**
 * Returns the servers that API servers verify with a caBundle. Each endpoint of their Services is a target, because each may have
 * a different certificate. Throws KCERT_API_FORBIDDEN if listing one of the kinds is forbidden.
 */
export async function webhookTargets(objects: ObjectsApi, origin?: Origin): Promise<ProbeTarget[]> {
  const certificates = new Certificates()
  const bundles = await caBundles({ objects, reading: new FileReading(certificates) })
  const byServer = Map.groupBy(bundles, ({ server }) => server)
  const found = await Promise.all(
    [...byServer].map(async ([server, of]) => {
      const anchors = anchorsOf(of, certificates)
      const common: Common = {
        name: server,
        kind: kinds[of[0]?.object.kind ?? ''] ?? 'webhook',
        anchors,
        isVerified: anchors.some(({ roots }) => roots !== undefined),
        notes: [],
      }
      const addresses = await addressesOf(objects, server)
      if (addresses.length === 0) return [nowhere(common, server)]
      return addresses.map(({ host, port, name }): ProbeTarget => {
        // A URL is dialled unchanged; pods are reached from nodes.
        const isPod = isIP(host) !== 0 && host !== name
        return {
          ...common,
          host,
          port,
          expectedNames: [name],
          serverName: name,
          ...(origin !== undefined && isPod && { from: origin.node, dial: () => origin.dial(host, port) }),
        }
      })
    }),
  )
  return found.flat()
}

type Common = Pick<ProbeTarget, 'name' | 'kind' | 'anchors' | 'isVerified' | 'notes'>

function nowhere(common: Common, server: string): ProbeTarget {
  const [, namespace = '', name = ''] = /^service\/([^/]+)\/([^/:]+)/.exec(server) ?? []
  return {
    ...common,
    host: `${name}.${namespace}.svc`,
    port: 443,
    expectedNames: [],
    serverName: '',
    unseen: {
      isReached: false,
      reason: 'its Service has no ready endpoint',
      next:
        name === ''
          ? 'kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o yaml'
          : commandLine`kubectl get endpointslices -n ${namespace} -l kubernetes.io/service-name=${name}`,
    },
  }
}

/** Returns one anchor for each distinct set of CAs, with the fields that contain it. */
function anchorsOf(bundles: readonly CaBundleSnapshot[], certificates: Certificates): Anchor[] {
  const bySet = Map.groupBy(bundles, ({ trust }) => trust.toSorted().join())
  return [...bySet.values()].map((same): Anchor => {
    const [{ id: source, trust }] = same as [CaBundleSnapshot]
    if (trust.length === 0)
      return {
        by: 'caBundle',
        source,
        fault: 'it is empty, so kcert verifies by the CAs of the control-plane nodes',
      }
    const located = trust.flatMap((digest, index) => {
      const certificate = certificates.get(digest)
      return certificate === undefined ? [] : [{ source, entry: `certificate ${index + 1}`, certificate }]
    })
    return { by: 'caBundle', source, roots: { certificates: located, unreadable: [], isKubeconfig: false } }
  })
}
