import { argumentVector, commandLine, embed } from '../errors/command-line.ts'
import type { Discovery, NodeCheck } from '../rotation/discovery-report.ts'
import { faultLines, fieldLines } from './fields.ts'
import { joinSections } from './sections.ts'
import { statusColumn, table } from './table.ts'
import { printable } from './terminal.ts'
import type { View } from './view.ts'
import { renderYaml } from './yaml.ts'

/** Returns kcert.yaml as discover writes it: a comment on the entries to add, then the inventory. */
export function renderInventory({ inventory }: Discovery): string {
  return `# Inventory for kcert rotate-ca: how kcert reaches the nodes of this cluster. docs/schemas/Inventory.json describes all
# fields. The access of a node overrides the common access: {by: local}, {by: ssh, host: …, user: …, become: sudo},
# {by: jobs, image: …} or {by: command, argv: [docker, exec, -i, cp1]}. Add what kcert cannot find: kubeconfigs outside the
# nodes (kubeconfigs), your hooks (hooks), and workloads that kcert must not restart (workloads).
${renderYaml(inventory)}`
}

/** The inventory file of the command line, which a dry run does not write. */
export interface DiscoveryOutput {
  readonly out: string
  readonly force?: boolean | undefined
}

/** Returns the discovered nodes with their read and write access, the components, refused access, and the next steps. */
export function renderDiscovery(discovery: Discovery, view: View, asked: DiscoveryOutput): string {
  const { nodes, blockers } = discovery
  return joinSections([
    table(view, nodes, [
      { title: 'NODE', cell: ({ name }) => name, shrinkTo: 12, cut: 'middle' },
      { title: 'ROLE', cell: ({ role }) => role },
      { title: 'LAYOUT', cell: ({ layout }) => layout },
      { title: 'VERSION', cell: ({ kubeletVersion }) => kubeletVersion, dropRank: 2 },
      { title: 'ACCESS', cell: ({ access }) => access, shrinkTo: 16, dropRank: 1 },
      statusColumn('CHECKED', view.paint, ({ check }) => [
        proofText(check),
        isProven(check) ? 'ok' : 'critical',
      ]),
    ]),
    fieldLines(
      view,
      nodes.map(({ name, check }) => [name, check.error]),
    ),
    flagLines(discovery, view),
    blockers.flatMap(({ what, ...advice }) => faultLines(view, ['refused', what], advice)),
    nextLines(discovery, asked),
  ])
}

/** With --read-only kcert does not check whether it can write to a node. */
function isProven({ reachable, canWrite }: NodeCheck): boolean {
  return reachable && canWrite !== false
}

function proofText({ reachable, canRead, canWrite, clockSkewMs }: NodeCheck): string {
  if (!reachable) return 'UNREACHABLE'
  if (canWrite === false) return canRead ? 'NOT WRITABLE' : 'NOT READABLE'
  const proven = canWrite ? 'readable, writable' : 'readable'
  const skew = Math.abs(clockSkewMs ?? 0)
  return skew < 1_000 ? proven : `${proven}, clock off by ${Math.round(skew / 1000)} s`
}

/** Flags that kubeadm does not set and that affect kcert. Most clusters have none. */
function flagLines({ components }: Discovery, view: View): string[] {
  const unusual = ['kubelet-certificate-authority', 'shutdown-delay-duration']
  const found = components.flatMap(({ id, flags }) =>
    unusual.flatMap((flag) => (flags[flag] === undefined ? [] : [[id, `--${flag}=${flags[flag]}`] as const])),
  )
  return fieldLines(view, found)
}

function nextLines({ blockers, nodes, written }: Discovery, { out, force }: DiscoveryOutput): string[] {
  const where =
    written === undefined
      ? []
      : [`written to ${printable(written)}; add kubeconfigs, hooks and workloads there if needed`]
  if (blockers.length > 0 || !nodes.every(({ check }) => isProven(check))) return where
  // A dry run writes no inventory, and no other command works without one.
  const isDefault = out === 'kcert.yaml'
  const next =
    written === undefined
      ? commandLine`kcert rotate-ca discover ${argumentVector([...(isDefault ? [] : ['--out', out]), ...(force ? ['--force'] : [])])}`
      : commandLine`kcert rotate-ca plan ${isDefault ? undefined : embed(commandLine`--inventory ${written}`)}`
  return [...where, `next: ${next}`]
}
