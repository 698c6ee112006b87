import { readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { parse } from 'yaml'

/** A proxy in front of an API server that forwards connections unchanged. */
export interface CountingProxy {
  /** A kubeconfig for the same user, through the proxy. */
  readonly kubeconfig: string
  /** The total number of connections. */
  connections(): number
  /** The maximum number of concurrent connections since the last call. */
  mostAtOnce(): number
  close(): void
}

/** Starts a proxy in front of a kubeconfig's API server, on loopback. */
export async function countingProxy(kubeconfig: string, folder: string): Promise<CountingProxy> {
  const config = parse(readFileSync(kubeconfig, 'utf8')) as {
    clusters: { cluster: { server: string; 'tls-server-name'?: string } }[]
  }
  const { cluster } = config.clusters[0]!
  const { hostname, port } = new URL(cluster.server)
  let connections = 0
  let open = 0
  let most = 0
  const server = createServer((incoming) => {
    connections++
    most = Math.max(most, ++open)
    const outgoing = connect({ host: hostname, port: Number(port), noDelay: true })
    incoming.setNoDelay(true)
    incoming.pipe(outgoing).pipe(incoming)
    incoming.on('error', () => outgoing.destroy())
    incoming.on('close', () => {
      open--
      outgoing.destroy()
    })
    outgoing.on('error', () => incoming.destroy())
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  cluster.server = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  // Every API server of kubeadm has this name in its certificate.
  cluster['tls-server-name'] ??= 'kubernetes'
  const path = join(folder, 'counted.conf')
  writeFileSync(path, JSON.stringify(config), { mode: 0o600 })
  return {
    kubeconfig: path,
    connections: () => connections,
    mostAtOnce: () => {
      const seen = most
      most = open
      return seen
    },
    close: () => server.close(),
  }
}
