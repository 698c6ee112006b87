import type { Context } from '../../cli/context.ts'
import { inFile, readInput } from '../../cli/input.ts'
import { parseDuration } from '../../cli/instant.ts'
import { readKeyFile } from '../../cli/key-file.ts'
import { progressOn } from '../../cli/progress.ts'
import type { Cluster } from '../../cluster/cluster.ts'
import { onKcertError } from '../../errors/caught.ts'
import { type ExitCode, exitCodes, worstExit } from '../../errors/codes.ts'
import { commandLine } from '../../errors/command-line.ts'
import { given } from '../../errors/given.ts'
import { KcertError, wordsOf } from '../../errors/kcert-error.ts'
import { evaluate, probeReport } from '../../probe/evaluation.ts'
import type { EndpointReport, ProbeReport } from '../../probe/report.ts'
import type { Anchor, EndpointKind, Unobserved } from '../../probe/target.ts'
import type { GivenTrust, ShownPair } from '../../site/cluster-targets.ts'
import type { ProbeTarget } from '../../site/dialling.ts'
import type { Site } from '../../site/site.ts'
import { type Endpoint, parseEndpoint } from '../../tls/endpoint.ts'
import { type ProbeFlags, type ProbeSection, probeSections } from './flags.ts'

/** With an inventory, also the servers that only their node can reach. */
const kindsOf: Readonly<Record<ProbeSection, readonly EndpointKind[]>> = {
  'api-servers': ['api-server'],
  nodes: ['kubelet'],
  etcd: ['etcd', 'etcd-peer'],
  webhooks: ['webhook', 'aggregated-api', 'conversion-webhook'],
}
const localKinds: readonly EndpointKind[] = ['controller-manager', 'scheduler']

/** What to probe, and how. */
export interface ProbeJob extends ProbeFlags {
  readonly endpoints: readonly string[]
  readonly sections: ReadonlySet<ProbeSection>
  /** True if everything is probed, including servers that only their node can reach. */
  readonly isAll: boolean
}

// Sockets are cheap; each connection through a node needs a process here and one on the node.
const directAtOnce = 128
const tunnelsAtOnce = 12
/** For each cluster of `kcert fleet probe`. */
const directInFleet = 16

interface Found {
  readonly targets: readonly ProbeTarget[]
  readonly notes: readonly string[]
  /** Why targets could not be found; the notes name them. */
  readonly errors: readonly KcertError[]
}

/** Probes the servers of the job and returns the report with the exit code. Throws if they cannot be found. */
export async function probe(
  job: ProbeJob,
  context: Context,
): Promise<{ readonly report: ProbeReport; readonly exit: ExitCode }> {
  const given = await givenTrust(job, context)
  const named = namedTargets(job, given)
  return withTargets(job, given, context, async ({ targets, notes, errors }) => {
    const all = [...named, ...targets]
    const report = probeReport(await probed(all, job, context), notes, context.clock())
    return { report, exit: exitOf(report, errors) }
  })
}

/** A server that rejects the client certificate is a result; an API server that rejects kcert leaves the report incomplete. */
function exitOf({ endpoints }: ProbeReport, errors: readonly KcertError[]): ExitCode {
  const codes = { ok: exitCodes.done, failed: exitCodes.no, unreachable: exitCodes.unreachable } as const
  const isPermitted = errors.every(({ exitCode }) => exitCode !== exitCodes.notPermitted)
  return worstExit([
    ...endpoints.map(({ status }) => codes[status]),
    isPermitted ? exitCodes.done : exitCodes.notPermitted,
  ])
}

async function probed(
  targets: readonly ProbeTarget[],
  job: ProbeJob,
  context: Context,
): Promise<EndpointReport[]> {
  const [{ default: pMap }, { observe }] = await Promise.all([
    import('p-map'),
    import('../../site/dialling.ts'),
  ])
  const timeoutMs = parseDuration(job.timeout, '--timeout')
  const version = job.tls && (`TLSv${job.tls}` as const)
  const { chosen } = job
  const progress = progressOn(context, 'probed', chosen === undefined ? targets.length : 0)
  const reports: EndpointReport[] = []
  const one = async ([index, target]: [number, ProbeTarget]): Promise<void> => {
    const seen = await observe(target, { timeoutMs, version })
    reports[index] = evaluate(target, seen, context.clock())
    progress.step()
  }
  const indexed = [...targets.entries()]
  const [direct, through] = [indexed.filter(([, { dial }]) => !dial), indexed.filter(([, { dial }]) => dial)]
  await Promise.all([
    pMap(
      direct,
      one,
      chosen === undefined
        ? { concurrency: directAtOnce }
        : { concurrency: directInFleet, ...(chosen.signal && { signal: chosen.signal }) },
    ),
    pMap(through, one, { concurrency: tunnelsAtOnce }),
  ])
  progress.end()
  return reports
}

