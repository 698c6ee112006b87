import { createHash } from 'node:crypto'
import { expect } from 'vitest'
import { type Element, elementsOf, readHtml, textOf } from './html-reading.ts'

// Rules for every page that kcert writes, whatever its content.

/**
 * Returns the page after checking that it is well formed, loads nothing and runs nothing, and that its own policy allows nothing.
 */
export function expectSelfContained(text: string): Element {
  const page = readHtml(text)
  const elements = elementsOf(page)
  const names = new Set(elements.map(({ name }) => name))
  for (const name of ['script', 'img', 'iframe', 'link', 'a', 'object', 'embed', 'form', 'base'])
    expect(names).not.toContain(name)
  for (const { attributes } of elements) {
    for (const key of Object.keys(attributes))
      expect(key).not.toMatch(/^(?:on|src$|href$|style$|srcdoc$|action$)/)
  }
  const [policy] = elements.filter(({ attributes }) => attributes['http-equiv'] === 'Content-Security-Policy')
  const [inside] = elements.filter(({ name }) => name === 'style')
  const digest = createHash('sha256').update(String(inside?.children[0])).digest('base64')
  expect(policy?.attributes.content).toBe(
    `default-src 'none'; style-src 'sha256-${digest}'; base-uri 'none'; form-action 'none'`,
  )
  expect(text).not.toMatch(/url\(|@import/)
  return page
}

/**
 * Checks the page of `rotate-ca status` after kcert was killed in the middle of a phase: complete phases, pending items with
 * their places, and how to continue.
 */
export function expectPageOfKilledRotation(text: string, killedIn: number): void {
  const page = expectSelfContained(text)
  const phases = elementsOf(page).filter(({ attributes }) => attributes['data-number'] !== undefined)
  expect(phases.map(({ attributes }) => Number(attributes['data-number']))).toEqual(
    Array.from({ length: 12 }, (_, index) => index + 1),
  )
  for (const before of phases.slice(0, killedIn - 1))
    expect([before.attributes.class, textOf(before)]).toEqual(['good', expect.stringContaining('complete')])
  const killed = phases[killedIn - 1]!
  expect(textOf(killed)).toMatch(/last run started \d{4}-\d\d-\d\d/)
  expect(textOf(killed)).toContain('Pending')
  const [gate] = elementsOf(killed).filter(({ name }) => name === 'tbody')
  expect(elementsOf(gate!).filter(({ name }) => name === 'tr').length).toBeGreaterThan(0)
  expect(textOf(page)).toMatch(
    new RegExp(`Next: kcert rotate-ca (?:--\\S+ \\S+ )*--phase ${killedIn}(?!\\d)`),
  )
  expect(text).not.toMatch(/PRIVATE KEY|BEGIN |eyJ|\b[a-z0-9]{6}\.[a-z0-9]{16}\b/)
}
