import { KcertError } from '../errors/kcert-error.ts'
import type { NodeAccess } from '../pki/node-access.ts'
import type { RestartComponent } from '../rotation/action.ts'
import { restartCommand, unitOf } from '../rotation/inventory.ts'
import type { NodeScript, PreparedScript, Runbook, RunbookPhase } from '../rotation/runbook.ts'
import { nodeNamed, type Site } from '../site/site.ts'
import { type ExecutorOptions, SiteExecutor } from './executor.ts'
import { type RecordingNode, recordingNode } from './recording-node.ts'
import { nodeRunbook, type ScriptedChange, type ScriptedRestart } from './runbook-script.ts'

/**
 * Returns the scripts of a runbook, in groups. Nodes are read and not changed. Certificates that the cluster signs for kubelets
 * are requested now. Throws the errors of the executor's writes, in particular KCERT_ROTATION_DRIFT.
 */
export async function prepareRunbook(
  { site, ...options }: ExecutorOptions,
  { groups }: Runbook,
  phase: RunbookPhase,
): Promise<readonly (readonly PreparedScript[])[]> {
  const nodes = new Map<string, RecordingNode>()
  const recorded = recordedSite(site, nodes)
  const executor = new SiteExecutor({ site: recorded, ...options })
  const prepared: PreparedScript[][] = []
  for (const { scripts } of groups) {
    const group: PreparedScript[] = []
    for (const script of scripts) {
      const changes = await changesOf(site, executor, nodes, script)
      const { hostname } = await nodeNamed(recorded, script.node).identity()
      const { command, number, title, next } = phase
      const facts = { command, phase: number, title, next, node: script.node, hostname }
      group.push({ node: script.node, files: nodeRunbook(facts, changes) })
    }
    prepared.push(group)
  }
  return prepared
}

function recordedSite(site: Site, nodes: Map<string, RecordingNode>): Site {
  const recording = (access: NodeAccess): RecordingNode => {
    const known = nodes.get(access.name) ?? recordingNode(access, site.clock)
    nodes.set(access.name, known)
    return known
  }
  return {
    ...site,
    node(name, address) {
      const access = site.node(name, address)
      return access && recording(access)
    },
  }
}

async function changesOf(
  site: Site,
  executor: SiteExecutor,
  nodes: ReadonlyMap<string, RecordingNode>,
  { node, acts }: NodeScript,
): Promise<ScriptedChange[]> {
  const changes: ScriptedChange[] = []
  for (const act of acts) {
    if (act.kind === 'restart') changes.push(await restartOn(site, node, act))
    else {
      await executor.write(act)
      changes.push(...(nodes.get(node)?.take() ?? []))
    }
  }
  return changes
}

async function restartOn(
  site: Site,
  node: string,
  { process: id, replaces, how, killAfterMs }: RestartComponent,
): Promise<ScriptedRestart> {
  const program = id.slice(id.indexOf('/') + 1)
  if (program === 'etcd') {
    throw new KcertError('KCERT_ROTATION_REFUSED', `scripts cannot restart ${id}`, {
      why: 'the check between two members of etcd needs all of them at once, so kcert runs this phase itself',
      next: 'kcert rotate-ca',
    })
  }
  const component = program as Parameters<typeof unitOf>[2]
  const aheadMs = await site.clockAheadMs(node)
  const startedAt = replaces === undefined ? undefined : Math.floor((replaces + aheadMs) / 1000)
  const argv = restartCommand(site.inventory, node, component) ?? [
    'systemctl',
    'restart',
    '--',
    unitOf(site.inventory, node, component),
  ]
  return {
    kind: 'restart',
    program,
    ...(startedAt !== undefined && { startedAt }),
    ...(how === 'service' && { argv }),
    ...(how === 'signal' && {
      signal: killAfterMs === undefined ? {} : { killAfterSeconds: Math.ceil(killAfterMs / 1000) },
    }),
  }
}
