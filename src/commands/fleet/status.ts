import { FleetCommand, fleetExits } from '../../app/fleet/command.ts'
import { fleetArgs, fleetFlags } from '../../app/fleet/flags.ts'

export default class FleetStatus extends FleetCommand {
  static override summary = 'Show the state of the rotations in many clusters.'

  static override description =
    `For each cluster, kcert shows the rotations of its CA, of the CA of etcd and of the service account key: finished, or the last phase and
when it was written. kcert reads them from the copies of the journals in the cluster, in ConfigMaps in kube-system. It needs no inventory and reads no node.
For pending items and checks, run kcert rotate-ca status for one cluster.

kcert finds clusters, and limits what each of them can do, as kcert fleet inspect does. For the details, run kcert fleet inspect --help.`

  static override exitCodes = FleetCommand.exitsOf({
    ...fleetExits,
    done: 'the state of all clusters was shown',
    no: 'the journal in a cluster is incomplete, so the state of a rotation is unknown',
    refused: `${fleetExits.refused}; or a journal is damaged`,
  })

  static override examples = FleetCommand.examplesOf({
    'Show the rotations in all contexts of your kubeconfig': 'kcert fleet status',
    'List the clusters with a rotation in progress':
      'kcert fleet status ~/clusters -o json | jq -r \'select(.report.rotations[]?.state == "in-progress").cluster\'',
    'Show the rotations in the clusters of Argo CD':
      'kcert fleet status --from argocd --kubeconfig management.conf',
  })

  static override args = fleetArgs

  static override flags = fleetFlags

  protected override async perform() {
    const { flags, operands } = await this.parse(FleetStatus)
    const { rotationKind, statusOfMember } = await import('../../app/fleet/status.ts')
    return this.overFleet(flags, operands, rotationKind, (chosen) =>
      statusOfMember(flags['request-timeout'], chosen, this.context),
    )
  }
}
