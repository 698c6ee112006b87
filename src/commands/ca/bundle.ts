import { readBundle } from '../../app/ca/bundle.ts'
import { bundleMemberFacts } from '../../ca/facts.ts'
import { noticesOfBundle } from '../../ca/notices.ts'
import type { BundleReport } from '../../ca/report.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { checkFiles, checkStandardInput } from '../../cli/command-files.ts'
import * as Flag from '../../cli/flags.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { renderBundle } from '../../output/ca.ts'
import { writePublicFile } from '../../system/output-file.ts'
import { writeCertificates } from '../../x509/certificate.ts'

export default class CaBundle extends KcertCommand {
  static override summary = 'Combine the CA certificates of several files into one bundle.'

  static override description =
    `Writes each certificate once, identified by its SHA-256 digest, in the order of the files. The same files give the same bundle.
Expired certificates are left out, with a note. Damaged certificates and certificates that are not CAs are errors, so that no CA
is missing from the bundle unnoticed. Private keys in the files are ignored.`

  static override exitCodes = KcertCommand.exitsOf({
    done: 'the bundle was written',
    usage: 'wrong usage, or a file cannot be read',
    no: 'a certificate is damaged or not a CA, or all have expired',
    unreachable: 'the file cannot be written',
    refused: 'the file already exists',
  })

  static override examples = KcertCommand.examplesOf({
    'Combine the old and the new CA, during a rotation':
      'kcert ca bundle ca-old.crt ca-new.crt --out ca-bundle.crt',
    'Remove expired certificates from a bundle': 'kcert ca bundle ca-bundle.crt --out ca-bundle.crt --force',
    'Create a ConfigMap':
      'kcert ca bundle ca.pem partner-ca.pem | kubectl create configmap example-serving-ca --from-file ca.crt=/dev/stdin',
  })

  static override args = {
    file: Flag.operands('PEM or DER with one or more certificates; "-" for standard input'),
  }

  static override flags = {
    out: Flag.value('FILE', 'file for the bundle; "-" for standard output', { default: '-' }),
    'allow-non-ca': Flag.boolean('accept certificates that are not CAs'),
    force: Flag.boolean('overwrite an existing file'),
    output: Flag.reportFormat(),
  }

  protected override async perform() {
    const { flags, operands } = await this.parse(CaBundle)
    if (operands.length === 0)
      throw new KcertError('KCERT_USAGE', 'no file given', {
        fix: 'name the files with CA certificates',
        next: 'kcert ca bundle --help',
      })
    const { out, force, output } = flags
    checkStandardInput(operands.map((path) => ({ by: 'FILE', path })))
    // A bundle may replace one of its files: it contains all certificates of that file.
    checkFiles({ inputs: [], outputs: [{ by: '--out', path: out, holds: 'public' }], replace: force })

    const made = await readBundle(operands, this.context, { allowNonCa: flags['allow-non-ca'] ?? false })
    const pem = writeCertificates(made.members.map(({ certificate }) => certificate))
    const notices = noticesOfBundle(made)
    if (out !== '-') writePublicFile(out, pem, { replace: force })

    const report: BundleReport = {
      apiVersion: 'kcert/v1',
      kind: 'CaBundle',
      members: made.members.map(bundleMemberFacts),
      skipped: made.leftOut.map((member) => ({ ...bundleMemberFacts(member), reason: member.reason })),
      ...(out === '-' ? {} : { file: out }),
      pem,
      notices,
    }
    return this.show(output, report, () => (out === '-' ? pem : renderBundle(report)), { notices })
  }
}
