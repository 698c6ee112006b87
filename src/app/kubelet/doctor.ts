import pMap from 'p-map'
import { agreed } from '../../cli/consent.ts'
import type { Context } from '../../cli/context.ts'
import { tellLine } from '../../cli/tell-line.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { KcertError, wordsOf } from '../../errors/kcert-error.ts'
import { diagnose } from '../../kubelet/doctor/diagnosis.ts'
import type { Finding } from '../../kubelet/doctor/finding.ts'
import type { KubeletDiagnosis } from '../../kubelet/doctor/report.ts'
import { counted } from '../../output/sections.ts'
import type { NodeAccess } from '../../pki/node-access.ts'
import { type Repair, readKubelet, repairKubelet } from '../../renewal-io/kubelet-doctor.ts'
import { SiteObserver } from '../../rotation-io/observer.ts'
import { healthStatus } from '../../site/health.ts'
import { awaitKubelet, restartKubelet } from '../../site/node-restarts.ts'
import { nodeNamed, type Site } from '../../site/site.ts'
import { inTree, inventoryOrThisMachine, withNodes } from '../rotate-ca/node-inventory.ts'

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

/**
 * Runs `kcert kubelet doctor`. With a single node, throws the node's error; KCERT_DOCTOR_UNCONFIRMED without a terminal to
 * confirm on.
 */
export async function doctorKubelets(
  context: Context,
  flags: DoctorFlags,
): Promise<{ readonly report: KubeletDiagnosis; readonly exit: ExitCode }> {
  const nodes =
    flags.root === undefined ? await onNodes(context, flags) : [await onTree(context, flags, flags.root)]
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

/** Examines a copy of a node's files, or the disk of a machine that is off. */
async function onTree(context: Context, flags: DoctorFlags, root: string): Promise<NodeReport> {
  return inTree(root, context, async (node) => {
    const { folder } = await readKubelet(node)
    const treatment = await treated(context, flags, node, {})
    return { node: root, folder, ...viewOf(treatment), kubelet: 'unknown' }
  })
}

async function onNodes(context: Context, flags: DoctorFlags): Promise<NodeReport[]> {
  const inventory = await inventoryOrThisMachine(flags.inventory, flags.nodes, context)
  const names = flags.nodes.length > 0 ? flags.nodes : inventory.nodes.map(({ name }) => name)
  const nodes = inventory.nodes.filter(({ name }) => names.includes(name))
  return withNodes(
    { ...inventory, nodes },
    context,
    async (site) => {
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
      // Each node needs a separate confirmation, so they run one after the other.
      return pMap(names, examine, { concurrency: flags.fix ? 1 : nodesAtOnce })
    },
    flags.inventory,
  )
}

async function onNode(
  context: Context,
  flags: DoctorFlags,
  site: Site,
  name: string,
  places: { readonly kubeconfig?: string; readonly nodeName?: string },
): Promise<NodeReport> {
  const node = nodeNamed(site, name)
  const { folder } = await readKubelet(node, places)
  const treatment = await treated(context, flags, node, places)
  const [running] = await node.processes(['kubelet'])
  const isWell = running !== undefined && (await healthStatus(site, name, running)) === 200
  const isRepaired = treatment.fixed.some(({ severity }) => severity !== 'info')
  const mayRestart = flags.fix && flags.restart && (isRepaired || (!isWell && treatment.fixed.length > 0))
  const view = { node: name, folder, ...viewOf(treatment) }
  if (!mayRestart) return { ...view, kubelet: isWell ? 'running' : 'not-running' }
  tellLine(context.stderr, `${name}: restarting kubelet`)
  await restartKubelet(site, name)
  await awaitKubelet(site, name)
  return { ...view, kubelet: 'restarted' }
}

async function treated(
  context: Context,
  { fix, yes }: DoctorFlags,
  node: NodeAccess,
  places: { readonly kubeconfig?: string; readonly nodeName?: string },
): Promise<Repair> {
  const { clock, stderr } = context
  const found = await diagnose(await readKubelet(node, places), clock())
  const fixable = found.filter(({ fixes }) => fixes !== undefined)
  const nothing = { left: found, fixed: [] }
  if (!fix || fixable.length === 0) return nothing
  const isAgreed = await agreed(context, {
    yes,
    proposal: fixable.map(({ path, what }) => `  ${node.name}:${path}: ${what}`),
    question: `Repair ${counted(fixable.length, 'finding')} on ${node.name}?`,
    code: 'KCERT_DOCTOR_UNCONFIRMED',
    what: `--fix would repair ${counted(fixable.length, 'finding')} on ${node.name}`,
    advice: { why: 'there is no terminal to confirm on', next: '--yes' },
  })
  if (!isAgreed) return nothing
  return repairKubelet(node, places, clock, (what) => tellLine(stderr, what))
}

function viewOf({ left, fixed, backup }: Repair) {
  const view = (findings: readonly Finding[]): NodeReport['findings'] =>
    findings.map(({ fixes, ...finding }) => ({ ...finding, fixable: fixes !== undefined }))
  return { findings: view(left), fixed: view(fixed), ...(backup !== undefined && { backup }) }
}
