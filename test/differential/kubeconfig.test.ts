import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { askKcert, recordOf } from './kubeconfig-answer.ts'
import { kubeconfigCases } from './kubeconfig-cases.ts'
import { recordFile } from './kubeconfig-record.ts'

// Compares kcert with client-go (whose answers are recorded) on the same kubeconfigs. The comparison covers rejection; the
// server, CA, server name and insecure flag of every cluster; the certificates and credentials of every user; and the contexts
// that clients reject.

/** Cases in which kcert's answer differs, with the reason for keeping the difference. */
const differences: Readonly<Record<string, string>> = {
  'unknown value -': 'refused: a dash alone in a {map}, which libyaml takes for a text',
  'unknown key 18446744073709551615': 'accepted: Go has no key beyond 63 bits',
  'unknown key 0xFFFFFFFFFFFFFFFF': 'accepted: Go has no key beyond 63 bits',
  'two byte order marks': 'other content: libyaml counts the second one as a column, and sees one key',
  'JSON with U+2028 in a text': 'other content: libyaml keeps it in the text, kcert has a space there',
  'quotes over two lines at the margin': 'refused: YAML wants the second line indented, libyaml does not',
  'a list over lines at the margin': 'refused: YAML wants the second line indented, libyaml does not',
  'broken 228': 'refused: as quotes over two lines at the margin',
  'broken 783': 'refused: as quotes over two lines at the margin',
  'broken 1303': 'refused: as quotes over two lines at the margin',
  'user {"client-key-data":"QUJD"}': 'other content: client-go ignores the key, and kcert reports it',
  'user {"client-key":"/nowhere/a.key"}': 'other content: client-go ignores the key, and kcert reports it',
  ...Object.fromEntries(
    [385, 588, 593, 861, 1189, 1270, 1375].map((number) => [
      `broken ${number}`,
      'accepted: a quote or a colon lost before a key of JSON, which the yaml library takes for a text',
    ]),
  ),
}

test('kcert and client-go agree on every kubeconfig except the listed ones', async () => {
  const cases = kubeconfigCases()
  const record = readFileSync(recordFile, 'utf8').trimEnd().split('\n')
  expect(record).toHaveLength(cases.length)
  const found: Record<string, string> = {}
  let refused = 0
  for (const [index, one] of cases.entries()) {
    if (record[index] === 'refused') refused++
    const ours = recordOf(one, await askKcert(one.content))
    if (ours === record[index]) continue
    found[one.name] =
      record[index] === 'refused' ? 'accepted' : ours === 'refused' ? 'refused' : 'other content'
  }
  expect(found).toEqual(
    Object.fromEntries(Object.entries(differences).map(([name, why]) => [name, why.split(':')[0]])),
  )
  // Both answers must occur often, otherwise the comparison is meaningless.
  expect(refused).toBeGreaterThan(1000)
  expect(cases.length - refused).toBeGreaterThan(1000)
})
