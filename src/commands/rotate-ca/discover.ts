import { openNodeJobs } from '../../app/rotate-ca/node-jobs.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { checkFiles } from '../../cli/command-files.ts'
import * as Flag from '../../cli/flags.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { given } from '../../errors/given.ts'
import { renderDiscovery, renderInventory } from '../../output/discovery.ts'
import { accessFor, accessForms } from '../../rotation/discovery.ts'
import { discover } from '../../rotation-io/discovering.ts'
import { checkSshConfig } from '../../system/trusted-file.ts'

// Not --request-timeout: opening an ssh session through a bastion takes longer than a request to the API server.
const longestNodeRequestMs = 20_000

export default class RotateCaDiscover extends KcertCommand {
  static override summary = 'Find the nodes of a cluster, check access to each, and write kcert.yaml.'

  static override description =
    `kcert reads nodes, roles and addresses from the API server. It reads the layout and the component flags from the nodes. To check
access, it writes a file to /etc/kubernetes and /var/lib/kcert on every node and deletes it. It changes nothing else. With --read-only it
writes nothing on nodes, for a rotation with runbooks.

API servers may connect to etcd on machines without a Node object (--etcd-servers). kcert checks these hosts too, and writes those with a
member to etcd in the inventory. It names the others. Check this list: behind a load balancer are other machines.

The timeout of each request to a node is 20s. --request-timeout is only for requests to the API server. kcert waits up to 40s for nodes
that do not respond, 24 nodes at once.

kcert reaches a node with OpenSSH under the node's name, unless you set --access. It reaches the machine that it runs on directly. You
can edit the access of each node in the inventory. With --access jobs:IMAGE, Kubernetes runs a Job on each node, and kcert connects to
its pod through the API server. kcert creates a namespace and an admission policy for them, and removes them at the end. kcert refuses clusters that it does not rotate: managed clusters, k3s and RKE2,
untested releases, and one CA for several roles.`

  static override exitCodes = KcertCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'every node is accessible, and nothing blocks a rotation',
    usage: 'wrong usage, or no kubeconfig',
    no: 'kcert reached a node but could not read or write its files',
    unreachable: 'the API server or a node is unreachable',
    refused: 'kcert does not rotate this cluster in its present state, or the file already exists',
  })

  static override examples = KcertCommand.examplesOf({
    'Reach nodes with ssh under their names': 'kcert rotate-ca discover',
    'Log in as another user with sudo, with an ssh_config that has a jump host':
      'kcert rotate-ca discover --ssh-user ops --become sudo --ssh-config ./ssh_config',
    'Reach nodes that are containers': "kcert rotate-ca discover --access 'command:docker exec -i {node}'",
    'Reach nodes without logins, through a Job on each node':
      'kcert rotate-ca discover --access jobs:registry.example.com/kcert@sha256:DIGEST',
    'Read nodes through pods that you created':
      "kcert rotate-ca discover --read-only --access 'command:kubectl -n kube-system exec -qi kcert-reader-{node} -- chroot /host'",
    'List nodes that kcert cannot write to, without writing the inventory': `kcert rotate-ca discover --dry-run -o json | jq -r '.nodes[] | select(.check.canWrite | not) | .name'`,
  })

  static override flags = {
    out: Flag.value('FILE', 'inventory file to write', { default: 'kcert.yaml' }),
    'read-only': Flag.boolean(
      'write nothing on nodes; kcert only reads them, and you run its scripts there (see runbook)',
    ),
    force: Flag.boolean('overwrite an existing file'),
    'dry-run': Flag.boolean('do not write the inventory; still check access to the nodes'),
    ...Flag.inGroup('NODES', {
      access: Flag.value(
        'METHOD',
        `how to reach nodes: ${accessForms}; kcert replaces {node} and {address}`,
        { default: 'ssh' },
      ),
      'ssh-user': Flag.value('USER', 'login user (default that of ssh_config)'),
      'ssh-config': Flag.value('FILE', 'ssh_config to use instead of ~/.ssh/config'),
      become: Flag.word(['sudo'], 'become root with sudo, without a password'),
      local: Flag.value(
        'NODE',
        'node that kcert runs on (default the node with the name and machine-id of this machine)',
      ),
    }),
    ...Flag.clusterFlags,
    output: Flag.reportFormat('output format'),
  }

  protected override async perform() {
    const { flags } = await this.parse(RotateCaDiscover)
    const { context } = this
    const { 'ssh-user': sshUser, 'ssh-config': sshConfig, become, local, out, force } = flags
    const access = accessFor({
      access: flags.access,
      ...given({ sshUser, sshConfig, become }),
    })
    if (sshConfig !== undefined) checkSshConfig(sshConfig)
    if (!flags['dry-run']) {
      const inputs = [{ by: '--kubeconfig', path: flags.kubeconfig }]
      checkFiles({ inputs, outputs: [{ by: '--out', path: out, holds: 'public' }], replace: force })
    }
    const found = await this.onCluster(flags, async (cluster) => {
      const jobs = await openNodeJobs(context, cluster, access.by === 'jobs' ? access.image : undefined)
      try {
        return await discover({
          objects: cluster.objects,
          clock: context.clock,
          jobs,
          access,
          readOnly: flags['read-only'],
          mostMs: longestNodeRequestMs,
          ...(local !== undefined && { local }),
        })
      } finally {
        await jobs?.close()
      }
    })
    const isServed = found.nodes.every(({ layout }) =>
      ['kubeadm', 'plain', 'unknown', 'none'].includes(layout),
    )
    const writes = isServed && !flags['dry-run']
    if (writes) {
      const { writePublicFile } = await import('../../system/output-file.ts')
      writePublicFile(out, renderInventory(found), { replace: force })
    }
    const report = writes ? { ...found, written: out } : found
    await this.show(flags.output, report, (whole, view) => renderDiscovery(whole, view, { out, force }))
    return exitOf(report)
  }
}

function exitOf({
  nodes,
  blockers,
}: {
  nodes: readonly { check: { reachable: boolean; canWrite?: boolean | undefined } }[]
  blockers: readonly unknown[]
}): ExitCode {
  if (nodes.some(({ check }) => !check.reachable)) return exitCodes.unreachable
  if (nodes.some(({ check }) => check.canWrite === false)) return exitCodes.no
  return blockers.length > 0 ? exitCodes.refused : exitCodes.done
}
