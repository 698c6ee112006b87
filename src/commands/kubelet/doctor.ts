import { KcertCommand } from '../../cli/base-command.ts'
import * as Flag from '../../cli/flags.ts'
import { renderDiagnosis } from '../../output/kubelet-doctor.ts'

export default class KubeletDoctor extends KcertCommand {
  static override summary = "Diagnose a kubelet's certificates and repair what can be repaired."

  static override description =
    `Checks /var/lib/kubelet/pki and the kubelet's kubeconfig, on this machine, on the nodes of an inventory, or below a folder. It finds:

  links          kubelet-client-current.pem or kubelet-server-current.pem is missing, dangling, or a plain file
  pairs          a certificate and a key that do not match
  kubeconfig     embedded or old credentials instead of the link
  certificates   expired, not renewed, from another CA, or for another node
  files          keys that other users can read, and leftovers

Each finding says what is wrong, why it matters, and the next command.

--fix repairs what the files on the node allow. The newest usable pair becomes the current one, the kubeconfig references it, file
modes are tightened, and leftovers are deleted. Each file is first copied to /var/lib/kcert/backups on the node. Then kcert restarts the
kubelet and waits for it. If no usable pair is left, a new one must be signed with the CA's key: kcert renew kubelet.conf.

With --root, nothing is restarted and nothing outside DIR is touched. Symbolic links are followed inside DIR, as if DIR were /.`

  static override exitCodes = KcertCommand.exitsOf({
    done: 'everything is in order, or was repaired',
    usage: 'wrong usage, or an unreadable inventory',
    no: 'a finding remains, or the kubelet did not restart',
    unreachable: 'a node could not be reached',
    refused: 'a file changed meanwhile, or there is no terminal to confirm on',
  })

  static override examples = KcertCommand.examplesOf({
    'Diagnose the kubelet of this machine': 'sudo kcert kubelet doctor',
    'Repair it': 'sudo kcert kubelet doctor --fix',
    'Diagnose every node of kcert.yaml': 'kcert kubelet doctor --all-nodes',
    'Diagnose a mounted disk of a machine that does not start': 'kcert kubelet doctor --root /mnt/w1',
    'List nodes with a critical finding, for a script': `kcert kubelet doctor --all-nodes -o json | jq -r '.nodes[] | select(any(.findings[]; .severity == "critical")) | .node'`,
  })

  static override args = { node: Flag.operands('node, as with --node') }

  static override flags = {
    ...Flag.nodeFlags,
    root: Flag.rootFlag,
    fix: Flag.boolean('repair what the files on the node allow'),
    restart: Flag.boolean('restart the kubelet after a repair (default); --no-restart leaves that to you', {
      allowNo: true,
      default: true,
    }),
    yes: Flag.boolean('do not ask for confirmation; with --fix, required without a terminal', { char: 'y' }),
    output: Flag.reportFormat(),
  }

  protected override async perform() {
    const { flags, operands } = await this.parse(KubeletDoctor)
    const { doctorKubelets } = await import('../../app/kubelet/doctor.ts')
    const { root, fix, restart, yes } = flags
    const nodes = [...operands, ...(flags.node ?? [])]
    const inventory = Flag.namedInventory(flags)
    const { report, exit } = await doctorKubelets(this.context, {
      ...{ nodes, inventory, root, fix, restart, yes },
    })
    return this.show(flags.output, report, renderDiagnosis, { exit })
  }
}
