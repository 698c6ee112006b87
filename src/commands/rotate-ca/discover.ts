import { KcertCommand } from '../../cli/base-command.ts'
import { checkFiles } from '../../cli/command-files.ts'
import {
  booleanFlag,
  clusterExits,
  clusterFlags,
  reportFormatFlag,
  valueFlag,
  wordFlag,
} from '../../cli/flags.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { renderDiscovery, renderInventory } from '../../output/discovery.ts'
import { accessFor } from '../../rotation/discovery.ts'
import { discover } from '../../rotation-io/discovering.ts'
import { checkSshConfig } from '../../system/trusted-file.ts'

export default class RotateCaDiscover extends KcertCommand {
  static override summary =
    'Find the nodes of a cluster, prove that each can be read and written, and write kcert.yaml.'

  static override description =
    `Nodes, roles and addresses come from the API server; how they are laid out, and the flags of their components, from the nodes
themselves. On every node a file is written to /etc/kubernetes and to /var/lib/kcert and removed again: before a rotation begins
it is known that it can go on. Nothing else is changed. With --read-only not even that: for a rotation by runbook.

A node is reached by OpenSSH under its own name, unless --access says otherwise; the machine that kcert runs on is reached
directly. What is written there can be changed by hand for each node. What kcert does not rotate is said here: managed clusters,
k3s and RKE2, releases that were not tried, one CA for several roles.`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]:
      'every node was read and, unless --read-only, written, and nothing speaks against a rotation',
    [exitCodes.usage]: 'wrong usage, or no kubeconfig',
    [exitCodes.no]: 'a node was reached and could not be read or written',
    [exitCodes.unreachable]: 'the API server or a node could not be reached',
    [exitCodes.refused]: 'this cluster is not rotated as it is, or the file is there already',
  }

  static override examples = KcertCommand.examplesOf({
    'Nodes reached by ssh under their names': 'kcert rotate-ca discover',
    'By another user, who becomes root by sudo, through an ssh_config with a jump host':
      'kcert rotate-ca discover --ssh-user ops --become sudo --ssh-config ./ssh_config',
    'Nodes that are containers': "kcert rotate-ca discover --access 'command:docker exec -i {node}'",
    'Nodes that nobody may log in to, read through a pod on each':
      "kcert rotate-ca discover --read-only --access 'command:kubectl -n kube-system exec -qi kcert-reader-{node} -- chroot /host'",
    'Only look: which nodes could not be written': `kcert rotate-ca discover --dry-run -o json | jq -r '.nodes[] | select(.proof.writes | not) | .name'`,
  })

  static override flags = {
    out: valueFlag('FILE', 'the file to write', { default: 'kcert.yaml' }),
    'read-only': booleanFlag(
      'write nothing on nodes: kcert will read them, and people run its scripts there (see runbook)',
    ),
    force: booleanFlag('replace the file when it is there'),
    'dry-run': booleanFlag('write no file; nodes are proven all the same'),
    access: valueFlag('WAY', 'ssh, ssh:HOST or command:WORDS; {node} and {address} are filled in', {
      default: 'ssh',
      helpGroup: 'NODES',
    }),
    'ssh-user': valueFlag('USER', 'who logs in', { helpGroup: 'NODES' }),
    'ssh-config': valueFlag('FILE', 'instead of ~/.ssh/config', { helpGroup: 'NODES' }),
    become: wordFlag(['sudo'], 'become root by sudo, without a password', { helpGroup: 'NODES' }),
    local: valueFlag(
      'NODE',
      'the node that kcert runs on (default: the node with the name and machine-id of this machine)',
      { helpGroup: 'NODES' },
    ),
    ...clusterFlags,
    output: reportFormatFlag('how to show what was found'),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags } = await this.parse(RotateCaDiscover)
    const { context } = this
    const { 'ssh-user': sshUser, 'ssh-config': sshConfig, become, local, out, force } = flags
    const access = accessFor({
      access: flags.access,
      ...(sshUser !== undefined && { sshUser }),
      ...(sshConfig !== undefined && { sshConfig }),
      ...(become !== undefined && { become }),
    })
    if (sshConfig !== undefined) checkSshConfig(sshConfig)
    if (!flags['dry-run']) {
      const inputs = [{ by: '--kubeconfig', path: flags.kubeconfig }]
      checkFiles({ inputs, outputs: [{ by: '--out', path: out, holds: 'public' }], replace: force })
    }
    const found = await this.onCluster(flags, ({ objects }) =>
      discover({
        objects,
        clock: context.clock,
        access,
        readOnly: flags['read-only'],
        ...(local !== undefined && { local }),
      }),
    )
    const isServed = found.nodes.every(({ layout }) => ['kubeadm', 'plain', 'unknown'].includes(layout))
    const writes = isServed && !flags['dry-run']
    if (writes) {
      const { writePublicFile } = await import('../../system/output-file.ts')
      writePublicFile(out, renderInventory(found), { replace: force })
    }
    const report = writes ? { ...found, written: out } : found
    await this.show(flags.output, report, renderDiscovery)
    return exitOf(report)
  }
}

function exitOf({
  nodes,
  refusals,
}: {
  nodes: readonly { proof: { reached: boolean; writes?: boolean | undefined } }[]
  refusals: readonly unknown[]
}): ExitCode {
  if (nodes.some(({ proof }) => !proof.reached)) return exitCodes.unreachable
  if (nodes.some(({ proof }) => proof.writes === false)) return exitCodes.no
  return refusals.length > 0 ? exitCodes.refused : exitCodes.done
}