function namedTargets(
  { endpoints, name: names = [] }: ProbeJob,
  { clusterCa, client }: GivenTrust,
): ProbeTarget[] {
  return [...new Set(endpoints)].map((text): ProbeTarget => {
    const { name, host, port } = endpointOf(text)
    return {
      name,
      kind: 'server',
      host,
      port,
      expectedNames: names.length > 0 ? names : [host],
      serverName: names[0] ?? host,
      anchors: clusterCa === undefined ? [] : [clusterCa],
      isVerified: true,
      notes: clusterCa === undefined ? ['the chain was not verified, because no CA was given: use --ca'] : [],
      ...(client !== undefined && {
        client: { source: client.source, subject: client.subject },
        pair: client.pair,
      }),
    }
  })
}

function endpointOf(text: string): Endpoint {
  const endpoint = parseEndpoint(text)
  if (endpoint !== undefined) return endpoint
  throw new KcertError('KCERT_USAGE', `${JSON.stringify(text)} is not HOST:PORT`, {
    why: 'use HOST:PORT, [IPv6]:PORT or https://HOST',
    next: /^[\w.-]+$/.test(text) ? commandLine`kcert probe ${text}:6443` : 'kcert probe 192.0.2.10:6443',
  })
}

async function givenTrust(job: ProbeJob, context: Context): Promise<GivenTrust> {
  const anchor = async (by: string, file: string | undefined): Promise<Anchor | undefined> => {
    if (file === undefined) return undefined
    const [{ readCertificateInput }, { readFile }, bytes] = await Promise.all([
      import('../../verification/input.ts'),
      import('../../system/files.ts'),
      readInput(file, context),
    ])
    return {
      by,
      source: file,
      roots: await readCertificateInput({ name: file, bytes }, 'roots', { readReferencedFile: readFile }),
    }
  }
  const [clusterCa, kubeletCa, etcdCa, client] = await Promise.all([
    anchor('--ca', job.ca),
    anchor('--kubelet-certificate-authority', job['kubelet-certificate-authority']),
    anchor('etcd CA', job['etcd-ca']),
    clientIn(job, context),
  ])
  return given({ clusterCa, kubeletCa, etcdCa, client })
}

/** As in kubectl, but certificate and key may be in one file, as a kubelet's are. */
async function clientIn(
  { 'client-certificate': file, 'client-key': clientKey, 'password-file': passwordFile }: ProbeJob,
  context: Context,
): Promise<ShownPair | undefined> {
  if (file === undefined) return undefined
  const { readCertificates } = await import('../../x509/certificate.ts')
  const bytes = await readInput(file, context)
  const [leaf] = inFile(file, () => readCertificates(bytes))
  const { keyObject, publicKey } = await readKeyFile(clientKey ?? file, passwordFile, context)
  if (leaf?.publicKey.sha256 !== publicKey.sha256) {
    const what = `the key in ${clientKey ?? file} does not match the certificate in ${file}`
    throw new KcertError('KCERT_USAGE', what, {
      why: leaf === undefined ? 'the file contains no certificate' : 'their public keys differ',
      next: commandLine`kcert inspect ${clientKey === undefined ? [file] : [file, clientKey]}`,
    })
  }
  const key = keyObject.export({ format: 'pem', type: 'pkcs8' }).toString()
  return {
    source: file,
    subject: leaf.subject.text,
    pair: { certificate: Buffer.from(bytes).toString('utf8'), key },
  }
}

/** Returns the result of `act` on the targets, then closes the connections to cluster and nodes. */
async function withTargets<Result>(
  job: ProbeJob,
  given: GivenTrust,
  context: Context,
  act: (found: Found) => Promise<Result>,
): Promise<Result> {
  const { sections, inventory } = job
  if (inventory !== undefined) return onNodes(inventory, job, given, context, act)
  if (sections.size === 0) return act({ targets: [], notes: [], errors: [] })
  const { withCluster } = await import('../../cli/cluster.ts')
  return withCluster(context, job, async (cluster) => act(await targetsOfCluster(sections, cluster, given)))
}

