import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { recordOf } from '../differential/kubeconfig-answer.ts'
import { kubeconfigCases } from '../differential/kubeconfig-cases.ts'
import { recordFile } from '../differential/kubeconfig-record.ts'
import { askClientGo } from '../peers/client-go.ts'

// test/differential/kubeconfig.test.ts compares kcert with the record. This test compares the record with client-go.
// KCERT_RECORD=1 updates the record.

test("the record matches client-go's results", { timeout: 900_000 }, () => {
  const cases = kubeconfigCases()
  const answers = askClientGo(cases)
  expect(answers).toHaveLength(cases.length)
  const record = `${answers.map((answer, index) => recordOf(cases[index]!, answer)).join('\n')}\n`
  if (process.env.KCERT_RECORD === '1') writeFileSync(recordFile, record)
  expect(readFileSync(recordFile, 'utf8')).toBe(record)
})
