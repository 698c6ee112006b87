import { FleetCommand, fleetExits } from '../../app/fleet/command.ts'
import { fleetArgs, fleetFlags } from '../../app/fleet/flags.ts'
import * as Flag from '../../cli/flags.ts'
import { parseDuration, parseInstant } from '../../cli/instant.ts'
import { parseSelectors, selectors } from '../../inspection/selection.ts'
import { thresholdsOf } from '../../inspection/thresholds.ts'

export default class FleetInspect extends FleetCommand {
  static override summary = 'Inspect the certificates of many clusters.'

  static override description =
    `For each cluster, kcert does what kcert inspect --cluster does, and prints the result as soon as it is complete.

The clusters are the contexts of kubeconfigs. With --from, they are also the clusters that objects of a management cluster name:

  cluster-api     Secrets CLUSTER-kubeconfig of Cluster API
  argocd          cluster Secrets of Argo CD
  clusterprofile  ClusterProfiles. --clusterprofile-provider-file says which program returns the credential.

The flags in the group CLUSTER select the management cluster. They apply to no other cluster.

Each cluster has its own connections and its own credentials. kcert follows no redirect. A cluster that does not answer before
--deadline, or sends an endless list, is named with the reason, and the others are read. The exit code is then 4.

A kubeconfig may run a program (exec) or name a file with a token or key. kcert uses such a kubeconfig only if it is a file
that no other user can change. In the objects of a management cluster, kcert refuses it. Programs may not use the terminal, and are killed
at the deadline.

In a folder, files that are not kubeconfigs are counted, named and skipped.`

  static override exitCodes = FleetCommand.exitsOf({
    ...fleetExits,
    done: 'all clusters were read, and no problem is worse than info',
    no: 'a problem is a warning or critical',
  })

  static override examples = FleetCommand.examplesOf({
    'Inspect all contexts of your kubeconfig': 'kcert fleet inspect',
    'Inspect the clusters of all kubeconfigs in a folder': 'kcert fleet inspect ~/clusters',
    'Inspect the contexts of production': "kcert fleet inspect --contexts 'prod-*'",
    'Show what expires soon in the workload clusters of Cluster API':
      'kcert fleet inspect --from cluster-api --kubeconfig management.conf --only expired,expiring',
    'Print the clusters that did not answer':
      'kcert fleet inspect ~/clusters -o json | jq -r \'select(.kind == "FleetSummary").notRead[].cluster\'',
    'Write one HTML page for all clusters': 'kcert fleet inspect ~/clusters -o html > fleet.html',
  })

  static override args = fleetArgs

  static override flags = {
    ...fleetFlags,
    only: Flag.repeated(
      'WHICH',
      `show only these certificates and their problems; comma-separated: ${selectors.join(', ')}`,
    ),
    warn: Flag.value('30d,20%', 'warn when less than this is left (default 30d,20%)'),
    crit: Flag.value('7d,5%', 'critical when less than this is left (default 7d,5%)'),
    at: Flag.value('TIME', 'evaluate at this time: 2027-01-01, 2027-01-01T12:00:00Z or +90d (default now)'),
    timeout: Flag.value('DURATION', 'time limit for one TLS connection', { default: '5s' }),
  }

  protected override async perform() {
    const { flags, operands } = await this.parse(FleetInspect)
    const now = this.context.clock()
    const job = {
      now: flags.at === undefined ? now : parseInstant(flags.at, now),
      thresholds: thresholdsOf(flags.warn, flags.crit),
      selection: { only: (flags.only ?? []).flatMap(parseSelectors), sort: 'expiry' as const },
      timeoutMs: parseDuration(flags.timeout, '--timeout'),
    }
    const { inspectionKind, inspectMember } = await import('../../app/fleet/inspect.ts')
    return this.overFleet(flags, operands, inspectionKind, (chosen) =>
      inspectMember(job, flags['request-timeout'], chosen, this.context),
    )
  }
}
