import { doctorKubelets } from '../../app/kubelet/doctor.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { booleanFlag, reportFormatFlag, valueFlag } from '../../cli/flags.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { renderDiagnosis } from '../../output/kubelet-doctor.ts'

export default class KubeletDoctor extends KcertCommand {
  static override summary = "Say what is wrong with a kubelet's certificates, and mend what can be mended."

  static override description =
    `Looks at /var/lib/kubelet/pki and the kubelet's kubeconfig of this machine, of nodes of kcert.yaml, or of a tree of files: the link that
is missing, leads nowhere or is a plain file; certificate and key that do not belong together; a kubeconfig that holds old data instead of
naming the link; a certificate that has expired, is not renewed, is of another CA or another node; keys that others may read; leftovers.
Each finding says what, why, and what to do next.

--fix does what needs nothing but what lies there: the newest pair that can be used becomes the current one, the kubeconfig names it, modes
are made tight, leftovers go. Each file is copied first to /var/lib/kcert/backups on the node. Then the kubelet starts anew, and is waited
for. Where no usable pair is left, somebody with the CA's key has to sign: kcert renew kubelet.conf.`

  static override exitCodes = {
    [exitCodes.done]: 'in order, or mended',
    [exitCodes.usage]: 'wrong usage, or an inventory that cannot be read',
    [exitCodes.no]: 'something is wrong that is left to you, or the kubelet did not come back',
    [exitCodes.unreachable]: 'a node did not answer',
    [exitCodes.refused]: 'a file changed meanwhile, or nobody there to say yes',
  }

  static override examples = KcertCommand.examplesOf({
    'This machine': 'sudo kcert kubelet doctor',
    'Mend it': 'sudo kcert kubelet doctor --fix',
    'Every node of kcert.yaml': 'kcert kubelet doctor --inventory kcert.yaml',
    'The disk of a machine that does not start, mounted here': 'kcert kubelet doctor --root /mnt/w1',
    'Nodes with something critical, for a script': `kcert kubelet doctor -i kcert.yaml -o json | jq -r '.nodes[] | select(any(.findings[]; .severity == "critical")) | .node'`,
  })

  static override strict = false

  static override usage = 'kubelet doctor [NODE...]'

  static override flags = {
    inventory: valueFlag('FILE', 'how nodes are reached; default: this machine alone', {
      char: 'i',
      exclusive: ['root'],
    }),
    root: valueFlag('DIR', 'a folder that holds the files of a node, by their paths there'),
    fix: booleanFlag('mend what can be mended with what lies there'),
    restart: booleanFlag('start the kubelet anew once it is mended; --no-restart leaves that to you', {
      allowNo: true,
      default: true,
    }),
    yes: booleanFlag('do not ask; without a terminal --fix is refused otherwise', { char: 'y' }),
    output: reportFormatFlag(),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags, operands: nodes } = await this.parse(KubeletDoctor)
    const { inventory, root, fix, restart, yes } = flags
    const { report, exit } = await doctorKubelets(this.context, {
      ...{ nodes, inventory, root, fix, restart, yes },
    })
    await this.show(flags.output, report, renderDiagnosis)
    return exit
  }
}
