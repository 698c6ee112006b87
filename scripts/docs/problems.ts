import { problemCodes } from '../../src/inspection/problems.ts'
import { generatedNote, table } from './page.ts'

/** Returns docs/problems.md: everything that `kcert inspect` can find wrong. */
export function problemPage(): string {
  const rows = Object.entries(problemCodes).map(([code, row]) => {
    const [severity = '', ...summary] = row.split(': ')
    return [`\`${code}\``, severity, summary.join(': ')]
  })
  return [
    '# Problems that kcert inspect finds',
    generatedNote('src/inspection/problems.ts'),
    '`kcert inspect` exits 3 when one of its problems is a warning or worse. The severity here is the usual one. Where a thing stands may raise or lower it, as the sentence beside it says; the report has the one that counted.',
    table(['code', 'severity', 'meaning'], rows),
  ]
    .join('\n\n')
    .concat('\n')
}
