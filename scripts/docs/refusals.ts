import { refusalCodes } from '../../src/x509/refusal.ts'
import { generatedNote, table } from './page.ts'

/** Returns docs/refusals.md: every reason for which `kcert verify` refuses a certificate. */
export function refusalPage(): string {
  const rows = Object.entries(refusalCodes).map(([code, summary]) => [`\`${code}\``, summary])
  return [
    '# Why kcert verify rejects a chain',
    generatedNote('src/x509/refusal.ts'),
    'When no chain verifies, there can be several reasons. kcert verify reports the most likely one and the certificate that causes it.',
    table(['code', 'meaning'], rows),
  ]
    .join('\n\n')
    .concat('\n')
}
