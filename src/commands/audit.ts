import { audit } from '../app/audit/audit.ts'
import { KcertCommand } from '../cli/base-command.ts'
import { checkFiles } from '../cli/command-files.ts'
import * as Flag from '../cli/flags.ts'
import { parseInstant } from '../cli/instant.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { renderAudit } from '../output/audit.ts'

export default class Audit extends KcertCommand {
  static override summary = 'Find who still uses certificates of an old CA or tokens of an old key.'

  static override description =
    `Reads audit logs of API servers (audit.k8s.io, JSON lines), plain or compressed with gzip. For each client certificate and service account token that was used, the report shows the user, source address, user agent, last use and number of requests. Give the logs of all API servers, with the rotated ones. With --cluster or an inventory, the report says if logs of an API server are missing. It then does not conclude that an old credential is unused.

An audit event has the SHA-256 fingerprint of the certificate, or the ID of the token. It does not say which CA or key signed it. kcert finds the certificate or token, and so its CA or key, in:

  --known      files and folders: certificates, kubeconfigs, Secrets, CSRs, tokens, keys such as sa.pub, and the issuance logs of kcert ca sign
  --cluster    Secrets, ConfigMaps and CSRs of the cluster
  the logs     issued certificates and tokens, with the policy that kcert audit policy prints

With --inventory or --all-nodes, kcert reads the logs on the control planes, or on the nodes of --node. LOG is then a path there. Without LOG it reads the log that the API server of each node writes, and its rotated files.

The status of a credential:

  old          --ca or --sa-key signed it
  unknown      kcert has not found the credential: it may be old
  current      another CA or key signed it (shown with --all)

A token names its key (kid). If --sa-key or --known has this key, kcert verifies the signature of the token. It skips tokens that this key did not sign, and says so.

Without --ca and --sa-key, the report lists every credential.

If the API servers write no audit log, --live lists the addresses of clients whose TLS handshake failed because one side rejects the certificate of the other. API servers log this only with --v=5. The list shows no tokens, and no clients that still connect with an old certificate. So the report never concludes that an old credential is unused.

A use is a request that the API server received since --since. The report shows the user that authenticated, not an impersonated user. A client can choose its user agent. To limit its memory, kcert keeps at most 500,000 different credentials, and says so if there are more.`

  static override exitCodes = KcertCommand.exitsOf({
    ...Flag.clusterExits,
    unreachable: 'the API server or a node could not be reached',
    refused: 'other users can change the inventory',
    done: 'no old and no unknown credential was used; without --ca and --sa-key: the logs were read',
    usage: 'wrong usage, or a file that cannot be read',
    no: 'an old or unknown credential was used, or the logs do not show every use: a part cannot be read, or they do not cover the time from --since to now',
  })

  static override examples = KcertCommand.examplesOf({
    'List every credential in a log': 'kcert audit /var/log/kubernetes/audit/audit.log',
    'Find who still uses certificates of the old CA, in a folder with rotated logs':
      'kcert audit /var/log/kubernetes/audit --ca old-ca.crt --known /etc/kubernetes --cluster --since -24h',
    'Find tokens of the old key, after all API servers sign with the new one':
      'kcert audit audit-logs --sa-key old-sa.pub --cluster --since -1h --new-key-since 2026-11-25T10:00:00Z',
    'Read the logs of all API servers, on the nodes of kcert.yaml':
      'kcert audit --all-nodes --ca old-ca.crt --known pki --since -24h',
    'Without audit logs, list clients that reject the new certificates of API servers':
      'kcert audit --live --all-nodes --since -1h',
    'Read a log from standard input':
      'ssh cp1 sudo cat /var/log/kubernetes/audit/audit.log | kcert audit - --ca old-ca.crt --known pki',
    'List users of old certificates, for a script': `kcert audit audit-logs --ca old-ca.crt -o json | jq -r '.credentials[] | select(.status == "old") | .users[]'`,
  })

  static override args = {
    log: Flag.operands('audit log, folder with audit logs, or "-" for standard input'),
  }

  static override flags = {
    ca: Flag.repeated('FILE', 'certificate of the old CA; may be repeated'),
    'sa-key': Flag.repeated(
      'FILE',
      'old service account key, public or private, such as sa.pub; may be repeated',
    ),
    since: Flag.value('TIME', 'count requests since this time: 2027-01-01T12:00:00Z or -24h (default all)'),
    'new-key-since': Flag.value(
      'TIME',
      'time since which every API server signs tokens with the new key. Tokens that the logs show as created later are current, and those created before are old',
      { dependsOn: ['sa-key'] },
    ),
    known: Flag.repeated(
      'FILE',
      'file or folder with certificates, kubeconfigs, Secrets, CSRs, tokens or issuance logs; may be repeated',
    ),
    cluster: Flag.boolean(
      'search the Secrets, ConfigMaps and CSRs of the cluster that the kubeconfig selects',
    ),
    live: Flag.boolean(
      'without audit logs: read failed TLS handshakes in the logs of the API servers, on the nodes of the inventory',
    ),
    all: Flag.boolean('list current credentials, too'),
    ...Flag.nodeFlags,
    inventory: Flag.inventoryFlag('none: logs on this machine'),
    ...Flag.clusterFlagsBesideCluster,
    ...Flag.listFlags(['name'], 'name: only the credential IDs'),
  }

  protected override async perform() {
    const { flags, operands: logs } = await this.parse(Audit)
    const { ca: cas = [], 'sa-key': keys = [], known = [] } = flags
    Flag.refuseClusterFlags(flags)
    const inventory = Flag.namedInventory(flags)
    if (inventory === undefined && flags.node !== undefined)
      throw new KcertError('KCERT_USAGE', '--node requires --inventory', {
        why: 'without an inventory, kcert reads logs on this machine',
        next: '--inventory kcert.yaml',
      })
    if (flags.live && (inventory === undefined || logs.length > 0))
      throw new KcertError('KCERT_USAGE', '--live requires --inventory or --all-nodes, and no LOG', {
        why: 'it reads the logs of running API servers on their nodes',
        next: 'kcert audit --help',
      })
    if (inventory === undefined && logs.length === 0)
      throw new KcertError('KCERT_USAGE', 'LOG is missing', {
        why: 'it is an audit log, a folder with audit logs, or "-" for standard input',
        next: 'kcert audit --help',
      })
    const files = [
      ...(inventory === undefined ? logs.map((path) => ({ by: 'LOG', path })) : []),
      ...cas.map((path) => ({ by: '--ca', path })),
      ...keys.map((path) => ({ by: '--sa-key', path })),
      ...known.map((path) => ({ by: '--known', path })),
    ]
    checkFiles({ inputs: files, outputs: [], replace: false })
    const now = this.context.clock()
    const instantOf = (text: string | undefined) => (text === undefined ? undefined : parseInstant(text, now))
    const since = instantOf(flags.since)
    if (since !== undefined && since > now)
      throw new KcertError('KCERT_USAGE', `--since ${flags.since} is in the future`, {
        fix: 'write a past time, such as -24h',
      })
    const { report, exit } = await audit(
      {
        ...{
          logs,
          cas,
          keys,
          known,
          listsAll: flags.all,
          isLive: flags.live,
          inventory,
          nodes: flags.node ?? [],
        },
        ...{ since, newKeySince: instantOf(flags['new-key-since']) },
        cluster: flags.cluster ? { ...flags, cluster: flags['cluster-name'] } : undefined,
      },
      this.context,
    )
    return this.show(flags.output, report, renderAudit, {
      namesOf: ({ credentials }) => credentials.map(({ id }) => id),
      exit,
    })
  }
}
