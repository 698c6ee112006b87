import { readBundle } from '../../app/ca/bundle.ts'
import { bundleMemberFacts } from '../../ca/facts.ts'
import { noticesOfBundle } from '../../ca/notices.ts'
import type { BundleReport } from '../../ca/report.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { checkFiles, checkStandardInput } from '../../cli/command-files.ts'
import { booleanFlag, operands, reportFormatFlag, valueFlag } from '../../cli/flags.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { renderBundle } from '../../output/ca.ts'
import { writePublicFile } from '../../system/output-file.ts'
import { writeCertificates } from '../../x509/certificate.ts'

export default class CaBundle extends KcertCommand {
  static override summary = 'Put the CA certificates of several files into one bundle.'

  static override description =
    `Each certificate once, by its SHA-256 digest, in the order in which they were first seen: the same files give the same bundle.
What has expired is left out, with a note. A certificate that is no CA is refused, and so is a damaged one: left out in silence,
it would be a CA that is not trusted. Private keys in the files are passed over.`

  static override exitCodes = {
    [exitCodes.done]: 'the bundle is written',
    [exitCodes.usage]: 'wrong usage, or a file that cannot be read',
    [exitCodes.no]: 'a certificate is damaged or no CA, or all have expired',
    [exitCodes.unreachable]: 'the file could not be written',
    [exitCodes.refused]: 'the file is there already',
  }

  static override examples = KcertCommand.examplesOf({
    'The old and the new CA, for the time of a rotation':
      'kcert ca bundle ca-old.crt ca-new.crt --out ca-bundle.crt',
    'Take a bundle again, without what has expired since':
      'kcert ca bundle ca-bundle.crt --out ca-bundle.crt --force',
    'Into a ConfigMap':
      'kcert ca bundle ca.pem partner-ca.pem | kubectl create configmap example-serving-ca --from-file ca.crt=/dev/stdin',
  })

  static override args = {
    file: operands('PEM or DER, with one certificate or many; "-" for standard input'),
  }

  static override flags = {
    out: valueFlag('FILE', 'where the bundle goes; "-" prints it', { default: '-' }),
    'allow-non-ca': booleanFlag('take certificates that are no CA, too'),
    force: booleanFlag('replace a file that is there'),
    output: reportFormatFlag(),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags, operands } = await this.parse(CaBundle)
    if (operands.length === 0)
      throw new KcertError('KCERT_USAGE', 'no file is named', {
        next: 'kcert ca bundle FILE FILE --out ca.crt',
      })
    const { out, force, output } = flags
    checkStandardInput(operands.map((path) => ({ by: 'FILE', path })))
    // A bundle may go where one of its files is: all that was in it is in the bundle.
    checkFiles({ inputs: [], outputs: [{ by: '--out', path: out, holds: 'public' }], replace: force })

    const made = await readBundle(operands, this.context, { allowNonCa: flags['allow-non-ca'] ?? false })
    const pem = writeCertificates(made.members.map(({ certificate }) => certificate))
    const notices = noticesOfBundle(made)
    if (out !== '-') writePublicFile(out, pem, { replace: force })

    const report: BundleReport = {
      apiVersion: 'kcert/v1',
      kind: 'CaBundle',
      members: made.members.map(bundleMemberFacts),
      leftOut: made.leftOut.map((member) => ({ ...bundleMemberFacts(member), reason: member.reason })),
      ...(out === '-' ? {} : { file: out }),
      pem,
      notices,
    }
    await this.show(output, report, () => (out === '-' ? pem : renderBundle(report)), notices)
    return exitCodes.done
  }
}
