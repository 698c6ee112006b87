import { BlockList, connect } from 'node:net'
import pMap from 'p-map'
import type { Cluster } from '../../../cluster/cluster.ts'
import { resources } from '../../../cluster/kinds.ts'
import { listEach } from '../../../cluster/readable.ts'
import { given } from '../../../errors/given.ts'
import { hostPort, isLoopback, withoutBrackets } from '../../../errors/host-port.ts'
import { KcertError } from '../../../errors/kcert-error.ts'
import { tlsType } from '../../../inspection/read-manifest.ts'
import { forecastOf, seenCertificate } from '../../../kubelet/forecast.ts'
import { foreignSubjectOf } from '../../../pki/kubelet.ts'
import { evaluate } from '../../../probe/evaluation.ts'
import type { GivenCertificate, Observed } from '../../../probe/target.ts'
import { givenIn } from '../../../site/anchors.ts'
import { ClusterSight } from '../../../site/cluster-targets.ts'
import { observe, type ProbeTarget } from '../../../site/dialling.ts'
import { webhookTargets } from '../../../site/webhook-targets.ts'
import { Certificate } from '../../../x509/certificate.ts'
import { isValidForHost } from '../../../x509/hostname.ts'
import type { PartSamples } from './part.ts'

// The certificates that servers serve, as `kcert probe` reads them. The controller presents no client certificate.

/** Each handshake needs memory, and each server that does not respond needs its timeout. */
const atOnce = 32
const timeoutMs = 3_000

const linkLocal = [
  ['169.254.0.0', 16, 'ipv4'],
  ['fe80::', 10, 'ipv6'],
] as const
const thisMachine = [
  ['0.0.0.0', 8, 'ipv4'],
  ['127.0.0.0', 8, 'ipv4'],
  // The unspecified address and ::1.
  ['::', 127, 'ipv6'],
] as const

/**
 * Returns the addresses to which the controller does not connect, also when a name resolves to one. Kubelets write the addresses of their Nodes, and
 * owners of Services those of webhooks. API servers do not proxy to loopback and link-local addresses either: metadata services of clouds
 * have such addresses. The other servers of an API server on this machine may be on this machine.
 */
export function forbiddenAddresses({ server }: Pick<Cluster, 'server'>): BlockList {
  const list = new BlockList()
  const isHere = isLoopback(withoutBrackets(URL.parse(server)?.hostname ?? ''))
  for (const [address, prefix, family] of isHere ? linkLocal : [...linkLocal, ...thisMachine])
    list.addSubnet(address, prefix, family)
  return list
}

/** Throws if a list, or the cluster CA, could not be read: servers would be compared with less, and look better. */
async function checkComplete(sight: ClusterSight): Promise<void> {
  const [error] = [...sight.errors, ...sight.refused]
  if (error !== undefined) throw error
  const ca = await sight.clusterCa()
  if (ca?.roots === undefined)
    throw new KcertError('KCERT_X509_MALFORMED', 'the cluster CA cannot be read', given({ why: ca?.fault }))
}

/** Adds the API servers. Throws if their addresses or the cluster CA cannot be read. */
export async function watchApiServers(cluster: Cluster, to: PartSamples, now: Date): Promise<void> {
  const sight = new ClusterSight(cluster, {})
  const targets = await sight.apiServers()
  await checkComplete(sight)
  await watchTargets(cluster, targets, to, now)
}

/** Adds the kubelets of all Nodes, and whether they renew their serving certificates. Throws without their CAs or CSRs. */
export async function watchKubelets(cluster: Cluster, to: PartSamples, now: Date): Promise<void> {
  const sight = new ClusterSight(cluster, {})
  const targets = await sight.kubelets()
  await checkComplete(sight)
  await watchTargets(cluster, targets, to, now, (target, observed) => addForecast(target, observed, to, now))
}

/** Adds the servers that API servers verify with a caBundle. With `readSecrets`, compares them with the Secrets of their namespace. */
export async function watchWebhooks(
  cluster: Cluster,
  to: PartSamples,
  now: Date,
  readSecrets: boolean,
): Promise<void> {
  const targets = await webhookTargets(cluster.objects)
  const given = readSecrets ? await secretsFor(cluster, targets) : new Map<string, GivenCertificate>()
  await watchTargets(
    cluster,
    targets.map((target) => {
      const issued = given.get(target.serverName)
      return issued === undefined ? target : { ...target, given: issued }
    }),
    to,
    now,
  )
}

