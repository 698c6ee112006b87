import { expect, test } from 'vitest'
import { masked, readSteps, withOutputs } from './transcript.ts'

const guide = `Text.

\`\`\`console
$ kcert one
first
second
$ cat <<EOF | kcert two -
{
EOF
third
\`\`\`

\`\`\`console exit=3
$ kcert three \\
    --flag
\`\`\`
`

test('reads commands with their here-documents, continuations, outputs and exit codes', () => {
  expect(readSteps(guide).map(({ command, printed, exit }) => [command, printed, exit])).toEqual([
    ['kcert one', 'first\nsecond\n', 0],
    ['cat <<EOF | kcert two -\n{\nEOF', 'third\n', 0],
    ['kcert three \\\n    --flag', '', 3],
  ])
})

test('inserts outputs at their positions', () => {
  const written = withOutputs(guide, readSteps(guide), ['1\n', '2\n', '3\n'])
  expect(readSteps(written).map(({ printed }) => printed)).toEqual(['1\n', '2\n', '3\n'])
  expect(withOutputs(guide, readSteps(guide), ['first\nsecond\n', 'third\n', ''])).toBe(guide)
})

test('masks values that differ between runs, and keeps words', () => {
  expect(masked('until 2026-11-21T12:00:00Z  (364d, 12s), serial 0123456789abcdef01')).toBe(
    'until <time> (<duration>, <duration>), serial <hex>',
  )
  expect(masked('kubelet-client-2026-11-21-22-05-00.pem of csr-x7k2p in 9 ms from 10.244.21.5:8443')).toBe(
    'kubelet-client-<time>.pem of <csr> in <duration> from <pod>:8443',
  )
  expect(masked('renewed until 2027-11-22 by localhost@1795315971')).toBe(
    'renewed until <date> by localhost@<seconds>',
  )
  const words = 'issued to my-svc.my-namespace by example.com/serving'
  expect(masked(words)).toBe(words)
})
