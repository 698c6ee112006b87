import { caFlags, caInputs, issuanceLogPath, openCaFiles, withIssuanceLog } from '../../app/ca/ca-files.ts'
import { lifetimeFlags, lifetimeMs } from '../../app/ca/lifetime.ts'
import { certificateFacts } from '../../ca/facts.ts'
import { noticesOfRenewal } from '../../ca/notices.ts'
import type { CaReport } from '../../ca/report.ts'
import { renewRoot } from '../../ca/root.ts'
import { type FlagsOf, KcertCommand } from '../../cli/base-command.ts'
import { type CommandFiles, checkFiles, checkStandardInput } from '../../cli/command-files.ts'
import * as Flag from '../../cli/flags.ts'
import { renderCa } from '../../output/ca.ts'
import { replaceKeepingBackup, writePublicFile } from '../../system/output-file.ts'
import { writePem } from '../../x509/pem.ts'

export default class CaRenew extends KcertCommand {
  static override summary = 'Renew a CA certificate, with the same name and key.'

  static override description =
    `Name, key and extensions stay the same, so certificates that the CA signed before remain valid. This revokes nothing. If the key
may be compromised, replace the CA with kcert rotate-ca.

By default the certificate is replaced in its file, and the old one is saved as FILE.TIME.bak. With --out, the new certificate
goes to another file. Replace every other copy of the CA (kubeconfigs, clientCAFile, ConfigMaps) before the old one expires.`

  static override exitCodes = KcertCommand.exitsOf({
    done: 'the CA certificate was renewed',
    usage: 'wrong usage, or an input cannot be read',
    no: 'the certificate is not a self-signed CA, or the key does not match it',
    unreachable: 'a file cannot be written, or is locked by another kcert process',
    refused: 'the file of --out already exists, or the issuance log is damaged',
  })

  static override examples = KcertCommand.examplesOf({
    'Renew in place, with the same validity as before': 'kcert ca renew --ca ca.pem --ca-key ca-key.pem',
    "Renew a cluster's CA for 10 years, in a new file":
      'sudo kcert ca renew --ca /etc/kubernetes/pki/ca.crt --ca-key /etc/kubernetes/pki/ca.key --expiry 87600h --out ca-new.crt',
    'Renew with an encrypted key': 'kcert ca renew --ca ca.pem --ca-key ca-key.pem --ca-password-file pw.txt',
  })

  static override flags = {
    ...caFlags,
    ...lifetimeFlags('as the old certificate'),
    out: Flag.value(
      'FILE',
      'file for the new certificate, instead of the file of --ca; "-" for standard output',
    ),
    force: Flag.boolean('overwrite the file of --out, keeping a backup'),
    output: Flag.reportFormat(),
  }

  protected override async perform() {
    const { flags } = await this.parse(CaRenew)
    const out = flags.out ?? flags.ca
    const issuanceLog = issuanceLogPath(flags)
    checkStandardInput(caInputs(flags))
    const signingCa = await openCaFiles(flags, this.context)
    checkFiles(filesOf(flags, issuanceLog))

    const { clock, random } = this.context
    const now = clock()
    const certificate = await withIssuanceLog(issuanceLog, (opened) => {
      const serialNumber = opened.draw(random, signingCa.certificate)
      const renewed = renewRoot(signingCa, now, serialNumber, lifetimeMs(flags))
      opened.record([renewed], now)
      return renewed
    })

    const pem = writePem('CERTIFICATE', certificate.der)
    const notices = noticesOfRenewal(signingCa, certificate, now)
    const backup = this.replace(out, pem, now, flags)
    const report: CaReport = {
      apiVersion: 'kcert/v1',
      kind: 'CertificateAuthority',
      action: 'renewed',
      certificate: certificateFacts(certificate),
      caPin: `sha256:${certificate.publicKey.sha256}`,
      pem,
      files: {
        ...(out === '-' ? {} : { certificate: out }),
        issuanceLog,
        ...(backup === undefined ? {} : { backup }),
      },
      notices,
    }
    const text = () => (out === '-' ? pem : renderCa(report))
    return this.show(flags.output, report, text, { notices })
  }

  /** Returns the path of the backup of the previous certificate. */
  private replace(out: string, pem: string, now: Date, flags: FlagsOf<typeof CaRenew.flags>) {
    if (out === '-') return undefined
    if (flags.out === undefined || flags.force) return replaceKeepingBackup(out, pem, now)
    writePublicFile(out, pem, { replace: false })
    return undefined
  }
}

function filesOf(flags: FlagsOf<typeof CaRenew.flags>, issuanceLog: string): CommandFiles {
  const { ca, out } = flags
  const isInPlace = out === undefined
  return {
    inputs: isInPlace ? [] : caInputs(flags),
    outputs: [
      { by: isInPlace ? '--ca' : '--out', path: out ?? ca, holds: 'public' },
      { by: '--issuance-log', path: issuanceLog, holds: 'log' },
    ],
    replace: isInPlace || flags.force,
  }
}
