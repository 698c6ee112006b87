import { FleetCommand, fleetExits } from '../../app/fleet/command.ts'
import { fleetArgs, fleetFlags } from '../../app/fleet/flags.ts'
import { probeFlags } from '../../app/probe/flags.ts'
import { parseDuration } from '../../cli/instant.ts'

const { 'api-servers': apiServers, nodes, etcd, webhooks, all, tls, timeout } = probeFlags

export default class FleetProbe extends FleetCommand {
  static override summary = 'Probe the TLS endpoints of many clusters.'

  static override description =
    `For each cluster, kcert does what kcert probe does, and prints the result as soon as it is complete. Without a selection, it probes the
API servers. To kubelets and other servers of a cluster, it presents only the client certificate of that cluster's kubeconfig.

kcert finds clusters, and limits what each of them can do, as kcert fleet inspect does. For the details, run kcert fleet inspect --help.`

  static override exitCodes = FleetCommand.exitsOf({
    ...fleetExits,
    done: 'all servers of all clusters were reached, without problems',
    no: 'a server certificate has expired, is not trusted or lacks a name; or the client certificate is refused',
    unreachable:
      'a cluster did not answer completely, a server was not reached, or a kubeconfig cannot be used',
  })

  static override examples = FleetCommand.examplesOf({
    'Probe the API servers of all contexts': 'kcert fleet probe',
    'Probe API servers and kubelets of the clusters in a folder':
      'kcert fleet probe ~/clusters --api-servers --nodes',
    'Probe the workload clusters of Cluster API':
      'kcert fleet probe --from cluster-api --kubeconfig management.conf',
    'Write metrics for Prometheus': 'kcert fleet probe ~/clusters -o prometheus',
  })

  static override args = fleetArgs

  static override flags = {
    'api-servers': apiServers,
    nodes,
    etcd,
    webhooks,
    all: { ...all, description: 'all of these' },
    tls,
    timeout,
    ...fleetFlags,
  }

  protected override async perform() {
    const { flags, operands } = await this.parse(FleetProbe)
    parseDuration(flags.timeout, '--timeout')
    const { probeKind, probeMember } = await import('../../app/fleet/probe.ts')
    return this.overFleet(flags, operands, probeKind, (chosen) => probeMember(flags, chosen, this.context))
  }
}
