import { isIP } from 'node:net'
import { resources } from '../cluster/kinds.ts'
import type { ObjectsApi } from '../cluster/objects.ts'
import { getOne, listAll } from '../cluster/readable.ts'
import { withoutBrackets } from '../errors/host-port.ts'
import { flagsOf } from '../pki/component-flags.ts'
import type { ProcessFacts } from '../pki/node-access.ts'
import type { Digest } from '../rotation/certificate-record.ts'
import type { CaBundleSnapshot, HandshakeSnapshot } from '../rotation/snapshot.ts'
import { shownChain } from '../tls/handshake.ts'
import { Certificate } from '../x509/certificate.ts'
import { configurationOf, etcdListening, listeningOf } from './listening.ts'
import type { Site } from './site.ts'
import { serviceNamed } from './workloads.ts'

const timeoutMs = 5_000

/** Returns the chain that a control-plane process or a kubelet presents on its node; undefined if it does not respond. */
export async function processHandshake(
  site: Site,
  node: string,
  running: ProcessFacts,
): Promise<HandshakeSnapshot | undefined> {
  const { host, port } = listeningOf(running.argv, await configurationOf(site.node(node), running))
  return handshake(site, `${node}/${running.program}`, node, host, port)
}

/** Returns the chain that a member of etcd presents to clients or to other members, leaf first; empty if it does not respond. */
export async function etcdChain(
  site: Site,
  node: string,
  running: ProcessFacts,
  part: 'client' | 'peer',
): Promise<readonly Digest[]> {
  const listening = etcdListening(flagsOf(running.argv), part)
  if (listening === undefined) return []
  const shown = await handshake(site, `${node}/etcd`, node, listening.host, listening.port)
  return shown?.chain ?? []
}

/** Returns the chains of the servers that API servers verify with a caBundle; each distinct chain of a service's endpoints. */
export async function serviceHandshakes(
  site: Site,
  bundles: readonly CaBundleSnapshot[],
  from: string,
): Promise<HandshakeSnapshot[]> {
  const servers = [...new Set(bundles.map(({ server }) => server))]
  const found = await Promise.all(
    servers.map(async (server) => {
      const addresses = await addressesOf(site.objects, server)
      const shown = await Promise.all(
        addresses.map(({ host, port, name }) => handshake(site, server, from, host, port, name)),
      )
      const byChain = new Map(shown.flatMap((one) => (one === undefined ? [] : [[one.chain.join(), one]])))
      return [...byChain.values()]
    }),
  )
  return found.flat()
}

export interface ServerAddress {
  readonly host: string
  readonly port: number
  /** The SNI name, as API servers send it. */
  readonly name: string
}

/**
 * Returns where the server behind a caBundle listens. API servers dial the service. This code dials each endpoint, because each
 * may have another certificate in memory.
 */
export async function addressesOf(objects: ObjectsApi, server: string): Promise<ServerAddress[]> {
  const service = serviceNamed(server)
  if (service === undefined) {
    const url = URL.parse(server)
    if (url === null || url.protocol !== 'https:') return []
    const host = withoutBrackets(url.hostname)
    return [{ host, port: Number(url.port || 443), name: host }]
  }
  const { namespace, name, port } = service
  const [object, slices] = await Promise.all([
    getOne(objects, { ...resources.services, namespace, name }),
    listAll(
      objects,
      { ...resources.endpointSlices, namespace },
      { labelSelector: `kubernetes.io/service-name=${name}` },
    ),
  ])
  const portName = object?.spec?.ports?.find((one) => one.port === port)?.name
  return slices.flatMap(({ endpoints = [], ports = [] }) => {
    const number = ports.find((one) => (one.name ?? '') === (portName ?? ''))?.port ?? ports[0]?.port
    if (number === undefined) return []
    return endpoints
      .filter(({ conditions }) => conditions?.ready !== false)
      .flatMap(({ addresses = [] }) =>
        addresses.slice(0, 1).map((host) => ({ host, port: number, name: `${name}.${namespace}.svc` })),
      )
  })
}

async function handshake(
  site: Site,
  server: string,
  from: string,
  host: string,
  port: number,
  name = host,
): Promise<HandshakeSnapshot | undefined> {
  try {
    const ders = await shownChain(site.dial(from, host, port), isIP(name) ? '127.0.0.1' : name, timeoutMs)
    const chain = site.certificates.addAll(ders.map((der) => Certificate.parse(der)))
    return { server, chain, atMs: site.clock().getTime() }
  } catch {
    // No server responds, or it does not use TLS, so it presents no certificate.
    return undefined
  }
}
