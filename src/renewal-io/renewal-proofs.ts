import { setTimeout as sleep } from 'node:timers/promises'
import type { SurveyedLeaf } from '../ca/renewal.ts'
import type { CertificateRenewal } from '../ca/renewal-report.ts'
import { messageOf } from '../errors/caught.ts'
import { hostPort } from '../errors/host-port.ts'
import { flagsOf } from '../pki/component-flags.ts'
import type { ProcessFacts } from '../pki/node-access.ts'
import { callHttps } from '../site/http-call.ts'
import { configurationOf, etcdListening, type Listening, listeningOf } from '../site/listening.ts'
import type { Site } from '../site/site.ts'
import { shownChain } from '../tls/handshake.ts'
import { Certificate } from '../x509/certificate.ts'
import { writePrivateKey } from '../x509/new-key.ts'
import { writePem } from '../x509/pem.ts'
import type { SeenNode, SiteSurvey } from './renewing.ts'

const pollMs = 500
const deadlineMs = 60_000
const timeoutMs = 5_000

/** The observed result: a server presents the certificate of its file, or an API server authenticates a client with it. */
type Proof = CertificateRenewal['checks'][number]

/** Returns the observed result for each leaf. A server or API server that does not respond is not ok. */
export async function proveLeaves(
  site: Site,
  survey: SiteSurvey,
  leaves: readonly SurveyedLeaf[],
): Promise<Proof[]> {
  const proofs = await Promise.all(
    leaves.map(async (leaf) => {
      const seen = survey.nodes.find(({ name }) => name === leaf.place.node)
      if (seen === undefined) throw new TypeError(`node ${leaf.place.node} was not surveyed`)
      return [...(await provedServing(site, seen, leaf)), ...(await provedClient(site, survey, leaf))]
    }),
  )
  return proofs.flat()
}

async function provedServing(site: Site, seen: SeenNode, { place, leaf }: SurveyedLeaf): Promise<Proof[]> {
  const { name, node } = place
  const program = servers[name]
  if (program === undefined) return []
  const served = await serverOf(site, node, name, seen.processes)
  if (served === undefined) {
    const isRunning = seen.processes.some((one) => one.program === program)
    const detail = isRunning ? `${program} listens on no https:// address` : `${program} does not run there`
    return [{ node, name, what: 'served', at: '', ok: false, detail }]
  }
  const at = hostPort(served.host, served.port)
  const proof = { node, name, what: 'served', at } as const
  const detail = await persistently(site, async () => {
    const [der] = await shownChain(site.dial(node, served.host, served.port), '127.0.0.1', timeoutMs)
    if (der === undefined) return 'it serves no certificate'
    const shown = Certificate.parse(der)
    if (shown.fingerprintSha256 === leaf.fingerprintSha256) return undefined
    return `it still serves a certificate that expires at ${shown.notAfter.toISOString()}`
  })
  return [{ ...proof, ok: detail === undefined, detail: detail ?? 'same as on disk' }]
}

/** The program that serves a row of kubeadm's table. All other rows are client certificates. */
const servers: Readonly<Record<string, string>> = {
  apiserver: 'kube-apiserver',
  'etcd-server': 'etcd',
  'etcd-peer': 'etcd',
  'kubelet-serving': 'kubelet',
}

/** Returns where a row is served, by the command line of its process; undefined if that does not run or does not serve it. */
async function serverOf(
  site: Site,
  node: string,
  name: string,
  processes: readonly ProcessFacts[],
): Promise<Listening | undefined> {
  const running = (program: string) => processes.find((one) => one.program === program)
  if (name === 'apiserver' || name === 'kubelet-serving') {
    const found = running(servers[name] ?? '')
    return found && listeningOf(found.argv, await configurationOf(site.node(node), found))
  }
  const flags = flagsOf(running('etcd')?.argv ?? [])
  return etcdListening(flags, name === 'etcd-server' ? 'client' : 'peer')
}

/** Sends a kubeconfig's certificate to an API server, which responds 401 to clients that it cannot authenticate. */
async function provedClient(
  site: Site,
  survey: SiteSurvey,
  { place, leaf, key }: SurveyedLeaf,
): Promise<Proof[]> {
  if (!place.name.endsWith('.conf') || key === undefined) return []
  const proof = { node: place.node, name: place.name, what: 'accepted' } as const
  const hosts = survey.nodes.flatMap(({ name, processes }) => {
    const argv = processes.find(({ program }) => program === 'kube-apiserver')?.argv
    return argv === undefined ? [] : [{ name, ...listeningOf(argv) }]
  })
  // Prefer the API server on the same node.
  const [api] = hosts.toSorted((a, b) => Number(b.name === place.node) - Number(a.name === place.node))
  if (api === undefined) return [{ ...proof, at: '', ok: false, detail: 'no API server runs on these nodes' }]
  const client = { certificate: writePem('CERTIFICATE', leaf.der), key: writePrivateKey(key, 'kubernetes') }
  const detail = await persistently(site, async () => {
    const stream = site.dial(api.name, api.host, api.port)
    const { status } = await callHttps({ stream, path: '/api', client, timeoutMs })
    if (status === 401) return 'the API server rejects it (401)'
    return status >= 500 ? `the API server responds with HTTP status ${status}` : undefined
  })
  const at = `${api.name}/kube-apiserver`
  return [{ ...proof, at, ok: detail === undefined, detail: detail ?? 'accepted by the API server' }]
}

/** Retries until nothing is wrong and returns undefined, or returns the last fault at the deadline. */
async function persistently(
  site: Site,
  observe: () => Promise<string | undefined>,
): Promise<string | undefined> {
  const begun = site.clock().getTime()
  for (;;) {
    const wrong = await observe().catch(messageOf)
    if (wrong === undefined) return undefined
    if (site.clock().getTime() - begun > deadlineMs) return wrong
    await sleep(pollMs)
  }
}