async function targetsOfCluster(
  sections: ReadonlySet<ProbeSection>,
  cluster: Cluster,
  given: GivenTrust,
): Promise<Found> {
  const [{ ClusterSight }, { webhookTargets }] = await Promise.all([
    import('../../site/cluster-targets.ts'),
    import('../../site/webhook-targets.ts'),
  ])
  const sight = new ClusterSight(cluster, given)
  const readers: Readonly<Record<ProbeSection, () => Promise<ProbeTarget[]>>> = {
    'api-servers': () => sight.apiServers(),
    nodes: () => sight.kubelets(),
    etcd: () => sight.etcd(),
    webhooks: () => webhookTargets(cluster.objects),
  }
  const errors: KcertError[] = []
  const notes: string[] = []
  const read = async (section: ProbeSection): Promise<ProbeTarget[]> => {
    const unread = onKcertError((error) => {
      errors.push(error)
      notes.push(`${section}: ${wordsOf(error)}`)
      return undefined
    })
    const targets = await readers[section]().catch(unread)
    if (targets?.length === 0) notes.push(emptyNotes[section])
    return targets ?? []
  }
  const targets = (await Promise.all(probeSections.filter((one) => sections.has(one)).map(read))).flat()
  // Without any server to probe, the reason is the result.
  if (targets.length === 0 && errors[0] !== undefined) throw errors[0]
  return { targets, notes: [...sight.notes, ...notes], errors: [...sight.errors, ...errors] }
}

const emptyNotes: Readonly<Record<ProbeSection, string>> = {
  'api-servers': 'api-servers: none found in the EndpointSlice of the kubernetes Service',
  nodes: 'nodes: the cluster has none',
  etcd: 'etcd: no static pod found; give HOST:PORT of its members, or an inventory with -i kcert.yaml',
  webhooks: 'webhooks: no server with a caBundle found',
}

async function onNodes<Result>(
  inventory: string,
  job: ProbeJob,
  given: GivenTrust,
  context: Context,
  act: (found: Found) => Promise<Result>,
): Promise<Result> {
  const [{ inventoryIn, withNodes }, { nodeTargets }] = await Promise.all([
    import('../rotate-ca/node-inventory.ts'),
    import('../../site/node-targets.ts'),
  ])
  return withNodes(
    await inventoryIn(inventory, context),
    context,
    async (site) => {
      const wanted = new Set<EndpointKind>(
        [...job.sections].flatMap((section) => kindsOf[section]).concat(job.isAll ? localKinds : []),
      )
      const { targets, faults } = await nodeTargets(site, wanted, given)
      const lost = faults.map(({ node, error }) => lostNode(site, node, error))
      const webhooks = job.sections.has('webhooks')
        ? await webhooksFrom(site, job, context)
        : { targets: [], notes: [], errors: [] }
      return act({ ...webhooks, targets: [...targets, ...lost, ...webhooks.targets] })
    },
    inventory,
  )
}

/** Connections to pods start on a control plane, as those of its API server do; the API has their addresses. */
async function webhooksFrom(site: Site, job: ProbeJob, context: Context): Promise<Found> {
  const [{ withCluster }, { webhookTargets }] = await Promise.all([
    import('../../cli/cluster.ts'),
    import('../../site/webhook-targets.ts'),
  ])
  const [origin] = site.inventory.nodes
    .filter(({ role }) => role === 'control-plane')
    .map(({ name: node }) => ({ node, dial: (host: string, port: number) => site.dial(node, host, port) }))
  const found = withCluster(context, job, async ({ objects }): Promise<Found> => {
    const targets = await webhookTargets(objects, origin)
    return { targets, notes: targets.length === 0 ? [emptyNotes.webhooks] : [], errors: [] }
  })
  // The nodes were still reached, without an API server.
  return found.catch(
    onKcertError((error) => ({ targets: [], notes: [`webhooks: ${wordsOf(error)}`], errors: [error] })),
  )
}

function lostNode({ inventory }: Site, node: string, error: KcertError): ProbeTarget {
  const { nodes, etcd = [] } = inventory
  const host = [...nodes, ...etcd].find(({ name }) => name === node)?.addresses[0] ?? node
  const isEtcdMachine = etcd.some(({ name }) => name === node)
  const unseen: Unobserved = {
    isReached: false,
    reason: wordsOf(error),
    next: error.next ?? 'kcert rotate-ca discover --help',
  }
  return {
    name: `node ${node}`,
    kind: isEtcdMachine ? 'etcd' : 'kubelet',
    host,
    port: isEtcdMachine ? 2379 : 10250,
    from: node,
    expectedNames: [],
    serverName: '',
    anchors: [],
    isVerified: false,
    notes: [],
    unseen,
  }
}
