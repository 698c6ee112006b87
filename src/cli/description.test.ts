import { expect, test } from 'vitest'
import { descriptionBlocks } from './description.ts'

test('formats a description as wrapped paragraphs, tables and code', () => {
  const text = `What it does, in lines
that are broken anywhere.

  pem         the request
  json, yaml  what was made,
              never the key

Or this:

    default:
      usages: [any]`
  expect(descriptionBlocks(text)).toEqual([
    { kind: 'text', text: 'What it does, in lines that are broken anywhere.' },
    {
      kind: 'table',
      rows: [
        ['pem', 'the request'],
        ['json, yaml', 'what was made, never the key'],
      ],
    },
    { kind: 'text', text: 'Or this:' },
    { kind: 'code', lines: ['default:', '  usages: [any]'] },
  ])
})
