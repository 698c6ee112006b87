import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { tellLine } from './tell-line.ts'

test.each([
  ['/etc/a\nKCERT_OK: b', '/etc/a\\u000aKCERT_OK: b\n'],
  ['a\u0000\u001b[31m\u009b\r\u202e\u2028b', 'a\\u0000\\u001b[31m\\u009b\\u000d\\u202e\\u2028b\n'],
  ['\u{e0041}\u2800é', '\\u{e0041}\\u2800é\n'],
])('writes %j as one line with every character visible', (text, written) => {
  const lines: string[] = []
  tellLine({ write: (line: string) => lines.push(line) > 0 }, text)
  expect(lines).toEqual([written])
})

test('no command writes a name to standard error without this function', () => {
  const found = globSync('src/{cli,commands}/**/*.ts').flatMap((file) =>
    Array.from(
      readFileSync(file, 'utf8').matchAll(/stderr\s*\.write\(`[^`]*\$\{[^`]*`/g),
      ([text]) => `${file}: ${text}`,
    ),
  )
  const isOwn = (one: string): boolean => /^src\/cli\/(?:progress|tell-line(?:\.test)?)\.ts: /.test(one)
  expect(found.filter((one) => !isOwn(one))).toEqual([])
})
