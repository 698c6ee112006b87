import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { recordOf } from '../differential/kubeconfig-answer.ts'
import { kubeconfigCases } from '../differential/kubeconfig-cases.ts'
import { recordFile } from '../differential/kubeconfig-record.ts'
import { askClientGo } from '../peers/client-go.ts'

// test/differential/kubeconfig.test.ts compares kcert with the record; this compares the record with client-go.
// KCERT_RECORD=1 writes the record again.

test('the recorded answers are those of client-go', { timeout: 900_000 }, () => {
  const cases = kubeconfigCases()
  const answers = askClientGo(cases)
  expect(answers).toHaveLength(cases.length)
  const record = `${answers.map((answer, index) => recordOf(cases[index]!, answer)).join('\n')}\n`
  if (process.env.KCERT_RECORD === '1') writeFileSync(recordFile, record)
  expect(readFileSync(recordFile, 'utf8')).toBe(record)
})
