import { DecisionCommand, decisionFlags } from '../../app/csr/decision-command.ts'
import * as Flag from '../../cli/flags.ts'

export default class CsrApprove extends DecisionCommand {
  static override summary = 'Approve certificate signing requests, by name or by a policy.'

  static override description =
    `Without --policy, you decide: kcert prints what it cannot verify and approves. Unless you add --force, it refuses
dangerous requests, such as for system:masters, another node's identity, names of the API server, or wildcards.

With --policy, kcert approves what the policy approves and skips the rest.

kcert reports on both duties of an approver. Identity: the requester holds the private key and is who the request says. Entitlement:
the requester may have what the request asks for.

kcert reads each request again right before it approves it, and approves only the object that it checked. On a terminal, kcert asks
first. Without a terminal, a selection (--selector, --signer) needs --yes.`

  static override exitCodes = DecisionCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'all requests are approved',
    usage: 'wrong usage, or a file that cannot be read',
    no: 'some were not approved: the policy does not approve them, they are denied or deleted, or you answered no',
    unreachable: 'the API server could not be reached for some or all; it is safe to run the command again',
    refused: 'some are refused: they are dangerous, or changed after kcert checked them',
  })

  static override examples = DecisionCommand.examplesOf({
    'Approve one request': 'kcert csr approve csr-7x2lq',
    'Preview which pending CSRs the built-in kubelet policies would approve':
      'kcert csr approve --policy builtin --dry-run',
    'Apply your own policy from cron or a systemd timer':
      'kcert csr approve --policy /etc/kcert/policy.yaml -o json',
    'Approve the reviewed file, and no other request of that name':
      'kcert csr approve -f reviewed.yaml --reason Ticket4711 --message "reviewed by ann"',
    'Approve a batch by its label': 'kcert csr approve -l batch=7 --signer example.com/serving --yes',
  })

  static override args = { name: Flag.operands('names of requests') }

  static override flags = {
    ...Flag.clusterFlags,
    ...decisionFlags('approve'),
    force: Flag.boolean('approve dangerous requests too'),
  }

  protected override async perform() {
    const { flags, operands } = await this.parse(CsrApprove)
    return this.decide('approve', operands, flags)
  }
}
