import { problemCodes } from '../../src/inspection/problems.ts'
import { generatedNote, table } from './page.ts'

/** Returns docs/problems.md: every problem that `kcert inspect` can report. */
export function problemPage(): string {
  const rows = Object.entries(problemCodes).map(([code, row]) => {
    const [severity = '', ...summary] = row.split(': ')
    return [`\`${code}\``, severity, summary.join(': ')]
  })
  return [
    '# Problems that kcert inspect finds',
    generatedNote('src/inspection/problems.ts'),
    '`kcert inspect` exits 3 when one of its problems is a warning or worse. The table has the default severity. Some problems have another severity in some places, as their row says. The report has the severity that applies.',
    table(['code', 'severity', 'meaning'], rows),
  ]
    .join('\n\n')
    .concat('\n')
}
