import { lifetimeFlags, lifetimeMs } from '../app/ca/lifetime.ts'
import { renewCertificates } from '../app/renew/renew.ts'
import { rotationConsentFlags } from '../app/rotate-ca/flags.ts'
import { renewableNames } from '../ca/renewal.ts'
import { KcertCommand } from '../cli/base-command.ts'
import { booleanFlag, repeatedFlag, reportFormatFlag, valueFlag } from '../cli/flags.ts'
import { type ExitCode, exitCodes } from '../errors/codes.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { renderRenewal } from '../output/renewal.ts'

const { yes, 'dry-run': dryRun } = rotationConsentFlags

export default class Renew extends KcertCommand {
  static override summary =
    "Renew kubeadm's certificates and those of kubelets, with or without a running API server."

  static override description =
    `For the night in which a certificate has expired and nothing answers any more. Alone it lists every certificate of the node and what is
due; --all renews those, a name renews that one whatever its time. It goes by files and processes alone, on this machine or on the nodes of
kcert.yaml, and asks no API server.

A new certificate is signed by the CA that signed the old one and has its subject, names, usages, type of key and length of life, with a
new key unless --keep-keys. kubelet.conf is renewed too: in the kubelet's store, as the kubelet itself does it.

Each file is copied first to /var/lib/kcert/backups on its node, and replaced only when it is what was read. Then kubelet and static pods
start anew, each after what it needs (kubelet, etcd, API server, controller-manager, scheduler; one node after the other), and what they
serve, and whom the API server accepts, is looked at. Stopped anywhere and run again it does the rest: a process that is older than its
certificates is restarted, whoever renewed them. CAs are never touched: one that has expired is the business of kcert rotate-ca recover.

Names: ${renewableNames.join(', ')}.`

  static override exitCodes = {
    [exitCodes.done]: 'nothing is due, or all that was is renewed and in use',
    [exitCodes.usage]: 'wrong usage, no such certificate, or an inventory that cannot be read',
    [exitCodes.no]: 'listed: something is due; else declined, signed elsewhere, or not seen to be in use',
    [exitCodes.unreachable]: 'a node did not answer',
    [exitCodes.refused]: 'a CA has expired, a file changed meanwhile, or nobody there to say yes',
  }

  static override examples = KcertCommand.examplesOf({
    'What is due on this control plane': 'sudo kcert renew',
    'Renew it, restart what must be, see it served': 'sudo kcert renew --all',
    'On every node of kcert.yaml; look first': 'kcert renew --all --inventory kcert.yaml --dry-run',
    'One certificate, before its time': 'sudo kcert renew apiserver --yes',
    'From a timer: everything that ends within 60 days': `kcert renew --all --within 60d --yes -o json | jq -r '.certificates[] | select(.action == "renewed") | "\\(.node) \\(.name)"'`,
  })

  static override strict = false

  static override usage = 'renew [NAME...] [--all]'

  static override flags = {
    all: booleanFlag('renew every certificate that is due'),
    within: valueFlag(
      'TIME',
      "what counts as due: so much time left, or such a share of its life, as 60d or 20%; without it 30d or 20 %, whichever is less, and for a kubelet's own 10 %",
    ),
    inventory: valueFlag('FILE', 'how nodes are reached; default: this machine alone', { char: 'i' }),
    node: repeatedFlag('NAME', 'on this node alone; may be repeated'),
    'keep-keys': booleanFlag('new certificates for the keys that are there: one file of each pair changes'),
    ...lifetimeFlags('as long as the one before; never longer than its CA'),
    yes,
    'dry-run': dryRun,
    output: reportFormatFlag(),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags, operands: names } = await this.parse(Renew)
    if (flags.all && names.length > 0) {
      throw new KcertError('KCERT_USAGE', `--all and ${names.join(' ')} exclude each other`, {
        why: 'named certificates are renewed whatever their time, --all those that are due',
      })
    }
    const { report, exit } = await renewCertificates(this.context, {
      ...{ names, all: flags.all, within: flags.within, inventory: flags.inventory, node: flags.node ?? [] },
      ...{ keepKeys: flags['keep-keys'], ttlMs: lifetimeMs(flags), yes: flags.yes, dryRun: flags['dry-run'] },
    })
    await this.show(flags.output, report, renderRenewal)
    return exit
  }
}
