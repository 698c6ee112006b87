import fc from 'fast-check'
import { expect, test } from 'vitest'
import { noPaint } from './paint.ts'
import { type Column, table, tableLines } from './table.ts'
import { wholeWidth } from './view.ts'
import { displayWidth } from './width.ts'
import '../../test/seeded.ts'

interface Row {
  status: string
  name: string
  place: string
}

const columns: Column<Row>[] = [
  { title: 'STATUS', cell: ({ status }) => status },
  { title: 'NAME', cell: ({ name }) => name, shrinkTo: 6 },
  { title: 'PLACE', cell: ({ place }) => place, shrinkTo: 8, cut: 'middle', dropRank: 1 },
]
const rows: Row[] = [
  { status: 'ok', name: '東京', place: 'pki/ca.crt' },
  { status: 'expired', name: 'apiserver-kubelet-client', place: '' },
]
const lines = (width: number) => tableLines(columns, rows, width, noPaint)

test('without a limit, shortens nothing, aligns columns by cells, and ends no line with spaces', () => {
  expect(lines(Infinity)).toEqual([
    'STATUS   NAME                      PLACE',
    'ok       東京                      pki/ca.crt',
    'expired  apiserver-kubelet-client',
  ])
})

test('shortens columns on a narrow terminal, and drops the least important one on a narrower terminal', () => {
  expect(lines(30)).toEqual([
    'STATUS   NAME       PLACE',
    'ok       東京       pki/ca.crt',
    'expired  apiserve…',
  ])
  expect(lines(22)).toEqual(['STATUS   NAME', 'ok       東京', 'expired  apiserver-ku…'])
})

test('shrinks a column to its preferred minimum, and further only when no other column can shrink', () => {
  const named: Column<Row>[] = columns.map((column) =>
    column.title === 'NAME' ? { ...column, preferredMinWidth: 20 } : column,
  )
  const row = { status: 'ok', name: 'apiserver-kubelet-client', place: 'pki/apiserver-kubelet-client.crt' }
  const cells = (width: number) => tableLines(named, [row], width, noPaint)[1]!
  expect(cells(48)).toBe('ok      apiserver-kubelet-c…  pki/apis…lient.crt')
  expect(cells(38)).toBe('ok      apiserver-kubelet-c…  pki….crt')
  expect(cells(32)).toBe('ok      apiserver-kub…  pki….crt')
})

test('leaves out columns without content', () => {
  expect(tableLines(columns, [{ status: 'ok', name: '', place: '' }], Infinity, noPaint)).toEqual([
    'STATUS',
    'ok',
  ])
})

test('lets a huge cell overflow without moving the other rows', () => {
  const monster = { status: 'ok', name: 'x'.repeat(5000), place: 'p' }
  const [, first, second] = tableLines(columns, [monster, rows[0]!], Infinity, noPaint)
  expect(first).toHaveLength(8 + 5000 + 2 + 1)
  expect(displayWidth(second!)).toBeLessThan(150)
})

test('keeps lines within the width of the terminal for hostile cells, and the unshortened column in full', () => {
  const cell = fc.string({ unit: 'binary', maxLength: 80 })
  fc.assert(
    fc.property(
      fc.array(fc.record({ status: fc.constantFrom('ok', 'not-yet-valid'), name: cell, place: cell }), {
        minLength: 1,
      }),
      fc.integer({ min: 40, max: 200 }),
      (hostile, width) => {
        const [, ...shown] = tableLines(columns, hostile, width, noPaint)
        for (const [i, line] of shown.entries()) {
          expect(displayWidth(line)).toBeLessThanOrEqual(width)
          expect(line.startsWith(hostile[i]!.status)).toBe(true)
        }
      },
    ),
  )
})

test('has no headings where the view has none', () => {
  const columns = [{ title: 'NAME', cell: (row: string) => row }]
  expect(table({ ...wholeWidth, hasHeadings: false }, ['a', 'b'], columns)).toEqual(['a', 'b'])
  expect(table(wholeWidth, ['a'], columns)).toEqual(['NAME', 'a'])
})
