import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { harmlessJson } from '../errors/hidden-text.ts'
import { harmlessYamlString, printable } from './terminal.ts'
import '../../test/seeded.ts'

// Listed individually, not by the Unicode properties that the code uses.
const hidden: Record<string, string> = {
  'a terminal escape': '\u001b[31m',
  'a bell': '\u0007',
  'a line feed': '\n',
  'a carriage return': '\r',
  DEL: '\u007f',
  'a C1 control sequence introducer': '\u009b31m',
  'a right-to-left override': '\u202e',
  'a first strong isolate': '\u2068',
  'a left-to-right mark': '\u200e',
  'an Arabic letter mark': '\u061c',
  'a zero-width space': '\u200b',
  'a zero-width joiner': '\u200d',
  'a word joiner': '\u2060',
  'a blank Braille pattern': '\u2800',
  'a soft hyphen': '\u00ad',
  'a byte order mark': '\ufeff',
  'a line separator': '\u2028',
  'a paragraph separator': '\u2029',
  'a Hangul filler': '\u3164',
  'a variation selector': '\ufe0f',
  'an interlinear annotation': '\ufff9',
  'a noncharacter': '\uffff',
  'a tag': '\u{e0041}',
  'a lone surrogate': '\ud83d',
}

describe.each(Object.entries(hidden))('%s', (_name, text) => {
  test('is shown as an escape', () => {
    const shown = printable(`admin${text}x`)
    expect(shown).toMatch(/^admin[\x20-\x7e]+x$/)
    expect(shown).toContain('\\u')
  })

  test('is an escape in JSON that parses to the original text', () => {
    const json = harmlessJson(JSON.stringify(`admin${text}x`))
    expect(json).toMatch(/^[\x20-\x7e]+$/)
    expect(JSON.parse(json)).toBe(`admin${text}x`)
  })

  test('is an escape in YAML that parses to the original text', () => {
    const yaml = harmlessYamlString(`admin${text}x`)
    expect(yaml).toMatch(/^"[\x20-\x7e\ufffd]+"$/)
    expect(parse(yaml)).toBe(`admin${text}x`.toWellFormed())
  })
})

test('keeps ordinary text unchanged', () => {
  for (const text of [
    '',
    'CN=system:node:cp1,O=system:nodes',
    'a\\,b',
    'Zürich',
    '東京 監視',
    'Ω≈ç',
    'हिन्दी',
    '😀',
    'e\u0301',
  ]) {
    expect(printable(text)).toBe(text)
  }
})

test('shows a mark without a letter, and marks stacked on one letter, as escapes', () => {
  expect(printable('\u0301admin')).toBe('\\u0301admin')
  expect(printable(`a${'\u0301'.repeat(6)}b`)).toBe(`a${'\u0301'.repeat(4)}\\u0301\\u0301b`)
})

test('keeps printable text unchanged, so that escaping twice is harmless', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      expect(printable(text)).toBe(printable(printable(text)))
    }),
  )
  expect(printable('admin\u200b')).not.toBe(printable('admin'))
})
