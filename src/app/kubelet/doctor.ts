import { resolve } from 'node:path'
import { agreed } from '../../cli/consent.ts'
import type { Context } from '../../cli/context.ts'
import { tellLine } from '../../cli/tell-line.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { KcertError, wordsOf } from '../../errors/kcert-error.ts'
import type { Finding } from '../../kubelet/doctor/finding.ts'
import type { KubeletDiagnosis } from '../../kubelet/doctor/report.ts'
import type { NodeAccess } from '../../pki/node-access.ts'
import type { Treatment } from '../../renewal-io/kubelet-doctor.ts'
import type { Site } from '../../site/site.ts'
import { inventoryOrThisMachine, withNodes } from '../rotate-ca/node-inventory.ts'

export interface DoctorFlags {
  readonly nodes: readonly string[]
  readonly inventory: string | undefined
  readonly root: string | undefined
  readonly fix: boolean
  readonly restart: boolean
  readonly yes: boolean
}

type NodeReport = KubeletDiagnosis['nodes'][number]

const nodesAtOnce = 24

/** Does what `kcert kubelet doctor` says. Throws as the nodes do where there is one alone, and where nobody can be asked. */
export async function doctorKubelets(
  context: Context,
  flags: DoctorFlags,
): Promise<{ readonly report: KubeletDiagnosis; readonly exit: ExitCode }> {
  const nodes =
    flags.root === undefined ? await onNodes(context, flags) : [await inTree(context, flags, flags.root)]
  const report: KubeletDiagnosis = {
    apiVersion: 'kcert/v1',
    kind: 'KubeletDiagnosis',
    generatedAt: context.clock().toISOString(),
    nodes,
  }
  const isIll = nodes.some(({ findings }) => findings.some(({ severity }) => severity !== 'info'))
  const isOut = nodes.some(({ unreachable }) => unreachable !== undefined)
  return { report, exit: isOut ? exitCodes.unreachable : isIll ? exitCodes.no : exitCodes.done }
}

/** A copy of a node's files, or the disk of a machine that is off. */
async function inTree(context: Context, flags: DoctorFlags, root: string): Promise<NodeReport> {
  const { clock, workingFolder } = context
  const [{ shellNode }, { localTransport }, { rootedNode }, { readKubelet }] = await Promise.all([
    import('../../node/shell-node.ts'),
    import('../../node/local.ts'),
    import('../../node/rooted-node.ts'),
    import('../../renewal-io/kubelet-doctor.ts'),
  ])
  const node = rootedNode(
    shellNode({ name: root, transport: localTransport(), clock }),
    resolve(workingFolder, root),
  )
  try {
    const { folder } = await readKubelet(node)
    const treatment = await treated(context, flags, node, {})
    return { node: root, folder, ...viewOf(treatment), kubelet: 'unknown' }
  } finally {
    await node.close()
  }
}

async function onNodes(context: Context, flags: DoctorFlags): Promise<NodeReport[]> {
  const inventory = await inventoryOrThisMachine(flags.inventory, flags.nodes, context)
  const [{ SiteObserver }, { default: pMap }] = await Promise.all([
    import('../../rotation-io/observer.ts'),
    import('p-map'),
  ])
  const names = flags.nodes.length > 0 ? flags.nodes : inventory.nodes.map(({ name }) => name)
  const nodes = inventory.nodes.filter(({ name }) => names.includes(name))
  return withNodes({ ...inventory, nodes }, context, async (site) => {
    const { kubelets } = await new SiteObserver(site).observe(['kubelets'])
    const isAlone = nodes.length === 1
    const examine = async (name: string): Promise<NodeReport> => {
      try {
        const seen = kubelets.find(({ node }) => node === name)
        const isNamed = nodes.find((one) => one.name === name)?.access?.by !== 'local'
        return await onNode(context, flags, site, name, {
          ...(seen && { kubeconfig: seen.kubeconfig }),
          ...(isNamed && { nodeName: name }),
        })
      } catch (error) {
        if (isAlone || !(error instanceof KcertError)) throw error
        const unreachable = wordsOf(error)
        return { node: name, folder: '', findings: [], fixed: [], kubelet: 'unknown', unreachable }
      }
    }
    // Whoever is asked is asked for one node after the other.
    return pMap(names, examine, { concurrency: flags.fix ? 1 : nodesAtOnce })
  })
}

async function onNode(
  context: Context,
  flags: DoctorFlags,
  site: Site,
  name: string,
  places: { readonly kubeconfig?: string; readonly nodeName?: string },
): Promise<NodeReport> {
  const [{ readKubelet }, { healthStatus }] = await Promise.all([
    import('../../renewal-io/kubelet-doctor.ts'),
    import('../../site/health.ts'),
  ])
  const node = site.node(name)!
  const { folder } = await readKubelet(node, places)
  const treatment = await treated(context, flags, node, places)
  const [running] = await node.processes(['kubelet'])
  const isWell = running !== undefined && (await healthStatus(site, name, running)) === 200
  const isMended = treatment.fixed.some(({ severity }) => severity !== 'info')
  const mayRestart = flags.fix && flags.restart && (isMended || (!isWell && treatment.fixed.length > 0))
  const view = { node: name, folder, ...viewOf(treatment) }
  if (!mayRestart) return { ...view, kubelet: isWell ? 'running' : 'not-running' }
  tellLine(context.stderr, `${name}: restarting kubelet`)
  const { awaitKubelet, restartKubelet } = await import('../../site/node-restarts.ts')
  await restartKubelet(site, name)
  await awaitKubelet(site, name)
  return { ...view, kubelet: 'restarted' }
}

async function treated(
  context: Context,
  { fix, yes }: DoctorFlags,
  node: NodeAccess,
  places: { readonly kubeconfig?: string; readonly nodeName?: string },
): Promise<Treatment> {
  const { clock, stderr } = context
  const [{ readKubelet, treatKubelet }, { diagnose }] = await Promise.all([
    import('../../renewal-io/kubelet-doctor.ts'),
    import('../../kubelet/doctor/diagnosis.ts'),
  ])
  const found = await diagnose(await readKubelet(node, places), clock())
  const fixable = found.filter(({ fixes }) => fixes !== undefined)
  const nothing = { left: found, fixed: [] }
  if (!fix || fixable.length === 0) return nothing
  const isAgreed = await agreed(context, {
    yes,
    proposal: fixable.map(({ path, what }) => `  ${node.name}:${path}: ${what}`),
    question: `Mend ${fixable.length} findings on ${node.name}?`,
    code: 'KCERT_DOCTOR_UNCONFIRMED',
    what: `--fix would mend ${fixable.length} findings on ${node.name}`,
    advice: { why: 'there is no terminal to ask on', next: 'look at it without --fix, then add --yes' },
  })
  if (!isAgreed) return nothing
  return treatKubelet(node, places, clock, (what) => tellLine(stderr, what))
}

function viewOf({ left, fixed, backup }: Treatment) {
  const view = (findings: readonly Finding[]): NodeReport['findings'] =>
    findings.map(({ fixes, ...finding }) => ({ ...finding, fixable: fixes !== undefined }))
  return { findings: view(left), fixed: view(fixed), ...(backup !== undefined && { backup }) }
}
