import { expect, test } from 'vitest'
import { thrownBy } from '../../test/fixtures/thrown.ts'
import { formatToken, isTokenId, newToken, parseToken } from './token.ts'

test('a token is six characters, a dot and sixteen characters, in lower-case letters and digits', () => {
  const token = parseToken('07401b.f395accd246ae52d\n')
  expect(token).toEqual({ id: '07401b', secret: 'f395accd246ae52d' })
  expect(formatToken(token)).toBe('07401b.f395accd246ae52d')
})

test.each([
  '',
  '07401b',
  '07401b.f395accd246ae52',
  '07401b.f395accd246ae52dd',
  '07401B.f395accd246ae52d',
  '07401b_f395accd246ae52d',
  '07401b.f395accd246ae52d x',
])('refuses %j, and does not repeat it in the message', (text) => {
  const error = thrownBy(() => parseToken(text))
  expect(error).toMatchObject({ code: 'KCERT_TOKEN_MALFORMED' })
  if (text.length > 8) expect(`${error.message}${error.why}${error.next}`).not.toContain(text.slice(7))
})

test('creates well-formed tokens, and draws bytes again that would favor some characters', () => {
  let draws = 0
  const random = (count: number): Uint8Array => {
    draws++
    // 252 to 255 would make a to d more likely than the rest.
    return draws === 1 ? new Uint8Array(count).fill(252) : new Uint8Array(count).fill(35)
  }
  const token = newToken(random)
  expect(draws).toBe(2)
  expect(token).toEqual({ id: '999999', secret: '9999999999999999' })
  expect(isTokenId(token.id)).toBe(true)
})