async function watchTargets(
  cluster: Cluster,
  targets: readonly ProbeTarget[],
  to: PartSamples,
  now: Date,
  each: (target: ProbeTarget, observed: Observed) => void = () => {},
): Promise<void> {
  const blockList = forbiddenAddresses(cluster)
  await pMap(
    targets,
    async ({ client: _, pair: __, ...target }) => {
      const dial = () => connect({ host: target.host, port: target.port, blockList })
      const observed = await observe({ ...target, dial }, { timeoutMs })
      const { kind, name, host, port, status, problems } = evaluate(target, observed, now)
      to.count('served_endpoints', { kind, status })
      const entry = hostPort(host, port)
      // Which of several Secrets a server uses is not certain, so only a newer one is a problem.
      for (const { code } of problems)
        if (kind === 'kubelet' || kind === 'api-server' || code !== 'OTHER_CERTIFICATE_SERVED')
          to.set('served_problem', { kind, name, entry, code }, 1)
      if ('reason' in observed) return
      const soonest = soonestOf(observed)
      if (soonest === undefined) return
      const { notBeforeMs, notAfterMs } = soonest
      to.add({ kind, namespace: '', name, entry, notBeforeMs, notAfterMs })
      each(target, observed)
    },
    { concurrency: atOnce },
  )
}

/** Undefined if one cannot be read: then `evaluate` says so. */
function soonestOf({ chain }: Observed): Certificate | undefined {
  try {
    const [first, ...rest] = chain.map((der) => Certificate.parse(der))
    return first && rest.reduce((best, one) => (one.notAfterMs < best.notAfterMs ? one : best), first)
  } catch {
    return undefined
  }
}

function addForecast(
  { node, host, port }: ProbeTarget,
  { chain }: Observed,
  to: PartSamples,
  now: Date,
): void {
  const [der] = chain
  if (der === undefined || node === undefined) return
  const leaf = Certificate.parse(der)
  const location = hostPort(host, port)
  const stranger = foreignSubjectOf(leaf.subject, node)
  const facts = {
    name: node,
    configuration: undefined,
    certificates: [
      {
        ...seenCertificate(leaf, { usage: 'serving', source: 'handshake', location }),
        ...(stranger && { stranger }),
      },
    ],
    pending: [],
    unread: [],
  }
  const [state = 'another-server'] = forecastOf([facts], [], now).nodes.flatMap(({ certificates }) =>
    certificates.map((one) => one.state),
  )
  to.count('kubelet_certificates', { state })
  if (state === 'overdue' || state === 'expired') to.set('kubelet_late', { node, state }, 1)
}

/** Certificates of TLS Secrets for one name; the newest ones. */
const mostCandidates = 10

/** Returns for each name of a server the certificates for it in TLS Secrets of its namespace, the newest first. */
async function secretsFor(
  { objects }: Cluster,
  targets: readonly ProbeTarget[],
): Promise<ReadonlyMap<string, GivenCertificate>> {
  const byNamespace = Map.groupBy(
    new Set(targets.map(({ serverName }) => serverName)),
    (name) => /^[^.]+\.([^.]+)\.svc$/.exec(name)?.[1],
  )
  const given = new Map<string, GivenCertificate>()
  for (const [namespace, names] of byNamespace) {
    if (namespace === undefined) continue
    const found = new Map<string, { readonly source: string; readonly certificate: Certificate }[]>()
    const selection = { fieldSelector: `type=${tlsType}` }
    for await (const { metadata, data } of listEach(
      objects,
      { ...resources.secrets, namespace },
      selection,
    )) {
      const bytes = Buffer.from(data?.['tls.crt'] ?? '', 'base64')
      const { certificate } = givenIn('', bytes)
      if (certificate === undefined) continue
      const source = `secret ${namespace}/${metadata.name}`
      for (const name of names.filter((one) => isValidForHost(certificate, one)))
        found.set(
          name,
          [...(found.get(name) ?? []), { source, certificate }]
            .sort((a, b) => b.certificate.notBeforeMs - a.certificate.notBeforeMs)
            .slice(0, mostCandidates),
        )
    }
    for (const [name, [newest, ...others]] of found)
      if (newest !== undefined)
        given.set(name, { ...newest, besides: others.map(({ certificate }) => certificate) })
  }
  return given
}
