import { lifetimeFlags, lifetimeMs } from '../app/ca/lifetime.ts'
import { renewCertificates } from '../app/renew/renew.ts'
import { rotationConsentFlags } from '../app/rotate-ca/flags.ts'
import { renewableNames } from '../ca/renewal.ts'
import { KcertCommand } from '../cli/base-command.ts'
import * as Flag from '../cli/flags.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { renderRenewal } from '../output/renewal.ts'

const { yes, 'dry-run': dryRun } = rotationConsentFlags

export default class Renew extends KcertCommand {
  static override summary = "Renew kubeadm's and kubelets' certificates, even while the API server is down."

  static override description =
    `Use this when certificates have expired and the API server does not start. Without --all or a NAME, it changes nothing and lists the
certificates with their expiry and which are due, like kubeadm certs check-expiration. --all renews those that are due. A NAME renews
that certificate even when it is not due. kcert reads and writes the files on this machine, or on the nodes of an inventory. It does not
use the API server.

A new certificate is signed by the CA that signed the old one. Subject, SANs, usages, key type and validity stay the same. The key is
new, unless --keep-keys is given. The kubelet's client certificate is renewed too, in /var/lib/kubelet/pki as the kubelet itself does.

Before a file changes, it is copied to /var/lib/kcert/backups on its node. kcert replaces a file only if it did not change since it was
read. Then it restarts what uses the new certificates, one node after the other: kubelet, etcd, API server, controller manager,
scheduler. Finally it checks that servers serve the new certificates and that the API server accepts the client certificates.

After an interruption, run the same command again: it continues. It also restarts processes that are older than their certificates. It
never changes CAs: for an expired CA, use kcert rotate-ca recover.

With --root, kcert renews the files below DIR: a copy, or the mounted disk of a machine that is off. It restarts and checks nothing, and
touches nothing outside DIR. Symbolic links are followed inside DIR, as if DIR were /.`

  static override exitCodes = KcertCommand.exitsOf({
    done: 'nothing is due, or everything due is renewed and in use (with --root: renewed)',
    usage: 'wrong usage, no such certificate, or an unreadable inventory',
    no: 'certificates are due (list); or you declined, another CA signed a certificate, or one is not yet in use',
    unreachable: 'a node could not be reached',
    refused: 'a CA has expired, a file changed meanwhile, or there is no terminal to confirm on',
  })

  static override examples = KcertCommand.examplesOf({
    'List the certificates of this control plane and which are due': 'sudo kcert renew',
    'Renew what is due, restart what uses it, and check the result': 'sudo kcert renew --all',
    'Preview a renewal on every node of kcert.yaml': 'kcert renew --all --all-nodes --dry-run',
    'Renew one certificate that is not due yet': 'sudo kcert renew apiserver --yes',
    'Renew on the mounted disk of a machine that is off': 'sudo kcert renew --all --root /mnt/cp1',
    'Renew what expires within 60 days, from cron or a systemd timer': `kcert renew --all --within 60d --yes -o json | jq -r '.certificates[] | select(.action == "renewed") | "\\(.node) \\(.name)"'`,
  })

  static override args = {
    name: Flag.operands(`certificate to renew, even if it is not due: ${renewableNames.join(', ')}`),
  }

  static override flags = {
    all: Flag.boolean('renew every certificate that is due'),
    within: Flag.value(
      'TIME',
      "a certificate is due when less than this is left: 60d, or 20% of its validity (default 30d or 20%, whichever is less; 10% for the kubelet's own)",
    ),
    ...Flag.nodeFlags,
    root: Flag.rootFlag,
    'keep-keys': Flag.boolean('keep the existing private keys'),
    ...lifetimeFlags("the old certificate's validity; never longer than its CA's"),
    yes,
    'dry-run': dryRun,
    ...Flag.listFlags(['name'], 'name: only the names of the certificates'),
  }

  protected override async perform() {
    const { flags, operands: names } = await this.parse(Renew)
    if (flags.all && names.length > 0) {
      throw new KcertError('KCERT_USAGE', `--all and ${names.join(' ')} are mutually exclusive`, {
        why: 'a named certificate is renewed even when it is not due; --all renews those that are due',
      })
    }
    const { report, exit } = await renewCertificates(this.context, {
      ...{ names, all: flags.all, within: flags.within, inventory: Flag.namedInventory(flags) },
      node: flags.node ?? [],
      root: flags.root,
      ...{ keepKeys: flags['keep-keys'], ttlMs: lifetimeMs(flags), yes: flags.yes, dryRun: flags['dry-run'] },
    })
    const namesOf = (): string[] => [...new Set(report.certificates.map(({ name }) => name))]
    return this.show(flags.output, report, renderRenewal, { namesOf, exit })
  }
}
