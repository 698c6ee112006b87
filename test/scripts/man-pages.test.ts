import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { manPages } from '../../scripts/docs/man.ts'

type Manifest = Parameters<typeof manPages>[0]
const { commands } = JSON.parse(readFileSync('oclif.manifest.json', 'utf8')) as { commands: Manifest }
const { oclif } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  oclif: { topics: Parameters<typeof manPages>[1] }
}
const pages = manPages(commands, oclif.topics, '1.2.3', new Date('2026-11-24T00:00:00Z'))
const sections = (name: string): Map<string, string> =>
  new Map(
    (pages.get(name) ?? '').split(/^\.Sh /m).map((part) => {
      const end = part.indexOf('\n')
      return [part.slice(0, end), part.slice(end + 1)]
    }),
  )

test('has a page for each command and each topic', () => {
  for (const id of [...Object.keys(commands), ...Object.keys(oclif.topics)])
    expect(pages.has(`kcert-${id.replaceAll(':', '-')}.1`), id).toBe(true)
})

test('does not repeat the summary as the description, and starts no section with a paragraph macro', () => {
  const page = sections('kcert-rotate-ca.1')
  expect(page.get('NAME')).toContain("rotate a cluster's CAs in the twelve steps")
  expect(page.get('DESCRIPTION')).toMatch(/^Without \\%\\-\\-phase/)
  for (const text of pages.values()) expect(text).not.toMatch(/^\.Sh .*\n\.Pp$/m)
})

test('shows the values of a flag that takes one of a few', () => {
  expect(sections('kcert-rotate-ca.1').get('OPTIONS')).toContain(
    '.It Fl \\-pause\\-between Ar nodes|phases\n',
  )
})

test('lists --no-color after the flags of the command, and mentions once that a flag is repeatable', () => {
  const options = sections('kcert-rotate-ca.1').get('OPTIONS') ?? ''
  expect(options.lastIndexOf('.It ')).toBe(options.indexOf('.It Fl \\-no\\-color'))
  expect(options).not.toMatch(/may be repeated\.\s+May be repeated/i)
})

test('kcert(1) has examples', () => {
  expect(sections('kcert.1').get('EXAMPLES')).toContain('sudo kcert renew \\-\\-all')
})

test('shows which arguments are repeatable', () => {
  expect(sections('kcert-renew.1').get('SYNOPSIS')).toContain('.Op Ar NAME ...')
  expect(sections('kcert-kubelet-forecast.1').get('SYNOPSIS')).toContain('.Op Ar TARGET ...')
  expect(sections('kcert-verify.1').get('SYNOPSIS')).toContain('.Ar LEAF\n')
})
