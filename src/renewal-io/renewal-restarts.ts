import { setTimeout as sleep } from 'node:timers/promises'
import type { LeafUser } from '../ca/renewal.ts'
import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { NodeAccess, ProcessFacts } from '../pki/node-access.ts'
import type { Notify } from '../rotation-io/recovering.ts'
import { Restarting } from '../rotation-io/restarting.ts'
import type { Backup } from '../site/backups.ts'
import { ControlPlanes } from '../site/control-planes.ts'
import { processOf } from '../site/definitions.ts'
import { healthStatus } from '../site/health.ts'
import { awaitKubelet, restartKubelet, restartStaticPod, staticPodsIn } from '../site/node-restarts.ts'
import { nodeNamed, type Site } from '../site/site.ts'
import { restartMembers } from './etcd-restarts.ts'
import { type NeededRestart, restartOrder, type SeenNode, type SiteSurvey } from './renewing.ts'

const pollMs = 300

// The kubelet deletes the old mirror pod before it starts a changed static pod, and each delete can hang for 34 s while the API
// server has no etcd. On a busy node, etcd took 137 s to run again. kubeadm waits as long as this for a changed manifest.
const deadlineMs = 300_000

// A kubelet that started while no API server responded mounts no volumes for a static pod that changes later (seen on 1.36:
// "failed to process volumes" for five minutes), and the API server waits for etcd. After a restart it uses the current manifest.
const kubeletPatienceMs = 60_000

/** The phase number of a restart outside of a rotation. */
const noPhase = 0

/**
 * Restarts the processes that need it, each on one node after the other: kubelets of control planes, then etcd (keeping its
 * quorum if it has one), API servers, controller managers and schedulers, then kubelets of workers. Returns when all are healthy.
 * Throws KCERT_ROTATION_CHECK_FAILED if one is not.
 */
export async function restartAll(
  site: Site,
  survey: SiteSurvey,
  restarts: readonly NeededRestart[],
  backups: ReadonlyMap<string, Backup>,
  notify: Notify,
): Promise<void> {
  const restarting = new Restarting(site, new ControlPlanes(site), { tell: notify })
  const on = (role: SeenNode['role'], program: LeafUser): SeenNode[] =>
    survey.nodes.filter(
      (node) =>
        node.role === role && restarts.some((one) => one.node === node.name && one.program === program),
    )
  await restartKubelets(site, on('control-plane', 'kubelet'), notify)
  const pods = podsOf(site, restarting, backups, notify)
  await restartEtcd(site, survey, on('control-plane', 'etcd'), pods)
  for (const program of restartOrder.filter((one) => one !== 'kubelet' && one !== 'etcd')) {
    for (const seen of on('control-plane', program)) await pods(seen, program)
  }
  await restartKubelets(site, on('worker', 'kubelet'), notify)
}

async function restartKubelets(site: Site, nodes: readonly SeenNode[], notify: Notify): Promise<void> {
  for (const { name } of nodes) {
    notify(`restarting kubelet on ${name}`)
    await restartKubelet(site, name)
    await awaitKubelet(site, name)
  }
}

type RestartPod = (seen: SeenNode, program: LeafUser) => Promise<void>

/** Returns a function that restarts a static pod. It waits until etcd runs, or until any other pod is healthy. */
function podsOf(
  site: Site,
  restarting: Restarting,
  backups: ReadonlyMap<string, Backup>,
  notify: Notify,
): RestartPod {
  return async ({ name, manifests }, program) => {
    const node = nodeNamed(site, name)
    const pod = (await staticPodsIn(node, manifests)).find((one) => one.program === program)
    if (pod === undefined) return
    const before = await processOn(node, program)
    const replaces = before && (await site.startedAtMs(name, before))
    notify(`restarting ${program} on ${name}`)
    await restartStaticPod(node, pod, async (path) => backups.get(name)?.keep(path))
    if (program === 'etcd') {
      await awaitSuccessor(site, name, program, replaces, notify)
      return
    }
    const process = `${name}/${program}`
    await restarting.restart({
      ...{ kind: 'restart', phase: noPhase, process, how: 'definition' },
      ...(replaces !== undefined && { replaces }),
    })
  }
}

/** A node that does not respond may have a member too. */
async function restartEtcd(
  site: Site,
  { nodes, unreachable }: SiteSurvey,
  toRestart: readonly SeenNode[],
  restartPod: RestartPod,
): Promise<void> {
  const runsEtcd = nodes.filter(({ pods }) => pods.some(({ program }) => program === 'etcd'))
  const isControlPlane = (name: string): boolean =>
    site.inventory.nodes.some((node) => node.name === name && node.role === 'control-plane')
  await restartMembers(
    toRestart.map(({ name }) => name),
    runsEtcd.map(({ name }) => name),
    {
      isHealthy: async (name) => {
        const running = await processOn(nodeNamed(site, name), 'etcd')
        return running !== undefined && (await healthStatus(site, name, running)) === 200
      },
      restart: async (name) => {
        for (const seen of nodes) if (seen.name === name) await restartPod(seen, 'etcd')
      },
      awaitHealthy: (name) => awaitHealthyEtcd(site, name),
    },
    unreachable.filter(({ node }) => isControlPlane(node)).length,
  )
}

async function processOn(node: NodeAccess, program: LeafUser): Promise<ProcessFacts | undefined> {
  const found = await node.processes([program]).catch(() => [])
  return processOf({ name: program as 'kubelet', argv: [] }, found)
}

async function awaitSuccessor(
  site: Site,
  name: string,
  program: LeafUser,
  replaces: number | undefined,
  notify: Notify,
): Promise<void> {
  const begun = site.clock().getTime()
  let isKubeletRestarted = false
  await until(site, `${program} on ${name} has restarted`, name, program, async () => {
    const running = await processOn(nodeNamed(site, name), program)
    const isOther =
      replaces === undefined || (running && (await site.startedAtMs(name, running)) !== replaces)
    if (running !== undefined && isOther) return true
    if (!isKubeletRestarted && site.clock().getTime() - begun > kubeletPatienceMs) {
      isKubeletRestarted = true
      notify(`restarting kubelet on ${name} once more: it has not started ${program}`)
      await restartKubelet(site, name)
    }
    return false
  })
}

async function awaitHealthyEtcd(site: Site, name: string): Promise<void> {
  await until(site, `etcd on ${name} is healthy`, name, 'etcd', async () => {
    const running = await processOn(nodeNamed(site, name), 'etcd')
    if (running === undefined) return false
    // Without a metrics endpoint for clients without a certificate, etcd's health cannot be read. The proof of its served
    // certificate follows.
    const metrics = running.argv.some((word) => word.startsWith('--listen-metrics-urls'))
    return !metrics || (await healthStatus(site, name, running)) === 200
  })
}

async function until(
  site: Site,
  what: string,
  node: string,
  program: LeafUser,
  holds: () => Promise<boolean>,
): Promise<void> {
  const begun = site.clock().getTime()
  while (!(await holds())) {
    if (site.clock().getTime() - begun > deadlineMs) {
      throw new KcertError(
        'KCERT_ROTATION_CHECK_FAILED',
        `timed out after ${deadlineMs / 1000} s waiting until ${what}`,
        {
          why: `its certificates are renewed. Correct the cause that its log on node ${node} shows, and run the same command again`,
          next: commandLine`crictl logs "$(crictl ps -aq --name ${program} | head -n 1)"`,
        },
      )
    }
    await sleep(pollMs)
  }
}
