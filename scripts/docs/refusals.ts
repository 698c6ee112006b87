import { refusalCodes } from '../../src/x509/refusal.ts'
import { generatedNote, table } from './page.ts'

/** Returns docs/refusals.md: every reason for which `kcert verify` says no. */
export function refusalPage(): string {
  const rows = Object.entries(refusalCodes).map(([code, summary]) => [`\`${code}\``, summary])
  return [
    '# Why kcert verify says no',
    generatedNote('src/x509/refusal.ts'),
    'When no chain holds there may be several reasons; the one is told that most likely is the trouble, with the certificate at fault.',
    table(['code', 'meaning'], rows),
  ]
    .join('\n\n')
    .concat('\n')
}
