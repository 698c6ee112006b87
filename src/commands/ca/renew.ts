import {
  authorityFlags,
  authorityInputs,
  ledgerOf,
  openAuthorityFiles,
  withLedger,
} from '../../app/ca/authority-files.ts'
import { lifetimeFlags, lifetimeMs } from '../../app/ca/lifetime.ts'
import { certificateFacts } from '../../ca/facts.ts'
import { noticesOfRenewal } from '../../ca/notices.ts'
import type { AuthorityReport } from '../../ca/report.ts'
import { renewRoot } from '../../ca/root.ts'
import { type FlagsOf, KcertCommand } from '../../cli/base-command.ts'
import { type CommandFiles, checkFiles, checkStandardInput } from '../../cli/command-files.ts'
import { booleanFlag, reportFormatFlag, valueFlag } from '../../cli/flags.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { renderAuthority } from '../../output/ca.ts'
import { replaceKeepingBackup, writePublicFile } from '../../system/output-file.ts'
import { writePem } from '../../x509/pem.ts'

export default class CaRenew extends KcertCommand {
  static override summary = 'Give a CA a new certificate for the same name and key.'

  static override description =
    `What the old certificate has signed stays valid under the new one, for the name, the key and the extensions are the same. So
nothing is revoked, and whoever has a copy of the key keeps it: a CA whose key may be known is replaced, by kcert rotate-ca.

The certificate is replaced in its file, and the old one kept beside it as FILE.<time>.bak; or the new one goes to --out. Every
copy of the CA elsewhere (kubeconfigs, clientCAFile, ConfigMaps) has to be replaced as well, before the old one ends.`

  static override exitCodes = {
    [exitCodes.done]: 'the CA has a new certificate',
    [exitCodes.usage]: 'wrong usage, or an input that cannot be read',
    [exitCodes.no]: 'certificate and key are no pair, no CA, or another CA signed it',
    [exitCodes.unreachable]: 'a file could not be written, or another kcert works on it',
    [exitCodes.refused]: 'the file of --out is there already, or the ledger is damaged',
  }

  static override examples = KcertCommand.examplesOf({
    'In place, for as long again as it lived': 'kcert ca renew --ca ca.pem --ca-key ca-key.pem',
    "A cluster's CA, for ten years, beside the old one":
      'sudo kcert ca renew --ca /etc/kubernetes/pki/ca.crt --ca-key /etc/kubernetes/pki/ca.key --expiry 87600h --out ca-new.crt',
    'With an encrypted key': 'kcert ca renew --ca ca.pem --ca-key ca-key.pem --ca-password-file pw.txt',
  })

  static override flags = {
    ...authorityFlags,
    ...lifetimeFlags('as long as the old one'),
    out: valueFlag('FILE', 'where the new certificate goes instead of the file of --ca; "-" prints it'),
    force: booleanFlag('replace the file of --out; it is kept as a backup, too'),
    output: reportFormatFlag(),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags } = await this.parse(CaRenew)
    const out = flags.out ?? flags.ca
    const ledger = ledgerOf(flags)
    checkStandardInput(authorityInputs(flags))
    const authority = await openAuthorityFiles(flags, this.context)
    checkFiles(filesOf(flags, ledger))

    const { clock, random } = this.context
    const now = clock()
    const certificate = await withLedger(ledger, (opened) => {
      const serialNumber = opened.draw(random, authority.certificate)
      const renewed = renewRoot(authority, now, serialNumber, lifetimeMs(flags))
      opened.record([renewed], now)
      return renewed
    })

    const pem = writePem('CERTIFICATE', certificate.der)
    const notices = noticesOfRenewal(authority, certificate, now)
    const backup = this.replace(out, pem, now, flags)
    const report: AuthorityReport = {
      apiVersion: 'kcert/v1',
      kind: 'CertificateAuthority',
      action: 'renewed',
      certificate: certificateFacts(certificate),
      caPin: `sha256:${certificate.publicKey.sha256}`,
      pem,
      files: {
        ...(out === '-' ? {} : { certificate: out }),
        ledger,
        ...(backup === undefined ? {} : { backup }),
      },
      notices,
    }
    const text = () => (out === '-' ? pem : renderAuthority(report))
    await this.show(flags.output, report, text, notices)
    return exitCodes.done
  }

  /** Returns where the certificate that was there before is kept. */
  private replace(out: string, pem: string, now: Date, flags: FlagsOf<typeof CaRenew.flags>) {
    if (out === '-') return undefined
    if (flags.out === undefined || flags.force) return replaceKeepingBackup(out, pem, now)
    writePublicFile(out, pem, { replace: false })
    return undefined
  }
}

function filesOf(flags: FlagsOf<typeof CaRenew.flags>, ledger: string): CommandFiles {
  const { ca, out } = flags
  const isInPlace = out === undefined
  return {
    inputs: isInPlace ? [] : authorityInputs(flags),
    outputs: [
      { by: isInPlace ? '--ca' : '--out', path: out ?? ca, holds: 'public' },
      { by: '--ledger', path: ledger, holds: 'ledger' },
    ],
    replace: isInPlace || flags.force,
  }
}
