import { run } from './command.ts'
import { LabError } from './lab-error.ts'
import { type Machine, network } from './spec.ts'
import { folders } from './state.ts'

/** Returns the name of a node's network namespace. */
export function namespaceOf(node: string): string {
  return `kcertlab-${node}`
}

/** Creates the bridge of all nodes. Its alias is this lab's state folder. */
export async function makeBridge(): Promise<void> {
  await refuseForeignBridge()
  const exists = (await run(['ip', 'link', 'show', network.bridge], { mayFail: true })).code === 0
  if (exists) return
  await run(['ip', 'link', 'add', network.bridge, 'type', 'bridge'])
  await run(['ip', 'link', 'set', network.bridge, 'alias', folders.state])
  await run(['ip', 'addr', 'add', `${network.gateway}/24`, 'dev', network.bridge])
  await run(['ip', 'link', 'set', network.bridge, 'up'])
}

/**
 * Throws when another checkout's lab is running, because both would use the same addresses. A bridge without nodes is left from a
 * lab whose namespaces are gone, and is removed.
 */
async function refuseForeignBridge(): Promise<void> {
  const shown = await run(['ip', '-j', 'link', 'show', network.bridge], { mayFail: true })
  if (shown.code !== 0) return
  const [link] = JSON.parse(shown.stdout) as { ifalias?: string }[]
  if (link?.ifalias === folders.state) return
  const members = await run(['ip', '-j', 'link', 'show', 'master', network.bridge])
  if ((JSON.parse(members.stdout || '[]') as unknown[]).length === 0) {
    await run(['ip', 'link', 'del', network.bridge])
    return
  }
  throw new LabError(`the bridge ${network.bridge} belongs to another lab: ${link?.ifalias ?? 'no name'}`, {
    why: 'one lab at a time can use its addresses',
    next: `npm run lab -- down in that checkout, or ip link del ${network.bridge}`,
  })
}

/**
 * conntrack remembers a connection from before kube-proxy wrote its rules as unanswered. For two minutes, any connection with the
 * same port would fail too. Here the entry expires after two seconds.
 */
const forgetsUnanswered =
  'f=/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_syn_sent; [ ! -e $f ] || echo 2 >$f'

/** Creates a node's network namespace, its link to the bridge, and the host's route to its pods. */
export async function makeNamespace(name: string, address: string, podSubnet?: string): Promise<void> {
  const namespace = namespaceOf(name)
  await run(['ip', 'netns', 'add', namespace])
  await run(['ip', 'link', 'add', `kl-${name}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace])
  await run(['ip', 'link', 'set', `kl-${name}`, 'master', network.bridge, 'up'])
  await run(['ip', '-n', namespace, 'addr', 'add', `${address}/24`, 'dev', 'eth0'])
  await run(['ip', '-n', namespace, 'link', 'set', 'eth0', 'up'])
  await run(['ip', '-n', namespace, 'link', 'set', 'lo', 'up'])
  if (address !== network.loadBalancer)
    await run(['ip', '-n', namespace, 'route', 'add', 'default', 'via', network.loadBalancer])
  const enter = ['nsenter', `--net=/run/netns/${namespace}`, 'sh', '-c']
  await run([...enter, `echo 1 >/proc/sys/net/ipv4/ip_forward; ${forgetsUnanswered}`])
  if (podSubnet !== undefined)
    await run(['ip', 'route', 'replace', podSubnet, 'via', address, 'dev', network.bridge])
}

/** Connects the pods of all nodes: one static route in each direction. */
export async function joinPodNetworks(nodes: readonly Machine[]): Promise<void> {
  for (const from of nodes) {
    for (const to of nodes) {
      if (from === to) continue
      await run(['ip', '-n', namespaceOf(from.name), 'route', 'replace', to.podSubnet, 'via', to.address])
    }
  }
}

/**
 * Makes the load balancer's namespace the default gateway of nodes, and rejects all traffic there. A pod that connects to a
 * Service before kube-proxy has written its rules is rejected and retries, instead of waiting for half a minute.
 */
export async function makeDeadEnd(loadBalancer: string, nodes: readonly Machine[]): Promise<void> {
  const namespace = namespaceOf(loadBalancer)
  const enter = ['nsenter', `--net=/run/netns/${namespace}`, 'sh', '-c']
  await run([...enter, 'echo 1 >/proc/sys/net/ipv4/ip_forward; echo 0 >/proc/sys/net/ipv4/icmp_ratelimit'])
  await run(['ip', '-n', namespace, 'route', 'replace', 'unreachable', 'default'])
  for (const { podSubnet, address } of nodes)
    await run(['ip', '-n', namespace, 'route', 'replace', podSubnet, 'via', address])
}

/** Removes a node's namespace with its link, its addresses and its firewall rules. */
export async function removeNamespace(name: string): Promise<void> {
  await run(['ip', 'netns', 'del', namespaceOf(name)], { mayFail: true })
  // The other end is removed with the namespace, but only when its last process exits.
  await run(['ip', 'link', 'del', `kl-${name}`], { mayFail: true })
}

/** Returns the nodes (and the load balancer) whose namespaces exist, whether recorded or not. */
export async function namespacesFound(): Promise<string[]> {
  const listed = await run(['ip', 'netns', 'list'], { mayFail: true })
  return [...listed.stdout.matchAll(/^kcertlab-(\S+)/gm)].map((match) => match[1]!)
}

export async function removeBridge(): Promise<void> {
  const shown = await run(['ip', '-j', 'link', 'show', network.bridge], { mayFail: true })
  if (shown.code === 0 && shown.stdout.includes(JSON.stringify(folders.state))) {
    await run(['ip', 'link', 'del', network.bridge])
  }
}
